"""Slurm's rules together, on random worlds: an independent simulator gives the same starts, ends and nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.kernel.slurm import tables as t
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.in_name import changed
from escala.slurm.run import play
from tests.laws.slurm_orders import order_drawn, ordered
from tests.laws.slurm_text import ORIGIN, columns_of, text_of
from tests.oracle import backfill as slow
from tests.oracle.accounts import ROOT, Account, Bounds
from tests.oracle.preemption import SECOND
from tests.oracle.priorities import Weights
from tests.oracle.shapes import NO_END, Ask, Node, choose
from tests.oracle.site import NO_LIMIT, Job, Outage, Reservation, Site, Yields

WORLDS = 80
JOBS = 26
KINDS = ("after", "afterok", "afterany", "afternotok")
SORTS = (
    "plain",
    "cores",
    "memory",
    "exclusive",
    "singleton",
    "gpus",
    "outages",
    "weights",
    "lln",
    "accounts",
    "multifactor",
    "flags",
    "yields",
    "forgets",
    "speeds",
    "orders",
)
STEPS = [4, 10, 10, 10, 10, 5, 5, 16, 16, 16, 16, 10, 16, 10, 5, 4]
QUICK = [(seed, sort) for k, sort in enumerate(SORTS) for seed in range(k, WORLDS, STEPS[k])]
QUICK += [(764, "gpus"), (1049, "gpus")]  # exclusive jobs that no nodes would ever do for count by what they ask
QUICK += [(346, "gpus"), (531, "gpus")]  # ... and by all nodes of the partition where too few are idle
# jobs that start long after all others, when age or use has changed who is first
QUICK += [(102, "multifactor"), (199, "multifactor")]
QUICK += [(31, "forgets"), (47, "forgets")]  # jobs start though what they wait for went badly: it was forgotten
TREE: list[tuple[str, str | None, list[str]]] = [
    (ROOT, None, []),
    ("a", ROOT, ["ann"]),
    ("b", "a", ["ann", "bob"]),
    ("c", ROOT, ["cy"]),
]
LEAST = {
    "plain": {"inside": 20, "cut": 1, "begun late": 30, "followers": 60, "tasks": 60, "backfilled": 50, "done": 300},
    "exclusive": {"backfilled": 20, "done": 50, "uneven": 5, "alone": 10},
    "gpus": {"backfilled": 40, "done": 100, "gpus": 25},
    "outages": {"backfilled": 40, "done": 100, "struck": 5},
    "speeds": {"cut": 10, "overran": 10, "paced": 100, "struck": 5},
    "orders": {"inside": 5, "followers": 15, "tasks": 15, "backfilled": 20, "done": 100, "struck": 2},
    "forgets": {"backfilled": 20, "done": 100, "overran": 10, "lifted": 5},
}
"""What there is in the worlds of a sort, at the least."""
STATES = {t.HELD: "held", t.WAITING: "waits", t.ENDED: "ended", t.NEVER: "never", t.RUNNING: "runs", t.COMING: "coming"}


def drawn(seed: int, sort: str = "plain") -> tuple[str, Site, list[Job]]:
    """A site.toml, the same site for the slow simulator, and its jobs; of a sort other than plain with more in them."""
    draw = np.random.default_rng([seed, 2804])
    nodes = int(draw.integers(3, 9))

    def some(share: float) -> set[int]:
        return {n for n in range(nodes) if draw.random() < share} or {0}

    parts = {name: (some(0.7), int(draw.integers(1, 3))) for name in ("p", "q")} | {"all": (set(range(nodes)), 1)}
    features = {"fast": some(0.5)}
    spans = []
    for name in ("a", "b")[: int(draw.integers(0, 3))]:
        begin = int(draw.integers(0, 400))
        spans.append(Reservation(name, some(0.4), begin, begin + int(draw.integers(50, 500))))
    limits = {"x": int(draw.integers(1, 4)), "y": 1 << 40}
    site = Site(
        nodes, parts, features, spans, int(draw.choice([2, 3, 99])), int(draw.choice([max(nodes - 1, 2), 99])), limits,
        int(draw.choice([1, 2, 20])), bool(draw.random() < 0.8),
    )  # fmt: skip
    jobs = [_job(draw, site, row, int(at)) for row, at in enumerate(np.sort(draw.integers(0, 500, JOBS)))]
    more = np.random.default_rng([seed, 2804, SORTS.index(sort)])
    if sort == "singleton":
        for job in jobs:
            job.name, job.singleton = str(more.choice(["u", "v"])), bool(more.random() < 0.3)
    if sort == "outages" or (sort != "plain" and more.random() < 0.3):
        site.outages = [_outage(more, some(0.4)) for _ in range(int(more.integers(1, 4)))]
    if sort in ("weights", "lln"):
        _share(more, site, jobs, str(more.choice(["cores", "memory", "exclusive", "gpus"])))
        for one in site.shapes:
            one.weight = int(more.integers(1, 4)) if sort == "weights" or more.random() < 0.3 else 1
        if sort == "lln":
            site.loaded = (
                set(parts) if more.random() < 0.4 else {name for name in parts if more.random() < 0.6} or {"all"}
            )
    elif sort == "accounts":
        _share(more, site, jobs, str(more.choice(["cores", "memory", "exclusive", "gpus"])))
        _limit(more, site, jobs)
    elif sort == "multifactor":
        _share(more, site, jobs, str(more.choice(["cores", "memory", "exclusive", "gpus"])))
        _rank(more, site, jobs)
    elif sort == "flags":
        if more.random() < 0.5:
            _share(more, site, jobs, str(more.choice(["cores", "memory", "exclusive", "gpus"])))
        _flag(more, site, jobs, some)
    elif sort == "yields":
        test = int(more.choice([7_000, 31_000, 110_000, 430_000]))
        work, sleep = int(more.integers(1, 4)) * 100_000, int(more.choice([50_000, 500_000]))
        site.yields = Yields(test, work, sleep, int(more.integers(1, 4)) * SECOND, bool(more.random() < 0.3))
    elif sort == "forgets":
        _forget(more, site, jobs)
    elif sort == "speeds":
        site.speeds = [float(more.choice([0.4, 0.8, 1.0, 1.0, 1.7])) for _ in range(site.nodes)]
        for job in jobs:
            job.whole = job.run
    elif sort == "orders":
        _put_in_order(more, site, jobs)
    elif sort not in ("plain", "singleton", "outages"):
        _share(more, site, jobs, sort)
    return text_of(site), site, jobs


def _flag(draw: Any, site: Site, jobs: list[Job], some: Callable[[float], set[int]]) -> None:
    """Reservations that are flexible or draw jobs, or both, and minutes behind the starts of others."""
    for name in ("a", "b")[len(site.reservations) :]:
        begin = int(draw.integers(0, 400))
        site.reservations.append(Reservation(name, some(0.4), begin, begin + int(draw.integers(50, 500))))
    for one in site.reservations:
        one.flex = bool(draw.random() < 0.5)
        one.draws = frozenset(user for user in ("ann", "bob", "cy") if draw.random() < 0.4)
    for job in jobs:
        if job.inside is None and draw.random() < 0.15:
            job.inside = str(draw.choice(["a", "b"]))
        room = min(len(slow.Replay(site, []).suited((job, part, job.inside))) for part in job.parts)
        if job.ask is None:
            job.nodes = max(min(job.nodes, room), 1)
        _delay(draw, job)


def _delay(draw: Any, job: Job) -> None:
    """Minutes behind the starts of some that it waits for."""
    job.minutes = [
        (row, int(draw.integers(1, 4))) for row, kind in job.waits_for if kind == "after" and draw.random() < 0.7
    ]
    job.waits_for = [one for one in job.waits_for if one[1] != "after" or one[0] not in {row for row, _ in job.minutes}]


def _forget(draw: Any, site: Site, jobs: list[Job]) -> None:
    """Jobs that have ended are forgotten soon, and some run past their limits."""
    site.min_age_s = int(draw.choice([0, 1, 5, 12, 30, 75, 150]))
    for job in jobs:
        _delay(draw, job)
        if draw.random() < 0.2:
            job.limit_s = 60
            job.run = (60 + int(draw.choice([0, 20, 90, 200]))) * SECOND


def _put_in_order(draw: Any, site: Site, jobs: list[Job]) -> None:
    """An order of the queue; in some worlds nodes are shared, and in some of these accounts have limits."""
    if draw.random() < 0.6:
        _share(draw, site, jobs, str(draw.choice(["cores", "memory", "exclusive", "gpus"])))
        if draw.random() < 0.4:
            _limit(draw, site, jobs)
    site.order = order_drawn(draw)


def _outage(draw: Any, nodes: set[int]) -> Outage:
    begin = int(draw.integers(0, 600))
    return Outage(
        nodes, begin, begin + int(draw.integers(10, 200)), bool(draw.random() < 0.7), bool(draw.random() < 0.7)
    )


def _limit(draw: Any, site: Site, jobs: list[Job]) -> None:
    """Accounts in a tree with limits, and whose the jobs are; no limits of the QOS, or only some."""
    if draw.random() < 0.7:
        site.most_jobs, site.most_gpus = NO_LIMIT, NO_END
    site.most_cpus = site.most_cpus if draw.random() < 0.3 and site.most_cpus < 1 << 30 else NO_END
    everything = {
        "cpu": sum(one.cores for one in site.shapes),
        "mem": sum(one.memory for one in site.shapes),
        "node": site.nodes,
        "gpu": sum(sum(one.gpus) for one in site.shapes),
    }

    def some(least: float) -> dict[str, int]:
        kinds = [kind for kind, count in everything.items() if count > 0 and draw.random() < 0.15]
        return {kind: max(int(everything[kind] * draw.uniform(least, 1)), 2) for kind in kinds}

    def maybe(share: float, low: int, high: int) -> int | None:
        return int(draw.integers(low, high)) if draw.random() < share else None

    def bounds() -> Bounds:
        return Bounds(
            maybe(0.2, 1, 5), maybe(0.1, 4, 12), some(0.3), maybe(0.2, 1, 4), maybe(0.1, 4, 9),
            some(0.5) if draw.random() < 0.3 else {}, 60 * n if (n := maybe(0.1, 3, 6)) else None,
        )  # fmt: skip

    for name, parent, users in TREE:
        site.accounts[name] = Account(parent, bounds(), {user: bounds() for user in users})
    for job in jobs:
        named = [name for name, one in site.accounts.items() if job.user in one.users]
        job.account = str(draw.choice(named)) if draw.random() < 0.8 else None


def _rank(draw: Any, site: Site, jobs: list[Job]) -> None:
    """Priorities of weighted parts, and who has which shares; no limits."""
    site.most_jobs, site.most_cpus, site.most_gpus = NO_LIMIT, NO_END, NO_END

    def weight(share: float = 0.7) -> int:
        return int(draw.integers(1, 3000)) if draw.random() < share else 0

    site.weights = Weights(
        weight(), weight(), weight(), weight(), weight(0.8), int(draw.choice([60, 300, 900])),
        int(draw.choice([0, 240, 3600])),
        bool(draw.random() < 0.4), bool(draw.random() < 0.3), {name: int(draw.integers(0, 4)) for name in site.parts},
        {"normal": int(draw.integers(0, 4)), "high": int(draw.integers(0, 6))},
    )  # fmt: skip
    if not any(site.weights.factors.values()):
        site.weights.factors["all"] = 1
    if not any(site.weights.ranks.values()):
        site.weights.ranks["normal"] = 1
    for name, parent, users in TREE:
        shares = {user: int(draw.choice([0, 1, 1, 2, 3])) for user in users}
        site.accounts[name] = Account(
            parent, Bounds(), {user: Bounds() for user in users}, int(draw.integers(1, 4)), shares
        )
    for job in jobs:
        job.priority, job.qos, job.nice = None, str(draw.choice(["normal", "high"])), int(draw.choice([0, 0, 100, -50]))
        named = [name for name, one in site.accounts.items() if job.user in one.users]
        job.account = str(draw.choice(named)) if draw.random() < 0.8 else None


def _share(draw: Any, site: Site, jobs: list[Job], sort: str) -> None:
    """Nodes of several cores, and jobs that share them."""
    site.by_memory = sort == "memory" or (sort != "cores" and bool(draw.random() < 0.5))
    site.shapes = [Node(int(draw.integers(1, 7)), 1000 * int(draw.integers(2, 7))) for _ in range(site.nodes)]
    if sort == "gpus":
        kinds = int(draw.integers(1, 3))
        for one in site.shapes:
            one.gpus = tuple(int(draw.choice([0, 1, 2, 4], p=[0.25, 0.2, 0.3, 0.25])) for _ in range(kinds))
        site.shapes[0].gpus = (2,) * kinds
        most = sum(sum(one.gpus) for one in site.shapes)
        site.most_gpus = max(int(most * draw.uniform(0.6, 0.9)), 2) if draw.random() < 0.5 else NO_END
    cores = sum(one.cores for one in site.shapes)
    site.most_cpus = max(int(cores * draw.uniform(0.6, 0.9)), 2) if site.most_cpus < 99 else 1 << 30
    for job in jobs:
        asked = [_ask(draw, site, job, sort) for _ in range(20)]
        job.ask = next((ask for ask in asked if _fits(site, job, ask)), Ask(1, 1, memory_core=100 * site.by_memory))
        job.nodes = job.ask.nodes or 1


def _ask(draw: Any, site: Site, job: Job, sort: str) -> Ask:
    form, nodes, per = (
        str(draw.choice(["nodes", "tasks", "both", "on node"])),
        job.nodes,
        int(draw.choice([1, 1, 2, 3])),
    )
    tasks = int(draw.integers(1, 9)) if form == "tasks" else nodes + int(draw.integers(0, 5)) * (form == "both")
    on_node = int(draw.integers(1, 4)) if form == "on node" else 0
    core, node = int(draw.integers(1, 15)) * 100, int(draw.integers(1, 60)) * 100
    memory = str(draw.choice(["core", "node", "all"], p=[0.5, 0.4, 0.1])) if site.by_memory else ""
    exclusive = sort in ("exclusive", "gpus") and bool(draw.random() < (0.3 if sort == "exclusive" else 0.15))
    one = 1 if exclusive and memory == "core" else per
    tasks = nodes * on_node or tasks
    how, many, kind = "", 0, None
    if sort == "gpus" and draw.random() < 0.7:
        how, many = "node" if exclusive or draw.random() < 0.5 else "task", int(draw.choice([1, 1, 2, 3]))
        kind = int(draw.integers(len(site.shapes[0].gpus))) if draw.random() < 0.4 else None
    return Ask(
        None if form == "tasks" else nodes, tasks, one, on_node, core * (memory == "core"), node * (memory == "node"),
        exclusive, many * (how == "node"), many * (how == "task"), kind,
    )  # fmt: skip


def _fits(site: Site, job: Job, ask: Ask) -> bool:
    """Could it run in each of its partitions, if they were empty?"""
    for part in job.parts:
        wanted = slow.Replay(site, []).suited((job, part, job.inside))
        given = choose(ask, site.shapes, site.shapes, wanted, site.by_memory) if wanted else []
        if (
            not given
            or sum(one.cpus for one in given) > site.most_cpus
            or sum(sum(one.gpus) for one in given) > site.most_gpus
        ):
            return False
    return True


def _job(draw: Any, site: Site, row: int, at: int) -> Job:
    parts = [str(one) for one in draw.permutation(list(site.parts))[: int(draw.choice([1, 1, 2]))]]
    job = Job(
        row,
        at * SECOND,
        int(draw.integers(1, 150)) * SECOND,
        1,
        0,
        parts,
        int(draw.integers(1, 5)),
        str(draw.choice(["ann", "bob", "cy"])),
    )
    job.limit_s = 60 * int(draw.integers(job.run // SECOND // 60 + 1, 6))
    job.feature = "fast" if draw.random() < 0.2 else None
    job.begin = (at + int(draw.integers(-50, 250))) * SECOND if draw.random() < 0.2 else None
    job.array = str(draw.choice(["x", "y"])) if draw.random() < 0.3 else None
    names = [r.name for r in site.reservations]
    job.inside = str(draw.choice(names)) if names and draw.random() < 0.25 else None
    earlier = draw.permutation(row)[: int(draw.choice([0, 0, 0, 1, 2]))].tolist()
    job.waits_for = [(other, str(draw.choice(KINDS))) for other in earlier]
    room = {part: len(slow.Replay(site, []).suited((job, part, job.inside))) for part in parts}
    job.parts = [part for part in parts if room[part] > 0] or parts[:1]
    job.nodes = int(draw.integers(1, max(min(room[part] for part in job.parts), 1) + 1))
    return job


def same(tmp_path: Path, seed: int, sort: str = "plain") -> dict[str, int]:
    """Starts, ends, states and what each job had of which nodes are equal; how much of each thing there was."""
    text, site, jobs = drawn(seed, sort)
    (tmp_path / "site.toml").write_text(text)
    place = escala.read_site(tmp_path / "site.toml")
    work = escala.Workload.from_jobs(columns_of(site, jobs), origin_s=float(ORIGIN))
    settings = changed(
        settings_of(place),
        f"slurm:started=-2.5:tick=0.4:tick_every=1:phase=0.7:drift=0:bf_test={site.yields.test / SECOND}",
    )
    asked = Asking(work, place, settings).asked()
    slow_run = slow.Replay(site, jobs)
    never = {job.row for job in jobs if slow_run.never(job)}
    limited = {row for row, why in asked.refused.items() if why.startswith("the association")}
    assert limited <= never <= set(asked.refused), (seed, asked.refused, never)
    for row in asked.refused:
        jobs[row].state = "refused"
    waits = [bool(one.waits_for or one.minutes) for one in jobs]
    wanted = [list(one.waits_for) for one in jobs]
    run = play(work, place, settings, asked, order=None if site.order is None else ordered(tmp_path, site.order))
    slow_run.run(5_000)
    for job in jobs:
        at = slice(run.jobs.first[job.row], run.jobs.last[job.row])
        found = (STATES[int(run.jobs.state[job.row])], int(run.jobs.start[job.row]), int(run.jobs.finish[job.row]))
        assert found == ("never" if job.state == "refused" else job.state, job.begun, job.finish), (seed, job)
        held = np.stack([run.allocated.node[at], run.allocated.cpus[at], run.allocated.memory[at]], axis=1)
        assert held.tolist() == [[one.node, one.cpus, one.memory] for one in job.given], (seed, job)
        kinds = len(job.given[0].gpus) if job.given else 0
        assert run.allocated.gpus[at, :kinds].tolist() == [list(one.gpus) for one in job.given], (seed, job)
    ends = [one.state == "ended" and not one.broken for one in jobs]
    well = [done and not one.cut and one.run < one.limit_s * SECOND for done, one in zip(ends, jobs, strict=True)]
    odd = [
        any(ends[row] and (kind, well[row]) in (("afterok", False), ("afternotok", True)) for row, kind in told)
        for told in wanted
    ]
    return {
        "inside": sum(one.inside is not None and one.begun >= 0 for one in jobs),
        "cut": sum(one.cut for one in jobs),
        "begun late": sum(one.begin is not None and one.begun >= one.begin > one.submit for one in jobs),
        "followers": sum(w and one.begun >= 0 for w, one in zip(waits, jobs, strict=True)),
        "tasks": sum(one.array is not None and one.begun >= 0 for one in jobs),
        "backfilled": int((run.jobs.by[run.jobs.start >= 0] == 1).sum()),
        "done": sum(one.state == "ended" for one in jobs),
        "uneven": sum(len({given.cpus for given in one.given}) > 1 for one in jobs),
        "alone": sum(one.shape.exclusive and one.begun >= 0 for one in jobs),
        "gpus": sum(one.gpus > 0 for one in jobs),
        "paced": sum(one.begun >= 0 and one.run != one.whole > 0 for one in jobs),
        "struck": int((run.jobs.again != 0).sum()),
        "overran": sum(one.run >= one.limit_s * SECOND and one.begun >= 0 for one in jobs),
        "lifted": sum(one.begun >= 0 and badly for one, badly in zip(jobs, odd, strict=True)),
    }


@pytest.mark.parametrize("sort", SORTS)
def test_the_slow_simulator_gives_the_same(tmp_path: Path, sort: str) -> None:
    """In worlds that are full of what may happen. Since jobs over a limit close no partition, backfill has less to
    do."""
    counts = [same(tmp_path, seed, of) for seed, of in QUICK if of == sort]
    found = {name: sum(one[name] for one in counts) for name in counts[0]}
    assert all(found[name] >= few for name, few in LEAST.get(sort, {}).items()), found


@pytest.mark.long
@pytest.mark.parametrize("sort", SORTS)
def test_more_worlds(tmp_path: Path, sort: str) -> None:
    """With those of preemption, 10 000 of the eight first kinds."""
    for seed in range(1_250):
        same(tmp_path, seed, sort)
