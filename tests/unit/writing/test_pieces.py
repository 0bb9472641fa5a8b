"""Pieces of a long run: found again by the same request, forgotten by any other; work folders that no run made, and
files half written."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from pathlib import Path

import pytest

from escala.errors import EscalaError
from escala.writing import Pieces, claimed, output_file, output_folder, write_whole
from escala.writing import folder as folders
from escala.writing.stale import remove_stale, stale


def _never() -> list[float]:
    raise AssertionError("was kept")


def test_a_piece_is_found_by_the_same_request_and_by_no_other(tmp_path: Path) -> None:
    work = tmp_path / "new"
    work.mkdir()
    made = Pieces(work, {"seed": 1}).value("a", lambda: [0.1, math.inf, 1e-17])
    (work / "half.csv").touch()
    again = Pieces(work, {"seed": 1})
    assert not list(work.iterdir()) and again.value("a", _never) == made and again.found == {"a"}
    assert again.value("b", lambda: [2.0]) == [2.0] and again.done == {"a", "b"}
    other = Pieces(work, {"seed": 2})
    assert other.value("a", lambda: [3.0]) == [3.0] and not other.found
    assert Pieces(work, {"seed": 1}).value("a", lambda: [4.0]) == [4.0]


def test_a_piece_that_is_not_whole_is_none(tmp_path: Path) -> None:
    work = tmp_path / "new"
    work.mkdir()

    def half(path: Path, value: list[float]) -> None:
        path.write_text("[")
        raise KeyboardInterrupt

    pieces = Pieces(work, {})
    try:
        pieces.file("a", lambda: [1.0], half, lambda path: [5.0])
    except KeyboardInterrupt:
        assert Pieces(work, {}).value("a", lambda: [2.0]) == [2.0]


def test_a_folder_that_is_shared_keeps_the_pieces_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes that finish the same piece the first keeps it; what one has kept the other waits for."""
    work = tmp_path / "new"
    work.mkdir()
    first, task, other = (
        Pieces(work, {}),
        Pieces(work, {}, shared=True),
        Pieces(work, {"of": "another log"}, shared=True),
    )
    assert first.key("a") == task.key("a") != other.key("a")

    def write(path: Path, value: float) -> None:
        path.mkdir()
        (path / "value").write_text(str(value))

    def late(path: Path, value: float) -> None:
        write(path, value)
        with monkeypatch.context() as another:
            another.setattr(os, "getpid", lambda: 1)
            task.file("a", lambda: 1.0, write, lambda path: 0.0)

    assert first.file("a", lambda: 2.0, late, lambda path: 0.0) == 2.0
    first.wait("a")
    assert Pieces(work, {}).file("a", lambda: 3.0, write, lambda path: float((path / "value").read_text())) == 1.0
    assert other.value("b", lambda: [3.0]) == [3.0] and task.has("a"), "nothing is forgotten"
    assert not list(tmp_path.glob("half-*"))


def test_without_a_folder_nothing_is_kept() -> None:
    pieces = Pieces(None, {})
    assert (
        pieces.value("a", lambda: 1) == 1
        and pieces.value("a", lambda: 2) == 2
        and pieces.growing("b") is None
        and not pieces.done
    )


@pytest.mark.parametrize(
    "name",
    [
        "verb",
        "verb=",
        "journal.json",
        "new",
        "kept",
        "old",
        "kept/note",
        "kept/note=",
        "new/piece",
        "half-1-x",
        "thesis",
        "arrays",
        "arrays/0.found",
    ],
)
@pytest.mark.parametrize("doctor", [False, True])
def test_a_work_folder_with_links_out_of_it_is_no_runs(tmp_path: Path, name: str, doctor: bool) -> None:
    """A link, or a second name (=) of somebody's file, where a run would write, read or remove: one line, and nothing
    is touched."""
    precious, place = tmp_path / "precious", folders.partial_of(tmp_path / "out")
    (place / "new").mkdir(parents=True)
    (place / "kept" / "piece").mkdir(parents=True)
    (place / "arrays").mkdir()
    (place / "verb").write_text("compare")
    odd = place / name.rstrip("=")
    folder = name in ("new", "kept", "old", "new/piece", "half-1-x", "arrays")
    if folder:
        precious.mkdir()
    (precious / "thesis" if folder else precious).write_text("x")
    if name == "thesis":
        odd.write_text("x")
    else:
        for there in [odd] if odd.exists() else []:
            shutil.rmtree(there) if there.is_dir() else there.unlink()
        os.link(precious, odd) if name.endswith("=") else odd.symlink_to(precious)
    before = sorted((path, path.is_symlink(), path.is_file() and path.read_text()) for path in tmp_path.rglob("*"))
    if doctor:
        assert stale(tmp_path) == [] == remove_stale(tmp_path)
    else:
        with (
            pytest.raises(EscalaError, match="no run of Escala made it"),
            output_folder(tmp_path / "out", "compare", keeps=True),
        ):
            raise AssertionError("the work began")
    assert (
        sorted((path, path.is_symlink(), path.is_file() and path.read_text()) for path in tmp_path.rglob("*")) == before
    )


def test_a_half_written_file_is_never_written_through_a_link(tmp_path: Path) -> None:
    precious, target = tmp_path / "precious", tmp_path / "log.json"
    precious.write_text("x")
    (tmp_path / f".part-{os.getpid()}-log.json").symlink_to(precious)
    with pytest.raises(EscalaError, match="cannot be written"), output_file(target):
        raise AssertionError("the work began")
    with pytest.raises(OSError):
        write_whole(target, "y")
    assert precious.read_text() == "x" and not target.exists()


def test_half_written_files_of_killed_runs_are_named_and_removed(tmp_path: Path) -> None:
    half, other, linked = tmp_path / ".part-1234567-log.swf", tmp_path / ".part-x-log.swf", tmp_path / ".part-9-link"
    half.write_text("half")
    other.write_text("somebody's")
    linked.symlink_to(other)
    with output_file(tmp_path / "live.swf") as work:
        assert stale(tmp_path) == [half]
        assert remove_stale(tmp_path) == [half] and work.exists()
    assert not half.exists() and other.exists() and linked.is_symlink()


def test_a_folder_that_grows_is_not_written_through_links_out_of_it(tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "out"
    precious.write_text("x")
    (folder / "seed-0").mkdir(parents=True)
    (folder / "latest").symlink_to("seed-0")
    with claimed(folder):
        pass
    (folder / "seed-0" / "checkpoint.pt").symlink_to(precious)
    with pytest.raises(EscalaError, match="link out of the folder"), claimed(folder):
        raise AssertionError("the work began")


@pytest.mark.parametrize("ended", [True, False])
def test_pieces_that_were_being_removed_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """A run that stops while it removes pieces, at its end or for those of another request: the next one makes them
    anew."""
    begun = list[str]()

    def write(path: Path, request: str) -> None:
        begun.append(request)
        path.mkdir()
        for name in "ab":
            (path / name).touch()

    def run(request: str, whole: bool = True) -> None:
        with output_folder(tmp_path / "out", "test", force=True, keeps=True) as work:
            Pieces(work, request).file(
                "one", lambda: request, write, lambda path: str((path / "a").read_text() + (path / "b").read_text())
            )
            if not whole:
                raise KeyboardInterrupt

    def half(path: Path, **_: object) -> None:
        if path.exists():
            for one in list(path.rglob("b")):
                one.unlink()
            raise OSError

    if not ended:
        with pytest.raises(KeyboardInterrupt):
            run("first", whole=False)
    with monkeypatch.context() as stopped, contextlib.suppress(OSError):
        stopped.setattr(shutil, "rmtree", half)
        run("first" if ended else "other")
    assert (tmp_path / ".out.partial").exists()
    run("first")
    assert begun == ["first", "first"] and os.listdir(tmp_path) == ["out"]
