"""The page of a paper: first what it claims, what came out and why, then each printed number and sentence with its
verdict.

Every number on it comes from the study's folder: rows by `Row`, prose by fields in braces that are filled from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from escala.errors import EscalaError
from escala.studies.lab.looks import looks
from escala.studies.verdicts.figures import NONE, number, span
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.papers import PAPERS
from escala.studies.verdicts.row import Paper, Row
from escala.studies.verdicts.rule import VERDICTS

WIDTH = 118
FIELD = re.compile(r"\{(printed|ours|both|verdict|value):([^}]+)\}")
RULE = """
One rule gives every verdict from the figures of its row: the paper's, and ours with its 95 % interval (without one, the
value alone). *Reproduced*: the whole interval is as good as printed; where a value is to be the same, the interval
holds it. *Direction only*: not so, but the whole interval is on the printed side of no difference. *Not reproduced*:
the whole interval is worse than printed, or on the other side of no difference. *Cannot be told*: neither, or the row
says why nothing can be known. Where other data stand in for the paper's, nothing counts as reproduced. Rounding of the
print, a tenth of a point, counts as none.
"""
HEAD = (
    "| verdict | the paper says | where | printed | ours (95 % interval) | against it | how ours came about | "
    "window | id |"
)


def rows_of(study: str, folder: Path) -> list[Row]:
    """The rows of a study's paper, from the claims and tables in a folder. EscalaError for a study without a paper, or
    a folder without claims."""
    if study not in PAPERS:
        raise EscalaError(f"no paper belongs to the study {study!r}: known are {', '.join(PAPERS)}")
    if not (folder / "claims.json").is_file():
        raise EscalaError(
            f"{folder}: has no claims.json: give the folder of a study that was run, such as docs/studies/{study}"
        )
    return [row for part in PAPERS[study].rows(Kept(folder)).values() for row in part]


def filled(text: str, rows: Sequence[Row], more: Mapping[str, str]) -> str:
    """A text whose fields are replaced: {printed:ID}, {ours:ID}, {both:ID} (ours with its interval), {verdict:ID},
    {value:NAME}."""
    by_id = {row.id: row for row in rows}

    def one(match: re.Match[str]) -> str:
        kind, name = match[1], match[2]
        if kind == "value":
            return more[name]
        row = by_id[name]
        if kind == "verdict":
            return row.verdict
        if kind == "printed":
            return number(row.printed.figure, row.unit)
        return number(row.found.ours, row.unit) if kind == "ours" else span(row.found, row.unit)

    return FIELD.sub(one, text)


def counted(rows: Sequence[Row]) -> str:
    """How many rows have which verdict, by the paper's own way and in all."""
    own = Counter(row.verdict for row in rows if row.own)
    every = Counter(row.verdict for row in rows)
    parts = [f"{every[one]} {one} ({own[one]})" for one in VERDICTS if every[one]]
    return f"Of {len(rows)} rows, in brackets those by the paper's own way: {'; '.join(parts)}."


def prose(paper: Paper, rows: Sequence[Row], kept: Kept) -> list[str]:
    """The paragraphs of the first screen."""
    return [" ".join(part.split()) for part in filled(paper.first, rows, paper.more(kept)).strip().split("\n\n")]


def page_of(study: str, folder: Path) -> str:
    """The page of a study's paper, as Markdown."""
    rows, paper, kept = rows_of(study, folder), PAPERS[study], Kept(folder)
    parts = [f"# {paper.key}: {paper.title}", f"{paper.source}.", *prose(paper, rows, kept), counted(rows)]
    parts += [" ".join(RULE.split()), paper.about, seen(folder)]
    command = f"`escala study verdicts {study}` prints this page from the study's claims and tables."
    parts += [
        f"{command} How it was run, and everything beyond the paper, is on the page of [{study}]({study}/README.md)."
    ]
    wrapped = [part if part.startswith("#") else wrap(part) for part in parts]
    tables = [part for name, found in paper.rows(kept).items() for part in (f"## {name}", table(found))]
    for one in paper.beyond(kept):
        rule = f"|{'---|' * len(one.head)}"
        lines = [f"| {' | '.join(cells)} |" for cells in (one.head, *one.cells)]
        tables += [f"## {one.title}", wrap(one.says), "\n".join([lines[0], rule, *lines[1:]])]
    return "\n\n".join([*wrapped, *tables]) + "\n"


def seen(folder: Path) -> str:
    """How often the held-out data were looked at."""
    number = len(looks(folder))
    return (
        f"Looks at the held-out data that are counted so far, this run among them: {number} (`looks.json` in the "
        "study's folder)."
    )


def wrap(text: str) -> str:
    """A paragraph in lines."""
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def table(rows: Sequence[Row]) -> str:
    """All rows as a table of Markdown."""
    lines = [HEAD, f"|{'---|' * HEAD.count(' | ')}---|"]
    for row in rows:
        cells = [f"**{row.verdict}**", says(row), row.where, printed(row), ours(row), row.against or NONE, row.by]
        lines.append(f"| {' | '.join([*cells, row.given or NONE, f'`{row.id}`'])} |")
    return "\n".join(lines)


def says(row: Row) -> str:
    """The sentence, with the reason where a verdict is stated, and the unit where it is no change."""
    unit = (
        ""
        if row.unit == "relative change" or (row.printed.figure is None and row.found.ours is None)
        else f" ({row.unit})"
    )
    return f"{row.says}{unit}" + (f". {row.reason[0].upper()}{row.reason[1:]}" if row.reason else "")


def printed(row: Row) -> str:
    """The paper's figure; of a sentence, what it comes to."""
    if row.printed.sentence:
        return {"less": "(at most 0)", "more": "(above 0)", "same": "(about 0)"}[row.printed.sense]
    return number(row.printed.figure, row.unit)


def ours(row: Row) -> str:
    """Our figure, or that there is none."""
    return (
        span(row.found, row.unit)
        if row.found.ours is not None
        else "not measured"
        if row.printed.figure is not None
        else NONE
    )


def told(row: Row) -> dict[str, Any]:
    """A row as JSON keeps it: changes as fractions."""
    figures = {
        "paper": row.printed.figure,
        "ours": row.found.ours,
        "low": row.found.low,
        "high": row.found.high,
        "unit": row.unit,
    }
    where = {"id": row.id, "verdict": row.verdict, "says": row.says, "where": row.where}
    return (
        where
        | figures
        | {"against": row.against, "reason": row.reason, "by": row.by, "own_way": row.own, "window": row.given}
    )
