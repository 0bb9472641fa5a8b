"""Judging a scheduling agent as a queue is lived: one continuous replay of the whole log, its later weeks beside those
of classic rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from escala.agents.presets import SCHEDULING
from escala.errors import EscalaError
from escala.options import Options, with_options
from escala.platform import read_platform
from escala.policies import simulate
from escala.policy import name_of
from escala.tuning.measures import jobs_of
from escala.tuning.split import DAY_S, WEEK_S, Split
from escala.tuning.weekly import Weekly, weekly
from escala.unseen import for_all
from escala.workload import Workload
from escala.workload.transform import shift

BASELINES = ("easy", "easy-sjf", "sjf-fit")
AGENT, GREEDY = "agent", "agent (greedy)"


def evaluate_weeks(
    agent: Any,
    log: Workload,
    platform: Any,
    after_s: float,
    baselines: Sequence[Any] | None = None,
    runs: int = 1,
    seed: int = 0,
    *,
    progress: Callable[[float], None] | None = None,
) -> Weekly:
    """Judge an agent of escala/Scheduling-v0 on the jobs submitted from `after_s` on (s on the log's clock), each
    policy in one replay of the whole log, with the shutdown policy of the training.

    baselines: schedulers, the first is what ratios are to. The agent plays `runs` times by its sampled actions, with
    seeds seed, seed + 1, ..., and once by its greedy ones. EscalaError for another agent, or where no week is left.
    """
    if agent.env_id != SCHEDULING:
        raise EscalaError(
            f"agents of {agent.env_id} are not judged by weeks of a queue: use escala evaluate by days, or escala "
            "frontier"
        )
    split = Split(float(log.jobs["submit_s"].min() or 0.0), after_s, float(log.jobs["submit_s"].max() or 0.0))
    if split.last_s - after_s < WEEK_S:
        raise EscalaError(
            f"workload {log.name!r}: {max(split.last_s - after_s, 0.0) / DAY_S:.1f} days are left to judge on: less "
            "than a week"
        )
    options = {"oversized": agent.env_options.get("oversized", "error"), "record": False}
    shutdown, machine = agent.env_options.get("shutdown", "timeout:300"), read_platform(platform)
    jobs = jobs_of(log, machine, with_options(Options(), **options))
    later = jobs.part(jobs.submit_s >= after_s)
    clock = shift(log, -(log.origin_s % agent.env_options.get("day_s", DAY_S)))  # a clock as in training
    chosen: list[tuple[str, Any]] = [(name_of(one), one) for one in (BASELINES if baselines is None else baselines)]
    chosen += [
        (f"{AGENT}, run {run}" if runs > 1 else AGENT, agent.policy(sampled=True, seed=seed + run))
        for run in range(runs)
    ]
    chosen.append((GREEDY, agent.policy(sampled=False)))
    machine = for_all(machine, [policy for _, policy in chosen])
    waits = {}
    for k, (name, policy) in enumerate(chosen):
        waits[name] = simulate(clock, machine, policy, shutdown, **options).jobs["wait_s"].to_numpy()[later.row]
        if progress is not None:
            progress((k + 1) / len(chosen))
    return weekly(later, split, waits, seed)
