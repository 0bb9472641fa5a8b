"""`python -m bench.bench_policies [NAME ...]`: microseconds a job of every scheduler and shutdown policy, and how they
grow.

Worlds: 1e3, 1e4, 1e5 and 1e6 jobs at load 0.95 (625 nodes x 16 cores); 1e5 jobs on 256 to 1e5 nodes; 64 000 jobs that
arrive at once; 1e5 jobs at load 1.2. An exponent e says that a job takes n^e times as long on n times as much (fitted
to all points of a row by least squares of logarithms). A run that takes longer than `--limit` seconds is ended, and one
that would, by the runs before it, is not begun (–). `--write` replaces the table of the page, or the rows of the names
given; there "-" is what no run has measured yet.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import escala
from bench.__main__ import PAGE
from bench.kernel import synthetic
from bench.measure import machine
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation
from tests.growth.axes import pairs

BEGIN, END = "<!-- policies: begin -->", "<!-- policies: end -->"
QUEUE = 64_000  # jobs that arrive at once
FOLDER = re.compile(r"score:[^:]*/")


@dataclass(frozen=True)
class Point:
    """A world: jobs, nodes and their cores; burst: so many jobs arrive at once; load: offered, as a share of the
    cores."""

    axis: str
    jobs: int
    nodes: int
    cores: int = 16
    burst: int = 1
    load: float = 0.95

    @property
    def size(self) -> float:
        return {"jobs": self.jobs, "nodes": self.nodes, "queue": self.burst, "load": self.load}[self.axis]

    @property
    def head(self) -> str:
        return (
            f"load {self.load}"
            if self.axis == "load"
            else f"{self.size:,} {'at once' if self.axis == 'queue' else self.axis}"
        )


POINTS = [
    *(Point("jobs", jobs, 625) for jobs in (1_000, 10_000, 100_000, 1_000_000)),
    *(Point("nodes", 100_000, nodes) for nodes in (256, 4_096, 100_000)),
    *(Point("queue", QUEUE, 625, burst=burst) for burst in (1, QUEUE // 16, QUEUE)),
    Point("load", 100_000, 625, load=1.2),
]


SMALL = Point("jobs", 200, 32)


@lru_cache(maxsize=1)
def _world(point: Point) -> Any:
    return synthetic(point.jobs, point.nodes * point.cores, point.load, point.burst)


def us_a_job(scheduler: str, shutdown: str, point: Point, depth: int | None = None) -> float:
    """Processor time of the replay alone, us a job."""
    platform = escala.read_platform(f"{point.nodes}x{point.cores}" + ("" if shutdown == "never" else ":grid5000"))
    workload, options = _world(point), Options(record=False, depth=depth)
    chosen = policies.pair(workload, scheduler, shutdown, options)
    simulation = Simulation(workload, platform, chosen.plan, options)
    begin = time.process_time()
    policies.run(simulation, 0, chosen)
    return (time.process_time() - begin) / point.jobs * 1e6


def _answer(connection: Any) -> None:
    """Measure what is asked for, in a process of its own, which can be ended in compiled code too. What a pair needs is
    compiled, or loaded, by a small run before its first."""
    ready = set[tuple[str, str]]()
    while True:
        try:
            scheduler, shutdown, point = connection.recv()
        except EOFError:  # all is measured
            return
        if (scheduler, shutdown) not in ready:
            us_a_job(scheduler, shutdown, SMALL)
            ready.add((scheduler, shutdown))
        _world(point)
        connection.send(None)  # all is there
        connection.send(us_a_job(scheduler, shutdown, point))


class Worker:
    """A process that measures, begun anew after a run that took too long."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self._begin()

    def _begin(self) -> None:
        self.connection, other = self.context.Pipe()
        self.process = self.context.Process(target=_answer, args=(other,), daemon=True)
        self.process.start()

    def us_a_job(self, pair: tuple[str, str], point: Point, limit_s: float) -> float | None:
        """Microseconds a job; None: the run took longer than `limit_s`."""
        self.connection.send((*pair, point))
        self.connection.recv()
        if self.connection.poll(limit_s):
            return float(self.connection.recv())
        self.process.kill()
        self.process.join()
        self._begin()
        return None


def exponent(sizes: list[float], times: list[float]) -> float | None:
    """Slope of log time over log size; None of fewer than two points."""
    if len(times) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def expected_s(times: dict[Point, float], point: Point) -> float:
    """What a run should take, by the last two on its axis (a first one: by those of as many jobs, or fewer), s."""
    own = [(p.size, t) for p, t in times.items() if p.axis == point.axis]
    if not own:
        return max((t for p, t in times.items() if p.jobs <= point.jobs), default=0.0) * point.jobs / 1e6
    slope = exponent([size for size, _ in own[-2:]], [t for _, t in own[-2:]]) or 0.0
    size, us = own[-1]
    return us * (point.size / size) ** max(slope, 0.0) * point.jobs / 1e6


def measured(chosen: list[tuple[str, str]], limit_s: float) -> dict[tuple[str, str], dict[Point, float]]:
    """Microseconds a job, by pair and point. World by world, for making a workload takes longer than most replays of
    it."""
    worker = Worker()
    found: dict[tuple[str, str], dict[Point, float]] = {pair: {} for pair in chosen}
    for at, point in enumerate(POINTS):
        for pair, times in found.items():
            skipped = any(earlier.axis == point.axis and earlier not in times for earlier in POINTS[:at])
            us = None if skipped or expected_s(times, point) > limit_s else worker.us_a_job(pair, point, limit_s)
            if us is not None:
                times[point] = us
            shown = "left out" if us is None else f"{us:.3g} us a job"
            print(f"{' + '.join(pair)}: {point.head}: {shown}", file=sys.stderr, flush=True)
    return found


def table(found: dict[tuple[str, str], dict[Point, float]]) -> str:
    """A row a pair: microseconds a job at each point, and the exponent of each axis."""
    axes = list(dict.fromkeys(point.axis for point in POINTS))
    heads, marks = ["scheduler + shutdown"], ["---"]
    for axis in axes:
        own = [point for point in POINTS if point.axis == axis]
        heads += [point.head for point in own] + ([f"e({axis})"] if len(own) > 2 else [])
    marks += ["--:"] * (len(heads) - 1)
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(marks)} |"]
    for pair, times in found.items():
        cells = [FOLDER.sub("score:", " + ".join(name for name in pair if name != "never"))]
        for axis in axes:
            own = [point for point in POINTS if point.axis == axis]
            cells += [f"{times[point]:.3g}" if point in times else "–" for point in own]
            if len(own) > 2:
                known = [point for point in own if point in times]
                slope = exponent([point.size for point in known], [times[point] for point in known])
                cells.append("–" if slope is None else f"{slope:+.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_policies", description=__doc__)
    parser.add_argument("names", nargs="*", help="only pairs that hold one of these names (easy, hold:0.25)")
    parser.add_argument("--limit", type=float, default=60.0, help="longest run, s")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/performance.md")
    given = parser.parse_args()
    chosen = [pair for pair in pairs() if not given.names or set(pair) & set(given.names)]
    if not chosen:
        sys.exit(f"error: no scheduler and no shutdown policy is named {' or '.join(given.names)}: see escala policies")
    lines = f"Machine: {machine()}.\n\n{table(measured(chosen, given.limit))}"
    print(lines)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        kept, behind = rest.split(END)
        PAGE.write_text(f"{before}{BEGIN}\n{merged(kept.strip(), lines)}\n{END}{behind}", encoding="utf-8")


def merged(kept: str, lines: str) -> str:
    """The table of the page with these rows in place of its own of the same names, which have "-" where a column is
    newer than they are. Rows of another machine are no neighbours."""
    rows = {row.split("|")[1]: row for row in lines.splitlines() if row.startswith("|")}
    old = kept.splitlines()
    if len(rows) == len(pairs()) + 2 or not old:
        return lines
    if old[0] != lines.splitlines()[0]:
        sys.exit(f"error: the table of the page was measured elsewhere ({old[0]}): measure all of it, without names")
    width = next(iter(rows.values())).count("|")
    wide = [f"{row}{' - |' * (width - row.count('|'))}" if row.startswith("|") else row for row in old]
    return "\n".join(rows.get(row.split("|")[1], row) if row.startswith("|") else row for row in wide)


if __name__ == "__main__":
    main()
