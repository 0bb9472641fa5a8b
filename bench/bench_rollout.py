"""How much of the head-room `rollout` gains on slotted lists: `python -m bench.bench_rollout [--episodes 100]
[--futures 128] [--guess]`.

Lists after R1 (reading clip10, 50 steps), loads 1.0 and 1.9. Reference: greedy SJF. Optimum: the best schedule that
`escala.bound` finds (an upper bound of the optimum, so the shares are a hair too large; its proved lower bound stands
beside). `rollout` knows the law of arrivals (1 000 other lists) and simulates on by its own bases, which were chosen on
lists of other seeds; with --guess it guesses the law from each list's own past, and stands beside `sjf-fit` as its only
base and the plain name. Intervals resample lists. Processor seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import escala
from escala.policies import Rollout
from escala.policies.rollout_names import rollout_of
from escala.workload import Workload
from escala.workload.generate_slots import bernoulli_model

PLATFORM = "10x1:none"
TEST, LAW = 7_000_000, 8_000_000  # first seeds


def slowdown(workload: Workload, scheduler: object) -> float:
    """Mean slowdown of a list."""
    jobs = escala.simulate(workload, PLATFORM, scheduler, record=False).jobs
    return float(((jobs["wait_s"] + jobs["runtime_s"]) / jobs["runtime_s"]).mean())  # type: ignore[arg-type]


def ways(load: float, futures: int, guess: bool) -> dict[str, object]:
    """What is judged: name -> scheduler."""
    if guess:
        plain = f"rollout:{futures}"
        return {
            name: rollout_of(name, 0)
            for name in (f"{plain}:objective=slowdown", f"{plain}:objective=slowdown:base=sjf-fit", plain)
        }
    model = bernoulli_model(load=load, steps=50, demand="clip10")
    law = [model.workload(LAW + k) for k in range(1000)]
    return {"rollout": Rollout(futures, arrivals=law, objective="slowdown", every_s=1.0, optimism=0.5)}


def figures(load: float, episodes: int, futures: int, guess: bool) -> None:
    """The rows of a load."""
    model = bernoulli_model(load=load, steps=50, demand="clip10")
    test = [model.workload(TEST + k) for k in range(episodes)]
    greedy = np.array([slowdown(w, "sjf-fit") for w in test])
    bounds = [escala.bound(w, PLATFORM, "slowdown", policies=[]) for w in test]
    found, lower = np.array([b.found for b in bounds], float), np.array([b.lower for b in bounds], float)
    rows = np.random.default_rng(0).integers(0, episodes, (2000, episodes))
    first, least = greedy[rows].mean(axis=1), found[rows].mean(axis=1)

    def told(values: np.ndarray) -> str:
        low, high = np.quantile(values[rows].mean(axis=1) / first - 1, [0.025, 0.975])
        return f"{values.mean():.3f} ({values.mean() / greedy.mean() - 1:+.1%} [{low:+.1%}, {high:+.1%}])"

    print(
        f"load {load}, {episodes} lists: sjf-fit {greedy.mean():.3f}, best found {told(found)}, bound "
        f"{lower.mean():.3f}",
        flush=True,
    )
    for name, policy in ways(load, futures, guess).items():
        slowdown(test[0], policy)  # compiles
        begin = time.process_time()
        ours = np.array([slowdown(w, policy) for w in test])
        each = (time.process_time() - begin) / episodes
        low, high = np.quantile((first - ours[rows].mean(axis=1)) / (first - least), [0.025, 0.975])
        whole = (greedy.mean() - ours.mean()) / (greedy.mean() - found.mean())
        print(f"  {name}: {told(ours)}; head-room {whole:.1%} [{low:.1%}, {high:.1%}]; {each:.3f} s a list", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--futures", type=int, default=128)
    parser.add_argument("--guess", action="store_true", help="the law of arrivals is guessed from each list's past")
    given = parser.parse_args()
    for load in (1.0, 1.9):
        figures(load, given.episodes, given.futures, given.guess)


if __name__ == "__main__":
    main()
