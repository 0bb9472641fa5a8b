"""Queues of some hundreds of waiting jobs: what the kernel finds in its search tree is what a plain look at every
waiting job finds."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import escala
from tests.oracle.linear import FILES
from tests.oracle.schedulers import renewed, score_of
from tests.oracle.scores import SCORES, ordered
from tests.oracle.world import Job, Node, Profile, microseconds
from tests.oracle.worlds import CONSERVATIVE, GUARDED, SCHEDULERS

POOL = 32  # cores
JOBS = 400
LOOKED_AT_ELSEWHERE = (*CONSERVATIVE, "random")  # plans without a search tree; keys of its own
GUARD_S = 2000  # of the schedulers that may have one


@dataclass
class Pool:
    """One pool of cores: time (us), what is free, who waits in order of submission, who runs until when by walltime."""

    now: int = 0
    free: int = POOL
    queue: list[Job] = field(default_factory=list)
    running: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # row: (planned end, end, cores)
    started: dict[int, int] = field(default_factory=dict)
    head: tuple[Job, int] | None = None  # easy-fast: the head and its time
    guard: int | None = None  # us
    nodes: tuple[Node, ...] = (Node(0, POOL, Profile(), {}),)
    jobs: tuple[Job, ...] = ()  # of whose users linear scores are to know

    def waited_the_guard(self, job: Job) -> bool:
        return self.guard is not None and self.now - job.submit >= self.guard

    def start(self, job: Job) -> None:
        self.queue.remove(job)
        self.free -= job.cores
        self.started[job.row] = self.now
        self.running[job.row] = (self.now + walltime(job), self.now + job.length, job.cores)

    def reservation(self, job: Job) -> tuple[int, int]:
        """When enough cores will be free for the job, and how many of them it leaves."""
        free = self.free
        when = 0
        for end, _, cores in sorted(self.running.values()):
            if free >= job.cores and end > when:
                break
            free += cores
            when = end
        return when, free - job.cores


def walltime(job: Job) -> int:
    return microseconds(job.seen_s)


Decision = Callable[[Pool], None]


def strict(name: str | None) -> Decision:
    def decide(pool: Pool) -> None:
        for job in ordered(pool, list(pool.queue), SCORES[name] if name else None):  # type: ignore[arg-type]
            if job.cores > pool.free:
                return
            pool.start(job)

    return decide


def greedy(name: str | None) -> Decision:
    def decide(pool: Pool) -> None:
        for job in ordered(pool, list(pool.queue), SCORES[name] if name else None):  # type: ignore[arg-type]
            if job.cores <= pool.free:
                pool.start(job)

    return decide


def best_first(value: Callable[[Job], float]) -> Decision:
    def decide(pool: Pool) -> None:
        for job in [job for job in pool.queue if pool.waited_the_guard(job)]:
            if job.cores <= pool.free:
                pool.start(job)
        while fitting := [job for job in pool.queue if job.cores <= pool.free]:
            pool.start(max(fitting, key=value))  # the first of equals

    return decide


def easy(name: str | None, led: bool = False, passing: str | None = None) -> Decision:
    """led: the first in order has the reservation, not the oldest. passing: the order of the others, where it is
    another."""
    own = score_of(name) if name else None
    other = score_of(passing) if passing else own

    def decide(pool: Pool) -> None:
        line = ordered(pool, list(pool.queue), own)  # type: ignore[arg-type]
        heads = line if led else list(pool.queue)
        while heads and heads[0].cores <= pool.free:
            pool.start(heads.pop(0))
        if not heads:
            return
        when, spare = pool.reservation(heads[0])
        line = ordered(pool, list(pool.queue), other)  # type: ignore[arg-type]
        for job in [job for job in line if job is not heads[0]]:
            if job.cores <= pool.free:
                in_time = pool.now + walltime(job) <= when
                if in_time or job.cores <= spare:
                    pool.start(job)
                    spare -= 0 if in_time else job.cores

    return renewed(decide, own, other)  # type: ignore[arg-type, return-value]


def easy_fast(pool: Pool) -> None:
    while pool.queue and pool.queue[0].cores <= pool.free:
        pool.start(pool.queue[0])
    if not pool.queue:
        return
    if pool.head is None or pool.head[0] is not pool.queue[0]:
        pool.head = pool.queue[0], pool.reservation(pool.queue[0])[0]
    for job in pool.queue[1:]:
        if job.cores <= pool.free and pool.now + walltime(job) <= pool.head[1]:
            pool.start(job)


def decision(scheduler: str) -> Decision:
    # no job has a user: the requests stand
    scheduler = {"easy+": "easy", "easy++": "easy-sjf"}.get(scheduler, scheduler)
    if scheduler.startswith("easy:queue="):
        queue, _, passing = scheduler.removeprefix("easy:queue=").partition(":backfill=")
        return easy(queue, led=True, passing=passing or None)
    if scheduler == "easy-fast":
        return easy_fast
    if scheduler == "packer":
        return best_first(lambda job: job.cores)
    if scheduler == "tetris":
        return best_first(lambda job: 0.5 * job.cores + 0.5 / job.seen_s)
    if scheduler in ("easy", "saf") or scheduler.startswith("easy-"):
        name = scheduler.removeprefix("easy-")
        return easy(None if name == "easy" else name)
    if scheduler == "first-fit" or scheduler.endswith("-fit"):
        return greedy(None if scheduler == "first-fit" else scheduler.removesuffix("-fit"))
    return strict(None if scheduler == "fcfs" else scheduler.removesuffix("-strict"))


def replay(jobs: list[Job], decide: Decision, guard: int | None = None) -> list[int]:
    """Start of each job, us."""
    pool = Pool(guard=guard)
    left = list(jobs)
    while left or pool.running:
        pool.now = min(
            [end for _, end, _ in pool.running.values()]
            + [job.submit for job in left[:1]]
            + [job.submit + guard for job in pool.queue if guard is not None and job.submit + guard > pool.now]
        )
        for row in [row for row, (_, end, _) in pool.running.items() if end == pool.now]:
            pool.free += pool.running.pop(row)[2]
        while left and left[0].submit == pool.now:
            pool.queue.append(left.pop(0))
        decide(pool)
    return [pool.started[job.row] for job in jobs]


def alike(rng: random.Random) -> tuple[int, int]:
    """(walltime in s, cores): few kinds of jobs, so that many scores are equal."""
    return rng.choice((10, 20, 80)), rng.choice((1, 1, 2, 8, 27))


def varied(rng: random.Random) -> tuple[int, int]:
    return round(10 ** rng.uniform(0, 4)), min(POOL, round(2 ** rng.uniform(0, 5.2)))


RUSH = (0, 0, 0, 0, 1, 7)


def drawn(
    rng: random.Random,
    kind: Callable[[random.Random], tuple[int, int]],
    gaps: tuple[int, ...] = RUSH,
    number: int = JOBS,
) -> list[Job]:
    """Jobs that come in bursts; in a rush faster than they go."""
    jobs, submit, shape = [], 0, kind(rng)
    for row in range(number):
        submit += rng.choice(gaps)
        shape = shape if rng.random() < 0.3 else kind(rng)
        wall, cores = shape
        jobs.append(
            Job(
                row,
                str(row),
                submit,
                rng.choice((wall, wall, max(1, wall // 3))),
                wall,
                cores,
                seen_s=wall,
                order_s=wall,
            )
        )
    return jobs


def _with_kinds(schedulers: list[str]) -> list[Any]:
    """Each with jobs of one kind, in turn; with those of the other under `make fuzz`."""
    pairs = [(name, kind, (k + j) % 2) for k, name in enumerate(schedulers) for j, kind in enumerate((alike, varied))]
    return [pytest.param(name, kind, marks=pytest.mark.long if later else ()) for name, kind, later in pairs]


@pytest.mark.parametrize(
    ("scheduler", "kind"), _with_kinds([name for name in SCHEDULERS if name not in LOOKED_AT_ELSEWHERE])
)
def test_a_plain_look_at_every_waiting_job_starts_the_same(
    scheduler: str, kind: Callable[[random.Random], tuple[int, int]]
) -> None:
    compare(scheduler, drawn(random.Random(zlib.crc32(f"{scheduler} {kind.__name__}".encode())), kind))


CHANGING = ("wfp3", "unicep", "xfactor")


@pytest.mark.parametrize(
    "scheduler", [form.format(name) for name in CHANGING for form in ("{}-fit", "easy-{}", "easy:queue={}")]
)
def test_a_queue_that_grows_and_goes_starts_the_same(scheduler: str) -> None:
    """The search tree is used at times: a job may come, be counted in its cell, and start before the tree is due
    again."""
    rng = random.Random(zlib.crc32(scheduler.encode()))
    compare(scheduler, drawn(rng, alike, (0, 3, 8, 21), 3000))


WAITING, SELDOM, FIXED, AGES = (f"score:{FILES / name}.toml" for name in ("waiting", "seldom", "fixed", "ages"))
PAIRS = [
    f"easy:queue={a}:backfill={b}" for a, b in (("sjf", "saf"), ("xfactor", "sjf"), ("saf", "wfp3"), ("wfp3", "unicep"))
]
PAIRS += [f"easy:queue={name}" for name in (WAITING, SELDOM, FIXED, AGES)]
PAIRS += [f"easy:queue=sjf:backfill={WAITING}", f"easy:queue={SELDOM}:backfill={AGES}"]


@pytest.mark.parametrize(("scheduler", "kind"), _with_kinds(PAIRS))
def test_two_orders_and_linear_scores_start_the_same(
    scheduler: str, kind: Callable[[random.Random], tuple[int, int]]
) -> None:
    rng = random.Random(zlib.crc32(f"{scheduler.replace(str(FILES), '')} {kind.__name__}".encode()))
    compare(scheduler, drawn(rng, kind, number=250))
    compare(scheduler, drawn(rng, kind, number=250), GUARD_S)
    compare(scheduler, drawn(rng, kind, (0, 3, 8, 21), 500))


@pytest.mark.parametrize("scheduler", sorted(GUARDED - {*CONSERVATIVE, "random"}))
def test_a_plain_look_at_every_waiting_job_starts_the_same_behind_a_guard(scheduler: str) -> None:
    compare(scheduler, drawn(random.Random(zlib.crc32(scheduler.encode())), varied), GUARD_S)


def compare(scheduler: str, jobs: list[Job], guard_s: int | None = None) -> None:
    """The kernel's starts are those of the plain replay."""
    expected = replay(jobs, decision(scheduler), None if guard_s is None else guard_s * 1_000_000)
    scheduler += "" if guard_s is None else f":guard={guard_s}"
    columns = ("submit_s", "runtime_s", "walltime_s", "cores")
    workload = escala.Workload.from_jobs({column: [getattr(job, column) for job in jobs] for column in columns})
    result = escala.simulate(workload, escala.read_platform(f"1x{POOL}:none"), scheduler=scheduler)
    found = [microseconds(start) for start in result.jobs["start_s"]]
    wrong = [row for row in range(len(jobs)) if found[row] != expected[row]]
    assert not wrong, f"{len(wrong)} jobs, first {wrong[0]}: {expected[wrong[0]]} us, kernel {found[wrong[0]]}"
