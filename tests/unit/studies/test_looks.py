"""Looks at held-out data are counted in the study's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from escala.errors import EscalaError
from escala.studies.lab.looks import FILE, look, looks
from escala.studies.verdicts import PAPERS

KEPT = Path(__file__).resolve().parents[3] / "docs" / "studies"


def test_a_look_is_counted_and_the_same_run_again_is_none(tmp_path: Path) -> None:
    assert looks(tmp_path) == []
    assert look(tmp_path, "study run, scale smoke", again=False) == 1
    assert look(tmp_path, "study run, scale smoke", again=False) == 1
    assert look(tmp_path, "study replay", ["b", "a"]) == 2 and look(tmp_path, "study replay", ["b", "a"]) == 3
    assert [one["what"] for one in looks(tmp_path)] == ["study run, scale smoke", "study replay", "study replay"]
    assert looks(tmp_path)[1]["agents"] == ["b", "a"] and len(looks(tmp_path)[1]["on"]) == 10


def test_a_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps([{"what": "no day"}]))
    with pytest.raises(EscalaError, match=r"looks\.json: cannot be read as looks"):
        look(tmp_path, "study replay")


@pytest.mark.parametrize("study", PAPERS)
def test_every_kept_study_counts_its_looks(study: str) -> None:
    assert looks(KEPT / study)
