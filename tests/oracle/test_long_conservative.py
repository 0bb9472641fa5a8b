"""Conservative backfilling with long queues: what the kept agenda says is what a plain table of every second and node
says."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import escala
from tests.oracle.engines import differences
from tests.oracle.worlds import draw

JOBS = 160
HORIZON = 1 << 13  # s


def drawn(rng: random.Random, cores: int) -> list[tuple[int, int, int, int]]:
    """(submit, runtime, walltime, cores) in s: a rush, most of the jobs wait at once."""
    jobs, submit = [], 0
    for _ in range(JOBS):
        submit += rng.choice((0, 0, 0, 1))
        walltime = rng.choice((10, 20, round(10 ** rng.uniform(0, 2))))
        jobs.append(
            (submit, rng.choice((walltime, max(1, walltime // 3))), walltime, rng.randint(1, rng.choice((2, cores))))
        )
    return jobs


def hole(free: Any, now: int, walltime: int, need: int) -> int:
    """First second from which the cores are free for the whole walltime."""
    total = free.sum(axis=0)
    edges = np.flatnonzero((free[:, 1:] > free[:, :-1]).any(axis=0)) + 1
    for start in [now, *(int(edge) for edge in edges if edge > now)]:
        if (
            total[start : start + walltime].min() >= need
            and free[:, start : start + walltime].min(axis=1).sum() >= need
        ):
            return start
    raise AssertionError("no hole")


def replay(jobs: list[tuple[int, int, int, int]], nodes: int, per_node: int, depth: int) -> tuple[list[int], int]:
    """Start of each job, s, and how many jobs waited at most."""
    free = np.full((nodes, HORIZON), per_node)
    plans: dict[int, tuple[int, Any]] = {}  # of waiting and running jobs: start, cores on each node
    queue: list[int] = []
    ends: dict[int, int] = {}
    starts = [-1] * len(jobs)
    arrived = longest = 0
    while arrived < len(jobs) or ends:
        now = min([*ends.values(), *(job[0] for job in jobs[arrived : arrived + 1])])
        ended = [row for row, end in ends.items() if end == now]
        for row in ended:
            del ends[row]
            start, taken = plans.pop(row)
            free[:, now : start + jobs[row][2]] += taken[:, None]
        while arrived < len(jobs) and jobs[arrived][0] == now:
            queue.append(arrived)
            arrived += 1
        waiting = 0
        for row in list(queue):
            _, runtime, walltime, need = jobs[row]
            if waiting == depth:
                break
            if ended and row in plans:
                start, taken = plans.pop(row)
                free[:, start : start + walltime] += taken[:, None]
            if row not in plans:
                start = hole(free, now, walltime, need)
                least = free[:, start : start + walltime].min(axis=1)
                taken = np.diff(np.minimum(np.cumsum(least), need), prepend=0)
                plans[row] = start, taken
                free[:, start : start + walltime] -= taken[:, None]
            if plans[row][0] == now:
                queue.remove(row)
                starts[row], ends[row] = now, now + runtime
            else:
                waiting += 1
        longest = max(longest, len(queue))
    return starts, longest


@pytest.mark.parametrize("depth", [None, 30])
@pytest.mark.parametrize(("nodes", "per_node"), [(1, 24), (24, 1), (6, 4)])
def test_a_plain_table_of_seconds_and_nodes_plans_the_same(nodes: int, per_node: int, depth: int | None) -> None:
    jobs = drawn(random.Random(zlib.crc32(f"{nodes} {per_node} {depth}".encode())), nodes * per_node)
    expected, longest = replay(jobs, nodes, per_node, depth or JOBS)
    columns = dict(
        zip(("submit_s", "runtime_s", "walltime_s", "cores"), map(list, zip(*jobs, strict=True)), strict=True)
    )
    platform = escala.read_platform(f"{nodes}x{per_node}:none")
    result = escala.simulate(escala.Workload.from_jobs(columns), platform, scheduler="conservative", depth=depth)
    assert longest > 100
    assert [round(start) for start in result.jobs["start_s"]] == expected


def test_long_queues_where_nodes_switch_are_planned_as_the_oracle_plans_them() -> None:
    """Worlds whose jobs come ten times as fast: most of them wait, some of them held to nodes that are on."""
    found = 0
    for number in range(40):
        rng = random.Random(f"rush/{number}")
        case = draw(rng, ("conservative",), 100, 0.0, True)
        if not 50 <= len(case.jobs) <= 100 or len(case.platform["cores"]) > 8:
            continue
        found += 1
        jobs = [job | {"submit_s": round(job["submit_s"] * 0.1, 6)} for job in case.jobs]
        left = {"rules", "rebuild", "estimate", "order_estimate", "corrections_s"}
        options = {name: value for name, value in case.options.items() if name not in left}
        options["shutdown"] = rng.choice(
            ("hold:0.5", "hold:1.0", "hold:3", "hold:0.25:if-busy", "timeout:1", "timeout:0")
        )
        case = replace(case, jobs=jobs, options=options)
        assert not differences(case), case.program()
    assert found > 5
