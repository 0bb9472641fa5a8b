"""The pieces of the study `deepscheduler2020`: fixed schedulers on days, searching, training and judging agents. Each
gives plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from escala.agents.direct_search.queue_play import whole_days
from escala.agents.direct_search.scheduler_search import PLACES, rule_scheduler, rules, search_scheduler
from escala.envs.rjms.episodes import idle_watts
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.days import DAY_S, Choose, Floats, Rows, played, simulated
from escala.workload import Workload

SCHEDULERS = ("first-fit", "easy", "saf", "sjf-fit", "easy-sjf", "conservative")
BENEATH = "timeout:300"
AT_ONCE = "timeout:0"
SWITCHED = ("first-fit", "easy", "sjf-fit")
"""What is shown over nodes that go off at once, beside agents and rules over BENEATH."""
WINDOWS = ("cut", "drain")
RUNS = 4
PRICE = 3.0
LOOKED_AT = 4  # every so many of the validation days are looked at while MaskablePPO trains
SHOWN = SCHEDULERS[:3]
"""What figures 21, 25 and 26 show beside the agent."""
COLUMNS = (
    "waste_j",
    "energy_j",
    "span_s",
    "transitions",
    "jobs",
    "unstarted",
    "wait_s",
    "stretch",
    "delay_s",
    "slowdown",
    "pp_slowdown",
)
SEEN: dict[str, Any] = {"window": "cut"}
"""Of each day while searching. On validation days an agent whose waits equal First-Fit's on days cut at their end waits
less than it on days run to completion; searched the other way round it waits longer on cut ones."""
Given = dict[str, Any]


def columns_of(rows: Rows, runs: int = 1) -> dict[str, list[float]]:
    """Columns [days], means over the runs of a day."""
    days = len(rows) // runs
    return {c: np.array([row[c] for row in rows]).reshape(runs, days).mean(axis=0).tolist() for c in COLUMNS}


def _slowdowns(days: Sequence[Workload], starts: Sequence[Floats]) -> list[list[float]]:
    """Slowdown (wait + runtime) / runtime of every job (R3 figures 25 and 26), [runs][jobs]; one that did not start has
    waited until the day's end, so that its slowdown is at least this. starts: of the jobs of each day, run by run."""
    out = []
    for run in range(len(starts) // len(days)):
        values: list[float] = []
        for day, start in zip(days, starts[run * len(days) : (run + 1) * len(days)], strict=True):
            ran = np.minimum(day.jobs["runtime_s"].to_numpy(), day.jobs["walltime_s"].to_numpy())
            begun = np.where(np.isnan(start), DAY_S, start)
            values += np.round(1.0 + np.maximum(begun - day.jobs["submit_s"].to_numpy(), 0.0) / ran, 4).tolist()
        out.append(values)
    return out


def fixed(
    source: Given, part: str, schedulers: Sequence[str] = SCHEDULERS, windows: Sequence[str] = WINDOWS
) -> dict[str, Any]:
    """Schedulers by name over nodes that go off after 5 idle minutes: window -> scheduler -> columns; "jobs": slowdown
    of every job [1][jobs], with the days cut."""
    one = inputs.days(**source)
    days = getattr(one, part)
    out: dict[str, Any] = {window: {} for window in windows} | {"jobs": {}}
    for window in windows:
        for scheduler in schedulers:
            rows, starts = simulated(days, one.platform, scheduler, BENEATH, window)
            out[window][scheduler] = columns_of(rows)
            if window == "cut":
                out["jobs"][scheduler] = _slowdowns(days, starts)
    gaps = [np.concatenate([[-1.0], np.diff(day.jobs["submit_s"].to_numpy())]) for day in days]
    return out | {"gap_s": np.concatenate(gaps).tolist(), "asleep_w": one.platform.asleep_w}


def at_once(source: Given) -> dict[str, Any]:
    """Schedulers over nodes that go off as soon as they are idle, on held-out days: window -> scheduler -> columns."""
    one = inputs.days(**source)
    return {
        window: {name: columns_of(simulated(one.test, one.platform, name, AT_ONCE, window)[0]) for name in SWITCHED}
        for window in WINDOWS
    }


def judged(
    agent: Any,
    days: Sequence[Workload],
    platform: Any,
    seed: int,
    windows: Sequence[str] = WINDOWS,
    drain_days: float = 7.0,
) -> dict[str, Any]:
    """An agent on days: window -> columns of the sampled policy (means of RUNS runs) and of its greedy actions; "jobs":
    slowdown of every job [RUNS][jobs], sampled, with the days cut. drain_days: after the first, at most."""
    options = agent.env_options | {"drain_days": drain_days}
    out: dict[str, Any] = {}
    for window in windows:
        batch = SchedulingBatch(RUNS * len(days), list(days), platform, **options | {"window": window})
        rows, starts, _ = played(batch, _drawn(agent, seed), days, RUNS)
        batch = SchedulingBatch(len(days), list(days), platform, **options | {"window": window})
        greedy, _, _ = played(batch, lambda seen, mask: agent.act(seen, mask, None), days)
        out[window] = {"sampled": columns_of(rows, RUNS), "likeliest": columns_of(greedy)}
        if window == "cut":
            out["jobs"] = _slowdowns(days, starts)
    return out


def _drawn(agent: Any, seed: int) -> Choose:
    """The sampled policy."""
    random = np.random.default_rng([seed, 0x5C])
    return lambda seen, mask: agent.act(seen, mask, random)


def high_price(days: Sequence[Workload], platform: Any) -> float:
    """A price of waiting beyond the limit that no saving pays for: PRICE times First-Fit's waste, shared among the
    minutes that its jobs wait and run up to an hour each, in idle minutes of the platform."""
    rows, _ = simulated(days, platform, "first-fit", BENEATH, "cut")
    waste = sum(row["waste_j"] for row in rows) / idle_watts(platform) / 60.0
    return float(max(1e-6, PRICE * waste / (60.0 * sum(row["jobs"] for row in rows))))


def price_of(one: Any) -> float:
    """`high_price` on the training days of an input, at most 200 of them."""
    return high_price(one.train[:: max(1, len(one.train) // 200)], one.platform)


def rule(source: Given, limit: float, strata: int) -> dict[str, Any]:
    """Judge the best, on the training days, of the rules that searches begin with. limit, strata: as in `searched`."""
    one = inputs.days(**source)
    agent = rule_scheduler(one.train, one.platform, price=price_of(one), limit=limit, strata=strata, **SEEN)
    out: dict[str, Any] = {part: judged(agent, getattr(one, part), one.platform, 0) for part in ("validation", "test")}
    return out | {"score": agent.manifest["score"], "rule": agent.manifest["rule"]}


def rules_on(source: Given) -> dict[str, Any]:
    """Every rule that searches may begin with: name -> part -> window -> waste_j and wait_s of each day."""
    one = inputs.days(**source)
    out: dict[str, Any] = {name: {"validation": {}, "test": {}} for name in rules()}
    for part, window in product(("validation", "test"), WINDOWS):
        days = getattr(one, part)
        batch = SchedulingBatch(
            len(days), list(days), one.platform, waits=True, places=PLACES, drain_days=7.0, window=window
        )
        for name, weights in rules().items():
            waste, wait, _ = whole_days(weights, batch)
            out[name][part][window] = {"waste_j": waste.tolist(), "wait_s": wait.tolist()}
    return out


def searched(
    *,
    source: Given,
    limit: float,
    strata: int,
    seed: int,
    generations: int,
    population: int,
    days_each: int,
    keep: str,
    parts: Sequence[str],
) -> dict[str, Any]:
    """Search an agent by whole days (`escala.agents.search_scheduler`) and judge it. limit: of the waits, as a share of
    First-Fit's on the same days, in each of so many strata; beyond it waiting costs."""
    one = inputs.days(**source)
    price = price_of(one)
    agent = search_scheduler(
        one.train, one.platform, price=price, limit=limit, strata=strata, validation=one.validation,
        generations=generations, population=population, days_each=days_each, seed=seed, out=keep, **SEEN,
    )  # fmt: skip
    out = {
        part: judged(agent, getattr(one, part), one.platform, seed, WINDOWS if part != "train" else ("cut",))
        for part in parts
    }
    return out | {
        name: agent.manifest[name] for name in ("curve", "score", "steps_done", "elapsed_s", "price", "limit")
    }


def learnt(source: Given, preset: str, steps: int, seed: int, keep: str, parts: Sequence[str]) -> dict[str, Any]:
    """Train an agent by MaskablePPO on R3's reward, keep the weights that do best on some of the validation days, and
    judge it."""
    from escala.agents import load_agent, train
    from escala.agents.checkpoint import ended

    one = inputs.days(**source)
    if ended(keep):
        agent = load_agent(keep)
    else:
        unfinished = (Path(keep) / "checkpoint.npz").is_file()
        agent = train(
            "escala/Scheduling-v0", list(one.train), one.platform, steps=steps, seed=seed, preset=preset, out=keep,
            resume=unfinished, validation=list(one.validation[::LOOKED_AT]),
        )  # fmt: skip
    out = {part: judged(agent, getattr(one, part), one.platform, seed) for part in parts}
    return out | {name: agent.manifest[name] for name in ("steps_done", "elapsed_s")}
