"""The verb bound: how good any schedule of a log could have been."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.folder import output_folder
from escala.cli.reading import read_log
from escala.cli.tables import amount, number, rows_table
from escala.cli.terminal import emit, progress

INTERRUPTED = 130


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(opt.reading(bound))


def bound(
    workload: opt.Log,
    platform: opt.PlatformSpec,
    read: dict[str, Any],
    objective: Annotated[
        str, typer.Option("--objective", metavar="NAME", help="slowdown, bounded-slowdown, wait or makespan")
    ] = "bounded-slowdown",
    exact: Annotated[bool, typer.Option("--exact", help="prove the optimum with CP-SAT and HiGHS too: for small logs")] = False,
    limit: Annotated[float, typer.Option("--limit", metavar="SECONDS", help="time to prove and to search")] = 60.0,
    schedulers: Annotated[str, typer.Option("--schedulers", metavar="A,B,...", help="schedulers to judge; the first is the reference")] = (
        "easy,sjf-fit,saf"
    ),
    oversized: opt.Oversized = "error",
    seed: opt.Seed = 0,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Bound from below what any scheduler could reach on a log, and search the best schedule.

    Ctrl-C ends the search and shows what was proved.
    """
    import escala
    from escala.policies.bounds import METRIC

    names = opt.names(schedulers, "--schedulers")
    with output_folder(out, "bound", force=force) as folder:
        with progress() as begin:
            begin(f"reading {workload}")
            machine = escala.read_platform(platform)
            log = read_log(workload, read, machine)
            begin(f"replaying {len(log)} jobs under {', '.join(names)}")

            def tell(step: Any) -> None:
                begin(f"{step.name} done: at least {number(step.lower, 4)}, found {number(step.found, 4)} (in the solver's units)")

            result = escala.bound(
                log, machine, objective, exact=exact, limit_s=limit, seed=seed, policies=names, progress=tell, oversized=oversized
            )
        document = result.as_dict()
        document["cleaning"] = log.cleaning
        document["headroom"] = {name: result.headroom(name, names[0]) for name in names}
        if folder is not None:
            (folder / "bound.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            if result.starts_s is not None:
                log.jobs.select("job_id").with_columns(start_s=result.starts_s).write_parquet(folder / "schedule.parquet")
    metric = METRIC[objective]
    rows: list[dict[str, Any]] = [
        {"policy": name, metric: value, "headroom": result.headroom(name, names[0])} for name, value in result.policies.items()
    ]
    rows.append({"policy": "best schedule found", metric: result.found, "headroom": 1.0 if result.found is not None else None})
    rows.append({"policy": "proved lower bound", metric: result.lower, "headroom": None})
    gap = "" if result.gap is None else f"; gap {100 * result.gap:.2g} %"
    emit(
        as_json,
        document,
        f"{log.name} on {machine.name}: {result.jobs:,} jobs, {objective}: {result.status}{gap}",
        rows_table(rows, ["policy", metric, "headroom"]),
        *([] if result.lower is None else [f"No schedule is below {amount(metric, result.lower)} ({result.detail.prover})."]),
        "What the bound leaves out: " + "; ".join(result.relaxations) + ".",
    )
    if result.detail.interrupted:
        raise typer.Exit(INTERRUPTED)
