"""The rule of verdicts: from figures alone, and the same for everything that a paper prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from escala.errors import EscalaError
from escala.studies.lab.claims import Claim, write_claims
from escala.studies.verdicts import PAPERS, page_of, rows_of
from escala.studies.verdicts.figures import number, span
from escala.studies.verdicts.kept import Kept, change, worst
from escala.studies.verdicts.page import FIELD, filled
from escala.studies.verdicts.rule import VERDICTS, Found, Print, against, sentence, verdict


@pytest.mark.parametrize(
    "printed, found, said, beside",
    [
        (Print(-0.45), Found(-0.5, -0.55, -0.46), "reproduced", "better"),
        (Print(-0.45), Found(-0.13, -0.19, -0.08), "direction only", "worse"),
        (Print(-0.45), Found(-0.44, -0.5, -0.4), "direction only", "the interval holds it"),
        (Print(-0.45), Found(0.1, 0.05, 0.2), "not reproduced", "worse"),
        (Print(-0.1), Found(-0.05, -0.2, 0.1), "cannot be told", "the interval holds it"),
        # the paper's is worse than the rule, ours is not
        (Print(0.12), Found(-0.11, -0.13, -0.09), "not reproduced", "better"),
        (Print(0.12), Found(0.08, 0.07, 0.09), "reproduced", "better"),
        (Print(-0.45, "less"), Found(-0.45), "reproduced", "equal"),
        (Print(0.5, "same", 0.0, 0.005), Found(0.48, 0.4, 0.55), "reproduced", "the interval holds it"),
        (Print(0.5, "same", 0.0, 0.005), Found(0.3, 0.25, 0.35), "direction only", "below it"),
        (Print(8.82, "same", None, 0.005), Found(7.29), "not reproduced", "below it"),
        (Print(8.82, "same", None, 0.005), Found(8.821), "reproduced", "equal"),
        (sentence("less"), Found(0.0), "reproduced", "equal"),
        (sentence("less"), Found(0.02, 0.01, 0.03), "not reproduced", "worse"),
        (sentence("more"), Found(0.02, 0.01, 0.03), "reproduced", "better"),
        (sentence("same", 0.05), Found(0.02, -0.01, 0.04), "reproduced", "the interval holds it"),
        (sentence("same", 0.05), Found(0.0, -0.4, 0.4), "cannot be told", "the interval holds it"),  # wide is not alike
        (sentence("same", 0.05), Found(-0.15, -0.2, -0.08), "not reproduced", "below it"),
        (Print(-0.45), Found(), "cannot be told", ""),
        (Print(None), Found(-0.5, -0.6, -0.4), "cannot be told", ""),
        (Print(-0.45, unknown="why"), Found(-0.5, -0.55, -0.46), "cannot be told", "better"),
        (Print(-0.45, contradicts="why"), Found(-0.5, -0.55, -0.46), "the paper contradicts itself", "better"),
        (Print(-0.45, stands_in="why"), Found(-0.5, -0.55, -0.46), "direction only", "better"),
        (Print(-0.45, stands_in="why"), Found(0.1, 0.05, 0.2), "not reproduced", "worse"),
        (Print(0.3, none=None, stands_in="why"), Found(0.1), "cannot be told", "better"),  # a level of other data
    ],
)
def test_the_figures_give_the_verdict(printed: Print, found: Found, said: str, beside: str) -> None:
    assert verdict(printed, found) == said and said in VERDICTS
    assert against(printed, found) == beside


def test_a_wider_interval_is_never_told_with_more_certainty() -> None:
    """From a point outwards a verdict may only fall back to one that says less."""
    less = {"reproduced": 2, "direction only": 1, "cannot be told": 0}
    for figure in (-0.45, -0.1):
        seen = [
            verdict(Print(figure), Found(-0.5, -0.5 - half, -0.5 + half)) for half in (0.0, 0.02, 0.1, 0.3, 0.45, 0.7)
        ]
        assert (
            seen == sorted(seen, key=lambda one: -less[one])
            and seen[0] == "reproduced"
            and seen[-1] == "cannot be told"
        )


def test_changes_are_of_the_interval_too() -> None:
    assert change(Found(4.0, 3.0, 6.0, "t.csv"), 2.0) == Found(1.0, 0.5, 2.0, "t.csv")
    assert change(Found(4.0), None) == Found() and change(Found(), 2.0) == Found()
    assert worst([Found(0.1), Found(0.3), Found(0.2)]) == Found(0.3) and worst([Found(0.1), Found()]) == Found()
    assert worst([Found(0.1), Found(-0.3)], largest=False) == Found(-0.3)


def test_figures_are_read_as_people_read_them() -> None:
    assert [number(v, "relative change") for v in (-0.134, 0.0, -1e-5, 3.746, None)] == [
        "-13.4 %",
        "0.0 %",
        "0.0 %",
        "+375 %",
        "–",
    ]
    assert [number(v, "decisions") for v in (500736.0, 1.54, 16.17)] == ["500 736", "1.54", "16.2"]
    assert span(Found(-0.134, -0.192, -0.0775), "relative change") == "-13.4 % (-19.2 … -7.8)"


@pytest.mark.parametrize("study", PAPERS)
def test_a_run_without_figures_has_a_page_that_says_so(study: str, tmp_path: Path) -> None:
    """What a smaller scale leaves out can be told by no row, and by no sentence."""
    write_claims(
        tmp_path, "A study", [Claim("x.other", "a claim", None, None, None, None, "share", 0, 0, None)], "Nothing."
    )
    rows = rows_of(study, tmp_path)
    assert {row.verdict for row in rows} <= {"cannot be told", "the paper contradicts itself"}
    assert "{" not in page_of(study, tmp_path)


def test_a_folder_without_claims_and_a_study_without_a_paper_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match=r"has no claims\.json"):
        rows_of("grid2019", tmp_path)
    with pytest.raises(EscalaError, match="no paper belongs to the study 'demo'"):
        rows_of("demo", tmp_path)


@pytest.mark.parametrize("study", PAPERS)
def test_a_changed_figure_changes_rows_and_prose(study: str, tmp_path: Path) -> None:
    """Prose and rows follow the data: claims that are all moved move every figure that is a claim's."""
    kept = Path(__file__).resolve().parents[3] / "docs" / "studies" / study
    claims = json.loads((kept / "claims.json").read_text(encoding="utf-8"))
    for claim in claims:
        claim["ours"], claim["low"], claim["high"] = 4.321, 4.3, 4.4
    (tmp_path / "claims.json").write_text(json.dumps(claims), encoding="utf-8")
    moved = {row.id: row for row in rows_of(study, tmp_path)}
    shown = [row.id for row in rows_of(study, kept) if row.found.of == row.id and row.found.ours is not None]
    assert shown and all(moved[ident].found.ours == 4.321 for ident in shown)
    fields = [name for kind, name in FIELD.findall(PAPERS[study].first) if kind in ("ours", "both") and name in shown]
    assert fields
    for name in fields:
        assert "432 %" in filled(f"{{ours:{name}}}", list(moved.values()), {}) or "4.32" in filled(
            f"{{ours:{name}}}", list(moved.values()), {}
        )


def test_a_table_gives_cells_only_where_one_row_is_meant(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text(
        "load,policy,x,x_low,x_high,x_sd\n10,a,2.0,1.5,2.5,1.0\n10,b,,,,\n20,a,3.0,,,\n"
    )
    kept = Kept(tmp_path)
    assert kept.cell("t", "x", load=10, policy="a") == Found(2.0, 1.5, 2.5, "t.csv")
    assert kept.value("t", "x", policy="a") is None and kept.value("t", "x", load=10, policy="b") is None
    assert (
        kept.value("t", "y", load=20) is None
        and kept.value("u", "x", load=10) is None
        and kept.value("t", "x", gone=1) is None
    )
    mean = kept.mean_of_days("t", "x", 4, load=10, policy="a")
    assert (mean.ours, mean.low, mean.high) == (2.0, pytest.approx(2.0 - 0.98), pytest.approx(2.0 + 0.98))
