"""A paper's verdicts as the first parts of the page that `escala report` writes of a study."""

from __future__ import annotations

from pathlib import Path

from escala.report.page import Section
from escala.report.tables import Cell, Table
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.page import RULE, counted, ours, printed, prose, rows_of
from escala.studies.verdicts.papers import PAPERS
from escala.studies.verdicts.row import Row

HEADERS = [("Verdict", "", ""), ("The paper says", "", ""), ("Printed", "", ""), ("Ours", "95 % interval", ""), ("Against it", "", "")]
HEADERS += [("How ours came about", "window", "")]


def sections_of(study: str, folder: Path) -> list[Section]:
    """What the paper claims, what came out and why; then its rows."""
    paper, kept, rows = PAPERS[study], Kept(folder), rows_of(study, folder)
    words = " ".join(prose(paper, rows, kept)).replace("**", "")  # a page has no Markdown
    rule = " ".join(RULE.split()).replace("*", "")
    tables = [Table(HEADERS, [_cells(row) for row in found], name) for name, found in paper.rows(kept).items()]
    beyond = [Section(one.title, one.says, tables=[_plain(one.head, one.cells)]) for one in paper.beyond(kept)]
    told = f"{counted(rows)} {rule} {paper.about}"
    return [Section(f"{paper.key}: {paper.title}", words), Section("Row by row", told, tables=tables), *beyond]


def _plain(head: list[str], cells: list[list[str]]) -> Table:
    return Table([(name, "", "") for name in head], [[Cell(text, plain=True) for text in row] for row in cells])


def _cells(row: Row) -> list[Cell]:
    says = f"{row.where}. {row.reason}" if row.reason else row.where
    texts = ((row.verdict, row.id), (row.says, says), (printed(row), ""), (ours(row), ""), (row.against, ""), (row.by, row.given))
    return [Cell(text, note, plain=True) for text, note in texts]
