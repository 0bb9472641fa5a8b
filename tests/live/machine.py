"""A small machine that knows no kernel: it carries out orders, and tells by snapshots how it stands.

It reads jobs and a platform as a world of `tests.oracle.worlds` has them. Every decision goes through JSON; with
`restart_every` the desk is made anew at each so-manieth, from its state file.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from escala.live import Desk, Orders, Snapshot, Start
from tests.oracle.energy import ledgers, merged
from tests.oracle.nodes import may_lie, parts_in
from tests.oracle.oracle import make_jobs, make_nodes
from tests.oracle.world import OFF, ON, SWITCHING_OFF, SWITCHING_ON, Job, Node, microseconds
from tests.oracle.worlds import ASKED


class Machine:
    """Jobs wait, hold cores and run; nodes switch. Times are us."""

    def __init__(self, platform: dict[str, Any], jobs: list[dict[str, Any]], start_off: bool = False) -> None:
        self.kinds = list(platform.get("resources", {}))
        self.nodes = make_nodes(platform, start_off)
        self.jobs = make_jobs(jobs, self.nodes, "error")
        self.rows = jobs
        self.asked_of = [name for name in ASKED if any(job.get(name) is not None for job in jobs)]
        self.coming = sorted(self.jobs, key=lambda job: job.submit)
        self.alive: list[Job] = []
        self.ended: list[Job] = []
        self.now = self.asked = 0
        for node in self.nodes:
            node.label = ""
            self._relabel(node)

    def run(self, make: Callable[[], Desk], state: Path, restart_every: int = 10) -> None:
        """Until the last job has ended."""
        desk = make()
        due: int | None = 0
        while True:
            events = [job.finish for job in self.alive if job.finish is not None]
            events += [node.switch_end for node in self.nodes if node.switch_end is not None]
            events += [self.coming[0].submit] if self.coming else []
            events += [due] if due is not None else []
            assert events, "jobs wait, and nothing will ever happen"
            self.now = min(events)
            self._take_in()
            if not self.coming and not self.alive:
                return
            if restart_every and self.asked and self.asked % restart_every == 0:
                desk.save(state)
                desk = make()
                desk.restore(state)
            orders = desk.decide(Snapshot.from_json(self.snapshot().to_json()))
            self.asked += 1
            self._carry_out(orders)
            due = None if orders.next_s is None else microseconds(orders.next_s)
            assert due is None or due > self.now

    def _take_in(self) -> None:
        for job in sorted((job for job in self.alive if job.finish == self.now), key=lambda job: job.row):
            job.state = "KILLED" if job.killed else "COMPLETED"
            self.alive.remove(job)
            self.ended.append(job)
            for number, cores in job.held:
                node = self.nodes[number]
                node.holders.remove((job, cores))
                if not node.holders:
                    node.idle_since = self.now
                self._relabel(node)
        for node in self.nodes:
            if node.switch_end == self.now:
                node.power = ON if node.power == SWITCHING_ON else OFF
                node.switch_end = None
                node.idle_since = self.now if node.power == ON else None
                self._relabel(node)
        while self.coming and self.coming[0].submit == self.now:
            self.coming[0].state = "waiting"
            self.alive.append(self.coming.pop(0))
        for job in self.alive:
            if job.state == "given" and all(self.nodes[number].power == ON for number, _ in job.held):
                self._begin(job)

    def _begin(self, job: Job) -> None:
        job.state, job.start, job.finish = "running", self.now, self.now + job.length
        for number, _ in job.held:
            self._relabel(self.nodes[number])

    def snapshot(self) -> Snapshot:
        """How it stands."""
        told = {"waiting": "queued", "given": "given", "running": "running"}
        jobs: dict[str, list[Any]] = {
            "job_id": [job.job_id for job in self.alive],
            "submit_s": [job.submit / 1e6 for job in self.alive],
            "walltime_s": [job.walltime_s for job in self.alive],
            "cores": [job.cores for job in self.alive],
            "state": [told[job.state] for job in self.alive],
            "start_s": [None if job.start is None else job.start / 1e6 for job in self.alive],
            "user": [job.user for job in self.alive],
        }
        demands = [f"demand_{kind}" for kind in self.kinds]
        for name in ("single_node", *self.asked_of, *demands):
            jobs[name] = [self.rows[job.row].get(name, 0 if name in demands else None) for job in self.alive]
        nodes = {
            "power": [node.power for node in self.nodes],
            "idle_since_s": [None if node.idle_since is None else node.idle_since / 1e6 for node in self.nodes],
            "switch_end_s": [None if node.switch_end is None else node.switch_end / 1e6 for node in self.nodes],
        }
        rows = [
            {"job": place, "first": number, "last": number, "cores": cores} | self._beside(job, number)
            for place, job in enumerate(self.alive)
            for number, cores in job.held
        ]
        placed = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        over, self.ended = self.ended, []
        ended = {
            "job_id": [job.job_id for job in over],
            "start_s": [(job.start or 0) / 1e6 for job in over],
            "end_s": [(job.finish or 0) / 1e6 for job in over],
        }
        return Snapshot.of(self.now / 1e6, jobs, nodes, placed, ended)

    def _beside(self, job: Job, number: int) -> dict[str, int]:
        """What it holds there beside cores, where anybody asks for more than cores: told now and then."""
        if not self.asked_of or self.asked % 2:
            return {}
        return {name: self._held(job, number, name) for name in self._columns()}

    def _columns(self) -> list[str]:
        return [{"memory": "memory_mb"}.get(kind, kind) for kind in self.kinds if kind != "licence"]

    def _held(self, job: Job, number: int, name: str) -> int:
        amounts = {kind: amount * parts_in(job, job.held)[number] for kind, amount in job.demands.items()}
        if name == "gpu":  # those of no kind
            return amounts.get(name, 0) - sum(amount for kind, amount in amounts.items() if kind.startswith("gpu:"))
        return amounts.get({"memory_mb": "memory"}.get(name, name), 0)

    def _carry_out(self, orders: Orders) -> None:
        named = {job.job_id: job for job in self.alive}
        for number in orders.offs:
            node = self.nodes[number]
            assert node.power == ON and not node.holders and node.profile.can_switch
            self._switch(node, SWITCHING_OFF, node.profile.switch_off_s)
        for number in orders.wakes:
            assert self.nodes[number].power == OFF
            self._switch(self.nodes[number], SWITCHING_ON, self.nodes[number].profile.switch_on_s)
        for start in orders.starts:
            job = named[start.job_id]
            assert job.state == "waiting"
            job.held = [(number, cores) for first, last, cores in start.nodes for number in range(first, last + 1)]
            job.state = "given"
            assert sum(cores for _, cores in job.held) == job.takes and (not job.single_node or len(job.held) == 1)
            self._check_beside(job, start)
            for number, cores in job.held:
                node = self.nodes[number]
                node.holders.append((job, cores))
                node.idle_since = None
                assert sum(cores for _, cores in node.holders) <= node.cores and node.power in (ON, SWITCHING_ON)
            if all(self.nodes[number].power == ON for number, _ in job.held):
                self._begin(job)
            assert start.waits == (job.state == "given")

    def _check_beside(self, job: Job, start: Start) -> None:
        """It lies where it may; no node holds more of anything than it has, and the order says how much."""
        assert all(may_lie(job, self.nodes[number]) for number, _ in job.held)
        for number, _ in job.held:
            here = [*(one for one, _ in self.nodes[number].holders), job]
            for kind, amount in self.nodes[number].capacity.items():
                assert sum(one.demands.get(kind, 0) * parts_in(one, one.held)[number] for one in here) <= amount
        if self.asked_of:
            first = [number for number, _, _ in start.nodes]
            expected = {name: tuple(self._held(job, number, name) for number in first) for name in self._columns()}
            assert dict(start.held) == {name: values for name, values in expected.items() if any(values)}

    def _switch(self, node: Node, power: str, seconds: float) -> None:
        node.power, node.idle_since = power, None
        node.switch_end = self.now + microseconds(seconds)
        node.entries.append((self.now, power))
        self._relabel(node)

    def _relabel(self, node: Node) -> None:
        """The node's state in the tables, and its watts, from now on."""
        p = node.profile
        loads = (job.load * cores * job.cores / job.takes for job, cores in node.holders if job.state == "running")
        work = sum(loads, Fraction(0))
        busy = any(job.state == "running" for job, _ in node.holders)
        label = ("computing" if busy else "idle") if node.power == ON else node.power
        watts = Fraction(getattr(p, f"{label}_w"))
        if busy:
            watts = Fraction(p.idle_w) + work / node.cores * (Fraction(p.computing_w) - Fraction(p.idle_w))
        if (label, watts) != (node.label, node.watts):
            if node.label:
                node.stretches.append((node.since, self.now, node.label, node.watts))
            node.since, node.label, node.watts = self.now, label, watts

    def tables(self) -> tuple[list[dict[str, Any]], ...]:
        """The tables jobs, allocations, nodes, power of a Result."""
        begin = min(job.submit for job in self.jobs)
        end = max(job.finish or 0 for job in self.jobs)
        jobs = [
            {
                "job_id": job.job_id,
                "submit_s": job.submit / 1e6,
                "start_s": (job.start or 0) / 1e6,
                "finish_s": (job.finish or 0) / 1e6,
                "wait_s": ((job.start or 0) - job.submit) / 1e6,
                "cores": job.cores,
                "walltime_s": job.walltime_s,
                "runtime_s": job.length / 1e6,
                "state": job.state,
                "nodes": merged([number for number, _ in job.held]),
            }
            for job in self.jobs
        ]
        allocations = [{"job_id": job.job_id, "node": n, "cores": cores} for job in self.jobs for n, cores in job.held]
        return (jobs, allocations, *ledgers(self, begin, end))  # type: ignore[arg-type]


class Crowded(Machine):
    """Jobs that need more than there is wait beside the others, all the time, and are refused each time."""

    def snapshot(self) -> Snapshot:
        told = super().snapshot().columns()
        jobs, most = told["jobs"], max(node.cores for node in self.nodes)
        many = sum(node.cores for node in self.nodes)
        wide = {"cores": many + 1 + self.asked % 3, "single_node": False}
        large = {"cores": most + 1, "single_node": True}
        for place, (name, one) in enumerate({"wide": wide, "large": large, "last": wide | {"cores": 10**6}}.items()):
            n = len(jobs["job_id"])
            at = (0, n // 2, n)[place]
            one = {
                "job_id": name,
                "submit_s": told["now_s"] / 2 * place,
                "walltime_s": 1.0,
                "state": "queued",
                "user": "greedy",
                **one,
            }
            for column in jobs.keys() | one.keys():
                usual = False if column == "single_node" else 0 if column.startswith("demand_") else None
                jobs.setdefault(column, [usual] * n).insert(at, one.get(column, usual))
            told["placed"]["job"] = [job + (job >= at) for job in told["placed"]["job"]]
        return Snapshot.of(told["now_s"], jobs, told["nodes"], told["placed"], told["ended"])

    def _carry_out(self, orders: Orders) -> None:
        assert sorted(one.job_id for one in orders.refused) == ["large", "last", "wide"]
        super()._carry_out(orders)


class Wilful(Machine):
    """Some orders are not carried out, some jobs are cancelled, and somebody else starts others."""

    def __init__(self, *world: Any) -> None:
        super().__init__(*world)
        self.chance = random.Random(7)

    def snapshot(self) -> Snapshot:
        waiting = [job for job in self.alive if job.state == "waiting"]
        if waiting and self.chance.random() < 0.05:
            self.alive.remove(self.chance.choice(waiting))
        free = {
            node.number: node.cores - sum(cores for _, cores in node.holders)
            for node in self.nodes
            if node.power == "on"
        }
        for job in (job for job in waiting if job in self.alive and self.chance.random() < 0.1):
            for number in [n for n, cores in free.items() if cores >= job.cores][:1]:
                super()._carry_out(Orders(0.0, (Start(job.job_id, ((number, number, job.cores),), False),)))
                free[number] -= job.cores
        return super().snapshot()

    def _carry_out(self, orders: Orders) -> None:
        starts = tuple(start for start in orders.starts if start.waits or self.chance.random() < 0.7)
        super()._carry_out(replace(orders, starts=starts))
