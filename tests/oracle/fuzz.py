"""Compare kernel and oracle on many random worlds: `python -m tests.oracle.fuzz --worlds 10000 --seed 0`.

World k of a seed is always the same world. At a difference the world is made as small as it goes and printed as a
program; exit code 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from tests.oracle.engines import differences
from tests.oracle.gpus import draw_watts
from tests.oracle.outages import draw_outages
from tests.oracle.whole import draw_whole
from tests.oracle.worlds import SCHEDULERS, Case, draw

LARGE, APART, GONE = 0.1, 0.1, 0.25  # shares of the worlds


def world(seed: int, number: int, schedulers: tuple[str, ...], most_jobs: int, apart: float = APART) -> Case:
    case = draw(random.Random(f"{seed}/{number}"), schedulers, most_jobs, LARGE, True, apart)
    if number % 2:
        draw_watts(random.Random(f"{seed}/{number}/gpus"), case.platform)
    if number % 4 == 3:
        draw_whole(random.Random(f"{seed}/{number}/whole"), case)
    rng = random.Random(f"{seed}/{number}/outages")
    if rng.random() < GONE:
        draw_outages(rng, case.jobs, case.platform)
    return case


def smaller(case: Case) -> Case:
    """Leave out jobs (many at a time at first) and options as long as a difference remains."""
    found, improved = differences(case), True
    while improved:
        improved = False
        for candidate in reductions(case):
            if candidate.jobs and same_failure(differences(candidate), found):
                case, improved = candidate, True
                break
    return case


def same_failure(now: list[str], before: list[str]) -> bool:
    """A failure of an engine must stay one of that engine; other differences may change."""
    kinds = [line[0].split(":")[0] if line and "fails" in line[0] else bool(line) for line in (now, before)]
    return bool(now) and kinds[0] == kinds[1]


def reductions(case: Case) -> list[Case]:
    """Worlds that are a little simpler."""
    found, many = [], len(case.jobs) // 2
    while many > 0:
        found += [
            replace(case, jobs=case.jobs[:k] + case.jobs[k + many :]) for k in range(len(case.jobs) - many, -1, -many)
        ]
        many //= 2
    for name in case.options:
        if name != "scheduler" and case.options[name] != "never":
            simpler = {key: value for key, value in case.options.items() if key != name}
            found.append(replace(case, options={**simpler, "shutdown": simpler.get("shutdown", "never")}))
    closed = case.platform.get("closed", [])
    for k in range(len(closed)):
        found.append(replace(case, platform={**case.platform, "closed": closed[:k] + closed[k + 1 :]}))
    for k, job in enumerate(case.jobs):
        if job["load"] != 1.0:
            found.append(replace(case, jobs=[*case.jobs[:k], {**job, "load": 1.0}, *case.jobs[k + 1 :]]))
    return found


def failing(arguments: tuple[int, int, tuple[str, ...], int, float]) -> int | None:
    """The number of the world if the engines differ on it."""
    return arguments[1] if differences(world(*arguments)) else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first world")
    parser.add_argument("--jobs", type=int, default=25, help="most jobs in a world")
    parser.add_argument("--schedulers", default="", help="only these, separated by commas")
    parser.add_argument("--apart", type=float, default=APART, help="share of worlds with partitions that share no node")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--keep-going", action="store_true", help="count all failures, print the first of each scheduler"
    )
    options = parser.parse_args()
    schedulers = tuple(options.schedulers.split(",")) if options.schedulers else SCHEDULERS
    tasks = [
        (options.seed, number, schedulers, options.jobs, options.apart)
        for number in range(options.first, options.first + options.worlds)
    ]
    began, failed, shown = time.monotonic(), 0, set()
    pool = ProcessPoolExecutor(options.processes) if options.processes > 1 else None
    outcomes = pool.map(failing, tasks, chunksize=50) if pool else map(failing, tasks)
    for done, number in enumerate(outcomes, start=1):
        if done % 500 == 0 or done == len(tasks):
            print(
                f"{done} of {len(tasks)} worlds, {failed} differ, {time.monotonic() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        if number is None:
            continue
        failed += 1
        case = world(options.seed, number, schedulers, options.jobs, options.apart)
        if case.options["scheduler"] in shown:
            continue
        shown.add(case.options["scheduler"])
        small = smaller(case)
        print(
            f"# world {number} of seed {options.seed}",
            *(f"# {line}" for line in differences(small)),
            small.program(),
            sep="\n",
            flush=True,
        )
        if not options.keep_going:
            return 1
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
