"""Judging: an agent beside classic policies, day by day."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import polars as pl

from escala.agents.agent import Agent
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.errors import EscalaError
from escala.metrics.compare import KNOWS
from escala.metrics.energy import STATES, to_one_end
from escala.metrics.jobs import THETA
from escala.platform import Platform, read_platform
from escala.policies import simulate
from escala.policy import name_of
from escala.result import Result
from escala.unseen import for_all, unclosed
from escala.writing import Pieces

BASELINES = ("timeout:0", "timeout:300", "oracle", "hold:0.25")
SCHEDULER_BASELINES = ("first-fit", "easy", "saf")


def evaluate(
    agent: Agent,
    days: Sequence[Any],
    platform: Any,
    baselines: Sequence[Any] | None = None,
    runs: int = 4,
    seed: int = 0,
    *,
    beneath: Any = None,
    argmax: bool = True,
    window: str | None = None,
    progress: Callable[[float], None] | None = None,
    starts: Callable[[str, int, int, list[float]], None] | None = None,
    pieces: Pieces | None = None,
) -> pl.DataFrame:
    """One row a day, policy and run: what the policy knows of the future (`knows`); where the platform has watts
    energy_j, that of each node state (computing_j, ...) and waste_j; transitions; mean_wait_s, mean_stretch,
    mean_delay_s (of jobs that started); mean_slowdown, mean_bounded_slowdown (of jobs that ended); jobs, unstarted;
    window_s: how long energy was counted (each day until the last of its runs ends, see
    `escala.metrics.energy.to_one_end`), and asleep_w: what the platform draws while all nodes are off.

    days: Workloads, one an episode. baselines: shutdown policies (schedulers for a scheduling agent), by default R3's.
    The agent's sampled policy plays each day `runs` times with seeds seed, seed + 1, ...; with `argmax` also once with
    its greedy actions. beneath: what stands beside the policies compared (scheduler "saf" under shutdown policies,
    shutdown "timeout:300" under schedulers). window: "cut" ends each day at its length, "drain" runs it to completion;
    by default as in training. All days begin as in training (nodes off, unless told otherwise). starts: called with
    policy, run, number of the day and the start of each of its jobs, s (NaN: never).
    pieces: where the days of a policy and run go and come from, each as one piece.
    """
    if len(days) == 0:
        raise EscalaError("days: give at least one day, each a Workload")
    if agent.env_id not in (OFF_RESERVATION, SCHEDULING):
        raise EscalaError(
            f"agents of {agent.env_id} are not judged on days: use escala.envs.slots.playing.play, or simulate and "
            "compare"
        )
    machine, schedules = unclosed(read_platform(platform)), agent.env_id == SCHEDULING
    how = _as_in_training(agent, machine, window) | {"seed": seed}
    usual = agent.env_options.get("shutdown", "timeout:300") if schedules else "saf"
    other = usual if beneath is None else beneath
    compared = baselines or (SCHEDULER_BASELINES if schedules else BASELINES)
    policies: list[tuple[str, int, Any]] = [(name_of(one), 0, one) for one in compared]
    policies += [("agent", run, agent.policy(sampled=True, seed=seed + run)) for run in range(runs)]
    if argmax:
        policies.append(("agent (argmax)", 0, agent.policy(sampled=False)))
    machine = for_all(machine, [policy for _, _, policy in policies])
    kept = Pieces(None, None) if pieces is None else pieces
    rows = []
    for k, (name, run, policy) in enumerate(policies):
        pair = (policy, other) if schedules else (other, policy)
        played = kept.value(f"{name}, run {run}", partial(_of_days, days, machine, pair, how))
        for number, (figures, begun) in enumerate(played):
            about = {"policy": name, KNOWS: figures[KNOWS], "run": run, "episode": number, "day": days[number].name}
            rows.append({**about, **figures, "asleep_w": machine.asleep_w})
            if starts is not None:
                starts(name, run, number, begun)
        if progress is not None:
            progress((k + 1) / len(policies))
    table = to_one_end(pl.DataFrame(rows))
    return table if machine.has_energy else table.drop("asleep_w")


def _of_days(
    days: Sequence[Any], machine: Platform, pair: tuple[Any, Any], how: dict[str, Any]
) -> list[tuple[dict[str, Any], list[float]]]:
    """Of each day its figures and the starts of its jobs."""
    results = (simulate(day, machine, *pair, **how) for day in days)
    return [
        ({KNOWS: one.knows, **_figures(one)}, one.jobs["start_s"].cast(pl.Float64).fill_null(math.nan).to_list())
        for one in results
    ]


def _as_in_training(agent: Agent, machine: Platform, window: str | None) -> dict[str, Any]:
    """How a day is replayed: it begins, and by default ends, as in the agent's training."""
    options = agent.env_options
    off = machine.has_switches and options.get("start_off", True)
    how: dict[str, Any] = {"start_off": off, "oversized": options.get("oversized", "error")}
    if (window or options.get("window", "cut")) == "cut":
        how["until_s"] = float(options.get("day_s", 86400.0))
    return how


def _figures(result: Result) -> dict[str, Any]:
    summary = result.summary()
    jobs = result.jobs.filter(pl.col("state") != "REJECTED")
    measured = ("window_s", "waste_j", "energy_j", "transitions", *(f"{state}_j" for state in STATES))
    figures = {name: float(summary[name]) for name in measured if name in summary}
    started = jobs.filter(pl.col("start_s").is_not_null())
    wait = started["wait_s"]
    stretch = (wait / started["walltime_s"]).mean()
    delay = (wait - THETA * started["walltime_s"]).clip(lower_bound=0.0).mean()
    return {
        **figures,
        "mean_wait_s": float(wait.mean() or 0.0),
        "mean_stretch": float(stretch or 0.0),
        "mean_delay_s": float(delay or 0.0),
        **{name: float(summary[name]) for name in ("mean_slowdown", "mean_bounded_slowdown")},
        "jobs": jobs.height,
        "unstarted": jobs.height - started.height,
    }
