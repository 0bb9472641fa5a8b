"""The verb `report`: what other verbs saved, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.saved import WRITERS, Saved, merged, read_saved
from escala.cli.terminal import emit, progress
from escala.errors import number_of
from escala.writing import PAGE, output_file, own_page


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(report)


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help=f"folders that {WRITERS} wrote", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="the page to write [DIR/report.html; of several, report.html]",
            show_default=False,
        ),
    ] = None,
    price: opt.Price = None,
    carbon: opt.Carbon = None,
    currency: opt.Currency = "",
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write what was saved, in one folder or in several, as one self-contained HTML page."""
    from escala.report import write_report

    opt.check_price(price, currency, carbon)
    parts = [read_saved(folder) for folder in dict.fromkeys(folders)]
    alone = parts[0] if len(parts) == 1 else None
    target = out if out is not None else (alone.folder / PAGE if alone else Path(PAGE))
    operator: dict[str, Any] = {"price": price, "carbon": carbon, "currency": currency}
    runs = merged(parts)
    with (
        output_file(target, force=force or (alone is not None and out is None and own_page(target))) as page,
        progress() as begin,
    ):
        begin(f"writing {target}")
        write_report(page, _loaded(runs), title=_title(parts, len(runs)), **_content(parts), **operator)
    told = number_of(len(runs), "run") if runs else ", ".join(part.kind for part in parts)
    emit(as_json, {"report": str(target), "runs": list(runs)}, f"{target}: {told}")


def _loaded(runs: dict[str, Path]) -> dict[str, Any]:
    import escala

    return {name: escala.Result.load(folder) for name, folder in runs.items()}


def _title(parts: Sequence[Saved], runs: int) -> str:
    names = ", ".join(part.folder.resolve().name for part in parts)
    return (
        f"{names}: {number_of(runs, 'run')}" if runs else f"{names} ({', '.join(dict.fromkeys(p.kind for p in parts))})"
    )


def _content(parts: Sequence[Saved]) -> dict[str, Any]:
    """What is shown beside the runs. The comparison of one folder is the page's verdict; those of several are
    sections."""
    from escala.report import Section, marks
    from escala.report.tables import overview_table

    judged = [(part, part.comparison) for part in parts if part.comparison is not None]
    several = [
        Section(
            f"{part.folder.name}: comparison over episodes",
            " ".join(part.notes),
            [marks.in_table(overview_table(table), marks.known(table))],
        )
        for part, table in judged
    ]
    return {
        "comparison": judged[0][1] if len(judged) == 1 else None,
        "sections": [*(several if len(several) > 1 else []), *(section for part in parts for section in part.sections)],
        "days": [
            days
            if len(several) < 2
            else replace(days, title=f"{part.folder.name}: {days.title[:1].lower()}{days.title[1:]}")
            for part in parts
            for days in part.days
        ],
        "training": [curve for part in parts for curve in part.training],
        "notes": [note for part in parts for note in part.notes] if len(several) < 2 else [],
    }
