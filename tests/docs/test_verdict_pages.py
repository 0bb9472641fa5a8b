"""The pages of the papers: what stands there is what the kept claims and tables give, prose included."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from escala.studies.a2c2020.controls import ABOUT, CONTROLS
from escala.studies.verdicts import PAPERS, page_of, rows_of
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.page import FIELD, prose
from escala.studies.verdicts.rule import CONTRADICTS, REPRODUCED, UNKNOWN, VERDICTS, verdict

ROOT = Path(__file__).resolve().parents[2] / "docs" / "studies"
LINES = 60
"""Of a page before its first table: what fits on two screens."""
NAMES = re.compile(r"`[^`]*`|R[1-4]|T\(\d\)|hold\(0\.25\)|Conv3-16|3 x 1|A2C")
WORSE_THAN_PRINTED = (
    "r1.published.printed.100", "r2.a2c.0.7", "r2.alone.0.6", "r2.alone.0.7", "r2.slowdown.0.6", "r2.log.slowdown",
)  # fmt: skip


@pytest.mark.parametrize("study", PAPERS)
def test_a_page_is_what_its_data_give(study: str) -> None:
    """Written anew by: escala study verdicts STUDY --out docs/studies/STUDY.md --force"""
    assert (ROOT / f"{study}.md").read_text(encoding="utf-8") == page_of(study, ROOT / study)


@pytest.mark.parametrize("study", PAPERS)
def test_no_number_of_the_prose_is_typed(study: str) -> None:
    """Numbers come from fields; what is left are names, and settings that rows of the page have (a load, a rate)."""
    settings = set(re.findall(r"\d+(?:\.\d+)?", " ".join(row.says for row in rows_of(study, ROOT / study))))
    typed = re.findall(r"\d+(?:\.\d+)?", NAMES.sub("", FIELD.sub("", PAPERS[study].first)))
    assert [number for number in typed if number not in settings] == []


@pytest.mark.parametrize("study", PAPERS)
def test_every_field_of_the_prose_shows_a_figure(study: str) -> None:
    kept = Kept(ROOT / study)
    rows = rows_of(study, ROOT / study)
    known = {row.id: row for row in rows}
    for kind, name in FIELD.findall(PAPERS[study].first):
        if kind == "value":
            assert re.search(r"\d", PAPERS[study].more(kept)[name]), name
        elif kind != "verdict":
            assert (known[name].printed.figure if kind == "printed" else known[name].found.ours) is not None, name
    assert all("{" not in part for part in prose(PAPERS[study], rows, kept))


@pytest.mark.parametrize("study", PAPERS)
def test_each_printed_verdict_follows_from_the_figures_of_its_row(study: str) -> None:
    """The verdict that the page shows is the rule's, and one that figures do not give has its reason beside it."""
    rows = {row.id: row for row in rows_of(study, ROOT / study)}
    lines = [
        line for line in (ROOT / f"{study}.md").read_text(encoding="utf-8").splitlines() if line.startswith("| **")
    ]
    shown = {line.rsplit("`", 2)[1]: line.split("**")[1] for line in lines}
    assert set(shown) == set(rows) and len(lines) == len(rows) and set(shown.values()) <= set(VERDICTS)
    for ident, row in rows.items():
        assert shown[ident] == verdict(row.printed, row.found), ident
        if row.verdict == CONTRADICTS or (
            row.verdict == UNKNOWN and row.found.ours is not None and row.found.low is None
        ):
            assert row.reason, ident


@pytest.mark.parametrize("study", PAPERS)
def test_rows_and_claims_agree(study: str) -> None:
    """A row that is a claim has its figures; what is reproduced is so in the claim's own column."""
    kept = Kept(ROOT / study)
    for row in rows_of(study, ROOT / study):
        claim = kept.claims.get(row.id)
        if claim is None or row.found.of != row.id:
            continue
        assert (row.found.ours, row.found.low, row.found.high) == (claim["ours"], claim["low"], claim["high"])
        if claim["paper"] is not None:
            assert row.printed.figure == pytest.approx(claim["paper"], abs=0.005), row.id
            assert not (row.verdict == REPRODUCED and claim["reproduces"] is False), row.id


def test_what_is_worse_than_printed_is_not_told_as_reproduced() -> None:
    rows = {row.id: row for study in PAPERS for row in rows_of(study, ROOT / study)}
    for ident in WORSE_THAN_PRINTED:
        assert rows[ident].against == "worse" and rows[ident].verdict != REPRODUCED, ident


@pytest.mark.parametrize("study", PAPERS)
def test_the_first_screen_says_what_is_claimed_what_came_out_and_why(study: str) -> None:
    lines = (ROOT / f"{study}.md").read_text(encoding="utf-8").splitlines()
    before = lines[: next(k for k, line in enumerate(lines) if line.startswith("## "))]
    starts = [line for line in before if line.startswith("**")]
    titles = [start.split("**")[1] for start in starts]
    assert titles[:3] == ["What the paper claims.", "What came out.", "Why."] and titles[3:] in (
        [],
        ["What falls short."],
    )
    assert len(before) <= LINES


def test_the_positive_controls_on_the_page_are_those_that_are_kept() -> None:
    """Each row from the table of controls and its claim, which agree; by the way of acting that validation lists
    choose."""
    kept = Kept(ROOT / "a2c2020")
    table = kept.table("controls")
    assert table is not None and table.filter("chosen")["control"].to_list() == list(CONTROLS)
    text = (ROOT / "a2c2020.md").read_text(encoding="utf-8").split("## Positive controls")[1].split("\n## ")[0]
    shown = {
        cells[0]: cells[1:]
        for cells in ([one.strip() for one in line.strip("| ").split("|")] for line in text.splitlines())
    }
    sjf = kept.value("tables1and2", "mean_slowdown", rate=70, policy="sjf")
    for row in table.filter("chosen").iter_rows(named=True):
        found = kept.claim(f"r2.control.{row['control']}")
        other = table.filter(pl.col("control") == row["control"], ~pl.col("chosen"))["validation"].item()
        assert other is None or row["validation"] <= other
        decisions, _, slowdown, against = shown[ABOUT[row["control"]]]
        assert decisions.replace(" ", "") == str(row["decisions"])
        if row["unfinished"]:
            assert found.ours is None and against == f"{row['unfinished']} runs did not end"
        else:
            assert found.ours == pytest.approx(row["mean_slowdown"] / sjf - 1, abs=2e-5)
            assert against.startswith(f"{100 * found.ours:+.1f} %") and slowdown == f"{row['mean_slowdown']:.2f}"


def test_what_not_knowing_the_end_costs_is_recomputed() -> None:
    """In points of head-room on R1's page, and as a change on R2's, whose best schedules found are not kept."""
    sweeps = {
        study: pl.read_csv(ROOT / study / "tables" / "horizons.csv", schema_overrides={"horizon": pl.String})
        for study in ("grid2019", "a2c2020")
    }
    room = pl.read_csv(ROOT / "grid2019" / "tables" / "headroom.csv")

    def mean(study: str, agent: str, load: float, horizon: str) -> float:
        row = sweeps[study].row(
            by_predicate=(pl.col("agent") == agent) & (pl.col("load") == load) & (pl.col("horizon") == horizon),
            named=True,
        )
        return float(row["mean_slowdown"])

    points = []
    for load in (40, 70, 100, 130, 160, 190):
        sjf, best = (room.filter(load=load, policy=name)["mean_slowdown"].item() for name in ("sjf", "best found"))
        more = mean("grid2019", "open-all-1", load, "100") - mean("grid2019", "fresh-all-0", load, "100")
        points.append(str(round(100 * more / (sjf - best))))
    assert more_of("grid2019")["lost"] == f"{', '.join(points)} points at 40, 70, 100, 130, 160, 190 %"
    changes = [
        mean("a2c2020", "open-all-0", rate, "50") / mean("a2c2020", f"agent-{rate}-0", rate, "50") - 1.0
        for rate in (0.6, 0.7, 0.8, 0.9)
    ]
    assert more_of("a2c2020")["lost"] == f"{100 * max(changes):+.1f} %"


def more_of(study: str) -> dict[str, str]:
    """Values of a page's text."""
    return PAPERS[study].more(Kept(ROOT / study))
