"""Verbs that replay a log: simulate, compare, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import headroom as room
from escala.cli import options as opt
from escala.cli.folder import output_file, output_folder
from escala.cli.interrupt import interruptible
from escala.cli.policies import POINTER
from escala.cli.reading import read_log
from escala.cli.tables import metrics_table, rows_table
from escala.cli.terminal import emit, progress
from escala.cli.unused import tell_unused
from escala.errors import EscalaError

EXPORTS = ("batsim",)
AGENT = "agent:"

SHOWN = (
    *("n_jobs", "n_killed", "n_rejected", "n_unfinished"),
    *("mean_wait_s", "median_wait_s", "p95_wait_s", "mean_turnaround_s", "mean_slowdown", "mean_bounded_slowdown", "mean_stretch"),
    *("makespan_s", "utilisation", "energy_j", "waste_j", "transitions", "mean_power_w"),
)
"""The metrics shown on the terminal, of all those in summary.json."""


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(simulate)))
    app.command(epilog=POINTER)(opt.reading(opt.replaying(compare)))
    app.command()(report)


def simulate(
    workload: opt.Log,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="NAME", help="fcfs, first-fit, sjf, easy, saf, conservative, rollout, ..., or agent:DIR")
    ] = "easy",
    shutdown: Annotated[
        str, typer.Option("--shutdown", metavar="NAME", help="never, timeout:SECONDS, hold:FRACTION, oracle, ..., or agent:DIR")
    ] = "never",
    export: Annotated[
        str | None, typer.Option("--export", metavar="FORMAT", help="write the run in another format too: batsim", show_default=False)
    ] = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log under one scheduler and one shutdown policy."""
    import escala

    if export is not None and export not in EXPORTS:
        raise EscalaError(f"unknown export format {export!r}; known: {', '.join(EXPORTS)}")
    if export is not None and out is None:
        raise EscalaError("--export needs --out DIR: the folder for its files")
    with output_folder(out, "simulate", force=force) as folder:
        with progress() as begin:
            begin(f"reading {workload}")
            machine = escala.read_platform(platform)
            pair = policies([scheduler], [shutdown])
            tell_unused([scheduler], [shutdown], options)
            log = read_log(workload, read, machine)
            share = begin(f"replaying {len(log)} jobs under {scheduler} + {shutdown}")
            result = interruptible(lambda: escala.simulate(log, machine, pair[0][0], pair[1][0], progress=share, **options))
        if folder is not None:
            result.save(folder)
            if export is not None:
                result.export(export, folder / export)
        summary = result.summary()
    title = f"{log.name} on {machine.name}: {scheduler} + {shutdown}"
    emit(as_json, {**summary, "cleaning": log.cleaning}, title, metrics_table({name: summary[name] for name in SHOWN}))


def compare(
    workload: opt.Log,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    schedulers: Annotated[
        str, typer.Option("--schedulers", metavar="A,B,...", help="schedulers to compare")
    ] = "fcfs,first-fit,sjf,easy,saf,conservative",
    shutdowns: Annotated[str, typer.Option("--shutdowns", metavar="C,D,...", help="shutdown policies to compare")] = "never",
    headroom: Annotated[
        str | None,
        typer.Option(
            "--headroom",
            metavar="OBJECTIVE",
            help="also the share of what is possible (see escala bound) in slowdown, bounded-slowdown, wait or makespan",
            show_default=False,
        ),
    ] = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log under several schedulers and shutdown policies."""
    import polars as pl

    import escala
    from escala.metrics import compare as comparing
    from escala.studies.saving import save_runs

    chosen, switching = opt.names(schedulers, "--schedulers"), opt.names(shutdowns, "--shutdowns")
    room.check(headroom, options["until_s"])
    with output_folder(out, "compare", force=force) as folder:
        with progress() as begin:
            begin(f"reading {workload}")
            machine = escala.read_platform(platform)
            found = policies(chosen, switching)
            tell_unused(chosen, switching, options)
            log = read_log(workload, read, machine)
            share = begin(f"replaying {len(log)} jobs under {len(chosen) * len(switching)} pairs of policies")
            comparison = interruptible(
                lambda: escala.compare(
                    log,
                    machine,
                    schedulers=found[0],
                    shutdowns=found[1],
                    progress=None if share is None else lambda _, done: share(done),
                    **options,
                )
            )
        summaries = {name: result.summary() for name, result in comparison.results.items()}
        table = comparing.table(summaries, cut=options["until_s"] is not None)
        remarks = comparing.check(summaries, cut=True)
        measured = None
        if headroom is not None:
            with progress() as begin:
                begin("searching the best schedule")
                measured = room.measure(summaries, log, machine, headroom, options["oversized"])
            table = table.with_columns(
                pl.Series(name, list(measured[kept].values()), dtype=pl.Float64)
                for name, kept in (("headroom", "shares"), ("headroom_proved", "proved"))
            )
            remarks.append(room.remark(measured))
        if folder is not None:
            save_runs(comparison.results, table, folder)
            if measured is not None:
                room.save(measured, folder)
    rows = table.to_dicts()
    columns = [name for name in table.columns if not name.endswith("_change") and name not in comparing.COUNTS]
    told = [{**row, "cleaning": log.cleaning} for row in rows]
    emit(as_json, told, f"{log.name} on {machine.name}: {len(log):,} jobs", rows_table(rows, columns), *remarks)


def report(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="a folder that simulate, compare or demo wrote", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the page to write [DIR/report.html]", show_default=False)
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price", min=0.0, metavar="X", help="price of a kWh: what a year would save", show_default=False)
    ] = None,
    carbon: Annotated[
        float | None, typer.Option("--carbon", min=0.0, metavar="G", help="g CO2 of a kWh: what a year would save", show_default=False)
    ] = None,
    currency: Annotated[str, typer.Option("--currency", metavar="NAME", help="of --price, as EUR", show_default=False)] = "",
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write saved results as one self-contained HTML page."""
    import escala
    from escala.report import write_report
    from escala.studies import demo

    runs = _saved_runs(results)
    target = out if out is not None else results / "report.html"
    with output_file(target, force=force or out is None) as page, progress() as begin:
        begin(f"reading {results}")
        if _manifest(results).get("kind") == "demo":
            demo.page(results, page)
        else:
            loaded = {name: escala.Result.load(folder) for name, folder in runs.items()}
            begin(f"writing {target}")
            title = f"{results.resolve().name}: {len(loaded)} run{'s' if len(loaded) > 1 else ''}"
            write_report(page, loaded, title=title, sections=room.section(results), price=price, carbon=carbon, currency=currency)
    emit(as_json, {"report": str(target), "runs": list(runs)}, f"{target}: {len(runs)} run{'s' if len(runs) > 1 else ''}")


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise EscalaError(f"{folder}: holds no saved results; give a folder that simulate, compare or demo wrote")
    return manifest


def policies(schedulers: list[str], shutdowns: list[str]) -> tuple[list[Any], list[Any]]:
    """The policies of these names, so that a wrong one is refused before a long log is read."""
    from escala.options import Options
    from escala.policies.compose import scheduler, shutdown
    from escala.policies.rollout import rollout_of

    for name in schedulers:
        if not name.startswith(AGENT) and rollout_of(name, 0) is None:
            scheduler(name)
    for name in shutdowns:
        if not name.startswith(AGENT):
            shutdown(name, Options())
    return [policy(name) for name in schedulers], [policy(name) for name in shutdowns]


def policy(name: str) -> Any:
    """The policy of this name; "agent:DIR" is the trained agent in that folder."""
    if not name.startswith(AGENT):
        return name
    from escala.agents import load_agent

    loaded = load_agent(name.removeprefix(AGENT)).policy()
    loaded.name = name
    return loaded


def _saved_runs(folder: Path) -> dict[str, Path]:
    """Saved Results in the folder by name: itself, or its subfolders in the order of its manifest; of a demo those that its page shows."""
    manifest = _manifest(folder)
    if manifest.get("kind") == "demo":
        return _saved_runs(folder / "shutdowns")
    if (folder / "jobs.parquet").exists():
        return {f"{manifest['scheduler']} + {manifest['shutdown']}": folder}
    runs = {str(name): folder / str(name).replace("/", "-") for name in manifest.get("runs", [])}
    if not runs:
        inside = sorted(path.parent.name for path in folder.glob("*/manifest.json"))
        hint = f"; its subfolders are {', '.join(inside)}" if inside else ""
        raise EscalaError(f"{folder}: holds no saved results of its own{hint}")
    return runs
