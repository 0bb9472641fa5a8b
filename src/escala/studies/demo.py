"""The main job, end to end: describe a log, compare the classic policies, learn when to switch nodes off, and judge that on days not seen.

The days are split in time order. The agent trains on the earlier ones; each later day is one episode: its jobs alone, on a machine that is
off at midnight, run to completion. All shutdown policies stand on the same scheduler there, and every figure is paired by day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import escala
from escala.errors import EscalaError
from escala.metrics import compare as comparing
from escala.platform import Platform, read_platform
from escala.platform.told import how
from escala.policies import Comparison
from escala.policies.pairs import Named, keep_runs, pairs_of, play
from escala.report.operator import OF_DAYS, JudgedDays
from escala.result import Result
from escala.studies.lab.days import METRICS, days_of, judge
from escala.studies.lab.saving import JUDGED, read_judged, save_runs, write_manifest
from escala.workload import Description, Workload
from escala.writing import Pieces

CLUSTER = "orion"
REFERENCE = "never"
"""What most clusters run today: all nodes on."""
AGENT, LIKELIEST = "trained agent", "trained agent (argmax)"
NO_LIMIT = 10**9
DAYS = "unseen-days.csv"
ENVIRONMENT = "escala/OffReservation-v0"

FAIR = (
    "hold:0.25 is a fixed rule without learning (nodes are woken for a job once it has waited a quarter of its walltime): "
    "learning has earned something only where it saves more than such a rule at the same waits."
)

Share = Callable[[float], None]
Begin = Callable[[str], Share | None]
"""Called with what is being done now; gives what takes the share done (0..1) of that, or None."""


@dataclass(frozen=True)
class Settings:
    """What the demo does.

    schedulers: compared over the whole log, all nodes on. shutdowns: compared over the whole log and over the unseen days, on the
    scheduler `beneath`. train_share: part of the days to train on, in time order. judged_days: at most so many of the days after them are
    judged, which bounds the time that a long log takes.
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
    """What came out. schedulers, shutdowns: the classic policies over the whole log. days: one row per policy and unseen day. judged: the
    policies over the unseen days against `never`, as `metrics.compare.episodes` gives it. training: what was trained, or why nothing.
    """

    workload: Workload
    platform: Platform
    settings: Settings
    description: Description
    schedulers: Comparison
    shutdowns: Comparison
    days: pl.DataFrame
    judged: pl.DataFrame
    training: Mapping[str, Any]
    agent: Any = None


def built_in(seed: int = 0, days: float = 30) -> tuple[Workload, Platform]:
    """A seeded Grid'5000-like month for one cluster, and the cluster."""
    return escala.workload.generate.grid5000(cluster=CLUSTER, days=days, seed=seed), read_platform(CLUSTER)


def _silent(what: str) -> None:
    return None


def run(
    workload: Workload, platform: Platform, settings: Settings | None = None, begin: Begin = _silent, pieces: Pieces | None = None
) -> Findings:
    """Do it all, in `begin`-announced pieces. pieces: where finished ones, and the training, go and come from.

    Raises:
        EscalaError: the log does not fit the platform, or has too few days to train on some and judge on others.
    """
    plan = settings or Settings()
    if not (platform.has_energy and any(profile.can_switch and profile.idle_w > 0.0 for profile in platform.profiles)):
        raise EscalaError(f"platform {platform.name!r}: not all nodes have watts, or none can switch off; {how(platform)}")
    days = days_of(workload)
    cut = round(plan.train_share * len(days))
    if not 0 < cut < len(days):
        raise EscalaError(f"workload {workload.name!r} has {len(days)} days with at least two jobs; the demo needs 2, better 30 or more")
    earlier, later = days[:cut], days[cut : cut + plan.judged_days]
    kept = Pieces(None, None) if pieces is None else pieces

    def compared(schedulers: Sequence[str], shutdowns: Sequence[str], what: str) -> Comparison:
        def one(pair: Named) -> Result:
            return keep_runs(kept)(pair.name, partial(escala.simulate, workload, platform, pair.scheduler, pair.shutdown, seed=plan.seed))

        share = begin(f"comparing {what}")
        return Comparison(play(pairs_of(schedulers, shutdowns), one, progress=None if share is None else lambda _, done: share(done)))

    schedulers = compared(plan.schedulers, ["never"], "schedulers")
    shutdowns = compared([plan.beneath], plan.shutdowns, "shutdown policies")
    agent, training = train(earlier, platform, plan, begin(f"training on {len(earlier)} days"), kept.growing("training"))
    policies: dict[str, tuple[Any, Any]] = {name: (plan.beneath, name) for name in plan.shutdowns}
    if agent is not None:
        policies |= {AGENT: (plan.beneath, agent.policy(seed=plan.seed)), LIKELIEST: (plan.beneath, agent.policy(sampled=False))}
    share, wanted = begin(f"judging on {len(later)} days not seen"), dict.fromkeys((*METRICS, *OF_DAYS))
    judged = judge(later, platform, policies, metrics=tuple(wanted), seed=plan.seed, progress=share, keep=kept.value)
    return Findings(
        workload=workload,
        platform=platform,
        settings=plan,
        description=escala.describe(workload, platform),
        schedulers=schedulers,
        shutdowns=shutdowns,
        days=judged,
        judged=comparing.episodes(judged, METRICS, reference=REFERENCE, seed=plan.seed),
        training={**training, "train_days": len(earlier), "judged_days": len(later)},
        agent=agent,
    )


def train(
    days: list[Workload], platform: Platform, plan: Settings, share: Share | None, out: Path | None = None
) -> tuple[Any, dict[str, Any]]:
    """The trained agent and how it was trained; None and the reason where the packages for training are not installed. out: where the
    training is kept, and one that was interrupted lies."""
    try:
        learn = escala.train
    except EscalaError as error:
        return None, {"trained": False, "why": f"Nothing was trained: {error}."}
    from escala.agents.checkpoint import FILE, ended

    if ended(out):
        agent = escala.load_agent(out)
    else:
        how: dict[str, Any] = {"steps": NO_LIMIT, "minutes": plan.train_minutes, "seed": plan.seed, "window": "drain", "curve": True}
        agent = learn(ENVIRONMENT, days, platform, **how, progress=share, out=out, resume=out is not None and (out / FILE).is_file())
    done = agent.manifest
    told = (
        f"Trained by {done['algorithm']} for {done['elapsed_s']:.0f} s on the {len(days)} earlier days: {done['steps_done']:,} decisions. "
        "It says, minute by minute, how long a job must have waited, as a share of its walltime, before nodes are woken for it."
    )
    return agent, {"trained": True, "how": told, "manifest": done}


def write(findings: Findings, folder: Path) -> Path:
    """Write the findings into an empty folder: the page, the tables, and every run over the whole log. Returns where the page is."""
    for name, comparison in (("schedulers", findings.schedulers), ("shutdowns", findings.shutdowns)):
        save_runs(comparison.results, comparison.table(), folder / name)
    findings.days.write_csv(folder / DAYS)
    findings.judged.write_csv(folder / JUDGED)
    (folder / "description.json").write_text(json.dumps(findings.description, indent=2) + "\n", encoding="utf-8")
    if findings.agent is not None:
        findings.agent.save(folder / "agent")
    write_manifest(folder, "demo", {"settings": findings.settings.__dict__, "training": dict(findings.training)})
    return page(folder, folder / "report.html")


def page(folder: Path, path: Path, **operator: Any) -> Path:
    """The report of what `write` left in a folder, as one self-contained page at `path`. operator: price, carbon and currency, see
    `report.write_report`.

    Raises:
        EscalaError: a part of it is missing or broken.
    """
    from escala.report import Section, write_report
    from escala.report.description import description_tables, description_text
    from escala.report.training import training_of

    try:
        manifest = _json(folder / "manifest.json")
        runs = {name: folder / "shutdowns" / name.replace("/", "-") for name in _json(folder / "shutdowns" / "manifest.json")["runs"]}
        plan, training = Settings(**manifest["settings"]), manifest["training"]
        log = Description(_json(folder / "description.json"))
        schedulers = pl.read_csv(folder / "schedulers" / "table.csv", infer_schema_length=None)
        judged, days = read_judged(folder), pl.read_csv(folder / DAYS, infer_schema_length=None)
        curve = training_of(folder / "agent")
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EscalaError(f"{folder}: not a whole output of escala demo ({told}); run the demo again") from error
    results = {name: escala.Result.load(where) for name, where in runs.items()}
    about = next(iter(results.values())).manifest
    shown = [name for name in schedulers.columns if not name.endswith("_change") and name not in comparing.COUNTS]
    return write_report(
        path,
        results,
        title=f"{about['workload']['name']} on {about['platform']['name']}",
        notes=notes(plan, training),
        reference=f"{plan.beneath} + {REFERENCE}",
        comparison=judged,
        training=curve,
        sections=[
            Section("Schedulers over the whole log", "All nodes stay on.", tables=[(schedulers.select(shown), "")]),
            Section("The log", description_text(log), tables=description_tables(log)),
        ],
        days=[JudgedDays(days, REFERENCE, title="For the operator: the days not seen, and a year of such days")],
        **operator,
    )


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def notes(plan: Settings, training: Mapping[str, Any]) -> list[str]:
    """What was done, in words."""
    split = (
        f"Days are split in time order: {training['train_days']} to train on, the next {training['judged_days']} to judge on. "
        "Each judged day is run alone, to its last job, on nodes that are off at its start; "
        f"the scheduler under every shutdown policy is {plan.beneath}."
    )
    return [split, training["how"], FAIR] if training["trained"] else [split, training["why"]]
