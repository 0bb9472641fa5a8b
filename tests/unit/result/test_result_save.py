"""Results on disk: whole or not at all, and the same when read back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala import result as module
from escala.errors import EscalaError
from escala.writing import moves
from tests.unit.result.test_result_totals import jobs, mixed_platform


@pytest.fixture(scope="module")
def run() -> escala.Result:
    return escala.simulate(jobs(1, 60), mixed_platform(), scheduler="easy", shutdown="timeout:20", start_off=True)


TABLES = ("jobs", "totals", "nodes", "power", "allocations")
BATSIM = {
    "jobs.csv",
    "schedule.csv",
    "machine_states.csv",
    "consumed_energy.csv",
    "pstate_changes.csv",
    "manifest.json",
}
FILES = {*(f"{name}.parquet" for name in TABLES), "manifest.json", "summary.json"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_round_trip(run: escala.Result, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "deep" / "out")
    assert folder == tmp_path / "deep" / "out" and names(folder) == FILES and names(folder.parent) == {"out"}
    back = escala.Result.load(folder)
    for name in TABLES:
        assert getattr(back, name).equals(getattr(run, name)), name
    assert back.manifest == {**run.manifest, "left_out": []} and back.platform == run.platform
    assert back.summary() == pytest.approx(run.summary(), nan_ok=True)
    assert json.loads((folder / "summary.json").read_text()) == pytest.approx(run.summary(), nan_ok=True)
    again = back.save(tmp_path / "again")
    for name in TABLES:
        assert (again / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


def test_summary_without_values_is_valid_json(tmp_path: Path) -> None:
    """No job ends before the limit: means are NaN, in JSON null."""
    result = escala.simulate(jobs(1, 5), mixed_platform(), until_s=1.0)
    folder = result.save(tmp_path / "out")
    text = (folder / "summary.json").read_text()
    assert "NaN" not in text and json.loads(text)["mean_wait_s"] is None


def test_saving_replaces_an_older_result(run: escala.Result, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "out")
    assert run.save(folder) == folder and names(folder) == FILES
    assert escala.Result.load(folder).save(folder) == folder  # onto itself: tables are read before they go
    assert escala.Result.load(folder).nodes.equals(run.nodes)


WRITERS = {"save": lambda run, folder: run.save(folder), "export": lambda run, folder: run.export("batsim", folder)}


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest) -> Any:
    return WRITERS[request.param]


def test_an_empty_folder_may_be_used(run: escala.Result, write: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert len(names(write(run, tmp_path / "out"))) >= 5


@pytest.mark.parametrize("foreign", ["thesis.tex", "manifest.json", "schedule.csv"])
def test_foreign_folders_are_refused(run: escala.Result, write: Any, foreign: str, tmp_path: Path) -> None:
    """Also those that hold a file of such a name, but none that Escala wrote."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / foreign).write_text('{"format": 1}')
    with pytest.raises(EscalaError, match=r"did not write|keeps no hashes") as caught:
        write(run, folder)
    assert "\n" not in str(caught.value)
    assert names(folder) == {foreign} and names(tmp_path) == {"out"}


def test_batsim_s_own_files_are_never_overwritten(run: escala.Result, tmp_path: Path) -> None:
    folder = run.export("batsim", tmp_path / "out")
    run.export("batsim", folder)  # Escala's own may be replaced
    table = (folder / "schedule.csv").read_text()
    (folder / "schedule.csv").write_text(table.replace("escala-", ""))
    with pytest.raises(EscalaError, match=r"'schedule\.csv', which was changed"):
        run.export("batsim", folder)


def test_a_result_with_anything_else_in_it_is_not_replaced(run: escala.Result, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "out")
    (folder / "decisions.parquet").touch()
    with pytest.raises(
        EscalaError, match=r"'decisions\.parquet', which escala simulate did not write there; name another folder$"
    ):
        run.save(folder)


def test_a_file_in_the_way(run: escala.Result, write: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(EscalaError, match="is a file"):
        write(run, tmp_path / "out")
    with pytest.raises(EscalaError, match="cannot be written"):
        write(run, tmp_path / "out" / "below")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(run: escala.Result, write: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(EscalaError, match="cannot be written"):
            write(run, tmp_path / "out")
    finally:
        tmp_path.chmod(0o700)


def test_no_room_at_all(run: escala.Result, write: Any) -> None:
    """A kernel file system takes no folders, not even from root."""
    with pytest.raises(EscalaError, match=r"cannot be written .*name a folder") as caught:
        write(run, Path("/proc/escala/out"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("breach", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bug")])
@pytest.mark.parametrize("before", [False, True])
def test_a_failure_in_the_middle_leaves_things_as_they_were(
    run: escala.Result, write: Any, breach: BaseException, before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    if before:
        write(run, folder)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()} if before else None

    calls = 0

    def fail(self: pl.DataFrame, *args: Any, **kwargs: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise breach
        Path(args[0]).write_text("half")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(EscalaError if isinstance(breach, OSError) else type(breach)):
        write(run, folder)
    assert calls == 3 and names(tmp_path) == ({"out"} if before else set())
    if before:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_failed_swap_puts_the_old_folder_back(
    run: escala.Result, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(run, tmp_path / "out")
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    rename, calls = os.rename, 0

    def second_fails(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(moves, "_renameat2", lambda: None)  # as where the system knows no exchange
    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(EscalaError, match="input/output error"):
        write(run, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept and names(tmp_path) == {"out"}


def test_permissions_follow_the_umask(run: escala.Result, write: Any, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert write(run, tmp_path / "out").stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(before)


def damaged(folder: Path, change: str) -> None:
    if change == "no manifest":
        (folder / "manifest.json").unlink()
    elif change == "half a manifest":
        (folder / "manifest.json").write_text((folder / "manifest.json").read_text()[:99])
    elif change == "a list":
        (folder / "manifest.json").write_text("[1]")
    elif change == "other format":
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    elif change == "no jobs":
        (folder / "jobs.parquet").unlink()
    else:
        (folder / "totals.parquet").write_bytes((folder / "totals.parquet").read_bytes()[:50])


@pytest.mark.parametrize(
    "change", ["no manifest", "half a manifest", "a list", "other format", "no jobs", "half a table"]
)
def test_loading_something_else(run: escala.Result, change: str, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "out")
    damaged(folder, change)
    with pytest.raises(EscalaError, match=r"written by simulate|run it again") as caught:
        escala.Result.load(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


def test_a_missing_table_is_named_when_it_is_asked_for(run: escala.Result, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "out")
    (folder / "nodes.parquet").unlink()
    back = escala.Result.load(folder)
    assert back.power.equals(run.power)
    with pytest.raises(EscalaError, match="nodes"):
        _ = back.nodes


def test_giants_keep_their_jobs(run: escala.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of nodes that are too large to make are left out, named in the manifest, and refused in one line; saving
    such a result again works too."""
    large = escala.simulate(jobs(1, 60), mixed_platform())
    monkeypatch.setattr(module, "TOO_MANY_INTERVALS", 10)
    with pytest.raises(EscalaError, match="would have some"):
        _ = large.nodes
    with pytest.raises(EscalaError, match="rows"):
        large.export("batsim", tmp_path / "export")
    folder = large.save(tmp_path / "out")
    assert json.loads((folder / "manifest.json").read_text())["left_out"] == ["nodes", "power", "allocations"]
    back = escala.Result.load(folder)
    assert back.jobs.equals(large.jobs) and back.summary() == pytest.approx(large.summary(), nan_ok=True)
    with pytest.raises(EscalaError, match="too large"):
        _ = back.power
    assert names(back.save(tmp_path / "again")) == names(folder)


def test_unknown_export(run: escala.Result, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="use 'batsim'"):
        run.export("excel", tmp_path / "out")
    assert names(run.export("batsim", tmp_path / "out")) == BATSIM
