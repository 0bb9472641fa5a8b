"""The verb bound: how good any schedule of a log could have been."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.headroom import telling
from escala.cli.interrupt import INTERRUPTED, Stopped, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.reading import read_log, read_of
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.writing import Pieces, output_folder

WASTE = "waste"
Objective = Annotated[
    str,
    typer.Option("--objective", metavar="NAME", help="slowdown, bounded-slowdown, wait, makespan or waste (energy)"),
]
Exact = Annotated[bool, typer.Option("--exact", help="prove the optimum with CP-SAT and HiGHS too: for small logs")]
Limit = Annotated[float, typer.Option("--limit", metavar="SECONDS", help="time to prove and to search")]
Schedulers = Annotated[
    str,
    typer.Option(
        "--schedulers",
        metavar="A,B,...",
        help="schedulers to judge; the first is the reference; rollout aims at the objective unless its name says one",
    ),
]
Shutdowns = Annotated[
    str | None,
    typer.Option(
        "--shutdowns",
        metavar="C,D,...",
        help="waste: shutdown policies to judge [timeout:0,hold:0.25]",
        show_default=False,
    ),
]
Stretch = Annotated[
    float | None,
    typer.Option(
        "--stretch",
        metavar="X",
        help="waste: no job waits longer than X times its requested time, or than under the reference [0.5]",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(opt.reading(bound))


def bound(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    read: dict[str, Any],
    objective: Objective = "bounded-slowdown",
    exact: Exact = False,
    limit: Limit = 60.0,
    schedulers: Schedulers = "easy,sjf-fit,saf",
    shutdowns: Shutdowns = None,
    stretch: Stretch = None,
    oversized: opt.Oversized = "error",
    seed: opt.Seed = 0,
    power: opt.Power = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Bound from below what any scheduler could reach on a log, and search the best schedule.

    The energy waste is bounded for schedulers and shutdown policies together, all nodes off at the start. Ctrl-C ends
    the search and shows what was proved.
    """
    import escala
    from escala.policies.kept_pieces import keep_runs

    names = opt.names(schedulers, "--schedulers")
    switching: dict[str, Any] = {} if stretch is None else {"stretch": stretch}
    if shutdowns is not None or objective == WASTE:
        switching["shutdowns"] = opt.names(shutdowns or "timeout:0,hold:0.25", "--shutdowns")
    pieces = Pieces(None, None)
    with output_folder(out, "bound", force=force, keeps=True) as folder:
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform, power)
            log = read_log(workload, read, machine)
            told = {"objective": objective, "oversized": oversized, "seed": seed, **switching}
            pieces = pieces_of(folder, log, machine, [*names, *switching.get("shutdowns", ())], **told)
            begin(f"replaying {len(log)} jobs under {', '.join(names)}")
            result = escala.bound(
                log, machine, objective, exact=exact, limit_s=limit, seed=seed, policies=names,
                progress=telling(begin), oversized=oversized, keep=keep_runs(pieces), **switching,
            )  # fmt: skip
            tell_found(pieces)
        document = result.as_dict()
        document |= read_of(log)
        reference = next(iter(result.policies), "")
        document["headroom"] = {name: result.headroom(name, reference) for name in result.policies}
        if folder is not None:
            (folder / "bound.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            _save_schedule(log, result, folder)
    _tell(result, log, machine, document, as_json)
    if result.detail.interrupted:
        raise Stopped("interrupted: what is told was proved until then", INTERRUPTED)


def _save_schedule(log: Any, result: Any, folder: Path) -> None:
    """The starts of the best schedule, or for the waste each job's latest start."""
    ids = log.jobs.select("job_id")
    if result.objective == WASTE:
        ids.with_columns(latest_s=result.latest_s).write_parquet(folder / "latest.parquet")
    elif result.starts_s is not None:
        ids.with_columns(start_s=result.starts_s).write_parquet(folder / "schedule.parquet")


def _tell(result: Any, log: Any, machine: Any, document: dict[str, Any], as_json: bool) -> None:
    """The table of policies, what was proved and what it leaves out."""
    from escala.bounds.schedule_bound import METRIC
    from escala.report import marks

    waste = result.objective == WASTE
    metric = "waste_j" if waste else METRIC[result.objective]
    rows: list[dict[str, Any]] = [
        {"policy": name, metric: value, "headroom": document["headroom"][name]}
        for name, value in result.policies.items()
    ]
    remarks = []
    if waste:
        for row in rows:
            row["late"] = result.late[row["policy"]]
        reference = next(iter(result.policies))
        remarks.append(
            f"Limit: no job waits longer than {result.stretch:g} x its requested time, or than under {reference}; "
            "late: jobs past it. A policy with such jobs may be below the bound. Head-room: share of the way to the "
            "proved bound, so at least this of what is possible."
        )
        rows.append({"policy": "least waste found", metric: result.found, "headroom": None, "late": None})
        rows.append({"policy": "proved lower bound", metric: result.lower, "headroom": 1.0, "late": None})
    else:
        rows.append(
            {
                "policy": "best schedule found",
                metric: result.found,
                "headroom": 1.0 if result.found is not None else None,
            }
        )
        rows.append({"policy": "proved lower bound", metric: result.lower, "headroom": None})
        if result.found_by not in (None, "search"):
            remarks.append(f"The best schedule found is that of {marks.shown(result.found_by, result.knows)}.")
    gap = "" if result.gap is None else f"; gap {100 * result.gap:.{1 if result.gap < 0.1 else 0}f} %"
    if result.detail.cut and not result.detail.interrupted:
        remarks.append(
            "The proof was cut short, by the limit or the size of the model: more time or a shorter log may tell more."
        )
    proved = [] if result.lower is None else [f"No schedule is below the proved lower bound ({result.detail.prover})."]
    emit(
        as_json,
        document,
        f"{log.name} on {machine.name}: {result.jobs:,} jobs, {result.objective}: {result.status}{gap}",
        rows_table(
            marks.in_rows(rows, result.knows),
            ["policy", metric, "headroom", *(["late"] if waste else [])],
            down=[len(rows) - 1],
        ),
        *marks.lines(result.knows),
        *([machine.power_line] if waste or not machine.has_energy else []),
        *proved,
        *remarks,
        "What the bound leaves out: " + "; ".join(result.relaxations) + ".",
    )
