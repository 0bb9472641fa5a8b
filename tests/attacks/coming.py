"""Two logs that differ in the jobs to come alone: until these come, a policy must see the same, to the bit.

Worlds are drawn: sites with partitions, features, memory and kinds of GPUs, jobs that ask for some of it. Each column
of either log may be one that only jobs to come fill.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import escala
from escala.envs.slots.heuristics import RULES
from escala.envs.slots.policy import SlotPolicy
from escala.errors import EscalaError
from escala.platform import Platform, Site
from escala.platform.site import Partition

APART_S = 1000.0
"""When the logs begin to differ."""
WORLDS = 12  # of each kind of policy
PROFILE = escala.read_platform("1x1:grid5000").profiles
GPUS = {"a": "gpu:a", "b": "gpu:b"}


def site(rng: random.Random) -> Site:
    """A few nodes of unlike sizes, in one partition or several that may share nodes."""
    n = rng.randint(2, 6)
    names = tuple(f"n{k}" for k in range(n))
    parts = [Partition("all", tuple(range(n)), default=True)]
    if rng.random() < 0.6:
        few = tuple(sorted(rng.sample(range(n), rng.randint(1, n))))
        parts.append(Partition("some", few, exclusive=rng.random() < 0.3))
        parts.append(Partition("rest", tuple(k for k in range(n) if k not in few) or (0,)))
    gpus = {kind: np.array([rng.randint(0, 2) for _ in names]) for kind in GPUS.values()}
    resources = {"memory": np.array([rng.choice((50, 100)) for _ in names]), "gpu": sum(gpus.values()), **gpus}
    return Site(
        "drawn",
        np.array([rng.choice((1, 4, 4, 8)) for _ in names]),
        PROFILE,
        np.zeros(n, np.int64),
        resources=resources,
        names=names,
        features=tuple(tuple(one for one in "xyz" if rng.random() < 0.5) for _ in names),
        partitions=tuple(parts),
    )


def jobs(rng: random.Random, platform: Site, first_s: float, last_s: float, most: int) -> list[dict[str, Any]]:
    """Jobs that come between these times, each with some of what may be asked for."""
    users, asks, out = rng.sample("abcdefgh", 3), rng.sample(range(9), rng.randint(0, 5)), []
    for _ in range(rng.randint(1, most)):
        walltime = float(rng.choice((60, 300, 900)))
        row: dict[str, Any] = {
            "submit_s": float(rng.randint(int(first_s), int(last_s))),
            "runtime_s": walltime * rng.choice((0.3, 0.7, 1.0)),
            "walltime_s": walltime,
            "cores": rng.randint(1, 6),
            "user": rng.choice((*users, None)),
            "single_node": rng.random() < 0.2,
        }
        told: tuple[dict[str, Any], ...] = (
            {"features": rng.choice(("x", "y|z", "x&y"))},
            {"memory_mb_per_node": rng.choice((10, 40, 80))},
            {"gpus_per_node": 1, "gpu_kind": rng.choice((*GPUS, None))},
            {"nodes": rng.randint(1, min(row["cores"], 2)), "single_node": False},
            {"tasks": rng.randint(2, 3), "cores_per_task": rng.randint(1, 2), "single_node": False},
            {"excluded_nodes": rng.choice(platform.names)},
            {"partition": rng.choice([one.name for one in platform.partitions])},
            {"account": rng.choice("pqr"), "qos": rng.choice("uvw"), "queue": rng.choice("klm")},
            {"exclusive": rng.random() < 0.5},
        )
        for k in asks:
            row |= told[k] if rng.random() < 0.6 else {}
        out.append(row)
    last = {"submit_s": last_s, "runtime_s": 1.0, "walltime_s": 60.0, "cores": 1, "single_node": False}
    out.append(last)  # a run goes so far, even if all others can never run
    return sorted(out, key=lambda row: row["submit_s"])


def log(rows: list[dict[str, Any]]) -> escala.Workload:
    """The rows as a workload, which lacks the columns that none of them fills."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return escala.Workload.from_jobs([{name: row.get(name) for name in columns} for row in rows])


@dataclass
class Watcher:
    """Writes down all that it is shown before the logs differ. starts: it is the scheduler."""

    starts: bool
    timers: bool = False
    before_scheduler: bool = False
    seen: list[tuple[float, str, Any]] = field(default_factory=list)
    role = "shutdown"
    name = "watcher"

    def __deepcopy__(self, known: Any) -> Watcher:
        return self  # what a predictor has written down is looked at afterwards

    def decide(self, view: Any, act: Any) -> None:
        """Look at everything, and do what it shows."""
        if view.now_s < APART_S:
            self.look(view)
            self.ask(view, act)
        for job in view.queue if self.starts else ():
            act.start(job)
        if self.timers and view.now_s < APART_S:
            act.call_at(view.now_s + 130.0)

    def estimate(self, view: Any, job: Any) -> float:
        """As a predictor."""
        if view.now_s < APART_S:
            self.look(view)
            self.seen.append((view.now_s, "ended", view.ended()))
            self.seen.append((view.now_s, "job", job))
        return float(job.walltime_s)

    def look(self, view: Any) -> None:
        """Every attribute of the view, and the room for each job."""
        for name in dir(type(view)):
            if not name.startswith("_") and isinstance(getattr(type(view), name), property):
                self.seen.append((view.now_s, name, plain(getattr(view, name))))
        for job in view.queue:
            self.seen.append((view.now_s, f"room for {job.row}", plain(view.room_for(job))))

    def ask(self, view: Any, act: Any) -> None:
        """Rows of jobs that wait, that have come, that may be to come, and of none."""
        waiting = {job.row for job in view.queue}
        for row in range(-1, 60):
            if row in waiting:
                continue
            act.start(row)
            self.seen.append((view.now_s, f"start({row})", act.refusal))
            for nodes in (0, [0], [0, 1]):
                try:
                    act.start_on(row, nodes)
                    self.seen.append((view.now_s, f"start_on({row}, {nodes})", act.refusal))
                except EscalaError as error:
                    self.seen.append((view.now_s, f"start_on({row}, {nodes})", str(error)))


def plain(value: Any) -> Any:
    """What can be compared."""
    return (str(value.dtype), value.shape, value.tolist()) if isinstance(value, np.ndarray) else value


def watched(kind: str, rows: list[dict[str, Any]], platform: Site) -> list[tuple[float, str, Any]]:
    """What a policy of this kind is shown of these jobs before the logs differ."""
    watcher = Watcher(kind in ("scheduler", "timers"), kind == "timers", kind == "shutdown before")
    given: dict[str, Any] = {"oversized": "drop"}
    if kind == "predictor":
        escala.simulate(log(rows), platform, "easy", "never", estimate=watcher, **given)
    elif kind.startswith("shutdown"):
        escala.simulate(log(rows), platform, "fcfs", watcher, **given)
    else:
        escala.simulate(log(rows), platform, watcher.decide, "never", **given)
    return watcher.seen


def differences(kind: str, seed: int) -> list[str]:
    """The first thing that differs in a world with other jobs to come, in words."""
    rng = random.Random(seed)
    platform = site(rng)
    past = jobs(rng, platform, 0.0, APART_S - 100.0, 12)
    logs = [past + jobs(rng, platform, APART_S, 3 * APART_S, most) for most in (1, 20)]
    one, other = (watched(kind, rows, platform) for rows in logs)
    for a, b in zip(one, other, strict=False):
        if repr(a) != repr(b):
            return [f"world {seed} at {a[0]:g} s: {a[1]}: {a[2]!r:.60} or {b[2]!r:.60}"]
    return [] if len(one) == len(other) else [f"world {seed}: {len(one)} or {len(other)} looks"]


def slotted(rule: str) -> list[str]:
    """Jobs that start otherwise, by a rule of one machine, where those to come demand memory too."""
    rng, ways = random.Random(rule), list[str]()
    machine = Platform.uniform(1, 8, power=None, resources={"memory": 100})
    for world in range(WORLDS):
        drawn = [
            {
                "submit_s": float(rng.randint(0, 900) + APART_S * (k >= 40)),
                "walltime_s": 10.0 * rng.randint(1, 12),
                "cores": rng.randint(1, 6),
                "single_node": True,
            }
            for k in range(50)
        ]
        starts = []
        for demand in (0, 30):
            rows = [row | {"runtime_s": row["walltime_s"], "demand_memory": 0} for row in drawn]
            rows[-1]["demand_memory"] = demand
            made = [{name: row[name] for name in row if demand or name != "demand_memory"} for row in rows]
            found = escala.simulate(log(made), machine, SlotPolicy(rule, unit_s=10.0)).jobs
            starts.append(found.filter(found["start_s"] < APART_S).select("job_id", "start_s").rows())
        ways += [f"world {world}: other jobs start"] if starts[0] != starts[1] else []
    return ways


def coming(worlds: int = WORLDS) -> list[dict[str, Any]]:
    """One entry for each kind of policy."""
    kinds = ("scheduler", "timers", "shutdown before", "shutdown after", "predictor")
    with warnings.catch_warnings(action="ignore", category=escala.EscalaWarning):  # what does not count on a site
        return [
            {
                "tried": f"other jobs to come, in {worlds} worlds, {kind}",
                "ways": [way for seed in range(worlds) for way in differences(kind, seed)],
            }
            for kind in kinds
        ] + [{"tried": f"other jobs to come, slots by {rule}", "ways": slotted(rule)} for rule in RULES]
