"""A paper's verdicts as the first parts of the page that `escala report` writes of a study."""

from __future__ import annotations

from pathlib import Path

from escala.report.parts import Section
from escala.report.tables import Cell, Table
from escala.studies.verdicts.figures import number
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.page import RULE, counted, ours, printed, prose, rows_of, says, seen
from escala.studies.verdicts.papers import PAPERS
from escala.studies.verdicts.row import Row

HEADERS = [("Verdict", "", ""), ("The paper says", "place", ""), ("Printed", "", ""), ("Ours", "95 % interval", "")]
HEADERS += [("How ours came about", "window", "")]


def sections_of(study: str, folder: Path) -> list[Section]:
    """What the paper claims, what came out and why, a section each; then its rows, and the tables beyond them."""
    paper, kept, rows = PAPERS[study], Kept(folder), rows_of(study, folder)
    screen = [_section(part, f"{paper.key}, {paper.title}: ") for part in prose(paper, rows, kept)]
    rule = " ".join(RULE.split()).replace("*", "")
    tables = [Table(HEADERS, [_cells(row) for row in found], name) for name, found in paper.rows(kept).items()]
    beyond = [Section(one.title, one.says, tables=[_plain(one.head, one.cells)]) for one in paper.beyond(kept)]
    told = f"{counted(rows)} {rule} {paper.about} {seen(folder)}".replace("`", "")
    return [*screen, Section("Row by row", told, tables=tables), *beyond]


def _section(part: str, about: str) -> Section:
    """A paragraph whose first words, in bold, are its title; a page has no Markdown."""
    title, text = part.removeprefix("**").split("**", 1)
    title = title.rstrip(".")
    return Section(f"{about}{title[0].lower()}{title[1:]}", text.replace("**", "").replace("`", "").strip())


def _plain(head: list[str], cells: list[list[str]]) -> Table:
    return Table(
        [(name, "", "") for name in head], [[Cell(text.replace("`", ""), plain=True) for text in row] for row in cells]
    )


def _cells(row: Row) -> list[Cell]:
    interval = ours(row).removeprefix(number(row.found.ours, row.unit)).strip() if row.found.ours is not None else ""
    figure = ours(row) if row.found.ours is None else number(row.found.ours, row.unit)
    beside = f"{interval}, {row.against}" if interval and row.against else interval or row.against
    texts = ((row.verdict, row.id), (says(row), row.where), (printed(row), ""), (figure, beside), (row.by, row.given))
    return [Cell(text, note, plain=True) for text, note in texts]
