"""Output appears whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest

import escala
from escala.errors import EscalaError
from escala.reading import read_json
from escala.writing import folder as folders
from escala.writing import moves, output_file, output_folder, sealed_text, settling
from escala.writing.places import check_replaceable
from tests.unit.writing.outputs import ours


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
    target = ours(tmp_path / "out")
    with pytest.raises(error), output_folder(target, "compare") as work:
        assert work is not None
        (work / "table.csv").write_text("new, half")
        raise error
    assert (target / "table.csv").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_our_own_output_is_replaced_whole(tmp_path: Path) -> None:
    target = ours(tmp_path / "out")
    with output_folder(target, "compare") as work:
        assert work is not None
        (work / "b.txt").write_text("b")
    assert sorted(path.name for path in target.iterdir()) == ["b.txt", "manifest.json"]
    assert list(tmp_path.iterdir()) == [target]
    with output_folder(target, "compare"):  # what it wrote itself it may replace again
        pass


@pytest.mark.parametrize(
    ("verb", "added", "word"), [("simulate", None, "escala compare wrote"), ("compare", "notes.txt", "'notes.txt'")]
)
def test_output_of_another_verb_and_notes_put_beside_it_are_kept(
    tmp_path: Path, verb: str, added: str | None, word: str
) -> None:
    target = ours(tmp_path / "out")
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
    assert (tmp_path / "thesis.kept-1" / "chapter1.tex").read_text() == "years of work"


def test_force_deletes_only_what_escala_wrote(tmp_path: Path) -> None:
    target = ours(tmp_path / "out")
    (target / "more").mkdir()
    (target / "more" / "notes.txt").write_text("mine")
    with output_folder(target, "compare", force=True):
        pass
    kept = tmp_path / "out.kept-1"
    assert sorted(path.name for path in kept.rglob("*") if path.is_file()) == ["notes.txt"]
    target = ours(tmp_path / "edited")
    (target / "table.csv").write_text("edited by hand")
    with output_folder(target, "compare", force=True):
        pass
    assert (tmp_path / "edited.kept-1" / "table.csv").read_text() == "edited by hand"
    with output_folder(ours(tmp_path / "plain"), "compare", force=True):
        pass
    assert not list(tmp_path.glob("plain.kept-*"))


@pytest.mark.parametrize("mark", [".git", ".hg"])
def test_a_repository_is_never_replaced(tmp_path: Path, mark: str) -> None:
    (tmp_path / "project" / mark).mkdir(parents=True)
    with (
        pytest.raises(EscalaError, match="is a repository"),
        output_folder(tmp_path / "project", "compare", force=True),
    ):
        pytest.fail("the work has begun")


def test_neither_python_nor_escala_nor_what_lies_below_the_root_is_replaced() -> None:
    prefix, package = Path(os.path.realpath(sys.prefix)), Path(os.path.realpath(escala.__file__)).parent
    for place, why in (
        (prefix, "Python"),
        (package, "Escala"),
        (package.parent, "Escala"),
        (Path("/usr"), "never replaced"),
    ):
        with pytest.raises(EscalaError, match=why):
            check_replaceable(place)


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


def test_a_changed_file_of_our_own_is_kept(tmp_path: Path) -> None:
    target = ours(tmp_path / "out")
    (target / "table.csv").write_text("my notes")
    with (
        pytest.raises(EscalaError, match=r"'table.csv', which was changed since escala compare wrote it"),
        output_folder(target, "compare"),
    ):
        pytest.fail("the work has begun")
    manifest = json.loads((target / "manifest.json").read_text())
    (target / "manifest.json").write_text(json.dumps(manifest | {"notes": "mine"}))
    with pytest.raises(EscalaError, match=r"manifest.json that was changed"), output_folder(target, "compare"):
        pytest.fail("the work has begun")
    assert (target / "table.csv").read_text() == "my notes"


def test_a_manifest_that_lists_foreign_names_does_not_give_them_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    listed = {"escala": "0.1.0", "verb": "compare", "files": ["manifest.json", "thesis.tex"]}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(listed))
    with pytest.raises(EscalaError, match="keeps no hashes"), output_folder(tmp_path / "out", "compare"):
        pytest.fail("the work has begun")


def test_the_page_of_a_report_may_go_but_not_one_with_notes(tmp_path: Path) -> None:
    target = ours(tmp_path / "out")
    (target / "report.html").write_text(sealed_text("<html>page</html>\n"))
    ours(target)
    assert not (target / "report.html").exists()
    (target / "report.html").write_text(sealed_text("<html>page</html>\n").replace("page", "page, with notes"))
    with pytest.raises(EscalaError, match=r"'report\.html'"), output_folder(target, "compare"):
        pytest.fail("the work has begun")


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("before", ["nothing", "empty", "ours", "forced"])
def test_what_appears_during_the_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(moves, "_renameat2", lambda: None)
    target = tmp_path / "out"
    if before == "empty":
        target.mkdir()
    if before in ("ours", "forced"):
        ours(target)
    with (
        pytest.raises(EscalaError, match=r"the output of this run is in .*out\.new-1"),
        output_folder(target, "compare", force=True) as work,
    ):
        assert work is not None
        (work / "table.csv").write_text("new")
        target.mkdir(exist_ok=True)
        (target / "precious").write_text("mine")
    assert (target / "precious").read_text() == "mine"
    assert (tmp_path / "out.new-1" / "table.csv").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.new-1"]


@pytest.mark.parametrize("exchange", [True, False])
def test_what_appears_at_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool) -> None:
    """Between the last look and the exchange."""
    target = ours(tmp_path / "out")
    swap = settling._swap

    def late(*given: Path) -> None:
        (target / "precious").write_text("mine")
        swap(*given)

    def late_exchange(one: Path, other: Path, real: object = moves.exchange) -> bool:
        if not (target / "precious").exists() and not (one / "precious").exists():
            (target / "precious").write_text("mine")
        return exchange and real(one, other)  # type: ignore[operator]

    monkeypatch.setattr(settling, "_swap", late)
    monkeypatch.setattr(moves, "exchange", late_exchange)
    with pytest.raises(EscalaError, match="the output of this run is in") if exchange else contextlib.nullcontext():
        ours(target, "new")
    assert [path.read_text() for path in tmp_path.rglob("precious")] == ["mine"]
    assert "new" in [path.read_text() for path in tmp_path.rglob("table.csv")]


def test_a_file_that_appears_during_the_run_stays(tmp_path: Path) -> None:
    for there in (False, True):
        target = tmp_path / f"{there}.swf"
        if there:
            target.write_text("old")
        with pytest.raises(EscalaError, match="the output is in"), output_file(target, force=there) as work:
            work.write_text("new")
            target.write_text("mine, just now")
        assert target.read_text() == "mine, just now" and (tmp_path / f"{there}.swf.new-1").read_text() == "new"


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("which", ["home", "above home", "root", "here", "above"])
def test_precious_folders_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, force: bool
) -> None:
    for name in ("users/home", "work/here"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "users" / "home"))
    monkeypatch.chdir(tmp_path / "work" / "here")
    places = {
        "home": Path.home(),
        "above home": tmp_path / "users",
        "root": Path("/"),
        "here": Path("."),
        "above": Path(".."),
    }
    with (
        pytest.raises(EscalaError, match=r"never replaced|cannot be replaced|cannot be written"),
        output_folder(places[which], "compare", force=force),
    ):
        pytest.fail("the work has begun")
    assert not list(tmp_path.rglob(".*partial*"))


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "bigdisk" / "out").mkdir(parents=True)
    (tmp_path / "out").symlink_to(tmp_path / "bigdisk" / "out")
    for text in ("one", "two"):
        ours(tmp_path / "out", text)
        assert (tmp_path / "out").is_symlink() and (tmp_path / "bigdisk" / "out" / "table.csv").read_text() == text
    (tmp_path / "log.swf").symlink_to(tmp_path / "bigdisk" / "real.swf")
    (tmp_path / "bigdisk" / "real.swf").write_text("old")
    with output_file(tmp_path / "log.swf", force=True) as work:
        work.write_text("new")
    assert (tmp_path / "log.swf").is_symlink() and (tmp_path / "bigdisk" / "real.swf").read_text() == "new"


def test_a_link_that_leads_nowhere_is_refused_before_the_work(tmp_path: Path) -> None:
    """Nor is the place made that it leads to, where the target lies below the link: a disk may not be mounted."""
    (tmp_path / "out").symlink_to(tmp_path / "unmounted" / "out")
    for target in (tmp_path / "out", tmp_path / "out" / "deep" / "run"):
        for enter in (partial(output_folder, verb="compare"), output_file, folders.claimed):
            with pytest.raises(EscalaError, match=r"is a link to .*unmounted/out, which is not there"), enter(target):
                pytest.fail("the work has begun")
    assert not (tmp_path / "unmounted").exists()


def test_links_in_an_old_output_are_not_followed_when_it_goes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("mine")
    target = ours(tmp_path / "out")
    (target / "data").symlink_to(tmp_path / "data")
    with output_folder(target, "compare", force=True):
        pass
    assert (tmp_path / "data" / "precious").read_text() == "mine" and not (target / "data").exists()


def test_two_runs_on_one_target_are_told_at_the_start(tmp_path: Path) -> None:
    for claim in (lambda: output_folder(tmp_path / "out", "compare"), lambda: folders.claimed(tmp_path / "agent")):
        with claim(), pytest.raises(EscalaError, match="another run writes there now"), claim():
            pytest.fail("the work has begun")
        with claim():
            pass


def test_a_name_that_is_no_text_is_refused_before_the_work(tmp_path: Path) -> None:
    name = tmp_path / os.fsdecode(b"\xff\xfe")
    for output in (output_file(name), output_folder(name, "compare")):
        with pytest.raises(EscalaError, match="UTF-8"), output:
            raise AssertionError("the work began")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_read_is_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text("5")
    read_json(log)
    with pytest.raises(EscalaError, match="that this run reads"), output_file(log, force=True):
        raise AssertionError("the work began")
    late = tmp_path / "late.json"
    late.write_text("6")
    with pytest.raises(EscalaError, match="that this run reads"), output_file(late, force=True) as work:
        work.write_text("other")
        read_json(late)
    assert log.read_text() == "5" and late.read_text() == "6" and len(list(tmp_path.iterdir())) == 2
