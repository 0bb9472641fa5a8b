"""What a killed run leaves where output goes: the next run ends it, and takes nothing that is not Escala's."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from escala.errors import EscalaError
from escala.writing import folder as folders
from escala.writing import moves, output_file, output_folder, sealed_text, settling
from tests.unit.writing.outputs import ours


def _killed_at(target: Path, where: str, exchange: bool) -> None:
    """A run that ends at once, without any clean-up, at a point of its own."""
    if not exchange:
        moves._renameat2 = lambda: None  # type: ignore[assignment]
    name, after = where.split()
    module = {"exchange": moves, "_swap": settling, "_discard": settling, "move": moves, "rename": os}[name]
    real = getattr(module, name)

    def end(*given: object) -> object:
        if after == "after":
            real(*given)
        os._exit(9)

    setattr(module, name, end)
    with output_folder(target, "compare") as work:
        assert work is not None
        (work / "table.csv").write_text("new")


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize(
    "where", ["exchange before", "exchange after", "_swap before", "_swap after", "_discard before", "rename after"]
)
def test_a_killed_run_is_ended_by_the_next(tmp_path: Path, where: str, exchange: bool) -> None:
    target = ours(tmp_path / "out")
    (tmp_path / "out" / "report.html").write_text(sealed_text("page"))
    run = multiprocessing.get_context("fork").Process(target=_killed_at, args=(target, where, exchange))
    run.start()
    run.join()
    reached = run.exitcode == 9
    assert reached or where.startswith("_swap" if exchange else "nothing") or (exchange and where.startswith("rename"))
    if exchange or not where.startswith("rename"):
        assert (target / "table.csv").read_text() in ("old", "new")
    ours(target, "third")
    assert (target / "table.csv").read_text() == "third"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_half_written_by_a_killed_run_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".part-999999-log.swf").write_text("half")
    with output_file(tmp_path / "log.swf") as work:
        work.write_text("whole")
    assert os.listdir(tmp_path) == ["log.swf"]


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_what_stands_where_the_work_goes_and_is_not_ours_stays(tmp_path: Path, kind: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("x")
    place = folders.partial_of(tmp_path / "out")
    {
        "folder": lambda: precious.rename(place),
        "link": lambda: place.symlink_to(precious),
        "file": lambda: place.write_text("x"),
    }[kind]()
    with pytest.raises(EscalaError, match="no run of Escala made it"), output_folder(tmp_path / "out", "compare"):
        pass
    kept = {"folder": place / "thesis", "link": precious / "thesis", "file": place}[kind]
    assert kept.read_text() == "x" and not (tmp_path / "out").exists()


def test_what_a_killed_clearing_left_is_ours(tmp_path: Path) -> None:
    place = folders.partial_of(tmp_path / "out")
    (place / folders.NEW).mkdir(parents=True)
    (place / folders.NOTE).touch()
    with output_folder(tmp_path / "out", "compare") as work:
        assert work is not None and not any(work.iterdir())
    assert not place.exists()
