"""The oracle's world: jobs, nodes, the clock, and what happens when a job is started or a node is switched.

Slow and obvious on purpose: lists, plain objects and loops. It imports nothing of escala. Units: the clock is in
integer microseconds; *plan times* are integers of microseconds under "escala", exact rationals of seconds (`Fraction`)
under "batsched".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.oracle import gpus
from tests.oracle.nodes import deal, first_cores, lasts, may_lie, parts_in, times
from tests.oracle.records import (
    OFF,
    ON,
    SWITCHING_OFF,
    SWITCHING_ON,
    Allocation,
    Job,
    Node,
    Profile,
    microseconds,
)

__all__ = [
    "OFF",
    "ON",
    "SWITCHING_OFF",
    "SWITCHING_ON",
    "Allocation",
    "Job",
    "Node",
    "Profile",
    "World",
    "microseconds",
]


class World:
    """Platform and jobs at one instant. `decide` is called after the intake of every instant."""

    def __init__(
        self,
        jobs: list[Job],
        nodes: list[Node],
        rules: str,
        margin_s: float,
        estimates: tuple[str, str],
        corrections_s: Sequence[float],
    ) -> None:
        self.jobs = jobs
        self.nodes = nodes
        self.rules, self.margin_s = rules, margin_s
        self.now = 0
        self.queue: list[Job] = []  # waiting jobs in queue order
        self.lanes: list[set[int]] = []  # nodes of each queue of its own
        self.running, self.given = list[Job](), list[Job]()
        self.hold_fraction: float | None = None  # hold:X
        self.hold_cap: int | None = None  # microseconds
        self.hold_if_busy = False
        self.busy = False  # some job ran when this decision began
        self.can_change = False  # nodes may switch in this run
        self.job_ended = False  # at this instant
        self.guard: int | None = None  # microseconds; who has waited so long stands in front
        self.reservations: dict[int, tuple[Job, Any]] = {}  # easy-fast keeps them, by lane
        self.given_at: dict[int, int] = {}  # row of a job -> when it was given its cores
        self.spans: list[tuple[Job, int, int, int]] = []  # (job, from, to, cores) before nodes went or came back
        self.calls: set[int] = set()  # instants at which a decision was asked for
        self._takeable: dict[bool, Allocation] = {}  # remembered between two changes
        self.estimates = estimates  # for plans, for the order
        self.corrections_s = list(corrections_s)
        self.planned = True  # the scheduler makes plans
        self.plan_moved = False  # at this instant
        self.lengths: dict[str, list[int]] = {}  # user -> how long the runs that have ended took, us
        self.arrivals = [job for job in sorted(jobs, key=self.queue_key) if job.state == "future"]

    def queue_key(self, job: Job) -> tuple[Any, ...]:
        """Order of submission; at one instant the order of the log (escala) or of the ids as text (batsched)."""
        if self.rules == "batsched":
            return (job.submit, job.job_id, job.row)
        return (job.submit, job.row)

    def plan_time(self, clock: int) -> Any:
        """An instant of the clock as a plan time."""
        if self.rules == "batsched":
            return Fraction(clock / 10**6)  # the binary double nearest to the time with 6 decimals, taken exactly
        return clock

    def plan_length(self, job: Job) -> Any:
        """The length that plans give to a job."""
        if self.rules == "batsched":
            return Fraction(job.seen_s) + Fraction(self.margin_s)
        return microseconds(job.seen_s) + microseconds(self.margin_s)

    def clock_of(self, plan_time: Any) -> int:
        if self.rules == "batsched":
            return math.floor(Fraction(plan_time) * 10**6 + Fraction(1, 2))
        return int(plan_time)

    def cores_there(self, job: Job) -> int:
        """Cores that it asks for, without those that it has on nodes that are gone."""
        return max(0, job.cores - sum(count for number, count in job.held if number in job.gone))

    def refresh(self) -> None:
        """Forget what was remembered about takeable cores."""
        self._takeable.clear()

    def waited_the_guard(self, job: Job) -> bool:
        return self.guard is not None and self.now - job.submit >= self.guard

    # --- how long jobs are expected to run ----------------------------------------------------------
    def arrive(self, job: Job) -> None:
        """At submission: what is expected of the job."""
        job.seen_s = self.expected(job, self.estimates[0], job.speeds)
        job.order_s = self.expected(job, self.estimates[1], ())
        job.patience_s = job.seen_s if self.estimates[0] == "runtime" else job.walltime_s

    def expected(self, job: Job, which: str, speeds: Sequence[float]) -> float:
        if which == "walltime":
            return job.walltime_s
        if which == "runtime":
            return min(lasts(job, speeds) / 10**6, job.walltime_s)
        if which == "last2":
            last = self.lengths.get(job.user, [])[-2:] if job.user is not None else []
            return min(sum(last) // len(last) / 10**6, job.walltime_s) if last else job.walltime_s
        assert job.column_s is not None
        return min(job.column_s, job.walltime_s)

    def move_plans(self) -> bool:
        """Jobs that run on though their planned end has come get a later one; was there any?"""
        self.plan_moved = False
        while True:
            late = [job for job in self.running if self.clock_of(job.planned_end) <= self.now]
            if not self.planned or self.estimates[0] in ("walltime", "runtime") or not late:
                return self.plan_moved
            self.plan_moved = True
            for job in late:
                assert job.start is not None
                limit = self.plan_time(job.start) + self.span(job.walltime_s) + self.span(self.margin_s)
                step = self.corrections_s[job.moves] if job.moves < len(self.corrections_s) else None
                job.planned_end = limit if step is None else min(job.planned_end + self.span(step), limit)
                job.moves += 1

    def span(self, seconds: float) -> Any:
        return Fraction(seconds) if self.rules == "batsched" else microseconds(seconds)

    def hold_end(self, job: Job) -> int:
        """hold:X: until this instant the job may not be given nodes that are not on, as things are."""
        if self.hold_fraction is None or (self.hold_if_busy and not self.busy):
            return job.submit
        return self.patience_ends(job)

    def patience_ends(self, job: Job) -> int:
        """hold:X: when the job has waited its share of the walltime, or as long as any job has to."""
        assert self.hold_fraction is not None
        wait = microseconds(self.hold_fraction * job.patience_s)
        return job.submit + (wait if self.hold_cap is None else min(wait, self.hold_cap))

    def only_on(self, job: Job, strict: bool) -> bool:
        return strict or self.now < self.hold_end(job)

    def ranked_nodes(self, only_on: bool) -> list[Node]:
        """Nodes in the order in which cores are taken: on, then switching on, then off; by number."""
        ranked = [node for node in self.nodes if node.power == ON]
        if not only_on:
            ranked += [node for node in self.nodes if node.power == SWITCHING_ON]
            ranked += [node for node in self.nodes if node.power == OFF and not node.reserved]
        return [node for node in ranked if not node.barred]

    def takeable(self, job: Job, strict: bool = False) -> Allocation:
        """Free cores that the job may be given now, in the order in which they are taken."""
        only_on = self.only_on(job, strict)
        if only_on not in self._takeable:
            self._takeable[only_on] = [
                (n.number, self.free_on(n)) for n in self.ranked_nodes(only_on) if self.free_on(n) > 0
            ]
        return self._takeable[only_on]

    def free_on(self, node: Node, kind: str = "cores") -> int:
        """Free amount of a resource kind on a node, whatever the node's state."""
        if kind == "cores":
            return node.cores - sum(count for _, count in node.holders)
        return node.capacity.get(kind, 0) - sum(
            job.demands.get(kind, 0) * job.parts_on[node.number] for job, _ in node.holders
        )

    def room_now(self, node: Node, job: Job) -> int:
        """For how many parts of the job there is room on the node now."""
        if not may_lie(job, node):
            return 0
        return times(job, self.free_on(node), lambda kind: self.free_on(node, kind))

    def place(self, job: Job, strict: bool = False) -> Allocation | None:
        """What the job would get if it were started now; None: it does not fit now."""
        if job.parts is None:
            return first_cores(self.takeable(job, strict), job.cores)
        return deal(job, self.ranked_nodes(self.only_on(job, strict)), lambda node: self.room_now(node, job))

    def ready_at(self, place: Allocation) -> int:
        """The instant at which all nodes of this place can be on, if they were given now."""
        ready = self.now
        for number, _ in place:
            node = self.nodes[number]
            if node.power == SWITCHING_ON:
                assert node.switch_end is not None
                ready = max(ready, node.switch_end)
            elif node.power == OFF:
                ready = max(ready, self.now + microseconds(node.profile.switch_on_s))
        return ready

    def planned_end(self, job: Job, place: Allocation) -> Any:
        """The planned end if the job were given this place now: readiness + walltime (+ margin)."""
        return self.plan_time(self.ready_at(place)) + self.plan_length(job)

    def launch(self, job: Job, place: Allocation) -> None:
        """Give the job its cores; it starts now if all their nodes are on, else when the last of them is."""
        assert job.state == "waiting" and sum(count for _, count in place) == job.takes
        job.planned_end = self.planned_end(job, place)
        job.held = sorted(place)
        job.parts_on = parts_in(job, place)
        job.plan = None
        self.queue.remove(job)
        self.given.append(job)
        job.state = "given"
        self.given_at[job.row] = self.now
        for number, count in place:
            node = self.nodes[number]
            assert 0 < count <= self.free_on(node)
            node.holders.append((job, count))
            node.idle_since = None
            node.timer = None
            if node.power == OFF:
                self.switch_on(node)
            self.changed(node)
        self.start_if_ready(job)

    def start_if_ready(self, job: Job) -> None:
        if all(self.nodes[number].power == ON for number, _ in job.held):
            self.given.remove(job)
            self.running.append(job)
            job.state = "running"
            job.start = self.now
            for number, _ in job.held:
                self.changed(self.nodes[number])

    def end(self, job: Job) -> None:
        job.finish = self.now
        job.state = "KILLED" if job.killed else "COMPLETED"
        if job.user is not None:
            self.lengths.setdefault(job.user, []).append(job.length)
        self.running.remove(job)
        for number, _ in job.held:
            node = self.nodes[number]
            node.holders = [holder for holder in node.holders if holder[0] is not job]
            self.note_idle(node)
            self.changed(node)

    def note_idle(self, node: Node) -> None:
        """Begin an idle period if the node is on with no core busy or given."""
        if self.is_idle(node):
            node.idle_since = self.now

    def is_idle(self, node: Node) -> bool:
        return node.power == ON and not node.holders

    def switch_on(self, node: Node) -> None:
        assert node.power == OFF
        self.begin_switch(node, SWITCHING_ON, node.profile.switch_on_s)

    def switch_off(self, node: Node) -> None:
        assert self.is_idle(node) and node.profile.can_switch
        node.idle_since = None
        node.timer = None
        self.begin_switch(node, SWITCHING_OFF, node.profile.switch_off_s)

    def begin_switch(self, node: Node, state: str, seconds: float) -> None:
        node.power = state
        node.switch_end = self.now + microseconds(seconds)
        node.entries.append((self.now, state))
        self.changed(node)

    def end_switch(self, node: Node) -> None:
        node.power = ON if node.power == SWITCHING_ON else OFF
        node.switch_end = None
        self.note_idle(node)
        self.changed(node)

    def changed(self, node: Node) -> None:
        """Close the ledger's open stretch if the node's state or watts differ now."""
        self.refresh()
        label, watts = self.draw(node)
        if (label, watts) != (node.label, node.watts):
            if self.now > node.since:
                node.stretches.append((node.since, self.now, node.label, node.watts))
            node.since, node.label, node.watts = self.now, label, watts

    def draw(self, node: Node) -> tuple[str, Fraction]:
        """State for the tables and power in watts, exactly."""
        profile = node.profile
        if node.power == SWITCHING_ON:
            return "switching_on", Fraction(profile.switching_on_w)
        if node.power == SWITCHING_OFF:
            return "switching_off", Fraction(profile.switching_off_w)
        if node.power == OFF:
            return "off", Fraction(profile.off_w)
        computing = [(job, count) for job, count in node.holders if job.state == "running"]
        idle = gpus.idle_of(node)
        if not computing:
            return "idle", idle
        use = sum((job.load * count * job.cores / job.takes for job, count in computing), Fraction(0)) / node.cores
        own = use * (Fraction(profile.computing_w) - Fraction(profile.idle_w))
        return "computing", idle + own + sum((gpus.more_of(node, job) for job, _ in computing), Fraction(0))
