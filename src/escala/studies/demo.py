"""The main job, end to end: what another order of the queue gives on later weeks of a log, and what switching nodes off
saves.

The order is chosen on the log's past, under a promise, and judged on its later weeks (`escala.tune`). Then every
scheduler stands with every shutdown policy on one picture of energy against wait (`escala.frontier`), the order that
was chosen and an agent trained on the past's days among them. A platform without watts has no such picture.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import escala
from escala.errors import EscalaError
from escala.platform import Platform, read_platform
from escala.platform.told import how
from escala.policies.pairs import Named
from escala.studies.lab.days import days_of
from escala.studies.lab.saving import write_manifest
from escala.tuning import Frontier, Tuned
from escala.tuning.folder import write as write_policy
from escala.tuning.joint import SHUTDOWNS
from escala.tuning.replays import watching
from escala.workload import Description, Workload
from escala.writing import Pieces, write_json

CLUSTER, WEEKS = "taurus", 12
AGENT = "trained agent"
NO_LIMIT = 10**9
ENVIRONMENT = "escala/OffReservation-v0"
KIND = "demo"

Share = Callable[[float], None]
Begin = Callable[[str], Share | None]
"""Called with what is being done now; gives what takes the share done (0..1) of that, or None."""


@dataclass(frozen=True)
class Settings:
    """What the demo does. schedulers: beside the chosen order, what runs today first; shutdowns: likewise. beneath: the
    scheduler that the agent learns to switch nodes under. train_minutes: 0 trains nothing."""

    schedulers: tuple[str, ...] = ("easy", "saf", "sjf-fit")
    shutdowns: tuple[str, ...] = SHUTDOWNS
    beneath: str = "saf"
    train_minutes: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Findings:
    """What came out. frontier: None without watts. training: what was trained, or why nothing."""

    workload: Workload
    platform: Platform
    settings: Settings
    description: Description
    tuned: Tuned
    frontier: Frontier | None
    training: Mapping[str, Any]
    agent: Any = None


def built_in(seed: int = 0, days: float = 7 * WEEKS) -> tuple[Workload, Platform]:
    """Seeded Grid'5000-like weeks for one cluster with a queue, and the cluster."""
    return escala.workload.generate.grid5000(cluster=CLUSTER, days=days, seed=seed), read_platform(CLUSTER)


def _silent(what: str) -> None:
    return None


def run(
    workload: Workload,
    platform: Platform,
    settings: Settings | None = None,
    begin: Begin = _silent,
    pieces: Pieces | None = None,
) -> Findings:
    """Do it all, in `begin`-announced parts. pieces: where finished replays, and the training, go and come from.

    Raises:
        EscalaError: the log does not fit the platform, or has less than three weeks.
    """
    plan, kept = settings or Settings(), Pieces(None, None) if pieces is None else pieces
    tuned = escala.tune(workload, platform, predictors=["last2"], searches=0, seed=plan.seed, keep=kept, begin=begin)
    frontier, agent, training = (
        None,
        None,
        {"trained": False, "why": f"No energy is given, and nothing was trained: {how(platform)}."},
    )
    if platform.has_energy and platform.has_switches:
        past = workload.filter(pl.col("submit_s") < tuned.about["split"]["at_s"])
        agent, training = train(days_of(past), platform, plan, begin, kept.growing("training"))
        schedulers = dict.fromkeys([plan.schedulers[0], tuned.chosen, *plan.schedulers[1:]])
        learnt = (
            [] if agent is None else [Named(f"{plan.beneath} + {AGENT}", plan.beneath, agent.policy(seed=plan.seed))]
        )
        frontier = escala.frontier(
            workload,
            platform,
            list(schedulers),
            plan.shutdowns,
            beside=learnt,
            keep=kept,
            progress=watching(
                begin, f"replaying {len(schedulers) * len(plan.shutdowns) + len(learnt)} pairs of policies"
            ),
            seed=plan.seed,
        )
    return Findings(workload, platform, plan, escala.describe(workload, platform), tuned, frontier, training, agent)


def train(
    days: list[Workload], platform: Platform, plan: Settings, begin: Begin, out: Path | None = None
) -> tuple[Any, dict[str, Any]]:
    """The trained agent and how it was trained; None and the reason where nothing is. out: where the training is kept,
    and one that was interrupted lies."""
    if not days or plan.train_minutes == 0:
        return None, {
            "trained": False,
            "why": "Nothing was trained: " + ("no time." if days else "the past has no day with two jobs."),
        }
    try:
        learn = escala.train
    except EscalaError as error:
        return None, {"trained": False, "why": f"Nothing was trained: {error}."}
    from escala.agents.checkpoint import FILE, ended

    if ended(out):
        agent = escala.load_agent(out)
    else:
        given: dict[str, Any] = {
            "steps": NO_LIMIT,
            "minutes": plan.train_minutes,
            "seed": plan.seed,
            "window": "drain",
            "curve": True,
        }
        share = begin(f"training on {len(days)} days")
        agent = learn(
            ENVIRONMENT,
            days,
            platform,
            **given,
            progress=share,
            out=out,
            resume=out is not None and (out / FILE).is_file(),
        )
    done = agent.manifest
    told = (
        f"The {AGENT} switches nodes under {plan.beneath}. It was trained by {done['algorithm']} for "
        f"{done['elapsed_s']:.0f} s on {len(days)} days before the later weeks: {done['steps_done']:,} decisions."
    )
    return agent, {"trained": True, "how": told, "manifest": done}


def write(findings: Findings, folder: Path, **operator: Any) -> Path:
    """Write the findings into an empty folder: the page, the tuned policy, the agent, and all figures. Returns where
    the page is.
    operator: price, carbon and currency, see `report.operator`."""
    tuned = folder / "policy"
    tuned.mkdir()
    write_policy(findings.tuned, tuned)
    (folder / "description.json").write_text(json.dumps(findings.description, indent=2) + "\n", encoding="utf-8")
    if findings.frontier is not None:
        write_json(folder / "frontier.json", findings.frontier.as_dict())
    if findings.agent is not None:
        findings.agent.save(folder / "agent")
    write_manifest(folder, KIND, {"settings": findings.settings.__dict__, "training": dict(findings.training)})
    return _page(findings, folder, **operator)


def sentences(findings: Findings) -> list[str]:
    """The answers in plain sentences: what the order gives, who pays, what switching nodes off saves."""
    from escala.report import frontier as energy
    from escala.report import tuned as order

    saved = [] if findings.frontier is None else energy.sentences(findings.frontier)
    return [*order.sentences(findings.tuned), *saved, learnt(findings)]


def learnt(findings: Findings) -> str:
    """What was trained and where it stands, or why nothing was."""
    from escala.report.quantities import percent

    if not findings.training["trained"] or findings.frontier is None:
        return str(findings.training["why"])
    name, found = f"{findings.settings.beneath} + {AGENT}", findings.frontier
    ours, base = found.summaries[name], found.summaries[found.reference]
    energy, wait = (percent(float(ours[metric]) / float(base[metric]) - 1.0) for metric in ("energy_j", "mean_wait_s"))
    beaten = [pair for pair in found.undominated() if _beats(found.summaries[pair], ours)]
    stands = f"{beaten[0]} is ahead of it in both" if beaten else "no rule here is ahead of it in both"
    return f"{findings.training['how']} Against {found.reference}: energy {energy}, mean wait {wait}; {stands}."


def _beats(rule: Mapping[str, float | int], ours: Mapping[str, float | int]) -> bool:
    return all(rule[metric] < ours[metric] for metric in ("energy_j", "mean_wait_s"))


def _page(findings: Findings, folder: Path, **operator: Any) -> Path:
    from escala.report import Section, write_report
    from escala.report import frontier as energy
    from escala.report import tuned as order
    from escala.report.description import description_tables, description_text
    from escala.report.training import training_of

    found, log = findings.frontier, findings.description
    parts = [] if found is None else energy.sections(found, findings.platform.power_line, **operator)
    return write_report(
        folder / "report.html",
        {},
        title=f"{findings.workload.name} on {findings.platform.name}: {findings.tuned.chosen}",
        notes=sentences(findings),
        training=training_of(folder / "agent") if findings.agent is not None else (),
        sections=[
            *parts[:1],
            *order.sections(findings.tuned),
            *parts[1:],
            Section("The log", description_text(log), tables=description_tables(log)),
        ],
    )
