"""Figures that stand on several pages are the same, and what misses its mark is named as such."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
SHORTS = PERFORMANCE.partition("**Short of their marks**")[2].partition("\n\n**")[0]
MEASURED = PERFORMANCE.partition("<!-- measured: begin -->")[2].partition("<!-- measured: end -->")[0]
UNITS = {"k": 1e3, "M": 1e6}


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of a page's tables."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def words(page: str) -> str:
    """A page without line breaks."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def quantity(text: str) -> float:
    """The number of a cell, with its k or M."""
    found = re.search(r"([\d,]*\.?\d+)\s*([kM](?= ))?", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * UNITS.get(found[2] or "", 1.0)


def misses(must: str, measured: str) -> bool:
    """Does a row of the first table miss its mark? A mark without a sign is a time, at most; "about" and "almost" leave
    a quarter."""
    if not any(sign.isdigit() for sign in must):
        return False
    mark, reached = quantity(must), quantity(measured)
    return reached < mark if must[0] in "≥>" else reached > mark * (1.25 if must[0] == "a" else 1.0)


@pytest.mark.parametrize(
    ("must", "measured", "short"),
    [
        ("≥ 1 M jobs/s", "2,590,000 jobs/s", False),
        ("≥ 0.5 M jobs/s", "302,000 jobs/s", True),
        ("<= 10 %", "10.9 %", True),
        ("0.15 ms", "0.117 ms", False),
        (">= 80 k steps/s", "139 k steps/s", False),
        ("about 1", "1.09 times the time per job", False),
        ("almost 1", "2 times the time per job", True),
        ("", "0.026 s", False),
    ],
)
def test_marks_are_read(must: str, measured: str, short: bool) -> None:
    assert misses(must, measured) is short


def test_every_row_that_misses_its_mark_is_named_as_short() -> None:
    told = " ".join(SHORTS.split())
    short = [what for what, must, measured in rows(MEASURED) if misses(must, measured)]
    assert short and [what for what in short if f"*{what}*" not in told] == []


def test_times_beside_the_compiled_engine_are_those_of_the_page() -> None:
    table = PERFORMANCE.partition("## EASY beside plain C++")[2].partition("\n## ")[0]
    times = [cells[-1] for cells in rows(table)[2:]]
    assert len(times) == 3
    said = (
        f"Escala's `easy-fast` as a whole `simulate` takes {times[0]}, {times[1]} and {times[2]} "
        "([measured](performance.md))"
    )
    assert said in words("docs/compared-to.md")
    assert float(times[2]) <= 0.18 or f"{times[2]} s for 300 000 jobs" in " ".join(SHORTS.split())


def test_the_rate_of_the_changelog_is_that_of_the_page() -> None:
    rate = quantity(next(cells[2] for cells in rows(MEASURED) if cells[0].startswith("EASY, 1 M synthetic jobs")))
    assert f"EASY at {rate / 1e6:.1f} million jobs a second" in words("CHANGELOG.md")


def test_what_the_neighbours_have_and_escala_has_too() -> None:
    """Verbs and policies that exist are not said to be missing."""
    page = words("docs/compared-to.md")
    assert "Escala has none of these" not in page and "bindings to a real resource manager" not in page
