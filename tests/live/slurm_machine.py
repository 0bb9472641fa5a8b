"""A machine that is asked by Slurm's rules: jobs of all shapes, in partitions that overlap, decision by decision
through JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import escala
from escala.kernel.slurm import tables as t
from escala.live import Snapshot
from escala.live.shapes import ASKED, MEMORY
from escala.live.slurm_desk import SlurmDesk
from escala.platform.closures import DRAIN, RESERVED, Closure
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.run import play
from tests.laws import test_slurm_laws, test_slurm_limits

Row = dict[str, Any]
MOST_ASKED = 20_000
TOLD = (*ASKED, "user", "partition", "single_node", "job_id", "walltime_s", "cores")


class Asked:
    """A workload on a site, twice: `inside`, and asked from outside. Jobs run as long as they did inside."""

    def __init__(self, site: Any, jobs: escala.Workload) -> None:
        settings = settings_of(site)
        self.site, self.log = site, jobs
        self.inside = play(jobs, site, settings, Asking(jobs, site, settings).asked())
        self.lengths = self.inside.jobs.finish - self.inside.jobs.start
        told = jobs.jobs.select([name for name in TOLD if name in jobs.jobs.columns]).to_dicts()
        submit = self.inside.jobs.submit.tolist()
        self.coming: list[Row] = [
            one | {"row": j, "submit": submit[j], "state": "queued"} for j, one in enumerate(told)
        ]
        self.alive: list[Row] = []
        self.starts: dict[str, tuple[int, Any]] = {}
        known = [(one, begins) for one in site.closed if one.kind == DRAIN for begins in (one.from_s, one.until_s)]
        self.turns = sorted({round((begins - jobs.origin_s) * t.SECOND) for _, begins in known})
        self.asked, self.now = 0, -1

    def run(self, folder: Path, restart_every: int = 10) -> SlurmDesk:
        """Until the last job has ended."""
        desk = SlurmDesk(self.site, origin_s=self.log.origin_s)
        due: int | None = None
        jobs = int((self.inside.jobs.state == t.ENDED).sum())
        while len(self.starts) < jobs or any(one["state"] == "running" for one in self.alive):
            events = [one["end"] for one in self.alive if one["state"] == "running"] + [
                one["submit"] for one in self.coming[:1]
            ]
            events += [at for at in self.turns if at > self.now][:1]
            now = self.now = min(events + ([due] if due is not None else []))
            self.alive = [one for one in self.alive if one.get("end") != now]
            while self.coming and self.coming[0]["submit"] == now:
                one = self.coming.pop(0)
                if self.inside.jobs.state[one["row"]] != t.NEVER:  # which Slurm refuses as it comes
                    self.alive.append(one)
            if restart_every and self.asked % restart_every == 0:
                desk.save(folder / "desk.json")
                desk = SlurmDesk(self.site, origin_s=self.log.origin_s)
                desk.restore(folder / "desk.json")
            orders = desk.decide(Snapshot.from_json(self.snapshot(now).to_json()))
            self.asked += 1
            for start in orders.starts:
                self._begin(start, now)
            assert self.asked < MOST_ASKED, "jobs wait, and nothing begins"
            due = None if orders.next_s is None else round(orders.next_s * t.SECOND)
            assert due is None or due > now
        return desk

    def _begin(self, start: Any, now: int) -> None:
        job = next(one for one in self.alive if one["job_id"] == start.job_id)
        assert job["state"] == "queued" and start.partition in (job.get("partition") or start.partition).split(",")
        cores = sum((high - low + 1) * per for low, high, per in start.nodes)
        job |= {"state": "running", "start": now, "end": now + int(self.lengths[job["row"]]), "cores": cores}
        job |= {"partition": start.partition, "where": start.nodes, "held": dict(start.held)}
        self.starts[start.job_id] = (now, (start.nodes, start.held))

    def snapshot(self, now: int) -> Snapshot:
        """How it stands."""
        names = [name for name in TOLD if name in self.log.jobs.columns] + ["state"]
        jobs = {name: [one.get(name) for one in self.alive] for name in names}
        jobs |= {"submit_s": [one["submit"] / t.SECOND for one in self.alive]}
        jobs |= {"start_s": [one["start"] / t.SECOND if one["state"] == "running" else None for one in self.alive]}
        rows = [
            (k, *part, one["held"], at)
            for k, one in enumerate(self.alive)
            for at, part in enumerate(one.get("where", ()))
        ]
        placed: dict[str, list[int]] = {
            name: [row[k] for row in rows] for k, name in enumerate(("job", "first", "last", "cores"))
        }
        for name in sorted({name for row in rows for name in row[4]}):
            placed[name] = [row[4][name][row[5]] if name in row[4] else 0 for row in rows]
        nodes = range(self.site.n_nodes)
        return Snapshot.of(
            now / t.SECOND,
            jobs,
            {"power": ["on" for _ in nodes], "gone": [self._drained(n, now) for n in nodes]},
            placed,
        )

    def _drained(self, n: int, now: int) -> bool:
        when = now / t.SECOND + self.log.origin_s
        return any(
            one.kind == DRAIN and n in one.nodes and one.from_s <= when < one.until_s for one in self.site.closed
        )

    def differences(self) -> list[str]:
        """Jobs that began at another time, or on other nodes, or with other shares of them."""
        found = []
        run = self.inside
        for name, j in zip(self.log.jobs["job_id"], range(len(self.log)), strict=True):
            if run.jobs.state[j] != t.ENDED:
                continue
            rows = range(int(run.jobs.first[j]), int(run.jobs.last[j]))
            inside = [(int(run.allocated.node[k]), int(run.allocated.cpus[k]), *self._inside_held(k)) for k in rows]
            when, (nodes, held) = self.starts[name]
            parts = [
                (range(low, high + 1), per, *self._outside_held(dict(held), at))
                for at, (low, high, per) in enumerate(nodes)
            ]
            outside = [(node, *more) for some, *more in parts for node in some]
            if (when, outside) != (int(run.jobs.start[j]), inside):
                found.append(
                    f"job {name}: {int(run.jobs.start[j])} {inside} inside, {when} {outside} asked from outside"
                )
        return found

    def _inside_held(self, k: int) -> tuple[int, ...]:
        return int(self.inside.allocated.memory[k]), int(self.inside.allocated.gpus[k].sum())

    def _outside_held(self, held: dict[str, Any], at: int) -> tuple[int, ...]:
        return held.get(MEMORY, [0] * (at + 1))[at], sum(values[at] for name, values in held.items() if name != MEMORY)


def with_closed(world: tuple[Any, escala.Workload], seed: int, kind: str) -> tuple[Any, escala.Workload]:
    """The same, and half of the nodes are closed twice for 200 s. Of drains a desk knows nothing beforehand: snapshots
    tell.

    A drain of nodes that are drained already is no news in a snapshot, and it is to slurmctld: the same nodes are
    closed one time after the other.
    """
    site, jobs = world
    draw = np.random.default_rng([seed, 5])
    spans = [jobs.origin_s + float(draw.integers(0, 500)) for _ in range(2)]
    nodes = [tuple(sorted(draw.choice(site.n_nodes, max(1, site.n_nodes // 2), replace=False).tolist())) for _ in spans]
    if nodes[0] == nodes[1]:
        spans[1] = spans[0] + 300.0
    closed = tuple(Closure(some, begins, begins + 200.0, kind) for some, begins in zip(nodes, spans, strict=True))
    return replace(site, closed=closed), jobs


def site_world(number: int, folder: Path) -> tuple[Any, escala.Workload]:
    """World `number`: by turns shapes, limits, shapes with reservations, shapes with drains."""
    seed, turn = divmod(number, 4)
    if turn == 1:
        return test_slurm_limits.world(seed, folder)
    world = test_slurm_laws.world(seed, folder)
    return world if turn == 0 else with_closed(world, seed, RESERVED if turn == 2 else DRAIN)
