"""Verbs on studies: list. (The callback makes it a group even while it has one verb.)"""

from __future__ import annotations

import typer

from escala.cli import options as opt
from escala.cli.tables import rows_table
from escala.cli.terminal import emit


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `study`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_studies)
    group.command("list")(list_studies)
    app.add_typer(group, name="study")


def _studies() -> None:
    """Studies that write what they found."""


def list_studies(as_json: opt.Json = False) -> None:
    """The studies that this version can run."""
    from escala.studies import STUDIES

    rows = [{"study": name, "what": what} for name, what in STUDIES.items()]
    emit(as_json, rows, rows_table(rows))
