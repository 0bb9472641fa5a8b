"""What a run writes into a folder is not taken away by another one that replaces the folder; a full disk is told of the
target."""

from __future__ import annotations

import errno
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.reading import guarded, reading
from escala.workload import read_workload, write_swf
from escala.writing import claimed, output_file, output_folder

LINE = "1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1\n"


@pytest.mark.parametrize("what", ["folder", "deep folder", "file", "growing"])
def test_a_folder_in_which_another_run_works_stays(tmp_path: Path, what: str) -> None:
    target = tmp_path / "T"
    target.mkdir()
    (target / "mine").write_text("mine")
    work: AbstractContextManager[Path | None] = {
        "folder": output_folder(target / "a", "simulate"),
        "deep folder": output_folder(target / "deep" / "a", "simulate"),
        "file": output_file(target / "r.html"),
        "growing": claimed(target / "g"),
    }[what]
    with work as place:
        if place is not None:
            (place / "x" if place.is_dir() else place).write_text("x")
        with (
            pytest.raises(EscalaError, match="another run writes in it now"),
            output_folder(target, "compare", force=True),
        ):
            pass
    if what != "growing":
        assert {"folder": "a", "deep folder": "deep/a", "file": "r.html"}[what] in {
            path.relative_to(target).as_posix() for path in target.rglob("*")
        }
    with output_folder(target, "compare", force=True):  # it is over
        pass


@pytest.mark.parametrize("form", ["file", "folder"])
def test_work_that_was_taken_away_is_told_of_the_target(tmp_path: Path, form: str) -> None:
    target = tmp_path / "T" / "out"
    with (
        pytest.raises(EscalaError, match=r"/T/out: cannot be written \(no such file"),
        output_file(target) if form == "file" else output_folder(target, "compare") as work,
    ):
        assert work is not None
        work.parent.rename(tmp_path / "elsewhere")
        if form == "folder":
            (work / "x").write_text("x")


def full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


POLARS = pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")


@pytest.mark.parametrize("error", [full(), POLARS])
@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_full_disk_is_told_of_the_target(tmp_path: Path, error: Exception, form: str) -> None:
    target = tmp_path / "out"
    with (
        pytest.raises(EscalaError) as caught,
        output_file(target) if form == "file" else output_folder(target, "compare"),
        guarded(tmp_path / "log", "a log of jobs"),
    ):
        raise error
    said = f"{target}: cannot be written (no space left on device): make room on the disk, or name"
    assert str(caught.value).startswith(said) and list(tmp_path.iterdir()) == []


def test_a_full_disk_elsewhere_is_no_fault_of_what_is_read_nor_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LINE)
    for around in (guarded(tmp_path / "log"), reading(tmp_path / "log"), output_file(tmp_path / "out")):
        with pytest.raises(OSError, match="cache") as caught, around:
            raise OSError(errno.ENOSPC, "No space left on device", "/cache/x.nbi")
        assert caught.value.filename == "/cache/x.nbi"


def test_a_log_on_a_full_disk_names_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_text(LINE)
    log = read_workload(tmp_path / "log")

    def none(*_: object, **__: object) -> object:
        raise full()

    for within in (True, False):
        with pytest.raises(EscalaError) as caught, monkeypatch.context() as patched:
            if within:
                with output_file(tmp_path / "x.swf") as aside:
                    patched.setattr(Path, "open", none)
                    write_swf(log, aside)
            else:
                patched.setattr(Path, "open", none)
                write_swf(log, tmp_path / "x.swf")
        assert str(caught.value).startswith(f"{tmp_path / 'x.swf'}: cannot be written (no space left")
