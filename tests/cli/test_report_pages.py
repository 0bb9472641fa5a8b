"""`escala report`: every folder that a verb writes gives a page, alone and together with others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from escala.metrics import compare as comparing
from escala.report.operator import OF_DAYS
from escala.studies.lab.claims import Claim, finished, write_claims
from escala.studies.lab.saving import DAYS, JUDGED, read_judged, write_manifest
from tests.cli.program import Escala


def _simulated(escala_: Escala, log: Path, name: str, *more: str) -> Path:
    out = log.parent / name
    assert escala_("simulate", log, "--platform", "4x1:grid5000", "--out", out, *more).status == 0
    return out


def _evaluation(folder: Path, days: int = 12, of_days: tuple[str, ...] = OF_DAYS) -> Path:
    """What `escala evaluate` leaves: a rule that needs a tenth less than the reference on every day."""
    rows = [
        {
            "policy": p,
            "seed": 0,
            "episode": d,
            "day": f"log#{d}",
            **dict.fromkeys(of_days, 0.0),
            "waste_j": w * (100.0 + d),
        }
        | ({"energy_j": w * 36e6} if "energy_j" in of_days else {})
        for p, w in (("one", 1.0), ("two", 0.9))
        for d in range(days)
    ]
    folder.mkdir()
    pl.DataFrame(rows).write_csv(folder / DAYS)
    comparing.episodes(pl.DataFrame(rows), ["waste_j"], reference="one").write_csv(folder / JUDGED)
    write_manifest(folder, "evaluation", {"agent": "agent", "workload": "log.swf", "after": 4, "days": days})
    return folder


def _study(folder: Path) -> Path:
    from escala.report import save
    from escala.report.curves import Training, learning_curve

    (folder / "figures").mkdir(parents=True)
    points = pl.DataFrame({"step": [0, 1000], "value": [2.0, 1.0]})
    save(learning_curve(Training(points, {"sjf": 1.5})), folder / "figures" / "fig4")
    found = [
        Claim("x.less", "waste against a rule", -0.5, -0.25, -0.3, -0.2, "relative change", 3, 40, True),
        Claim("x.none", "ratio of waits", None, 1e-17, -1e-16, 1e-16, "ratio", 1, 40, False, "noise"),
        Claim("x.figure", "share of the head-room", None, 0.5, 0.4, 0.6, "share", 3, 40, None),
        Claim("x.absent", "a run that did not end", None, None, None, None, "share", 3, 40, None),
    ]
    write_claims(folder, "A study", found, "Forty days, *drawn* by lot.")
    finished(folder, "x", "smoke", {}, found, ["not done: y"])
    return folder


def _text(page: Path) -> str:
    return re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))


def test_runs_of_several_folders_stand_on_one_page(escala_: Escala, log: Path) -> None:
    first = _simulated(escala_, log, "first", "--scheduler", "easy")
    second = _simulated(escala_, log, "second", "--scheduler", "fcfs")
    page = log.parent / "both.html"
    done = escala_("report", first, second, "--out", page, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["runs"] == ["easy + never", "fcfs + never"]
    assert "first, second: 2 runs" in _text(page)


def test_the_same_policies_of_two_folders_are_told_apart(escala_: Escala, log: Path) -> None:
    folders = [_simulated(escala_, log, name) for name in ("before", "after")]
    done = escala_("report", *folders, "--out", log.parent / "both.html", "--json")
    assert json.loads(done.out)["runs"] == ["before: easy + never", "after: easy + never"]


def test_runs_of_different_jobs_are_refused(escala_: Escala, log: Path) -> None:
    other = log.with_name("other.swf")
    other.write_text("\n".join(log.read_text().splitlines()[:-1]) + "\n")
    first, second = _simulated(escala_, log, "first"), _simulated(escala_, other, "second")
    page = log.parent / "both.html"
    done = escala_("report", first, second, "--out", page)
    assert done.status == 2 and "same workload" in done.err and done.err.count("\n") == 1
    assert not page.exists()


def test_the_page_of_several_folders_lies_here_and_replaces_nothing(
    escala_: Escala, log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = [_simulated(escala_, log, name) for name in ("first", "second")]
    monkeypatch.chdir(tmp_path)
    assert escala_("report", *folders).status == 0
    assert (tmp_path / "report.html").exists()
    assert escala_("report", *folders).status == 2
    assert escala_("report", *folders, "--force").status == 0


def test_results_with_their_page_beside_them_can_be_written_again(escala_: Escala, log: Path) -> None:
    out = _simulated(escala_, log, "out")
    assert escala_("report", out).status == 0
    _simulated(escala_, log, "out")
    assert not (out / "report.html").exists(), "the page was of the results before"
    (out / "report.html").write_text("<html>my own notes</html>")
    refused = escala_("simulate", log, "--platform", "4x1:grid5000", "--out", out)
    assert refused.status == 2 and "report.html" in refused.err


def test_an_evaluation_has_a_page(escala_: Escala, tmp_path: Path) -> None:
    folder = _evaluation(tmp_path / "judged")
    done = escala_("report", folder)
    assert done.status == 0, done.err
    text = _text(folder / "report.html")
    assert "better under two (−10.0" in text and "12 days of log.swf, after the first 4" in text
    assert "episodes are few" not in text
    few = _evaluation(tmp_path / "few", 3)
    assert escala_("report", few).status == 0
    assert "3 episodes are few" in _text(few / "report.html")


def test_an_evaluation_has_a_part_for_operators(escala_: Escala, tmp_path: Path) -> None:
    """36 MJ a day are 10 kWh: the second policy saves one each day."""
    folder = _evaluation(tmp_path / "judged")
    assert escala_("report", folder, "--price", "0.2", "--currency", "EUR", "--carbon", "100").status == 0
    text = " ".join(_text(folder / "report.html").split())
    assert "For the operator: energy, waits, and a year of such days" in text
    assert "two 3 287 365.2 73.05 36.52" in text, "kWh, saved kWh, EUR, kg CO2"


def test_several_evaluations_have_a_part_for_operators_each(escala_: Escala, tmp_path: Path) -> None:
    folders = [_evaluation(tmp_path / name) for name in ("monday", "tuesday")]
    assert escala_("report", *folders, "--carbon", "100", "--out", tmp_path / "both.html").status == 0
    text = _text(tmp_path / "both.html")
    assert "monday: for the operator" in text and "tuesday: for the operator" in text


def test_an_old_evaluation_has_a_page_and_says_what_it_lacks(escala_: Escala, tmp_path: Path) -> None:
    folder = _evaluation(tmp_path / "old", of_days=())
    assert escala_("report", folder).status == 0
    text = _text(folder / "report.html")
    assert "For the operator" not in text and "evaluate again" in text
    (folder / DAYS).unlink()
    assert escala_("report", folder).status == 0
    (folder / DAYS).write_text("a,b\n1,2,3\n")
    refused = escala_("report", folder)
    assert refused.status == 2 and refused.err.count("\n") == 1


def test_no_price_is_beyond_any_and_no_currency_is_a_text(escala_: Escala, log: Path) -> None:
    for option in (["--price", "1e300"], ["--price", "1", "--currency", "<b>" * 100]):
        refused = escala_("report", log, *option)
        assert refused.status == 2 and option[-2] in refused.err and len(refused.err) <= 501


@pytest.mark.parametrize("option", [["--price", "0.2"], ["--carbon", "100"], ["--currency", "EUR"]])
def test_what_cannot_be_priced_is_refused_in_one_line(escala_: Escala, log: Path, option: list[str]) -> None:
    old, run = _evaluation(log.parent / "old", of_days=()), _simulated(escala_, log, "run", "--platform", "4x1:none")
    for folder in (old, run, _study(log.parent / "study")):
        refused = escala_("report", folder, *option)
        assert refused.status == 2 and refused.err.count("\n") == 1, refused.err
        assert ("--price" if option[0] == "--currency" else "power profile") in refused.err
        assert not (folder / "report.html").exists()


def test_a_study_has_a_page_with_its_claims_and_figures(escala_: Escala, tmp_path: Path) -> None:
    folder = _study(tmp_path / "study")
    done = escala_("report", folder)
    assert done.status == 0, done.err
    html, text = (folder / "report.html").read_text(), _text(folder / "report.html")
    told = (
        "Of 1 figures that the paper prints 0 are reproduced or bettered, 1 are not. Of 4 claims 1 meet our own "
        "aim, 1 do not; the others "
    )
    told += "have none, or it cannot be told. 1 could not be measured. Left out of this run: not done: y."
    assert told in text and "Forty days, drawn by lot." in text
    assert "−25.0" in text and "[−30.0, −20.0]" in text and "x.less" in text, "a relative change in per cent"
    assert "−0" not in text.replace("−0.", ""), "noise is zero"
    assert html.count("<svg") == 1 and "currentColor" in html


def test_an_evaluation_joins_the_runs_and_two_of_them_are_parts(escala_: Escala, log: Path) -> None:
    run = _simulated(escala_, log, "run")
    judged = [_evaluation(log.parent / name) for name in ("monday", "tuesday")]
    page = log.parent / "all.html"
    assert escala_("report", run, *judged, "--out", page).status == 0
    text = _text(page)
    assert (
        "monday: comparison over episodes" in text and "tuesday: comparison over episodes" in text and "Metrics" in text
    )


@pytest.mark.parametrize(("make", "part"), [(_evaluation, JUDGED), (_study, "claims.json"), (_study, "manifest.json")])
def test_what_is_not_whole_is_refused_in_one_line(escala_: Escala, tmp_path: Path, make: object, part: str) -> None:
    folder = make(tmp_path / "broken")  # type: ignore[operator]
    (folder / part).write_text("{")
    done = escala_("report", folder)
    assert done.status == 2 and "broken" in done.err and done.err.count("\n") == 1, done.err
    assert not (folder / "report.html").exists()


def test_a_folder_with_a_page_of_its_verb_is_refused_with_that_page(escala_: Escala, log: Path) -> None:
    campaign = log.parent / "campaign.toml"
    campaign.write_text(f'logs = ["{log}"]\nplatforms = ["64x1"]\nschedulers = ["fcfs"]\n')
    folder = log.parent / "found"
    assert escala_("campaign", campaign, "--out", folder, "--on", "local:1").status == 0
    done = escala_("report", folder)
    assert (done.status, done.err) == (2, f"error: {folder}: has its page already: {folder / 'index.html'}\n")
    assert "holds no saved results; give" in escala_("report", log.parent).err


def test_a_study_with_the_verdicts_of_an_earlier_version_is_refused_in_one_line(
    escala_: Escala, tmp_path: Path
) -> None:
    folder = _study(tmp_path / "study")
    claims = json.loads((folder / "claims.json").read_text())
    for claim in claims:
        claim["holds"] = claim.pop("meets_aim")
        del claim["reproduces"]
    (folder / "claims.json").write_text(json.dumps(claims))
    done = escala_("report", folder)
    assert (
        done.status == 2
        and done.err.startswith(f"error: {folder}: claims.json is of an earlier version")
        and done.err.count("\n") == 1
    ), done.err
    assert not (folder / "report.html").exists()


def test_the_saved_comparison_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = _evaluation(tmp_path / "judged")
    table = read_judged(folder)
    assert table.filter(pl.col("policy") == "two")["change"].item() == pytest.approx(-0.1)
    assert table.filter(pl.col("policy") == "one")["change"].item() is None


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "{", '{"kind": "agent", "format": 1}', '{"kind": "evaluation"}', '{"kind": "study"}', "\x00"],
)
def test_damaged_folders_are_refused_in_one_line_by_whoever_reads_them(
    escala_: Escala, log: Path, content: str
) -> None:
    folder = log.with_name("saved")
    folder.mkdir()
    (folder / "manifest.json").write_text(content)
    for name in ("weights.pt", "weights.npz", "claims.json", "episodes.csv", "jobs.parquet"):
        (folder / name).write_text("[" * 50_000)
    calls = (["report", folder], ["evaluate", folder, log], ["export", folder, "--out", "other"])
    calls += (["render", folder, "--workload", log, "--out", "x.gif"],)
    calls += tuple(
        ["simulate", log, "--platform", "4x1:grid5000", f"--{role}", f"agent:{folder}"]
        for role in ("scheduler", "shutdown")
    )
    for arguments in calls:
        done = escala_(*arguments)
        assert done.status == 2 and str(folder) in done.err and done.err.count("\n") == 1, (arguments, done.err)
