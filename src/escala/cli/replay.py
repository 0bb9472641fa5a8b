"""Verbs that replay a log: simulate, compare."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import headroom as room
from escala.cli import options as opt
from escala.cli import streamed, weekly
from escala.cli.elsewhere import working
from escala.cli.interrupt import INTERRUPTED, Stopped, interruptible, keeping
from escala.cli.policies import POINTER
from escala.cli.reading import read_log, read_of, with_shapes
from escala.cli.recorded import shown_waits
from escala.cli.remarks import tell_until, tell_unused
from escala.cli.shields import counts_of, overruled
from escala.cli.tables import metrics_table, rows_table
from escala.cli.terminal import emit, progress, remark
from escala.errors import EscalaError, number_of
from escala.writing import output_folder

if TYPE_CHECKING:
    from escala.policies.pairs import KeptRuns

EXPORTS = ("batsim",)

SHOWN = (
    *("n_jobs", "n_killed", "n_rejected", "n_unfinished"),
    *(
        "energy_j",
        "mean_wait_s",
        "median_wait_s",
        "p95_wait_s",
        "mean_turnaround_s",
        "mean_slowdown",
        "mean_bounded_slowdown",
        "mean_stretch",
    ),
    *("makespan_s", "utilisation", "mean_power_w", "waste_j", "gpu_j", "transitions"),
)
"""The metrics shown on the terminal, of all those in summary.json."""
Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler",
        metavar="NAME",
        help="fcfs, sjf, easy, saf, rollout[:K][:KEY=VALUE...], ..., policy:DIR or agent:DIR",
    ),
]
Shutdown = Annotated[
    str,
    typer.Option("--shutdown", metavar="NAME", help="never, timeout:SECONDS, hold:FRACTION, oracle, ..., or agent:DIR"),
]
Export = Annotated[
    str | None,
    typer.Option("--export", metavar="FORMAT", help="write the run in another format too: batsim", show_default=False),
]
Schedulers = Annotated[
    str, typer.Option("--schedulers", metavar="A,B,...", help="schedulers to compare, by the names of escala simulate")
]
Shutdowns = Annotated[str, typer.Option("--shutdowns", metavar="C,D,...", help="shutdown policies to compare")]
Pairs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", min=1, help="pairs to run side by side; by default one a core")
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="where: local:N (as --jobs N), ray, ray:HOST:PORT, slurm[:KEY=VALUE...]",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(simulate)))
    app.command(epilog=POINTER)(opt.reading(opt.replaying(compare)))


def simulate(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    scheduler: Scheduler = "easy",
    shutdown: Shutdown = "never",
    export: Export = None,
    stream: streamed.Stream = False,
    power: opt.Power = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log under one scheduler and one shutdown policy."""
    import escala
    from escala.metrics.compare import measured
    from escala.metrics.recorded import recorded_waits
    from escala.policies.run import check_power
    from escala.report import marks
    from escala.report.recorded import lost_runs

    _check_export(export, out)
    if stream:
        how: dict[str, Any] = {"export": export, "out": out, "force": force, "as_json": as_json}
        return streamed.run(workload, (platform, power), (scheduler, shutdown), options, read, **how)
    with output_folder(out, "simulate", force=force) as folder:
        with progress() as begin:
            begin(f"reading {workload}")
            machine = escala.read_platform(platform, power)
            pair = policies([scheduler], [shutdown], options["seed"])
            check_power(machine, pair[1], options["start_off"])
            tell_until(read)
            log = read_log(workload, with_shapes(read, [scheduler]), machine)
            tell_unused([scheduler], [shutdown], options, log)
            share = begin(f"replaying {number_of(len(log), 'job')} under {scheduler} + {shutdown}")
            result = interruptible(
                lambda: escala.simulate(log, machine, pair[0][0], pair[1][0], progress=share, **options)
            )
        if folder is not None:
            result.save(folder)
            if export is not None:
                result.export(export, folder / export)
        summary = result.summary()
    waits, knows = recorded_waits(result.jobs), {f"{scheduler} + {shutdown}": result.knows}
    name = marks.shown(f"{scheduler} + {shutdown}", knows)
    title, shown = f"{log.name} on {machine.name}: {name}", measured({"": summary}, SHOWN)
    told = {**summary, "knows": result.knows, **read_of(log), "power": power_of(machine), "unseen": result.unseen}
    told |= {"recorded_waits": waits, **counts_of(result)}
    figures = metrics_table({metric: summary[metric] for metric in shown})
    remarks = (*overruled({"": result}), *shown_waits({name: waits}), *lost_runs({name: result}))
    emit(as_json, told, title, figures, *marks.lines(knows), machine.power_line, *remarks)


def _check_export(export: str | None, out: Path | None) -> None:
    if export is not None and export not in EXPORTS:
        raise EscalaError(f"unknown export format {export!r}; known: {', '.join(EXPORTS)}")
    if export is not None and out is None:
        raise EscalaError("--export needs --out DIR: the folder for its files")


def compare(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    schedulers: Schedulers = "fcfs,first-fit,sjf,easy,saf,conservative",
    shutdowns: Shutdowns = "never",
    headroom: room.Objective = None,
    stretch: room.Stretch = None,
    limit: room.Limit = None,
    after: weekly.After = None,
    jobs: Pairs = None,
    on: On = None,
    power: opt.Power = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log under several schedulers and shutdown policies."""
    from polars import Float64, Series

    import escala
    from escala.policies.files import identities
    from escala.policies.pairs import KeptRuns
    from escala.policies.run import check_power

    names = opt.names(schedulers, "--schedulers"), opt.names(shutdowns, "--shutdowns")
    wanted = room.Wanted(headroom, stretch, limit)
    room.check(wanted, options)
    with working(out, "compare", force=force, on=on, jobs=jobs) as (folder, where, shared):
        kept = None if folder is None else KeptRuns(folder, _state(options), identities([*names[0], *names[1]]), shared)
        total = len(names[0]) * len(names[1])
        with progress() as begin, keeping(lambda: what_is_kept(out, kept, total)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform, power)
            found = policies(*names, options["seed"])
            check_power(machine, found[1], options["start_off"])
            tell_until(read)
            log = read_log(workload, with_shapes(read, names[0]), machine)
            tell_unused(*names, options, log)
            room.check_inputs(headroom, log, machine)
            weekly.check_after(after, log, options)
            share = begin(f"replaying {number_of(len(log), 'job')} under {number_of(total, 'pair')} of policies")
            how = {"keep": kept, "jobs": jobs, "on": where, **options}
            run = partial(escala.compare, log, machine, schedulers=found[0], shutdowns=found[1], **how)
            comparison = interruptible(lambda: run(progress=None if share is None else lambda _, done: share(done)))
            if kept is not None and kept.found:
                remark(f"{len(kept.found)} of {total} runs were kept from an interrupted comparison")
        table = comparison.table(cut=options["until_s"] is not None)
        later = weekly.later(after, comparison, log, machine, options)
        with progress() as begin:
            if headroom is not None:
                begin("bounding what is possible")
            measured = room.measure(wanted, comparison.results, log, machine, options, room.telling(begin))
        more = room.columns(measured)
        table = table.with_columns(Series(name, list(of.values()), dtype=Float64) for name, of in more.items())
        if folder is not None:
            _save(comparison, table, measured, later, folder)
    _tell(comparison, table, log, machine, measured, later, as_json)


def _save(comparison: Any, table: Any, measured: Any, later: Any, folder: Path) -> None:
    """All that a comparison found, into its folder."""
    from escala.studies.lab.saving import save_runs

    save_runs(comparison.results, table, folder)
    if measured is not None:
        room.save(measured, folder)
    weekly.save(later, folder)


def _tell(comparison: Any, table: Any, log: Any, machine: Any, measured: Any, later: Any, as_json: bool) -> None:
    """The table of a comparison, and what is to be said of it."""
    from escala.metrics import compare as comparing
    from escala.metrics.recorded import recorded_waits
    from escala.report import marks
    from escala.report.recorded import lost_runs

    results, rows, about = comparison.results, table.to_dicts(), {**read_of(log), "power": power_of(machine)}
    waits = {name: recorded_waits(result.jobs) for name, result in results.items()}
    beside = {name: {"recorded_waits": waits[name], "unseen": result.unseen} for name, result in results.items()}
    told = [{**row, **about, **beside[row["policy"]], **weekly.told(later, row["policy"])} for row in rows]
    summaries = {name: result.summary() for name, result in results.items()}
    remarks = [*comparing.check(summaries, cut=True, paced=comparison.paced), *lost_runs(results)]
    if measured is not None:
        told = [{**row, "headroom_of": room.told(measured, row["policy"])} for row in told]
        remarks += [room.remark(measured), room.left_out(measured)]
    title = f"{log.name} on {machine.name}: {number_of(len(log), 'job')}"
    shown = [
        *overruled(results),
        *shown_waits({marks.shown(name, comparison.knows): found for name, found in waits.items()}),
    ]
    behind = [] if later is None else [weekly.title(later), *weekly.shown(later, comparison.knows)]
    emit(as_json, told, title, *compared(comparison, table), *behind, machine.power_line, *shown, *remarks)
    if measured is not None and measured["interrupted"]:
        raise Stopped("interrupted: the head-room told is of what was proved until then", INTERRUPTED)


def compared(comparison: Any, table: Any) -> list[Any]:
    """The table of a comparison for the terminal: without changes and counts, clairvoyant policies marked, with the
    legend under it."""
    from escala.metrics import compare as comparing
    from escala.report import marks
    from escala.unseen import sentences

    hidden = (comparing.KNOWS, *comparing.COUNTS)
    columns = [name for name in table.columns if not name.endswith("_change") and name not in hidden]
    lines = [*marks.lines(comparison.knows), *sentences(comparison.unseen)]
    return [rows_table(marks.in_rows(table.to_dicts(), comparison.knows), columns), *lines]


def what_is_kept(out: Path | None, kept: KeptRuns | None, total: int) -> str | None:
    """For an interrupted comparison: what of it is kept, and how to go on; None: nothing of this run."""
    if kept is None or kept.done == 0:
        return None
    return f"{kept.done} of {total} runs are kept beside {out}: the same command goes on"


def _state(options: Mapping[str, Any]) -> dict[str, Any]:
    """What all runs of a comparison depend on beside what `KeptRuns` asks for itself."""
    from escala.source import source_digest

    return {"source": source_digest(), "models": models_in(options)}


def models_in(told: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of the models of run times that options name, alone or in lists, by path."""
    from escala.prediction.folder import model_digest

    named = [one for value in told.values() for one in (value if isinstance(value, list | tuple) else [value])]
    return {path: digest for one in named for path, digest in model_digest(one).items()}


def power_of(machine: Any) -> dict[str, Any] | None:
    """What energies rest on, for JSON: the watts of each profile by name; None where no energy is told."""
    return machine.spec()["profiles"] if machine.has_energy else None


def policies(schedulers: list[str], shutdowns: list[str], seed: int = 0) -> tuple[list[Any], list[Any]]:
    """The policies of these names, so that a wrong one is refused before a long log is read; those in folders of
    trained agents are loaded. seed: of what these draw."""
    from escala.options import Options, with_options
    from escala.policies.named import made
    from escala.registry import is_trained

    def policy(name: str, role: str) -> Any:
        found = made(name, role, with_options(Options(), seed=seed))
        return found if is_trained(name) else name

    return [policy(name, "scheduler") for name in schedulers], [policy(name, "shutdown") for name in shutdowns]
