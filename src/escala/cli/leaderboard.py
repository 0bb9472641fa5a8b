"""The verbs under `leaderboard`: a policy judged on the logs of a suite as an entry, entries beside each other, an
entry made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import grown, interruptible, keeping
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.writing import INDEX

if TYPE_CHECKING:
    from escala.leaderboard import Standing

UNLIKE = 1
UNLIKE_SHOWN = 5
Logs = Annotated[
    Path | None,
    typer.Option("--logs", metavar="DIR", help="folder of the suite's log files [the current one]", show_default=False),
]
On = Annotated[
    str,
    typer.Option("--on", metavar="ENGINE", help="local (a process for each core), local:N, ray, ray:HOST:PORT, slurm"),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `leaderboard`."""
    text = "Policies judged on fixed logs: enter one, show entries beside each other, check an entry."
    group = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)
    group.command("run")(run)
    group.command("show")(show)
    group.command("check")(check)
    app.add_typer(group, name="leaderboard")


def run(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="a scheduler, policy:DIR, agent:DIR, or a plug-in's name; {log} in it stands for the name of each log",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="folder of the entry; what is finished in it is kept")
    ],
    suite: Annotated[str, typer.Option("--suite", metavar="NAME", help="generated, real, or FILE.toml")] = "generated",
    shutdown: Annotated[
        str,
        typer.Option("--shutdown", metavar="NAME", help="a shutdown policy, or agent:DIR, where the suite has watts"),
    ] = "never",
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="TEXT", help="what the entry is called [the policy's name]", show_default=False),
    ] = None,
    logs: Logs = None,
    on: On = "local",
    as_json: opt.Json = False,
) -> None:
    """Judge a policy on every log of a suite: its later weeks beside easy, the promise, who pays. DIR/entry.json is the
    entry."""
    from escala import leaderboard
    from escala.leaderboard.entry import FILE
    from escala.report.leaderboard import write_page

    kept = keeping(lambda: grown(out, f"what is finished is kept in {out}: the same command goes on"))
    with progress() as begin, kept:
        entry = interruptible(
            lambda: leaderboard.enter(policy, out, suite, shutdown=shutdown, name=name, logs=logs, on=on, begin=begin)
        )
        begin("writing the page")
        found = leaderboard.standing([entry])
        write_page(found, out / INDEX)
    emit(as_json, _document(found), *_shown(found), f"The entry: {out / FILE}; the page: {out / INDEX}")


def show(
    entries: Annotated[
        list[Path], typer.Argument(metavar="ENTRY...", help="files or folders that leaderboard run wrote")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="a page of all of them", show_default=False, rich_help_panel="Output"
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Rank entries of one suite, with intervals over the same weeks: the best first, clairvoyant ones marked."""
    from escala import leaderboard
    from escala.report.leaderboard import write_page

    found = leaderboard.standing([leaderboard.read_entry(path) for path in entries])
    if out is not None:
        write_page(found, out)
    emit(as_json, _document(found), *_shown(found), *([] if out is None else [f"The page: {out}"]))


def check(
    entry: Annotated[Path, typer.Argument(metavar="ENTRY", help="a file or folder that leaderboard run wrote")],
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="POLICY", help="where the policy lies here [as entered]", show_default=False),
    ] = None,
    shutdown: Annotated[
        str | None,
        typer.Option(
            "--shutdown", metavar="NAME", help="where the shutdown policy lies here [as entered]", show_default=False
        ),
    ] = None,
    logs: Logs = None,
    on: On = "local",
    as_json: opt.Json = False,
) -> None:
    """Make an entry again, from nothing, and tell whether every figure and every file of the policy is the same. Exit
    status 1: not."""
    from importlib.metadata import version

    from escala import leaderboard

    told = leaderboard.read_entry(entry)
    with progress() as begin:
        unlike = interruptible(
            lambda: leaderboard.check(told, policy=policy, shutdown=shutdown, logs=logs, on=on, begin=begin)
        )
    if not unlike:
        said = [f"{told.name}: the same on all {len(told.logs)} logs."]
    else:
        versions = (
            f" (made by Escala {told.escala}, this is {version('escala')})" if told.escala != version("escala") else ""
        )
        more = [f"... and {len(unlike) - UNLIKE_SHOWN} more"] if len(unlike) > UNLIKE_SHOWN else []
        said = [f"{told.name}: not the same{versions}:", *unlike[:UNLIKE_SHOWN], *more]
    emit(as_json, {"entry": told.name, "same": not unlike, "unlike": unlike}, *said)
    if unlike:
        raise typer.Exit(UNLIKE)


def _document(found: Standing) -> dict[str, Any]:
    rows = [
        {
            "entry": row.entry.name,
            "policy": row.entry.policy,
            "shutdown": row.entry.shutdown,
            "knows": row.entry.knows,
            "value": row.value,
            "against_the_best": row.against,
            "promise_kept": row.kept,
            "logs": row.entry.logs,
        }
        for row in found.rows
    ]
    best = None if found.best is None else found.best.entry.name
    return {
        "suite": found.suite.name,
        "sha256": found.suite.digest,
        "objective": found.suite.objective,
        "best": best,
        "entries": rows,
    }


def _shown(found: Standing) -> list[Any]:
    """For the terminal: the answer, the ranking, who pays."""
    from escala.report import leaderboard as page
    from escala.report import marks

    first, *more = page.sentences(found)
    knows = {row.entry.name: row.entry.knows for row in found.rows}
    paying = ["Who pays:", rows_table(page.paying_rows(found))]
    return [first, rows_table(page.rank_rows(found)), *more, *marks.lines(knows), *paying]
