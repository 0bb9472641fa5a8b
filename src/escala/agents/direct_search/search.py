"""Direct search of an off-reservation policy: the cross-entropy method (Rubinstein 1999; de Boer et al. 2005) on a
linear score.

Holding a job back pays, or costs, dozens of decisions later, and days differ far more than choices do. A gradient
estimated decision by decision drowns in that; here whole days decide. Every candidate plays the same training days, so
that the days' differences cancel. A generation draws candidates around the present mean, and the best of them are the
next mean. What counts is the environment's own reward.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from escala.agents import checkpoint
from escala.agents.agent import FORMAT, Agent, load_agent
from escala.agents.direct_search.hold_play import whole_days
from escala.agents.networks.build import build_policy, pin_threads
from escala.agents.presets import OFF_RESERVATION, ORDERED_HOLDS
from escala.envs.rjms.hold_features import FEATURES, HOLD_FEATURES
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.errors import EscalaError
from escala.platform import read_platform
from escala.writing import claimed, remove, whole_file

Floats = NDArray[np.float64]
Score = Callable[[Floats], tuple[float, int]]
ELITE = 0.3  # share of the candidates that make the next mean
KEEP = 0.4  # of the present mean and spread
FIRST_SPREAD, LEAST_SPREAD = 1.5, 0.08
CHECK = 3  # generations between two looks at the validation days
WEIGHTS = len(FEATURES) + 1  # the first is the choice where all numbers are 0


def search(
    days: Sequence[Any],
    platform: Any,
    *,
    validation: Sequence[Any] | None = None,
    generations: int = 30,
    population: int = 20,
    days_each: int = 300,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Callable[[float], None] | None = None,
    **env_options: Any,
) -> Agent:
    """Search an agent of `escala/OffReservation-v0` with the action `hold`.

    days: to train on, at most `days_each` of them, drawn by seed. validation: days on which the generation is chosen
    (without: the last). generations, population: how long, and how many candidates each. out: folder for the agent; an
    interrupted search goes on with the same call and ends as an uninterrupted one; a finished one is loaded.
    env_options: of the environment (stretch_cost, tau, window, ...). Raises EscalaError: a folder of another search.
    """
    if generations < 1 or population < 4:
        raise EscalaError(f"generations={generations}, population={population}: give at least 1 and 4")
    options = {"action": "hold", "observation": "compact", "holds": list(ORDERED_HOLDS), **env_options}
    request = {
        "env_id": OFF_RESERVATION, "env_options": options, "algorithm": "cross-entropy", "preset": "search",
        "seed": seed, "generations": generations, "population": population, "days_each": days_each,
        **about(days, validation, platform),
    }  # fmt: skip
    folder = None if out is None else Path(out)
    if (known := finished(folder, request)) is not None:
        return known
    pin_threads()
    drawn = np.random.default_rng([seed, 0xCE]).permutation(len(days))[:days_each]
    batch = OffReservationBatch(len(drawn), [days[k] for k in sorted(drawn)], platform, **options)
    judge = None if validation is None else OffReservationBatch(len(validation), list(validation), platform, **options)

    def on(these: OffReservationBatch) -> Score:
        def score(weights: Floats) -> tuple[float, int]:
            value, decisions = whole_days(weights, these)
            return float(value.mean()), decisions

        return score

    constants = [np.eye(WEIGHTS)[0] * k for k in range(int(batch.action_space.n))]
    begin = CrossEntropy(on(batch), None if judge is None else on(judge), constants, seed, population)
    agent = _agent(run_search(begin, generations, folder, request, progress), batch, request)
    finish(agent, folder)
    return agent


def about(days: Sequence[Any], validation: Sequence[Any] | None, platform: Any) -> dict[str, Any]:
    """What a request says of the days and of the machine."""
    judged = None if validation is None else checkpoint.about_days(validation, "validation")
    return {
        "workload": checkpoint.about_days(days, "days"),
        "validation_days": judged,
        "platform": read_platform(platform).spec(),
    }


def finished(folder: Path | None, request: Mapping[str, Any]) -> Agent | None:
    """The agent of this request that a folder holds already; None where it holds none. EscalaError for one of another
    request, and for a folder that cannot be written."""
    checkpoint.check_place(folder)
    if folder is None or not checkpoint.ended(folder):
        return None
    agent = load_agent(folder)
    for name, value in json.loads(json.dumps(request)).items():
        if agent.manifest.get(name) != value:
            told = f"with {name}={agent.manifest.get(name)!r}, not {value!r}"
            raise EscalaError(f"{folder}: holds an agent {told}: give the same arguments, or another folder")
    return agent


def run_search(
    run: CrossEntropy,
    generations: int,
    folder: Path | None,
    request: Mapping[str, Any],
    progress: Callable[[float], None] | None,
) -> CrossEntropy:
    """All generations, or those that an interrupted search in this folder has left."""
    with claimed(folder):
        if folder is not None:
            run.restore(folder / checkpoint.SEARCH, request)
            run.keep(folder / checkpoint.SEARCH, request)
        while run.generation < generations:
            began = time.monotonic()
            run.step()
            run.elapsed_s += time.monotonic() - began
            if folder is not None:
                run.keep(folder / checkpoint.SEARCH, request)
            if progress is not None:
                progress(run.generation / generations)
    return run


def finish(agent: Agent, folder: Path | None) -> None:
    """The agent takes the place of the unfinished search."""
    if folder is not None:
        agent.write(folder)
        remove(folder / checkpoint.SEARCH)


class CrossEntropy:
    """Mean and spread of the weights, the best mean so far by validation, and the curve of what was seen.

    score: weights -> (value, decisions), on training days; judge: the same on validation days, or None. begins: the
    best of these is the first mean.
    """

    def __init__(
        self,
        score: Score,
        judge: Score | None,
        begins: Sequence[Floats],
        seed: int,
        n: int,
        spread: float = FIRST_SPREAD,
    ) -> None:
        self.judge, self.seed, self.n, self._scored = judge, seed, n, score
        self.generation, self.decisions, self.elapsed_s = 0, 0, 0.0
        self.curve: list[tuple[float, float, float]] = []  # decisions, value on training days, on validation days
        self._begins = begins
        self.mean, self.spread = begins[0], np.full(len(begins[0]), spread)
        self.best, self.best_value = self.mean, -np.inf

    def _score(self, weights: Floats) -> float:
        value, decisions = self._scored(weights)
        self.decisions += decisions
        return value

    def step(self) -> None:
        """One generation."""
        if self.generation == 0 and len(self._begins) > 1:
            self.mean = max(self._begins, key=self._score)
        rng = np.random.default_rng([self.seed, self.generation])
        candidates = self.mean + self.spread * rng.standard_normal((self.n, len(self.mean)))
        candidates[0] = self.mean
        scores = np.array([self._score(one) for one in candidates])
        elite = candidates[np.argsort(-scores, kind="stable")[: max(2, round(ELITE * self.n))]]
        if self.judge is None:
            self.curve.append((self.decisions, float(scores[0]), float("nan")))
        elif self.generation % CHECK == 0:
            self._look(float(scores[0]))
        self.mean = (1 - KEEP) * elite.mean(axis=0) + KEEP * self.mean
        self.spread = (1 - KEEP) * np.maximum(elite.std(axis=0), LEAST_SPREAD) + KEEP * self.spread
        self.generation += 1

    def _look(self, trained: float) -> None:
        """Judge the mean on the validation days."""
        assert self.judge is not None
        value, _ = self.judge(self.mean)
        self.curve.append((self.decisions, trained, value))
        if value > self.best_value:
            self.best, self.best_value = self.mean, value

    def chosen(self) -> Floats:
        """The weights to keep."""
        if self.judge is None:
            return self.mean
        self._look(float("nan"))
        return self.best

    def keep(self, path: Path, request: Mapping[str, Any]) -> None:
        """Everything needed to go on, in one file that is replaced as a whole."""
        numbers = np.array([self.generation, self.decisions, self.best_value, self.elapsed_s])
        told = np.array(json.dumps(request))
        state = {
            "mean": self.mean,
            "spread": self.spread,
            "best": self.best,
            "numbers": numbers,
            "curve": np.array(self.curve),
        }
        with whole_file(path) as aside:
            np.savez(aside, **state, request=told)

    def restore(self, path: Path, request: Mapping[str, Any]) -> None:
        """Go on from a file, if there is one; EscalaError where it belongs to another search."""
        if not path.is_file():
            return
        with np.load(path, allow_pickle=False) as kept:
            theirs, ours = json.loads(str(kept["request"])), json.loads(json.dumps(request))
            if theirs != ours:
                name = next(name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name))
                told = f"{name}={theirs.get(name)!r}, not {ours.get(name)!r}"
                raise EscalaError(
                    f"{path}: belongs to a search with other arguments ({told}): give the same ones, or another folder"
                )
            self.mean, self.spread, self.best = kept["mean"], kept["spread"], kept["best"]
            self.generation, self.decisions, self.best_value = (
                int(kept["numbers"][0]),
                int(kept["numbers"][1]),
                float(kept["numbers"][2]),
            )
            self.elapsed_s = float(kept["numbers"][3])
            self.curve = [(float(a), float(b), float(c)) for a, b, c in kept["curve"].reshape(-1, 3)]


def _agent(run: CrossEntropy, batch: OffReservationBatch, request: Mapping[str, Any]) -> Agent:
    """The weights as an agent like any other."""
    weights = run.chosen()
    manifest = {
        "kind": "agent", "format": FORMAT, **request, "command": sys.argv, "steps_done": run.decisions,
        "elapsed_s": round(run.elapsed_s, 3), "network": [], "extractor": HOLD_FEATURES, "separate": False,
        "relu": False, "ordered": 0,
        "observation_shape": list(batch.observation_space.shape or ()), "actions": int(batch.action_space.n),
        "curve": [[None if np.isnan(x) else x for x in point] for point in run.curve],
        "score": {"choice where all is 0": float(weights[0]), **dict(zip(FEATURES, map(float, weights[1:]),
                                                                         strict=True))},
        "versions": {name: version(name) for name in ("escala", "torch", "stable-baselines3", "numpy")},
    }  # fmt: skip
    space = spaces.Box(0.0, 1.0, tuple(manifest["observation_shape"]), np.float32)
    network = build_policy(manifest, space, spaces.Discrete(manifest["actions"]))
    head = network.action_net
    with torch.no_grad():
        head.centre.fill_(float(weights[0]))
        head.mu.weight.copy_(torch.as_tensor(weights[1:], dtype=torch.float32).reshape(1, -1))
        head.mu.bias.zero_()
        head.spread.fill_(-10.0)
    return Agent(network, manifest)
