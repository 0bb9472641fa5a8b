"""Guards: the only way from what a policy wants to a command. What they let through bears their seal; nobody acts on
anything else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from escala.bridges.slurm.commands import job as job_name
from escala.bridges.slurm.commands import name as plain_name
from escala.bridges.slurm.seen import ON_NODES, PENDING, Node, Reservation, Seen
from escala.bridges.slurm.snapshots import OFF, ON, PREFIX, SINKING, Layout, foreign, gone, power_of, waits
from escala.errors import EscalaError

OFF_NODE, WAKE, LEASE, RENEW, FREE, NICE = "off", "wake", "lease", "renew", "free", "nice"
"""What may be wanted: switch off under a new lease, switch on, lease a node that is off, renew a lease, give it up, set
a job's nice."""

MINUTE_S = 60.0
FIRST_ASIDE_S, MOST_ASIDE_S = 600.0, 86400.0
CALM_LOOKS = 3
MOST_BOOTS = 3
"""Boots that fail in a row before no node is woken while one is set aside: what is broken is not the node."""
MOST_NICE = 2_000_000_000
UNMET_S = 60.0
"""How long Slurm may leave a job waiting that the policy starts on nodes that are on, before nodes that are kept off
get the blame."""
BOOTS = 2
"""For how many boots' time the leases are given up then; what waits on waits for something else."""


class Wanted(NamedTuple):
    """kind, the node or job, and of nice its value."""

    kind: str
    name: str
    value: int = 0


@dataclass(frozen=True)
class Allowed:
    """What a guard let through. seal: the guard's."""

    wanted: Wanted
    seal: object


@dataclass(frozen=True)
class Limits:
    """spare: nodes that stay on and idle. switches: a minute, of all nodes, off and on each by itself. changes: of jobs
    a minute.
    most_off: nodes (None: all). min_on_s, min_off_s: of a node. longest_wait_s: a job that has waited longer for nodes
    alone goes before all; one that has done so while leases kept nodes off ends all of them.
    boot_s: what a node may take to be on. lease_s: of a reservation. allowed: the nodes that may be switched."""

    spare: int = 1
    switches: int = 6
    changes: int = 60
    most_off: int | None = None
    min_on_s: float = 300.0
    min_off_s: float = 60.0
    longest_wait_s: float = 4 * 3600.0
    boot_s: float = 600.0
    lease_s: float = 300.0
    allowed: frozenset[str] = frozenset()


@dataclass
class Memory:
    """switched, woken, changed: when nodes were switched off, on, jobs changed. off_at, woken_at: node -> when we did
    that. on_since: node -> when it was first seen on after it was off. boots: node -> failed boots, and until when it
    is set aside. down: those of them that Slurm has marked down since. in_a_row: boots that failed since one went well,
    or since an operator resumed a node. unmet: job -> since when the policy has started it on nodes that are on, and
    Slurm has not. free: jobs that waited for nodes alone at the last look, looked_s. waited: job -> for how long it has
    done so in all, s; caused: for how much of that leases kept nodes off."""

    switched: list[float] = field(default_factory=list)
    woken: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    off_at: dict[str, float] = field(default_factory=dict)
    woken_at: dict[str, float] = field(default_factory=dict)
    on_since: dict[str, float] = field(default_factory=dict)
    boots: dict[str, list[float]] = field(default_factory=dict)
    down: list[str] = field(default_factory=list)
    in_a_row: int = 0
    unmet: dict[str, float] = field(default_factory=dict)
    free: list[str] = field(default_factory=list)
    looked_s: float | None = None
    waited: dict[str, float] = field(default_factory=dict)
    caused: dict[str, float] = field(default_factory=dict)


class Guard:
    """known: is the version of Slurm one that was tried? period_s: between looks. owns: says which leases are ours."""

    def __init__(
        self,
        at: Layout,
        limits: Limits,
        known: bool,
        period_s: float,
        owns: Callable[[Reservation], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at, self.limits, self._known, self._period_s = at, limits, known, period_s
        self.owns, self.monotonic = owns, monotonic
        self.memory = Memory()
        self.seal = object()
        self._clock: tuple[float, float] | None = None
        self._jumped = False
        self._errors, self._calm = 0, CALM_LOOKS
        self._off_before: set[str] = set()

    def failed(self) -> None:
        """A look or a command failed."""
        self._errors += 1
        if self._errors >= 2:
            self._calm = 0

    def look(self, seen: Seen) -> None:
        """Before anything is asked for at a look: the clock, how long jobs have waited, boots that failed, nodes that
        came on."""
        self._time(seen)
        self._wait(seen)
        memory, now = self.memory, seen.now_s
        memory.switched = [when for when in memory.switched if when > now - MINUTE_S]
        memory.woken = [when for when in memory.woken if when > now - MINUTE_S]
        memory.changed = [when for when in memory.changed if when > now - MINUTE_S]
        for name in self._at.names:
            node = seen.nodes[name]
            down, state = "DOWN" in node.state, power_of(node)
            if not down and name in memory.down:  # an operator has resumed it, and knows why
                memory.down.remove(name)
                memory.boots[name][1] = now
                memory.in_a_row = 0
            if state == ON and not down:
                if name in memory.woken_at or name in self._off_before:
                    memory.on_since[name] = now
                    memory.boots.pop(name, None)
                    memory.in_a_row = 0
                memory.woken_at.pop(name, None)
                self._off_before.discard(name)
                continue
            self._off_before.add(name)
            self._boot(name, down, now)

    def _wait(self, seen: Seen) -> None:
        """Jobs that were free at the last look and are so now have waited meanwhile. Time in which a job is held, or
        waits for a dependency, a begin time or a limit of its user, does not count."""
        memory = self.memory
        spent = 0.0 if memory.looked_s is None else max(seen.now_s - memory.looked_s, 0.0)
        before, memory.looked_s = set(memory.free), seen.now_s
        memory.free = [name for name, job in seen.jobs.items() if waits(job, self._at)]
        kept = any(map(self.owns, seen.reservations.values()))
        for counts in (memory.waited, *([memory.caused] if kept else [])):
            counts.update({name: counts.get(name, 0.0) + spent for name in memory.free if name in before})
        if not seen.left_out:  # else a job that is missing may still be there
            free = set(memory.free)
            for counts in (memory.waited, memory.caused):
                for name in [name for name in counts if name not in free and not _pending(seen, name)]:
                    del counts[name]

    def _boot(self, name: str, down: bool, now: float) -> None:
        """Of a node that is not on: has its boot failed?"""
        memory = self.memory
        late = name in memory.woken_at and now > memory.woken_at[name] + self.limits.boot_s
        if name in memory.woken_at and (down or late):
            count = memory.boots.get(name, [0.0, 0.0])[0] + 1
            memory.boots[name] = [count, now + min(FIRST_ASIDE_S * 2 ** (count - 1), MOST_ASIDE_S)]
            memory.in_a_row += 1
            del memory.woken_at[name]
        if down and name in memory.boots and name not in memory.down:
            memory.down.append(name)

    def _time(self, seen: Seen) -> None:
        before, self._clock = self._clock, (seen.now_s, self.monotonic())
        self._jumped = False
        if before is not None:
            wall, true = self._clock[0] - before[0], self._clock[1] - before[1]
            self._jumped = abs(wall - true) > max(5.0, self._period_s)

    def good(self) -> None:
        """A look went well, with all that was done about it."""
        self._errors = 0
        self._calm = min(self._calm + 1, CALM_LOOKS)

    def aside(self, now: float) -> set[str]:
        """Nodes that are set aside since they did not boot."""
        return {name for name, (_, until) in self.memory.boots.items() if until > now}

    def blocked(self, seen: Seen, decided_s: float, since_read_s: float) -> str:
        """Why nothing at all may be done now; "" where something may."""
        if not self._known:
            return "version"
        if self._jumped:
            return "clock"
        if self._calm < CALM_LOOKS:
            return "errors"
        if self.stale(seen, since_read_s):
            return "stale"
        return "slow" if decided_s > self._period_s else ""

    def stale(self, seen: Seen, since_read_s: float) -> bool:
        """Is what was seen too old to act on?"""
        return seen.took_s + since_read_s > 3 * self._period_s

    def late(self) -> frozenset[str]:
        """Jobs that have waited for nodes alone longer than anybody shall, as of the last look: whatever held them
        back."""
        return self._longer(self.memory.waited)

    def overdue(self) -> frozenset[str]:
        """Those that have done so while leases kept nodes off."""
        return self._longer(self.memory.caused)

    def _longer(self, waits_s: Mapping[str, float]) -> frozenset[str]:
        return frozenset(name for name in self.memory.free if waits_s.get(name, 0.0) > self.limits.longest_wait_s)

    def wish(self, seen: Seen, starts: Mapping[str, Iterable[str]]) -> None:
        """What the policy starts at this look: job -> nodes."""
        known = self.memory.unmet
        on = [job for job, names in starts.items() if all(power_of(seen.nodes[name]) == ON for name in names)]
        self.memory.unmet = {job: known.get(job, seen.now_s) for job in on}

    def held_up(self, seen: Seen) -> str:
        """Why no node may be kept off now; "" where some may. Leases kept a job waiting for too long; or Slurm does not
        start one that the policy has started on nodes that are on: it needs others, of which the policy knows nothing
        (features, memory, names)."""
        if self.overdue():
            return "longest-wait"
        first = max(UNMET_S, 2 * self._period_s)
        last = first + BOOTS * self.limits.boot_s
        return "unmet" if any(first < seen.now_s - since <= last for since in self.memory.unmet.values()) else ""

    def claimed(self, seen: Seen) -> frozenset[str]:
        """Nodes that jobs of other partitions wait for: the policy does not see these."""
        here = self._at.partition
        strangers = [job for job in seen.jobs.values() if here not in job.partition.split(",") and job.free]
        parts = {part for job in strangers for part in job.partition.split(",")}
        return frozenset(name for name in self._at.names if parts.intersection(seen.nodes[name].partitions))

    def sort(
        self, seen: Seen, wanted: Iterable[Wanted], unsure: Set[str] = frozenset(), done: bool = True
    ) -> tuple[list[Allowed], list[list[str]]]:
        """What may be done, and what not: kind, name, which guard. unsure: nodes of which nothing certain is known.
        done: it will be done, and counts from now."""
        allowed: list[Allowed] = []
        refused: list[list[str]] = []
        held, usable, off = self.held_up(seen), self._idle(seen, unsure), self._off(seen)
        others, claimed = foreign(seen), self.claimed(seen)
        for one in wanted:
            why = (
                self._job(seen, one)
                if one.kind == NICE
                else self._node(seen, one, "others-wait" if one.name in claimed else held, others)
            )
            if not why and one.kind == OFF_NODE:
                why = self._spare(one.name, usable, off)
                if not why:
                    usable.discard(one.name)
                    off.add(one.name)
            if why:
                refused.append([one.kind, one.name, why])
                continue
            if done:
                self._remember(one, seen.now_s)
            allowed.append(Allowed(one, self.seal))
        return allowed, refused

    def changes_left(self) -> int:
        """How many jobs may be changed yet in this minute, as of the last look."""
        return max(self.limits.changes - len(self.memory.changed), 0)

    def _remember(self, one: Wanted, now: float) -> None:
        memory = self.memory
        if one.kind in (OFF_NODE, WAKE):
            (memory.switched if one.kind == OFF_NODE else memory.woken).append(now)
            (memory.off_at if one.kind == OFF_NODE else memory.woken_at)[one.name] = now
        if one.kind == NICE:
            memory.changed.append(now)

    def forget(self, one: Wanted, now: float) -> None:
        """What was let through at a look has not been done after all."""
        memory = self.memory
        if one.kind in (OFF_NODE, WAKE):
            (memory.switched if one.kind == OFF_NODE else memory.woken).remove(now)
            (memory.off_at if one.kind == OFF_NODE else memory.woken_at).pop(one.name, None)
        if one.kind == NICE:
            memory.changed.remove(now)

    def _idle(self, seen: Seen, unsure: Set[str]) -> set[str]:
        """Nodes that are on, idle and usable."""
        others, busy = foreign(seen), _held(seen)
        nodes = (seen.nodes[name] for name in self._at.names)
        return {
            one.name
            for one in nodes
            if _idle(one) and not gone(one, others) and one.name not in busy and one.name not in unsure
        }

    def _off(self, seen: Seen) -> set[str]:
        return {name for name in self._at.names if power_of(seen.nodes[name]) in (OFF, SINKING)}

    def _spare(self, name: str, usable: set[str], off: set[str]) -> str:
        if name not in usable:
            return "busy"
        if len(usable) - 1 < self.limits.spare:
            return "spare"
        return "most-off" if self.limits.most_off is not None and len(off) >= self.limits.most_off else ""

    def _job(self, seen: Seen, one: Wanted) -> str:
        """Why a job may not be changed; "" where it may."""
        job_name(one.name)
        job = seen.jobs.get(one.name)
        if job is None or job.state != PENDING or not one.name.isdigit():
            return "not-waiting"
        if abs(one.value) > MOST_NICE:
            return "range"
        if not self.changes_left():
            return "rate"
        return "longest-wait" if one.value > job.nice and one.name in self.late() else ""

    def _node(self, seen: Seen, one: Wanted, held: str, others: frozenset[str]) -> str:
        """Why nothing may be done with a node; "" where it may. held: why it may not be kept off."""
        plain_name(one.name)
        limits, memory, now = self.limits, self.memory, seen.now_s
        if one.name not in self._at.index or one.name not in limits.allowed:
            return "not-allowed"
        node = seen.nodes[one.name]
        lease = seen.reservations.get(PREFIX + one.name)
        mine = lease is not None and self.owns(lease)
        if one.kind == FREE:
            return "" if mine else "no-lease"
        if gone(node, others) or (one.kind == WAKE and one.name in self.aside(now)):
            return "set-aside" if one.name in memory.boots else "unusable"
        if one.kind in (LEASE, RENEW):
            why = held or ("on" if power_of(node) == ON else "")
            return why or ("no-lease" if one.kind == RENEW and not mine else "")
        if len(memory.woken if one.kind == WAKE else memory.switched) >= limits.switches:
            return "rate"
        if one.kind == WAKE:
            if memory.in_a_row >= MOST_BOOTS and self.aside(now):
                return "boots"
            early = now - memory.off_at.get(one.name, -1e18) < limits.min_off_s
            return "not-off" if power_of(node) != OFF else "min-off" if early else ""
        if held:
            return held
        early = now - memory.on_since.get(one.name, -1e18) < limits.min_on_s
        return "not-idle" if not _idle(node) else "min-on" if early else ""

    def told(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return vars(self.memory) | {"off_before": sorted(self._off_before)}

    def restore(self, told: Any) -> None:
        """Go on from what `told` gave; EscalaError for anything else."""
        try:
            kept = dict(told)
            self._off_before = set(map(str, kept.pop("off_before")))
            self.memory = Memory(**kept)
        except (TypeError, ValueError, KeyError):
            raise EscalaError("what the guards remember is not told: begin without the state") from None


def _idle(node: Node) -> bool:
    """Is it on, with nothing on it and nothing on its way?"""
    return power_of(node) == ON and node.allocated == 0 and "IDLE" in node.state and "COMPLETING" not in node.state


def _pending(seen: Seen, name: str) -> bool:
    return name in seen.jobs and seen.jobs[name].state == PENDING


def _held(seen: Seen) -> set[str]:
    """Nodes that jobs hold, whatever the nodes say of it."""
    return {host for job in seen.jobs.values() if job.state in ON_NODES for host in job.hosts}
