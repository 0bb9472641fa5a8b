"""How much of the head-room `rollout` gains on slotted lists: `python -m bench.bench_rollout [--episodes 100] [--futures 128]`.

Lists after R1 (reading clip10, 50 steps), loads 1.0 and 1.9. Reference: greedy SJF. Optimum: the best schedule that `escala.bound` finds
(an upper bound of the optimum, so the shares are a hair too large; its proved lower bound stands beside). `rollout` knows the law of
arrivals (1 000 other lists) and simulates on by its own bases, which were chosen on lists of other seeds; intervals resample
lists. Processor seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import escala
from escala.policies import Rollout
from escala.workload import Workload
from escala.workload.generate_slots import bernoulli_model

PLATFORM = "10x1:none"
TEST, LAW = 7_000_000, 8_000_000  # first seeds


def slowdown(workload: Workload, scheduler: object) -> float:
    """Mean slowdown of a list."""
    jobs = escala.simulate(workload, PLATFORM, scheduler, record=False).jobs
    return float(((jobs["wait_s"] + jobs["runtime_s"]) / jobs["runtime_s"]).mean())  # type: ignore[arg-type]


def figures(load: float, episodes: int, futures: int) -> str:
    """One row."""
    model = bernoulli_model(load=load, steps=50, demand="clip10")
    test = [model.workload(TEST + k) for k in range(episodes)]
    policy = Rollout(futures, arrivals=[model.workload(LAW + k) for k in range(1000)], objective="slowdown", every_s=1.0, optimism=0.5)
    slowdown(test[0], policy)  # compiles
    begin = time.process_time()
    ours = np.array([slowdown(w, policy) for w in test])
    each = (time.process_time() - begin) / episodes
    greedy = np.array([slowdown(w, "sjf-fit") for w in test])
    bounds = [escala.bound(w, PLATFORM, "slowdown", policies=[]) for w in test]
    found, lower = np.array([b.found for b in bounds], float), np.array([b.lower for b in bounds], float)
    rows = np.random.default_rng(0).integers(0, episodes, (2000, episodes))
    means = [values[rows].mean(axis=1) for values in (ours, greedy, found)]
    share = (means[1] - means[0]) / (means[1] - means[2])
    change = means[0] / means[1] - 1
    whole = (greedy.mean() - ours.mean()) / (greedy.mean() - found.mean())
    low, high = np.quantile(share, [0.025, 0.975])
    less, more = np.quantile(change, [0.025, 0.975])
    return (
        f"load {load}: sjf-fit {greedy.mean():.3f}, rollout {ours.mean():.3f} "
        f"({ours.mean() / greedy.mean() - 1:+.1%} [{less:+.1%}, {more:+.1%}]), "
        f"best found {found.mean():.3f} ({found.mean() / greedy.mean() - 1:+.1%}), bound {lower.mean():.3f}; "
        f"head-room {whole:.1%} [{low:.1%}, {high:.1%}]; {each:.3f} s a list"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--futures", type=int, default=128)
    given = parser.parse_args()
    for load in (1.0, 1.9):
        print(figures(load, given.episodes, given.futures), flush=True)


if __name__ == "__main__":
    main()
