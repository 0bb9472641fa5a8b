"""Direct search of a scheduling policy by whole days: the cross-entropy method on the two scores of `queue_scorer`.

What counts is a day's energy waste and its jobs' waits, not R3's step reward. With W the waste / idle watts of the
platform, and V the sum of the jobs' waits, both in minutes and summed over the days,

    value = -(W + price x sum over strata max(0, V - limit x V of First-Fit)) / days

so that waiting costs nothing up to a share (`limit`) of what First-Fit waits on the same days. With limit = 0 the
search goes to one end or the other (it saves and lets wait, or neither); with a limit it finds what lies between. A few
crowded days hold most of the waiting, and what is gained there may be spent on all others; so the days can be
stratified by what First-Fit waits on them, the quietest first, into strata of equal shares of its waiting, each of
which keeps the limit for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from escala.agents.agent import FORMAT, Agent
from escala.agents.direct_search.queue_play import whole_days
from escala.agents.direct_search.search import CrossEntropy, Floats, Score, about, finish, finished, run_search
from escala.agents.networks.build import build_policy, pin_threads
from escala.agents.presets import SCHEDULING
from escala.envs.rjms.episodes import idle_watts
from escala.envs.rjms.queue_features import JOB_FEATURES, QUEUE_SCORER, SCORES
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.errors import EscalaError
from escala.platform.told import how

PLACES = 128  # waiting jobs that are shown: with R3's 20 First-Fit itself waits 7 % longer on busy days
FIRST_SPREAD = 0.3  # of the candidates: the best beginning is near


def weights_of(order: Mapping[str, float], release: Mapping[str, float]) -> Floats:
    """Both scores as one row: name of a number -> its weight, 0 where it is not given."""
    return np.array([score.get(name, 0.0) for score in (order, release) for name in JOB_FEATURES])


def rules() -> dict[str, Floats]:
    """What a search may begin with, by name: First-Fit; the shortest walltime first; and this so that a job wakes nodes
    only after some minutes, or where many wait (the more, the sooner, by the number after the minutes). 15 minutes for
    any queue are left out: what is known of a wait ends there."""
    short, at_once = {"walltime": -0.5}, {"always": 1.0}
    out = {"first-fit": weights_of({"place in the queue": -0.5}, at_once), "shortest": weights_of(short, at_once)}
    for minutes, crowd in product((3.0, 5.0, 8.0, 11.0, 15.0), (0.0, 1.0, 2.0, 4.0, 8.0)):
        shy = {"more cores than idle nodes have": -2.0, "such a job x its wait, up to 15 min": 15.0 / minutes}
        if minutes < 15.0 or crowd > 0.0:
            name = f"shortest, {minutes:g} min, {crowd:g}"
            out[name] = weights_of(short, at_once | shy | {"such a job x length of the queue": crowd})
    return out


def begins() -> list[Floats]:
    """The weights of `rules`."""
    return list(rules().values())


class Free(NamedTuple):
    """Waits that cost nothing. stratum int64 [days]: which one a day belongs to; seconds [strata]."""

    stratum: NDArray[np.int64]
    seconds: Floats


def free_waits(batch: SchedulingBatch, limit: float, strata: int = 1) -> Free:
    """So much of First-Fit's waits on the days of a batch, in each of so many strata of about equal waiting, the
    quietest days first."""
    waits = whole_days(begins()[0], batch)[1]
    order = np.argsort(waits, kind="stable")
    middle = (np.cumsum(waits[order]) - 0.5 * waits[order]) / max(float(waits.sum()), 1.0)
    stratum = np.zeros(len(waits), np.int64)
    stratum[order] = np.minimum((middle * strata).astype(np.int64), strata - 1)
    return Free(stratum, limit * np.bincount(stratum, waits, strata))


def values(weights: Floats, batch: SchedulingBatch, price: float, free: Free | None = None) -> tuple[float, int]:
    """Mean value of a day, and the number of decisions. batch: one simulation a day; free: waits that cost nothing."""
    waste_j, wait_s, decisions = whole_days(weights, batch)
    paid = (
        wait_s.sum()
        if free is None
        else np.maximum(0.0, np.bincount(free.stratum, wait_s, len(free.seconds)) - free.seconds).sum()
    )
    value = -(waste_j.sum() / idle_watts(batch.platform) + price * paid) / 60.0 / batch.num_envs
    return float(value), decisions


def search_scheduler(
    days: Sequence[Any],
    platform: Any,
    *,
    price: float,
    limit: float = 0.0,
    strata: int = 1,
    validation: Sequence[Any] | None = None,
    generations: int = 20,
    population: int = 20,
    days_each: int = 200,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Callable[[float], None] | None = None,
    **env_options: Any,
) -> Agent:
    """Search an agent of `escala/Scheduling-v0`. price: of a job's minute of waiting, in minutes of the whole platform
    idling; limit: share of First-Fit's waits up to which waiting costs nothing, in each of so many `strata` of the days
    (see above). The rest as in `escala.agents.search`."""
    if generations < 1 or population < 4 or strata < 1 or not (price >= 0.0 and limit >= 0.0):
        given = f"generations={generations}, population={population}, price={price}, limit={limit}, strata={strata}"
        raise EscalaError(f"{given}: give at least 1, 4, 0, 0 and 1")
    env_options = {"waits": True, "places": PLACES, **env_options}
    request = {
        "env_id": SCHEDULING, "env_options": env_options, "algorithm": "cross-entropy", "preset": "search",
        "seed": seed,
        "generations": generations, "population": population, "days_each": days_each, "price": price, "limit": limit,
        "strata": strata, **about(days, validation, platform),
    }  # fmt: skip
    folder = None if out is None else Path(out)
    if (known := finished(folder, request)) is not None:
        return known
    pin_threads()
    drawn = np.random.default_rng([seed, 0xCE]).permutation(len(days))[:days_each]
    batch = _batch([days[k] for k in sorted(drawn)], platform, env_options)
    judge = None if validation is None else _batch(list(validation), platform, env_options)

    def on(these: SchedulingBatch) -> Score:
        free = free_waits(these, limit, strata) if limit > 0.0 else None
        return lambda weights: values(weights, these, price, free)

    begin = CrossEntropy(on(batch), None if judge is None else on(judge), begins(), seed, population, FIRST_SPREAD)
    agent = _agent(run_search(begin, generations, folder, request, progress), batch, request)
    finish(agent, folder)
    return agent


def rule_scheduler(
    days: Sequence[Any], platform: Any, *, price: float, limit: float = 0.0, strata: int = 1, **env_options: Any
) -> Agent:
    """What a search begins with, as an agent: the best of the rules `begins()` on these days. Arguments as in
    `search_scheduler`."""
    env_options = {"waits": True, "places": PLACES, **env_options}
    pin_threads()
    batch = _batch(list(days), platform, env_options)
    free = free_waits(batch, limit, strata) if limit > 0.0 else None
    scored = [values(weights, batch, price, free) for weights in begins()]
    request = {
        "env_id": SCHEDULING, "env_options": env_options, "algorithm": "rule", "preset": "rule", "seed": 0,
        "price": price, "limit": limit, "strata": strata, **about(days, None, platform),
    }  # fmt: skip
    best = max(range(len(scored)), key=lambda k: scored[k][0])
    named = {"rule": list(rules())[best], "steps_done": sum(decisions for _, decisions in scored)}
    return _made(begins()[best], batch, request | named)


def _batch(days: list[Any], platform: Any, env_options: Mapping[str, Any]) -> SchedulingBatch:
    """One simulation a day; EscalaError where the platform has no watts, which the value of a day counts in."""
    batch = SchedulingBatch(len(days), days, platform, **env_options)
    if not batch.platform.has_energy:
        raise EscalaError(
            f"platform {batch.platform.name!r} has nodes without watts, and idle energy is what is saved: "
            f"{how(batch.platform)}"
        )
    return batch


def _agent(run: CrossEntropy, batch: SchedulingBatch, request: Mapping[str, Any]) -> Agent:
    """The weights as an agent like any other."""
    weights = run.chosen()
    curve = [[None if np.isnan(x) else x for x in point] for point in run.curve]
    return _made(
        weights, batch, {**request, "steps_done": run.decisions, "elapsed_s": round(run.elapsed_s, 3), "curve": curve}
    )


def _made(weights: Floats, batch: SchedulingBatch, told: Mapping[str, Any]) -> Agent:
    manifest = {
        "kind": "agent", "format": FORMAT, **told, "command": sys.argv, "network": [], "extractor": QUEUE_SCORER,
        "separate": False,
        "relu": False, "ordered": None, "observation_shape": list(batch.observation_space.shape or ()),
        "actions": int(batch.action_space.n),
        "score": {
            f"{score}: {name}": float(weight)
            for (score, name), weight in zip(((s, n) for s in SCORES for n in JOB_FEATURES), weights, strict=True)
        },
        "versions": {name: version(name) for name in ("escala", "torch", "stable-baselines3", "numpy")},
    }  # fmt: skip
    space = spaces.Box(0.0, 1.0, tuple(manifest["observation_shape"]), np.float32)
    network = build_policy(manifest, space, spaces.Discrete(manifest["actions"]))
    with torch.no_grad():
        network.mlp_extractor.score.weight.copy_(torch.as_tensor(weights, dtype=torch.float32).reshape(len(SCORES), -1))
    return Agent(network, manifest)
