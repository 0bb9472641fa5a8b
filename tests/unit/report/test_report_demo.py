"""The page of a demo: written from what lies in its folder, so that it can be written again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from escala.cli.pages import report
from escala.errors import EscalaError
from escala.studies import demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a demo on ten days writes; nothing is trained."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "train", lambda *_: (None, {"trained": False, "why": "Nothing was trained: no time."}))
        log, platform = demo.built_in(days=10)
        findings = demo.run(log, platform)
    where = tmp_path_factory.mktemp("demo")
    demo.write(findings, where)
    return where


def test_the_page_of_a_demo_is_written_again_to_the_byte(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = (folder / "report.html").read_bytes()
    report([folder], tmp_path / "again.html", as_json=True)
    assert (tmp_path / "again.html").read_bytes() == first
    assert json.loads(capsys.readouterr().out)["runs"] == [f"saf + {name}" for name in demo.Settings().shutdowns]
    text = first.decode()
    for words in (
        "grid5000-orion on orion",
        "Comparison over episodes",
        "the days not seen, and a year",
        "Schedulers over the whole log",
        "Energy against never",
    ):
        assert words in text
    assert "Nothing was trained: no time." in text


def test_the_log_is_told_in_few_rows_before_the_figures_of_the_runs(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    log = text[text.index("<h2>The log</h2>") : text.index("<h2>Metrics</h2>")]
    assert log.count("<tr>") < 25
    assert "runtime over walltime p25" not in log


def test_the_parts_of_a_demo_can_be_reported_too(folder: Path, tmp_path: Path) -> None:
    report([folder / "schedulers"], tmp_path / "schedulers.html")
    assert "conservative + never" in (tmp_path / "schedulers.html").read_text()


@pytest.mark.parametrize(
    "part", ["judged.csv", "description.json", "schedulers/table.csv", "shutdowns/manifest.json", "shutdowns/saf + never"]
)
def test_a_demo_that_lacks_a_part_is_refused_in_one_line(folder: Path, tmp_path: Path, part: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    shutil.rmtree(broken / part) if (broken / part).is_dir() else (broken / part).unlink()
    with pytest.raises(EscalaError) as told:
        report([broken], tmp_path / "page.html")
    assert "\n" not in str(told.value) and str(broken) in str(told.value)
    assert not (tmp_path / "page.html").exists()
