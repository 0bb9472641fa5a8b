"""Verbs on studies: list, run, replay, verdicts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import grown, keeping
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError
from escala.writing import claimed, output_file, write_whole

if TYPE_CHECKING:
    from escala.studies.replay import Replay

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="local:N (as --jobs N), ray, ray:HOST:PORT, slurm[:KEY=VALUE...]",
        show_default=False,
    ),
]
VERDICTS = "verdicts.md"
"""The paper's page, in a study's folder."""


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `study`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_studies)
    group.command("list")(list_studies)
    group.command("run")(run_study)
    group.command("replay")(replay_study)
    group.command("verdicts")(verdicts)
    app.add_typer(group, name="study")


def _studies() -> None:
    """Studies that write what they found."""


def list_studies(as_json: opt.Json = False) -> None:
    """The studies that this version can run."""
    from escala.studies import STUDIES

    rows = [{"study": name, "what": what} for name, what in STUDIES.items()]
    emit(as_json, rows, rows_table(rows))


def run_study(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="a study: see escala study list")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="folder for claims, tables, figures and agents")],
    scale: Annotated[
        str, typer.Option("--scale", help="smoke (a minute), short (an hour or two of 2 cores) or paper (days)")
    ] = "short",
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="processes side by side [2]", show_default=False)
    ] = None,
    on: On = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="a2c2020: a log of yours whose 60 middle jobs it takes")
    ] = None,
    author: Annotated[
        Path | None, typer.Option("--author", metavar="DIR", help="grid2019: its author's lists and tables")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option("--traces", metavar="DIR", help="a2c2020 and both studies of R3: real logs [$ESCALA_TRACES]"),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.0, help="marl2024: begin nothing more after so long")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Run a study, or go on with one that was interrupted in the same folder; what is done is not done again."""
    from escala.engines import checked
    from escala.studies import RUNNABLE
    from escala.studies.lab.looks import look
    from escala.studies.verdicts import page_of

    _known(name, RUNNABLE, "run")
    checked(on, jobs)
    if out.exists() and not out.is_dir():
        raise EscalaError(f"{out}: is a file; name a folder for the output")
    study = import_module(RUNNABLE[name])
    inputs = {"log": log, "author": author, "traces": traces, "minutes": minutes}
    given = {key: value for key, value in inputs.items() if value is not None}
    for key, value in given.items():
        if key not in signature(study.run).parameters:
            raise EscalaError(f"--{key}: {name} does not take it; leave it out")
        if isinstance(value, Path) and not value.exists():
            raise EscalaError(f"--{key} {value}: no such file or folder")
    kept = keeping(lambda: grown(out, f"{out} keeps what is done: the same command goes on"))
    with claimed(out), progress() as begin, kept:
        found = study.run(scale, out, jobs=on or jobs or 2, progress=begin(f"study {name}, scale {scale}"), **given)
        look(out, f"study run, scale {scale}", again=False)
        write_whole(out / VERDICTS, page_of(name, out))
    columns = ["id", "paper", "ours", "low", "high", "reproduces", "meets_aim"]
    where = (
        f"The paper row by row: {out / VERDICTS}; claims, tables and figures: {out} (as one page: escala report {out})"
    )
    emit(as_json, found, rows_table(found["claims"], columns), *found["missing"], where)


def replay_study(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a study: see escala study list")],
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            help="new test sets drawn by it, in place of the study's own; days of real logs stay",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="the study's folder with agents/ and tables/ [docs/studies/NAME of the repository]",
        ),
    ] = None,
    agents: Annotated[
        list[str] | None, typer.Option("--agent", metavar="NAME", help="only this one; may be repeated")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Play the kept agents of a study again: the page's figures beside today's.

    Ends with status 1 where one differs: on the study's own test set by more than its last printed digit, on a new one
    by more than four standard errors. Figures are told as they come, on stderr. Nothing is kept but that the held-out
    data were looked at (looks.json in the study's folder); what is interrupted begins anew, or goes on with --agent.
    """
    from escala.studies.replay import REPLAYED, replay
    from escala.studies.replay.figures import Figure

    def seen(one: Figure) -> None:
        typer.echo(
            f"{one.agent}: {one.figure}: {one.page:.6f} on the page, {one.now:.6f} "
            f"now{'' if one.same else ', DIFFERS'}",
            err=True,
        )

    _known(name, REPLAYED, "replay")
    with progress() as begin:
        found = replay(name, folder, seed=seed, agents=agents or (), progress=begin(f"replaying {name}"), seen=seen)
    rows = [
        {
            "agent": one.agent, "figure": one.figure, "page": f"{one.page:.6f}", "now": f"{one.now:.6f}",
            "tolerance": f"{one.tolerance:.1g}", "verdict": "same" if one.same else "DIFFERS",
        }
        for one in found.figures
    ]  # fmt: skip
    told = (
        f"{len(found.figures)} figures of {len({one.agent for one in found.figures})} agents in {found.folder}: "
        f"{len(found.differ)} differ"
    )
    counted = _counted(found)
    emit(as_json, found.told(), rows_table(rows), *(f"not replayed: {one}" for one in found.missing), told, *counted)
    if found.differ:
        raise typer.Exit(1)


def _counted(found: Replay) -> list[str]:
    """Count a replay among the looks at held-out data, and say so, where agents were played on such."""
    from escala.studies.lab.looks import look

    if not found.looked:
        return []
    try:
        number = look(found.folder, "study replay", found.looked)
    except OSError as error:
        return [f"this look at the held-out data could not be counted: {error}"]
    return [f"look {number} at the held-out data that is counted (looks.json)"]


def verdicts(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a study: see escala study list")],
    folder: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="a folder of study run [docs/studies/NAME of the repository]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="write the paper's page, as Markdown", show_default=False),
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """What a paper prints, row by row, and what came out.

    One rule gives each verdict from the claims and tables of a study: reproduced, direction only, not reproduced,
    cannot be told, or the paper contradicts itself.
    """
    from escala.studies.replay.figures import home_of
    from escala.studies.verdicts import PAPERS, page_of, rows_of, told
    from escala.studies.verdicts.page import counted, ours, printed

    _known(name, PAPERS, "hold against its paper")
    place = home_of(name, folder)
    rows = rows_of(name, place)
    if out is not None:
        with output_file(out, force=force) as page:
            page.write_text(page_of(name, place), encoding="utf-8")
    shown = [
        {
            "verdict": row.verdict,
            "printed": printed(row),
            "ours": ours(row),
            "the paper says": row.says,
            "how ours came about": row.by,
        }
        for row in rows
    ]
    emit(
        as_json,
        [told(row) for row in rows],
        rows_table(shown),
        counted(rows),
        *([f"The page: {out}"] if out is not None else []),
    )


def _known(name: str, studies: Mapping[str, Any], verb: str) -> None:
    """EscalaError where this study cannot be run, or replayed."""
    if name not in studies:
        near = difflib.get_close_matches(name, studies, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise EscalaError(f"no study {name!r} to {verb}: {hint}known are {', '.join(studies)}")
