"""Output appears whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from escala.cli.folder import output_file, output_folder
from escala.errors import EscalaError


def _ours(folder: Path, text: str = "old") -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"escala": "0.1.0", "verb": "compare", "files": ["manifest.json", "table.csv"]}))
    (folder / "table.csv").write_text(text)
    return folder


def test_the_folder_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with output_folder(target, "compare") as work:
        assert work is not None
        (work / "a.txt").write_text("a")
        assert not target.exists()
    assert sorted(path.name for path in target.iterdir()) == ["a.txt", "manifest.json"]
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_no_target_is_no_folder() -> None:
    with output_folder(None, "compare") as work:
        assert work is None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, EscalaError])
def test_a_failed_run_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = _ours(tmp_path / "out")
    with pytest.raises(error), output_folder(target, "compare") as work:
        assert work is not None
        (work / "table.csv").write_text("new, half")
        raise error
    assert (target / "table.csv").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_our_own_output_is_replaced_whole(tmp_path: Path) -> None:
    target = _ours(tmp_path / "out")
    with output_folder(target, "compare") as work:
        assert work is not None
        (work / "b.txt").write_text("b")
    assert sorted(path.name for path in target.iterdir()) == ["b.txt", "manifest.json"]
    assert list(tmp_path.iterdir()) == [target]
    with output_folder(target, "compare"):  # what it wrote itself it may replace again
        pass


@pytest.mark.parametrize(("verb", "added", "word"), [("simulate", None, "escala compare wrote"), ("compare", "notes.txt", "'notes.txt'")])
def test_output_of_another_verb_and_notes_put_beside_it_are_kept(tmp_path: Path, verb: str, added: str | None, word: str) -> None:
    target = _ours(tmp_path / "out")
    if added:
        (target / added).write_text("mine")
    with pytest.raises(EscalaError, match=word), output_folder(target, verb):
        pytest.fail("the work has begun")
    assert (target / "table.csv").read_text() == "old"


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "thesis"
    target.mkdir()
    (target / "chapter1.tex").write_text("years of work")
    with pytest.raises(EscalaError, match=r"did not write.*--force"), output_folder(target, "compare"):
        pytest.fail("the work has begun")
    assert (target / "chapter1.tex").exists()
    with output_folder(target, "compare", force=True):
        pass
    assert not (target / "chapter1.tex").exists()


def test_an_empty_folder_may_be_the_target(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    with output_folder(target, "compare") as work:
        assert work is not None
        (work / "a.txt").write_text("a")
    assert (target / "a.txt").exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(EscalaError, match="is a file"), output_folder(tmp_path / "out", "compare"):
        pytest.fail("the work has begun")


def test_an_unwritable_place_is_refused_before_the_work() -> None:
    with pytest.raises(EscalaError, match="cannot be written"), output_folder(Path("/proc/nowhere/out"), "compare"):
        pytest.fail("the work has begun")


def test_the_folder_has_the_usual_rights(tmp_path: Path) -> None:
    with output_folder(tmp_path / "out", "compare"):
        pass
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "log.swf.gz"
    with output_file(target) as work:
        assert work.suffixes == [".swf", ".gz"]
        work.write_text("x")
        assert not target.exists()
    assert target.read_text() == "x"
    assert os.listdir(tmp_path) == ["log.swf.gz"]
    with pytest.raises(EscalaError, match="exists already"), output_file(target):
        pytest.fail("the work has begun")


def test_a_failed_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), output_file(tmp_path / "log.swf") as work:
        work.write_text("half")
        raise RuntimeError
    assert not os.listdir(tmp_path)
