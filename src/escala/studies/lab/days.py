"""Judging policies day by day: each day of a log is one episode, and every policy runs the same days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import escala
from escala.errors import EscalaError
from escala.metrics.compare import KNOWS
from escala.metrics.energy import to_one_end
from escala.platform import Platform
from escala.tables import totals_of
from escala.workload import Workload, day_group

DAY_S = 86400.0
METRICS = ("energy_j", "mean_wait_s", "mean_bounded_slowdown", "mean_stretch", "waste_j", "transitions")
THETA = 0.5  # share of the walltime from which a wait is a delay (R3 equation 5.1)

Floats = np.ndarray[Any, np.dtype[np.float64]]
Rows = list[dict[str, Any]]
Choose = Callable[[Any, Any], Any]
"""(observations [n, ...], masks [n, actions]) -> actions [n]."""


def days_of(workload: Workload, least: int = 2, groups: Sequence[int] = ()) -> list[Workload]:
    """The days of a log in time order, each with its own midnight as time 0. Days begin at midnight UTC where the log
    has absolute times; days with fewer than `least` jobs are left out, as in R. B. Casagrande's dissertation (2020).
    groups: only days of these of his groups, 1 to 5 (`escala.workload.day_group`).
    """
    for group in groups:
        if group not in range(1, 6):
            raise EscalaError(
                f"group {group!r} is not known: days are of groups 1 to 5, by their share of sequential submissions"
            )
    every = [
        day
        for day in workload.split_days(origin_s=-(workload.origin_s % DAY_S))
        if len(day) >= max(least, 2 if groups else 0)
    ]
    return [day for day in every if not groups or day_group(day) in groups]


def judge(
    days: Sequence[Workload],
    platform: Platform,
    policies: Mapping[str, tuple[Any, Any]],
    *,
    metrics: Sequence[str] = METRICS,
    progress: Callable[[float], None] | None = None,
    keep: Callable[[str, Callable[[], Rows]], Rows] | None = None,
    **options: Any,
) -> pl.DataFrame:
    """One row per policy and day: policy, knows (what it knows of the future),
    episode, day (its name), the metrics of that day's run, window_s and asleep_w; energies are
    counted to one end (`escala.metrics.energy.to_one_end`).

    policies: name -> (scheduler, shutdown). A day is run until its last job is done, with all nodes off at its start;
    `options` go to `escala.simulate`. progress: called with the share done. keep: where the rows of a policy go and
    come from: called with its name and what makes them.
    """
    rows: Rows = []

    def of_policy(name: str) -> Rows:
        scheduler, shutdown = policies[name]
        own: Rows = []
        for number, day in enumerate(days):
            result = escala.simulate(
                day, platform, scheduler=scheduler, shutdown=shutdown, **{"start_off": True, **options}
            )
            summary = result.summary()
            figures = {metric: float(summary[metric]) for metric in (*metrics, "window_s")}
            about = {"policy": name, KNOWS: result.knows, "episode": number, "day": day.name}
            own.append({**about, **figures, "asleep_w": platform.asleep_w})
            if progress is not None:
                progress((len(rows) + len(own)) / (len(days) * len(policies)))
        return own

    for name in policies:
        rows += of_policy(name) if keep is None else keep(name, partial(of_policy, name))
    return to_one_end(pl.DataFrame(rows))


def drawn(n: int, seed: int) -> list[int]:
    """The numbers of n days in an order drawn by seed."""
    return [int(k) for k in np.random.default_rng([seed, 0xDA7]).permutation(n)]


def split(
    n: int, how: str, seed: int = 0, train: float = 0.8, validation: float = 0.2
) -> tuple[list[int], list[int], list[int]]:
    """Numbers of the training, validation and held-out days of n days. how: "time" (the last days are held out) or
    "random" (drawn by seed). The last part (`validation`) of the training days serves to choose among models."""
    if how not in ("time", "random"):
        raise EscalaError(f"split {how!r} is not known: use time or random")
    order = list(range(n)) if how == "time" else drawn(n, seed)
    held = round(train * n)
    kept, last = sorted(order[:held]) if how == "random" else order[:held], sorted(order[held:])
    cut = len(kept) - round(validation * len(kept))
    if not (cut > 0 and len(kept) > cut and last):
        raise EscalaError(f"{n} days are too few to train, validate and judge on: give at least 10")
    return kept[:cut], kept[cut:], last


def figures(day: Workload, start_s: Floats, end_s: float) -> dict[str, float]:
    """Figures over the jobs of one day: sums, but for delay_each_s, the mean delay of the delayed jobs (0: none is),
    which R3's table 5 prints as delay. start_s [jobs]: NaN for a job that did not start by `end_s`; such a job has
    waited until then."""
    jobs = day.jobs
    wall, runtime, cores = (jobs[name].to_numpy() for name in ("walltime_s", "runtime_s", "cores"))
    ran = np.minimum(runtime, wall)
    idle = np.isnan(start_s)
    wait = np.where(idle, end_s, start_s) - jobs["submit_s"].to_numpy()
    stretch = wait / wall
    delay = np.where(stretch >= THETA, wait - THETA * wall, 0.0)
    return {
        "jobs": float(len(jobs)),
        "unstarted": float(idle.sum()),
        "wait_s": float(wait.sum()),
        "stretch": float(stretch.sum()),
        "delay_s": float(delay.sum()),
        "delay_each_s": float(delay.sum() / max((stretch >= THETA).sum(), 1)),
        "slowdown": float(np.maximum((wait + ran) / np.maximum(ran, 10.0), 1.0).sum()),
        "pp_slowdown": float(np.maximum((wait + ran) / (ran * cores), 1.0).sum()),
    }


def simulated(
    days: Sequence[Workload],
    platform: Platform,
    scheduler: Any,
    shutdown: Any,
    window: str,
    until_s: float = DAY_S,
    **options: Any,
) -> tuple[Rows, list[Floats]]:
    """One row a day, and the start of every job, by `escala.simulate`; nodes off at the start, cut at `until_s` or
    drained. span_s: how long the day's energy was counted."""
    rows, starts = [], []
    limit = {"until_s": until_s} if window == "cut" else {}
    for number, day in enumerate(days):
        how = {"start_off": True, "record": False, **limit, **options}
        result = escala.simulate(day, platform, scheduler=scheduler, shutdown=shutdown, **how)
        summary = result.summary()
        start = result.jobs["start_s"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        starts.append(start)
        row = {name: float(summary[name]) for name in ("waste_j", "energy_j", "transitions")} | {
            "span_s": float(summary["window_s"])
        }
        rows.append({"episode": number, **row, **figures(day, start, until_s)})
    return rows, starts


def played(batch: Any, choose: Choose, days: Sequence[Workload], runs: int = 1) -> tuple[Rows, list[Floats], list[int]]:
    """The same, with the choices of an agent: every day is played `runs` times, all at once. batch: environments of R3
    (`OffReservationBatch`, `SchedulingBatch`) over these days, as many as days x runs. Rows have the episode, the run
    and the return besides, and what the environment tells of its reward's parts. Also gives how often each action was
    taken
    where there was a choice.
    """
    from escala.envs.core.batch import new_turn

    n = len(days) * runs
    numbers = np.tile(np.arange(len(days)), runs)
    turn = new_turn(batch)
    every = np.arange(n, dtype=np.int64)
    batch.restart(every, turn, {"day": numbers})
    told = {"waste_j": "waste_j", "late_cores": "late", "waited": "waited"}
    sums, over = {"return": np.zeros(n)}, np.zeros(n, bool)
    spread = np.zeros(int(batch.action_space.n), np.int64)
    while not over.all():
        going = np.flatnonzero(~over)
        actions = np.zeros(n, np.int64)
        actions[going] = choose(turn.observation[going], turn.mask[going])
        free = turn.mask[going].sum(axis=1) > 1
        spread += np.bincount(actions[going][free], minlength=len(spread))
        batch.step(actions, turn)
        info = batch.info()
        sums["return"][going] += turn.reward[going]
        for name in told.keys() & info.keys():
            sums.setdefault(told[name], np.zeros(n))[going] += info[name][going]
        over |= turn.terminated | turn.truncated
    world, rows, starts = batch.episodes.world, [], []
    for row in range(n):
        day = days[numbers[row]]
        begun = world.run[row, : len(day)]["start"]
        start = np.where(begun >= 0, begun * 1e-6, np.nan)
        run = world.s[row, 0]
        energy = float(totals_of(world, row, batch.platform, (0, 0))["joules"].sum())
        base = {
            "episode": int(numbers[row]),
            "run": row // len(days),
            **{name: float(values[row]) for name, values in sums.items()},
        }
        switches = float(sum(run[name] for name in ("switch_offs", "switch_ons", "offs_then", "ons_then")))
        end_s = float(run["now"]) * 1e-6
        begun_s = 0.0 if batch.options.window == "cut" else float(day.jobs["submit_s"][0])
        rows.append(
            {
                **base,
                "energy_j": energy,
                "span_s": end_s - begun_s,
                "transitions": switches,
                **figures(day, start, end_s),
            }
        )
        starts.append(start)
    return rows, starts, spread.tolist()
