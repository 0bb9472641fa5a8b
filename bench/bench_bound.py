"""Bounds and search on slotted episodes: `python bench/bench_bound.py [--loads 1.0 1.9] [--episodes 60] [--exact] [--limit 60] [--large]`.

Episodes after R1 (reading `clip10`): 50 steps, at most one arrival a step, 80 % of lengths U{1..3} else U{10..15}, demand by a fair coin
U{1..5} or 10 of 10 units; then run to completion. Times are processor seconds (solvers: of their own process). Without --exact, gaps are
to the best schedule found.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from escala.optimum import Instance, bound
from escala.optimum.ladder import ROUNDS, SPLITS
from escala.optimum.lagrange import Dual
from escala.optimum.search import search
from escala.optimum.searcher import Searcher
from escala.optimum.splitting import Parts


def episode(rng: np.random.Generator, load: float, steps: int = 50) -> Instance:
    """One episode with at least one job; load = arrival rate x mean work (4.1 x 6.5) / 10."""
    arrivals = np.flatnonzero(rng.random(steps) < load * 10 / (4.1 * 6.5))
    n = arrivals.size
    if n == 0:
        return episode(rng, load, steps)
    length = np.where(rng.random(n) < 0.8, rng.integers(1, 4, n), rng.integers(10, 16, n))
    return Instance(arrivals, length, np.where(rng.random(n) < 0.5, rng.integers(1, 6, n), 10), 10)


def children_s() -> float:
    """Processor seconds of the ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one(instance: Instance, exact: bool, limit_s: float) -> dict[str, float]:
    """Figures of one episode."""
    begin = time.process_time()
    rough = Searcher(instance, 0)
    rough.rules(4)
    dual = Dual(instance, int((rough.starts + instance.length).max()))
    dual.improve((rough.value - 1) * instance.jobs, ROUNDS)
    parts = Parts(dual, (rough.value - 1) * instance.jobs)
    parts.split(SPLITS[0])
    lagrange = 1 + float(parts.cost()) / instance.jobs
    middle = time.process_time()
    found = search(instance)
    searched = time.process_time()
    row = {"jobs": instance.jobs, "lagrange_s": middle - begin, "search_s": searched - middle, "found": found.value, "lower": lagrange}
    row |= {"best": found.value, "proved": 0.0, "exact_s": 0.0, "exact_wall_s": 0.0, "interval": lagrange}
    if exact:
        before, wall = children_s(), time.monotonic()
        result = bound(instance, exact=True, limit_s=limit_s)
        assert result.found is not None and result.lower is not None
        row |= {"exact_s": children_s() - before, "exact_wall_s": time.monotonic() - wall, "best": result.found, "interval": result.lower}
        row["proved"] = float(result.status == "optimal")
    return row


def figures(load: float, episodes: int, exact: bool, limit_s: float, seed: int, first: int) -> None:
    """One load: means and tails."""
    rng = np.random.default_rng([seed, int(100 * load)])
    rows = []
    for number in range(episodes):
        instance = episode(rng, load)
        if number < first:
            continue
        rows.append(one(instance, exact, limit_s))
        if exact:
            last = rows[-1]
            print(
                f"  {number}: {last['jobs']:.0f} jobs, [{last['interval']:.5f}, {last['best']:.5f}], solvers {last['exact_s']:.1f} s",
                flush=True,
            )
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    gap = 1 - column["lower"] / column["best"]
    over = column["found"] / column["best"] - 1
    print(
        f"load {load}: {len(rows)} episodes, {column['jobs'].mean():.0f} jobs each\n"
        f"  Lagrangian: {1e3 * np.median(column['lagrange_s']):.1f} ms (max {1e3 * column['lagrange_s'].max():.1f}); "
        f"gap of the means {1 - column['lower'].mean() / column['best'].mean():.1%}, "
        f"mean of gaps {gap.mean():.1%}, within 20 % in {np.mean(gap <= 0.2):.0%}\n"
        f"  search: {np.median(column['search_s']):.2f} s (max {column['search_s'].max():.2f}); "
        f"within 0.5 % of the best in {np.mean(over <= 0.005):.0%}, equal in {np.mean(over <= 1e-9):.0%}, worst {over.max():.2%}\n"
        f"  mean slowdown: bound {column['lower'].mean():.4f}, found {column['found'].mean():.4f}, best {column['best'].mean():.4f}"
    )
    if exact:
        times = column["exact_s"]
        print(
            f"  exact: {int(column['proved'].sum())} of {len(rows)} proved (limit {limit_s:.0f} s wall); "
            f"processor seconds mean {times.mean():.1f}, median {np.median(times):.1f}, max {times.max():.1f}; within 60 processor seconds "
            f"{int(np.sum((column['proved'] > 0) & (times <= 60)))}; wall max {column['exact_wall_s'].max():.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=float, nargs="+", default=[1.0, 1.9])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="leave out the episodes before this one")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=9001)
    parser.add_argument("--large", action="store_true", help="about 1 000 jobs a load instead of episodes")
    given = parser.parse_args()
    one(episode(np.random.default_rng(0), 1.0), False, 1.0)  # compiles
    for load in given.loads:
        if given.large:
            instance = episode(np.random.default_rng([given.seed, int(100 * load)]), load, round(1000 * 4.1 * 6.5 / (10 * load)))
            result = bound(instance, limit_s=given.limit)
            print(
                f"load {load}: {instance.jobs} jobs, [{result.lower:.3f}, {result.found:.3f}], gap {result.gap:.1%}, {result.seconds:.1f} s"
            )
            for step in result.steps:
                print(f"  {step.name}: {step.seconds:.2f} s, {step.iterations} iterations, bound {step.lower:.3f}, found {step.found}")
        else:
            figures(load, given.episodes, given.exact, given.limit, given.seed, given.first)


if __name__ == "__main__":
    main()
