"""Fit the numbers of the rule hold-pile, and print how far it is from the best of three rules at each load and horizon
of R1, or R2.

python -m bench.fit_hold_pile                     with the numbers that the package holds, on lists that no search has
seen python -m bench.fit_hold_pile --minutes 14        goes on from these by search, and the table with what it found
python -m bench.fit_hold_pile --world cpu-memory  the same on R2's lists, with the numbers of the study a2c2020

The rules are greedy SJF, strict SJF and hold-back, its setting tuned for each load and horizon on lists of their own.
The search is CMA-ES (Hansen 2016, "The CMA Evolution Strategy: A Tutorial"). Its time is limited, so another machine
ends at other numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from escala.envs.slots.lists import JobLists, join
from escala.envs.slots.playing import play, tune_hold_back
from escala.envs.slots.state import HOLD_PILE
from escala.studies.a2c2020.cells import PILE
from escala.studies.lab.horizons import HORIZONS, RULES, lists_of
from escala.studies.lab.slotted import queue_slots

LOADS: dict[str, tuple[float, ...]] = {"pool": (40, 70, 100, 130, 160, 190), "cpu-memory": (0.6, 0.7, 0.8, 0.9)}
PILES = {"pool": HOLD_PILE, "cpu-memory": PILE}
LISTS = {50: 160, 100: 80, 200: 20, 400: 5, 1000: 2}
TUNED, SEARCHED, JUDGED = 31, 21, 32
"""Seeds of the lists: of hold-back's settings, of the search, and of the table."""
QUIETS, SHARES = (0, 1, 2, 3, 4, 6, 8, 12, 20), (0, 1, 3, 5, 8)
PATIENCE = 60_000
UNFINISHED = 1e4
NEAR = 0.02  # cells so near to the worst count nearly as much
SPREAD = (0.3, 0.1, 0.3, 0.1, 0.15, 0.15, 0.8, 0.3, 0.8, 0.3, 0.5, 0.5, 0.8, 0.1, 0.3, 0.2)
POINTS, BEST = 14, 7
Floats = NDArray[np.float64]


def cells(world: str) -> list[tuple[float, int]]:
    """(load, steps) of each cell."""
    return [(load, steps) for load in LOADS[world] for steps in HORIZONS]


def lists(world: str, seed: int) -> list[JobLists]:
    """The lists of each cell."""
    return [lists_of(world, load, steps, LISTS[steps], seed) for load, steps in cells(world)]


def best_rule(world: str, own: list[JobLists]) -> Floats:
    """The least mean slowdown of the three rules in each cell."""
    found = []
    for (load, steps), drawn in zip(cells(world), own, strict=True):
        slots = queue_slots(steps)
        hold = tune_hold_back(lists_of(world, load, steps, LISTS[steps], TUNED), QUIETS, SHARES, slots=slots)
        played = [play(drawn, rule, hold=hold, slots=slots, patience=PATIENCE)["slowdown"].mean() for rule in RULES]
        found.append(min(float(one) for one in played))  # type: ignore[arg-type]
    return np.array(found)


def excess(world: str, own: list[JobLists], best: Floats) -> Callable[[Floats], Floats]:
    """From the numbers of the rule to the logarithm of its mean slowdown over the best rule's, in each cell."""
    # of one length, which end together
    groups = [[k for k, (_, steps) in enumerate(cells(world)) if steps == each] for each in HORIZONS]
    joined = [
        (group, join([own[k] for k in group]), np.repeat(group, [len(own[k]) for k in group])) for group in groups
    ]

    def judge(pile: Floats) -> Floats:
        means = np.zeros(len(own))
        for group, lists, cell in joined:
            played = play(lists, "hold-pile", pile=pile.tolist(), slots=32, queue="shortest", patience=PATIENCE)
            slowdown = played["slowdown"].fill_null(UNFINISHED).to_numpy()
            means[group] = [slowdown[cell == k].mean() for k in group]
        return np.log(means / best)

    return judge


def generations(cost: Callable[[Floats], float], start: Sequence[float], seed: int) -> Iterator[Floats]:
    """The mean of each generation of CMA-ES; never ends."""
    random, n = np.random.default_rng(seed), len(start)
    weights = np.log(BEST + 0.5) - np.log(np.arange(1, BEST + 1))
    weights /= weights.sum()
    mass = 1 / (weights**2).sum()
    c_step, c_path = (mass + 2) / (n + mass + 5), (4 + mass / n) / (n + 4 + 2 * mass / n)
    damping = 1 + c_step + 2 * max(0.0, np.sqrt((mass - 1) / (n + 1)) - 1)
    c_one = 2 / ((n + 1.3) ** 2 + mass)
    c_rank = min(1 - c_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
    usual = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # length of a normal vector
    mean, covariance, step = np.zeros(n), np.eye(n), 0.7
    step_path, path, count = np.zeros(n), np.zeros(n), 0
    while True:
        values, axes = np.linalg.eigh(covariance)
        lengths = np.sqrt(np.maximum(values, 1e-12))
        moves = (random.standard_normal((POINTS, n)) * lengths) @ axes.T
        costs = [cost(start + np.multiply(SPREAD, mean + step * move)) for move in moves]
        chosen = moves[np.argsort(costs)[:BEST]]
        move = weights @ chosen
        mean = mean + step * move
        count += 1
        step_path = (1 - c_step) * step_path + np.sqrt(c_step * (2 - c_step) * mass) * (
            axes @ ((axes.T @ move) / lengths)
        )
        long = np.linalg.norm(step_path) / np.sqrt(1 - (1 - c_step) ** (2 * count)) >= (1.4 + 2 / (n + 1)) * usual
        path = (1 - c_path) * path + (0 if long else np.sqrt(c_path * (2 - c_path) * mass)) * move
        covariance = (
            (1 - c_one - c_rank) * covariance + c_one * np.outer(path, path) + c_rank * (chosen.T * weights) @ chosen
        )
        step *= np.exp(c_step / damping * (np.linalg.norm(step_path) / usual - 1))
        yield start + np.multiply(SPREAD, mean)


def search(world: str, minutes: float, seed: int) -> Floats:
    """Of the means of all generations within this time, the one of least cost."""
    own = lists(world, SEARCHED)
    judge, until = excess(world, own, best_rule(world, own)), time.monotonic() + 60 * minutes

    def cost(pile: Floats) -> float:
        each = judge(pile)
        return float(NEAR * np.log(np.exp(each / NEAR).mean()))

    best, least = np.array(PILES[world]), np.inf
    for k, found in enumerate(generations(cost, PILES[world], seed), start=1):
        if time.monotonic() > until:
            break
        if (value := cost(found)) < least:
            best, least = found, value
        print(f"generation {k}: cost {value:+.4f}, worst {judge(found).max():+.4f}", flush=True)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="search so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", choices=list(LOADS), default="pool", help="R1's pool, or R2's cpu-memory")
    given = parser.parse_args()
    pile = np.array(PILES[given.world]) if given.minutes is None else search(given.world, given.minutes, given.seed)
    print("numbers:", ", ".join(f"{value:.3f}" for value in pile))
    own = lists(given.world, JUDGED)
    each = 100 * (np.exp(excess(given.world, own, best_rule(given.world, own))(pile)) - 1)
    print("excess over the best rule, %: load,", ", ".join(f"{steps} steps" for steps in HORIZONS))
    for load, row in zip(LOADS[given.world], each.reshape(len(LOADS[given.world]), -1), strict=True):
        print(f"{load}: " + ", ".join(f"{value:+.1f}" for value in row))
    print(f"worst {each.max():+.1f}, mean {each.mean():+.1f}")


if __name__ == "__main__":
    main()
