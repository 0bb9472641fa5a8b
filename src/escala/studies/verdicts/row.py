"""A row of a paper's page, and what a paper's page is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.rule import Found, Print, against, verdict

CHANGE = "relative change"
"""Unit of changes, which pages show in per cent."""
AS_PRINTED = "as printed"
"""How our figure came about, where it is the paper's own method."""


@dataclass(frozen=True)
class Row:
    """One number or sentence of a paper. where: its place there; says: what it says, in our words; printed: its figure;
    found: ours; by: how ours came about; given: window and budget of ours; unit: of both figures."""

    id: str
    where: str
    says: str
    printed: Print
    found: Found
    by: str = AS_PRINTED
    given: str = ""
    unit: str = CHANGE

    @property
    def own(self) -> bool:
        """Whether our figure came about as the paper's did."""
        return self.by.startswith(AS_PRINTED)

    @property
    def verdict(self) -> str:
        """One of `rule.VERDICTS`."""
        return verdict(self.printed, self.found)

    @property
    def against(self) -> str:
        """Our figure beside the printed one, in words."""
        return against(self.printed, self.found)

    @property
    def reason(self) -> str:
        """Why the row's verdict is stated, or is held back; empty where figures alone decide."""
        return self.printed.contradicts or self.printed.unknown or self.printed.stands_in


@dataclass(frozen=True)
class Table:
    """A table beside the rows. says: a paragraph before it; head, cells: as text."""

    title: str
    says: str
    head: list[str]
    cells: list[list[str]]


@dataclass(frozen=True)
class Paper:
    """A paper that a study repeats. key: its short name; source: author, year, place; first: the page's first screen,
    paragraphs in which every number is a field in braces (see `page.filled`); rows: of a study's folder, by part of the
    page; about: the windows
    of its rows; more: other numbers of `first`, by name; beyond: tables after the rows."""

    study: str
    key: str
    title: str
    source: str
    first: str
    rows: Callable[[Kept], dict[str, list[Row]]]
    about: str
    more: Callable[[Kept], dict[str, str]] = lambda kept: {}
    beyond: Callable[[Kept], list[Table]] = lambda kept: []
