"""The main job, end to end: describe a log, compare the classic policies, learn when to switch nodes off, and judge that on days not seen.

The days are split in time order. The agent trains on the earlier ones; each later day is one episode: its jobs alone, on a machine that is
off at midnight, run to completion. All shutdown policies stand on the same scheduler there, and every figure is paired by day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl

import escala
from escala.errors import EscalaError
from escala.metrics import compare as comparing

CLUSTER = "orion"
DAY_S = 86400.0
METRICS = ("waste_j", "energy_j", "transitions", "mean_wait_s", "mean_stretch")
REFERENCE = "timeout:0"
AGENT = "trained agent"
ENVIRONMENT = "escala/OffReservation-v0"


class Advance(Protocol):
    """Called when so much of a piece of work is done."""

    def __call__(self, done: float = 1.0) -> None: ...


class Begin(Protocol):
    """Called when a piece of work begins; `amount`: how much there is to do, None where that is not known."""

    def __call__(self, what: str, amount: float | None = None) -> Advance: ...


def _silent(what: str, amount: float | None = None) -> Advance:
    return lambda done=1.0: None


@dataclass(frozen=True)
class Settings:
    """What the demo does. `beneath`: the scheduler under every shutdown policy. `train_share`: part of the days to train on, in time order.
    `judged_days`: at most so many later days are judged (the first of them), which bounds the time that a long log takes.
    """

    schedulers: tuple[str, ...] = ("fcfs", "first-fit", "sjf-fit", "easy", "saf", "conservative")
    shutdowns: tuple[str, ...] = ("never", "timeout:300", "timeout:0", "hold:0.25", "oracle")
    beneath: str = "saf"
    train_share: float = 2 / 3
    train_minutes: float = 1.0
    judged_days: int = 60
    seed: int = 0


@dataclass(frozen=True)
class Findings:
    """What came out. `schedulers`, `shutdowns`: the classic policies over the whole log. `judged`: all policies over the unseen days, as
    `metrics.compare.episodes` gives it. `training`: what was trained and on what, or why nothing was.
    """

    workload: escala.Workload
    platform: escala.Platform
    description: Mapping[str, Any]
    schedulers: escala.Comparison
    shutdowns: escala.Comparison
    days: pl.DataFrame
    judged: pl.DataFrame
    training: Mapping[str, Any]


def built_in(seed: int = 0, days: float = 30) -> tuple[escala.Workload, escala.Platform]:
    """A seeded Grid'5000-like month for one cluster, and the cluster."""
    return escala.workload.generate.grid5000(cluster=CLUSTER, days=days, seed=seed), escala.read_platform(CLUSTER)


def run(workload: escala.Workload, platform: escala.Platform, settings: Settings | None = None, begin: Begin = _silent) -> Findings:
    """Do it all.

    Raises:
        EscalaError: the log does not fit the platform, or has too few days to train on some and judge on others.
    """
    plan = settings or Settings()
    earlier, later = split(workload, plan)
    done = begin("comparing schedulers", len(plan.schedulers))
    schedulers = escala.compare(workload, platform, schedulers=plan.schedulers, shutdowns=["never"], seed=plan.seed, progress=lambda _: done())
    done = begin("comparing shutdown policies", len(plan.shutdowns))
    shutdowns = escala.compare(workload, platform, schedulers=[plan.beneath], shutdowns=plan.shutdowns, seed=plan.seed, progress=lambda _: done())
    agent, training = trained(earlier, platform, plan, begin)
    policies = {name: name for name in plan.shutdowns} | ({AGENT: agent} if agent is not None else {})
    days = judge(later, platform, policies, plan, begin)
    return Findings(
        workload=workload,
        platform=platform,
        description=escala.describe(workload, platform),
        schedulers=schedulers,
        shutdowns=shutdowns,
        days=days,
        judged=comparing.episodes(days, METRICS, reference=REFERENCE, seed=plan.seed),
        training=training,
    )


def split(workload: escala.Workload, plan: Settings) -> tuple[list[escala.Workload], list[escala.Workload]]:
    """Days to train on and days to judge on, in time order. Days begin at midnight UTC where the log has absolute times; days with fewer
    than two jobs are left out, as in the dissertation.
    """
    days = [day for day in workload.split_days(origin_s=-(workload.origin_s % DAY_S)) if len(day) >= 2]
    cut = round(plan.train_share * len(days))
    if cut < 1 or cut >= len(days):
        raise EscalaError(f"workload {workload.name!r} has {len(days)} days with at least two jobs; the demo needs 2, better 30 or more")
    return days[:cut], days[cut : cut + plan.judged_days]


def judge(
    days: Sequence[escala.Workload], platform: escala.Platform, policies: Mapping[str, Any], plan: Settings, begin: Begin = _silent
) -> pl.DataFrame:
    """One row per policy and day: the metrics of that day's run, all nodes off at its start, run until its last job is done."""
    done = begin("judging on days not seen", len(days) * len(policies))
    rows = []
    for name, policy in policies.items():
        for number, day in enumerate(days):
            result = escala.simulate(day, platform, scheduler=plan.beneath, shutdown=policy, start_off=True, seed=plan.seed)
            summary = result.summary()
            rows.append({"policy": name, "episode": number, "day": day.name, **{metric: float(summary[metric]) for metric in METRICS}})
            done()
    return pl.DataFrame(rows)


def write(findings: Findings, folder: Path) -> Path:
    """Write the findings into a folder: the page, the tables, and every run over the whole log. Returns where the page is."""
    tables = folder / "tables"
    tables.mkdir()
    findings.days.write_csv(tables / "unseen_days.csv")
    findings.judged.write_csv(tables / "judged.csv")
    for name, comparison in (("schedulers", findings.schedulers), ("shutdowns", findings.shutdowns)):
        comparison.table().write_csv(tables / f"{name}.csv")
        comparison.save(folder / "runs" / name)
    (folder / "description.json").write_text(json.dumps(findings.description, indent=2) + "\n", encoding="utf-8")
    manifest = {"escala": escala.__version__, "kind": "demo", "training": dict(findings.training)}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, default=str) + "\n", encoding="utf-8")
    return page(findings, folder / "report.html")
