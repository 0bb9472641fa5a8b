"""Fit the numbers of the rule hold-pile, and print how far it is from the best of three rules at each load and horizon of R1.

python -m bench.fit_hold_pile               with the numbers that the package holds, on lists that no search has seen
python -m bench.fit_hold_pile --minutes 14  the search that gives such numbers, and the table with what it found

The rules are greedy SJF, strict SJF and hold-back, its setting tuned for each load and horizon on lists of their own. The search is CMA-ES
(Hansen 2016, "The CMA Evolution Strategy: A Tutorial"). Its time is limited, so another machine ends at other numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from escala.envs.slots.lists import JobLists, join
from escala.envs.slots.playing import play, tune_hold_back
from escala.envs.slots.state import HOLD_PILE
from escala.studies.grid2019.cells import queue_slots
from escala.studies.lab.horizons import HORIZONS, RULES, lists_of

LOADS = (40, 70, 100, 130, 160, 190)
LISTS = {50: 80, 100: 40, 200: 20, 400: 12, 1000: 8}
TUNED, SEARCHED, JUDGED = 31, 21, 32
"""Seeds of the lists: of hold-back's settings, of the search, and of the table."""
QUIETS, SHARES = (0, 1, 2, 3, 4, 6, 8, 12, 20), (0, 1, 3, 5, 8)
PATIENCE = 60_000
UNFINISHED = 1e4
WORST = 6  # cells that count more
START = (1.73, -0.27, -0.54, -0.12, -0.1, 0.0, -0.26, 0.68, 0.41, -0.1, 0.2, 0.0, 2.49, -0.14, 1.65, 0.54)
SPREAD = (0.4, 0.1, 0.4, 0.1, 0.15, 0.15, 1.0, 0.3, 1.0, 0.3, 0.5, 0.5, 1.0, 0.2, 0.5, 0.3)
POINTS, BEST = 14, 7
Floats = NDArray[np.float64]
CELLS = [(load, steps) for load in LOADS for steps in HORIZONS]


def lists(seed: int) -> list[JobLists]:
    """The lists of each cell."""
    return [lists_of("pool", load, steps, LISTS[steps], seed) for load, steps in CELLS]


def best_rule(own: list[JobLists]) -> Floats:
    """The least mean slowdown of the three rules in each cell."""
    found = []
    for (load, steps), drawn in zip(CELLS, own, strict=True):
        slots = queue_slots(steps)
        hold = tune_hold_back(lists_of("pool", load, steps, LISTS[steps], TUNED), QUIETS, SHARES, slots=slots)
        played = [play(drawn, rule, hold=hold, slots=slots, patience=PATIENCE)["slowdown"].mean() for rule in RULES]
        found.append(min(float(one) for one in played))  # type: ignore[arg-type]
    return np.array(found)


def excess(own: list[JobLists], best: Floats) -> Callable[[Floats], Floats]:
    """From the numbers of the rule to the logarithm of its mean slowdown over the best rule's, in each cell."""
    joined, cell = join(own), np.repeat(np.arange(len(own)), [len(one) for one in own])

    def judge(pile: Floats) -> Floats:
        played = play(joined, "hold-pile", pile=pile.tolist(), slots=32, queue="shortest", patience=PATIENCE)
        slowdown = played["slowdown"].fill_null(UNFINISHED).to_numpy()
        return np.log(np.array([slowdown[cell == k].mean() for k in range(len(own))]) / best)

    return judge


def generations(cost: Callable[[Floats], float], seed: int) -> Iterator[Floats]:
    """The mean of each generation of CMA-ES; never ends."""
    random, n = np.random.default_rng(seed), len(START)
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
        costs = [cost(START + SPREAD * (mean + step * move)) for move in moves]
        chosen = moves[np.argsort(costs)[:BEST]]
        move = weights @ chosen
        mean = mean + step * move
        count += 1
        step_path = (1 - c_step) * step_path + np.sqrt(c_step * (2 - c_step) * mass) * (axes @ ((axes.T @ move) / lengths))
        long = np.linalg.norm(step_path) / np.sqrt(1 - (1 - c_step) ** (2 * count)) >= (1.4 + 2 / (n + 1)) * usual
        path = (1 - c_path) * path + (0 if long else np.sqrt(c_path * (2 - c_path) * mass)) * move
        covariance = (1 - c_one - c_rank) * covariance + c_one * np.outer(path, path) + c_rank * (chosen.T * weights) @ chosen
        step *= np.exp(c_step / damping * (np.linalg.norm(step_path) / usual - 1))
        yield START + SPREAD * mean


def search(minutes: float, seed: int) -> Floats:
    """The mean of the last generation within this time."""
    own = lists(SEARCHED)
    judge, until = excess(own, best_rule(own)), time.monotonic() + 60 * minutes

    def cost(pile: Floats) -> float:
        each = judge(pile)
        return float(each.mean() + 0.5 * np.sort(each)[-WORST:].mean())

    for k, found in enumerate(generations(cost, seed), start=1):
        if time.monotonic() > until:
            return found
        print(f"generation {k}: cost {cost(found):+.4f}", flush=True)
    raise AssertionError("unreachable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="search so long")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    pile = np.array(HOLD_PILE) if given.minutes is None else search(given.minutes, given.seed)
    print("numbers:", ", ".join(f"{value:.3f}" for value in pile))
    own = lists(JUDGED)
    each = 100 * (np.exp(excess(own, best_rule(own))(pile)) - 1)
    print("excess over the best rule, %: load,", ", ".join(f"{steps} steps" for steps in HORIZONS))
    for load, row in zip(LOADS, each.reshape(len(LOADS), -1), strict=True):
        print(f"{load} %: " + ", ".join(f"{value:+.1f}" for value in row))
    print(f"worst {each.max():+.1f}, mean {each.mean():+.1f}")


if __name__ == "__main__":
    main()
