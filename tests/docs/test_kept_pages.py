"""The tables that pages of kept studies print are those of their data, number by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.studies.lab.claims import read_rows

ROOT = Path(__file__).resolve().parents[2] / "docs" / "studies"
Row = list[str]
Known = Callable[[str], list[float | None]]
"""From the first cell of a row, without its unit, to the numbers that one cell of it must show."""


class Kept:
    """The data of one study."""

    def __init__(self, study: str) -> None:
        self.folder = ROOT / study
        self.page = (self.folder / "README.md").read_text(encoding="utf-8")
        claims = read_rows(self.folder)
        self.claims: dict[str, Any] = {claim["id"]: claim for claim in claims}

    def rows(self, heading: str) -> list[Row]:
        """The rows of the table with this first line."""
        lines = self.page.split("\n")
        at = lines.index(heading) + 2
        found = []
        while lines[at].startswith("|"):
            found.append([cell.strip() for cell in lines[at].strip("|").split("|")])
            at += 1
        return found

    def mean(self, table: str, policy: str, by: str, scale: float = 1.0, metric: str = "mean_slowdown") -> Known:
        """A mean of a policy in a table. by: the column that tells rows of the page apart, which is `scale` times what
        the page prints."""
        data = pl.read_csv(self.folder / "tables" / f"{table}.csv")

        def of(key: str) -> list[float | None]:
            found = data.filter((pl.col("policy") == policy) & (pl.col(by) == round(scale * float(key))))[metric]
            return [found.item()]

        return of

    def change(self, claim: str, times: float = 100.0) -> Known:
        """A claim with its interval, in per cent. claim: its id but for the row's key."""

        def of(key: str) -> list[float | None]:
            one = self.claims[f"{claim}.{key}"]
            return [None if one[part] is None else times * one[part] for part in ("ours", "low", "high")]

        return of

    def ratio(self, claim: str) -> Known:
        """A claim with its interval, as a multiple of what it is held against."""
        return lambda key: [1.0 + self.claims[f"{claim}.{key}"][part] for part in ("ours", "low", "high")]

    def note(self, claim: str, pattern: str) -> Known:
        """A number in a claim's note."""
        return lambda key: [float(re.search(pattern, self.claims[f"{claim}.{key}"]["note"])[1])]  # type: ignore[index]


def shown(cell: str) -> list[tuple[float, float]]:
    """Every number of a cell, and half a unit of its last figure."""
    found = re.findall(r"[+-]?\d*\.?\d+", cell.replace("*", ""))
    return [(float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])) for text in found]


def first_cell(row: Row) -> str:
    """What tells rows apart: the first cell without its unit."""
    return row[0].removesuffix("%").strip()


def disagreements(
    rows: list[Row], columns: Mapping[int, Known], key_of: Callable[[Row], str] = first_cell
) -> list[str]:
    """Cells that show other numbers than the data have."""
    wrong = []
    for row in rows:
        key = key_of(row)
        for column, known in columns.items():
            wanted, told = known(key), shown(row[column])
            fits = len(told) == len(wanted) and all(
                value is not None and abs(number - value) <= half * 1.001
                for (number, half), value in zip(told, wanted, strict=True)
            )
            if not fits:
                wrong.append(f"{row[0]}, column {column + 1}: {row[column]}, the data have {wanted}")
    return wrong


def test_a_wrong_figure_is_found() -> None:
    rows = [["10 %", "1.00", "**2.03** (1.9 … 2.1)"], ["40 %", "1.24", "–"]]
    columns: dict[int, Known] = {
        1: lambda key: [1.004 if key == "10" else 1.2349],
        2: lambda key: [2.025209, 1.92, 2.14],
    }
    assert disagreements(rows[:1], columns) == []
    wrong = ["40 %, column 2: 1.24, the data have [1.2349]", "40 %, column 3: –, the data have [2.025209, 1.92, 2.14]"]
    assert disagreements(rows, columns) == wrong
    assert disagreements([["10 %", "1.00", "2.02 (1.9 … 2.1)"]], columns) != []


def grid2019_published(kept: Kept) -> tuple[str, dict[int, Known]]:
    means = {1: "sjf", 2: "author's PPO", 3: "agent"}
    columns: dict[int, Known] = {column: kept.mean("published", policy, "load") for column, policy in means.items()}
    columns[4] = kept.note("r1.published.slowdown", r"its plan ([\d.]+)")
    columns[5] = kept.note("r1.published.headroom", r"best found ([\d.]+)")
    return "| load | SJF | author's PPO | agent | its plan | best found | of the best found |", columns


def grid2019_fresh(kept: Kept) -> tuple[str, dict[int, Known]]:
    means = {1: "sjf", 2: "sjf-strict", 3: "hold-back", 4: "hold-back, end known"}
    claims = {
        6: "r1.fresh.slowdown", 7: "r1.fresh.vs_strict", 8: "r1.fresh.vs_holdback", 9: "r1.fresh.vs_holdback_end",
        10: "r1.fresh.headroom", 11: "r1.rollout.headroom",
    }  # fmt: skip
    columns: dict[int, Known] = {column: kept.mean("fresh", policy, "load") for column, policy in means.items()}
    columns |= {column: kept.change(claim) for column, claim in claims.items()}
    heading = (
        "| load | greedy SJF | strict SJF | hold-back | the same, end known | agent | against SJF | against strict SJF "
    )
    return (
        heading + "| against hold-back | against it with the end known | head-room | of `rollout` | which agent |",
        columns,
    )


def a2c2020_rates(kept: Kept) -> tuple[str, dict[int, Known]]:
    means = {1: "sjf", 2: "tetris", 3: "random", 4: "hold-back", 5: "hold-back, end known"}
    claims = {7: "slowdown", 8: "vs_holdback_end", 9: "alone", 10: "a2c", 11: "printed", 13: "headroom"}
    columns: dict[int, Known] = {
        column: kept.mean("tables1and2", policy, "rate", 100.0) for column, policy in means.items()
    }
    columns[6] = kept.note("r2.slowdown", r"actions: ([\d.]+) against")
    columns |= {column: kept.change(f"r2.{claim}") for column, claim in claims.items()}
    heading = "| rate | SJF | Tetris (raw) | Random | hold-back | the same, end known | **recommended** | change "
    heading += "| against hold-back, end known | PPO alone | A2C, slot scorer "
    return heading + "| A2C as printed | the paper's change | head-room |", columns


def test_the_page_of_marl2024_prints_what_its_data_have() -> None:
    kept = Kept("marl2024")
    data = pl.read_csv(kept.folder / "tables" / "slowdown.csv")

    def shape_and_load(column: int) -> Callable[[Row], str]:
        return lambda row: f"{row[0].replace(' ', '')}.{row[column].removesuffix('%').strip()}"

    def mean(policy: str) -> Known:
        def of(key: str) -> list[float | None]:
            shape, load = key.split(".")
            return [
                data.filter(pl.col("shape") == shape, pl.col("load") == int(load), pl.col("policy") == policy)[
                    "mean_slowdown"
                ].item()
            ]

        return of

    heading = (
        "| agents x machines | team | load | SJF | normalised Tetris | `dense` | team's | to Tetris | to the best "
        "heuristic |"
    )
    columns = {
        3: mean("sjf"),
        4: mean("tetris-normalised"),
        5: mean("dense"),
        7: kept.ratio("r4.vs_tetris"),
        8: kept.ratio("r4.vs_best_heuristic"),
    }
    rows = kept.rows(heading)
    assert len(rows) == 8 and disagreements(rows, columns, shape_and_load(2)) == []
    heading = (
        "| shape | load | SJF | team | SJF that sees every job | best found | bound | share of best found | "
        "share proved |"
    )
    columns = {7: kept.change("r4.headroom"), 8: kept.change("r4.headroom_proved")}
    rows = kept.rows(heading)
    assert len(rows) == 8 and disagreements(rows, columns, shape_and_load(1)) == []
    heading = (
        "| machines | load | team against the best heuristic | team against one learner | processor time, team "
        "| one learner |"
    )
    columns = {2: kept.change("r4.growth"), 3: kept.change("r4.team_vs_central")}
    rows = kept.rows(heading)
    assert len(rows) == 8 and disagreements(rows, columns, shape_and_load(1)) == []
    heading = "| load | how they learn | after 100 000 | best looks | last looks | sampled | likeliest |"
    rows = kept.rows(heading)[:-1]  # the last: R4's own settings, both loads
    words = {
        "in turns, global information": "global",
        "in turns, local information": "local",
        "all at once": "simultaneous",
    }
    for column, end in ((5, ".sampled"), (6, "")):
        for row in rows:
            ident = f"r4.nothing.{words.get(row[1], 'shared')}.{first_cell(row)}{end}"
            known = [100.0 * kept.claims[ident][part] for part in ("ours", "low", "high")]
            assert disagreements([row], {column: lambda _, known=known: known}) == []  # type: ignore[misc]


@pytest.mark.parametrize("table", [grid2019_published, grid2019_fresh, a2c2020_rates])
def test_a_page_prints_what_its_data_have(table: Callable[[Kept], tuple[str, dict[int, Known]]]) -> None:
    kept = Kept(table.__name__.split("_")[0])
    heading, columns = table(kept)
    rows = kept.rows(heading)
    assert len(rows) >= 4 and disagreements(rows, columns) == []
