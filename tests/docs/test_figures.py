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


def section(name: str) -> list[list[str]]:
    """The rows of the table of a section of the page."""
    return rows(PERFORMANCE.partition(f"## {name}\n")[2].partition("\n## ")[0])[2:]


def test_figures_of_streams_are_those_of_their_page() -> None:
    found = {what: (must, measured) for what, must, measured in section("Logs that do not fit into memory")}
    assert [what for what, (must, measured) in found.items() if "times" not in must and misses(must, measured)] == []
    memory, whole, time_s, whole_s, most, longest, slope, texts = (measured for _, measured in found.values())
    time_s, _, ratio = time_s.partition(", ")
    page = words("docs/how-to/large.md")
    assert f"10 million jobs took {memory} and {time_s} of processor time; in memory they take {whole} and" in page
    assert f"and {whole_s}. 100 million jobs, a file of 0.8 GB in Parquet, took {most} and {longest}" in page
    assert f"a job more costs {slope}" in page and f"{texts} a job" in page
    assert quantity(ratio) == round(quantity(time_s) / quantity(whole_s), 1) <= 1.5
    assert quantity(slope) == pytest.approx((quantity(most) * 1e9 - quantity(memory) * 1e6) / 90e6, abs=0.5)


def test_figures_of_rllib_are_those_of_its_page() -> None:
    found = {what: measured for what, _, measured in section("RLlib beside Escala's own trainer")}
    page = (ROOT / "docs" / "how-to" / "ray.md").read_text(encoding="utf-8")
    for name in ("rllib-ppo", "maskable-ppo"):
        (row,) = (cells for cells in rows(page) if cells[0] == f"`{name}`")
        assert row[1:] == ["6 M", found[f"`{name}`, 6 M decisions: processor time"], *row[3:4],
                           found[f"`{name}` against hold-back"]]  # fmt: skip
    ours = words("docs/performance.md")
    for said in ("8 192 lists", "500 lists that nobody trained on", "has 2.39", "5 to 8 s"):
        assert said in ours and said in " ".join(page.split())


def test_the_rate_of_the_changelog_is_that_of_the_page() -> None:
    rate = quantity(next(cells[2] for cells in rows(MEASURED) if cells[0].startswith("EASY, 1 M synthetic jobs")))
    assert f"EASY at {rate / 1e6:.1f} million jobs a second" in words("CHANGELOG.md")


def test_what_the_neighbours_have_and_escala_has_too() -> None:
    """Verbs and policies that exist are not said to be missing."""
    page = words("docs/compared-to.md")
    assert "Escala has none of these" not in page and "bindings to a real resource manager" not in page


def test_a_decision_from_json_has_its_figures_on_both_pages() -> None:
    """Beside those from columns, which are the table's."""
    served, measured = words("docs/how-to/serve.md"), words("docs/performance.md")
    told = re.search(r"From a line of JSON .*? takes ([\d.]+) ms .*? ([\d.]+) ms .*? ([\d.]+) ms", served)
    held = re.search(r"From a line of JSON, .*? takes ([\d.]+) ms .*? ([\d.]+) ms .*? ([\d.]+) ms", measured)
    assert told is not None and held is not None and told.groups() == held.groups()
    columns = re.search(r"From columns, in Python, it takes ([\d.]+), ([\d.]+) and ([\d.]+) ms", served)
    table = [quantity(row[2]) for row in rows(MEASURED) if "easy + hold," in row[0] and "asked from outside" in row[0]]
    assert columns is not None
    assert [float(one) for one in columns.groups()] == [float(f"{value:.{n}f}") for value, n in zip(table, (2, 1, 1))]
