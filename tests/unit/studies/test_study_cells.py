"""Studies that are ended from outside."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from escala.engines import on_slurm
from escala.errors import EscalaError
from escala.studies.lab.cells import Cell, Timed, run_cells
from tests.cli.ray_stand_in import StandIn


def _there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc whether a process runs")
def test_a_study_that_is_killed_leaves_no_process_at_work(tmp_path: Path) -> None:
    study = subprocess.Popen([sys.executable, str(Path(__file__).with_name("study_killed.py")), str(tmp_path)])
    end = time.monotonic() + 50
    while not (tmp_path / "working").exists() or not (tmp_path / "working").read_text():
        assert time.monotonic() < end and study.poll() is None
        time.sleep(0.1)
    worker = int((tmp_path / "working").read_text())
    assert _there(worker)
    study.kill()
    study.wait()
    while _there(worker):
        assert time.monotonic() < end, "the worker of a killed study works on"
        time.sleep(0.1)


class _Killed(BaseException):
    """Stands for a kill: nothing in Escala catches it."""


@pytest.mark.learn
@pytest.mark.parametrize("study", ["a2c2020", "grid2019"])
def test_a_cell_that_is_killed_in_training_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str
) -> None:
    """And gives what an uninterrupted one does, to the last digit."""
    from escala.agents import checkpoint
    from escala.studies.a2c2020 import cells as a2c2020_cells
    from escala.studies.grid2019 import cells as grid2019_cells

    lists = {"pool": 16, "validation": 2, "test": 2, "seed": 3}
    works: dict[str, tuple[Any, dict[str, Any]]] = {
        "a2c2020": (a2c2020_cells.trained, {**lists, "rate": 0.7, "steps": 800, "preset": "fc", "algorithm": "a2c"}),
        "grid2019": (grid2019_cells.fresh_agent, {**lists, "loads": [40], "judged": [40], "steps": 40_000}),
    }
    work, given = works[study]

    def cell(folder: str) -> Cell:
        return Cell("agent", work, given | {"keep": str(tmp_path / folder / "agent")})

    whole = run_cells(tmp_path / "whole", [cell("whole")], {}, 1)
    written: list[int] = []
    write, restore = checkpoint.write, checkpoint.restore

    def write_twice(path: Path, content: Any) -> None:
        write(path, content)
        written.append(content["steps"])
        if len(written) == 2:
            raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "EVERY_S", 0.0)
        patch.setattr(checkpoint, "write", write_twice)
        with pytest.raises(_Killed):
            run_cells(tmp_path / "killed", [cell("killed")], {}, 1)
    assert (tmp_path / "killed" / "agent" / "checkpoint.npz").is_file() and not (
        tmp_path / "killed" / "agent" / "manifest.json"
    ).exists()
    resumed: list[int] = []
    monkeypatch.setattr(
        checkpoint, "restore", lambda saved, *rest: (resumed.append(saved["steps"]), restore(saved, *rest))
    )
    found = run_cells(tmp_path / "killed", [cell("killed")], {}, 1)
    assert resumed == [written[1]] and 0 < resumed[0] < given["steps"]
    assert not (tmp_path / "killed" / "agent" / "checkpoint.npz").exists()
    assert {**found["agent"], "seconds": 0} == {**whole["agent"], "seconds": 0}


class _Finalized:
    """Python prints an error that a finalizer raises, and goes on: Ctrl-C that comes then is lost."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)


def _finalize(number: int) -> int:
    if number == 1:
        made = _Finalized()
        del made
    return number


def _deadly(number: int) -> int:
    if number == 1:
        os._exit(9)
    return number


def test_what_is_kept_is_the_same_on_any_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", stand_in := StandIn())
    cells = [Cell(f"cell-{number}", _same, {"number": number}, cost=number) for number in range(3)]
    found = [run_cells(tmp_path / str(on), cells, {}, on) for on in (1, "local:2", "ray")]
    assert found == [{f"cell-{number}": number for number in range(3)}] * 3 and stand_in.tasks == 3
    for cell in cells:
        assert (
            len({(tmp_path / on / "cells" / f"{cell.name}.json").read_bytes() for on in ("1", "local:2", "ray")}) == 1
        )


RULES = {"world": "pool", "load": 40, "steps": 10}


def test_on_slurm_each_cell_is_a_task(tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from escala.studies.lab.horizons import rules

    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    cells = [Cell(f"rules/{seed}", rules, {**RULES, "seed": seed}) for seed in (1, 2)]
    found = [run_cells(tmp_path / "out" / on, cells, {}, on) for on in ("local:1", "slurm")]
    assert found[0] == found[1] and found[0]["rules/1"] != found[0]["rules/2"]
    assert "--array=0-1 " in (slurm / "calls").read_text()
    assert [path.name for path in (tmp_path / "out" / "slurm").iterdir()] == ["cells"]


def test_on_slurm_a_cell_that_fails_is_named(tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from escala.studies.lab.horizons import agent

    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    with pytest.raises(EscalaError, match=r"^cell rules/0: .*nowhere"):
        run_cells(
            tmp_path / "out", [Cell("rules/0", agent, {**RULES, "endless": False, "folder": "nowhere"})], {}, "slurm"
        )
    # no function of a study is named by a text
    with pytest.raises(EscalaError, match="no task of the array has begun to work"):
        run_cells(tmp_path / "other", [Cell("same", _same, {"number": 1})], {}, "slurm")


def test_cells_are_the_same_as_text() -> None:
    from escala.studies.lab.horizons import rules

    cells = [Cell("a b", rules, {"x": ("a", ("b",)), "y": [1, (2.5, None)], "z": {"w": [True]}}), Cell("c", rules, {})]
    job, again = Timed.read(Timed().written(cells))
    assert [(cell.name, cell.work, cell.given) for cell in again] == [
        (cell.name, cell.work, cell.given) for cell in cells
    ]
    assert len({job.key(cell) for cell in cells}) == 2 and [job.key(cell) for cell in again] == [
        job.key(cell) for cell in cells
    ]
    for module, name in (
        ("os", "system"),
        ("escala.studies.lab.horizons", "TEST"),
        ("escala.studies.lab.horizons", "rule"),
    ):
        with pytest.raises(EscalaError, match="is no piece of a study"):
            Timed.read(json.dumps([["a", module, name, {}]]))


def test_an_interrupted_study_goes_on_on_another_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", StandIn(most=2))
    cells = [Cell(f"cell-{number}", _same, {"number": number}) for number in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, cells, {}, "ray")
    assert len(list(tmp_path.glob("cells/cell-*.json"))) == 2
    assert run_cells(tmp_path, cells, {}, 1) == {f"cell-{number}": number for number in range(3)}


def _same(number: int) -> int:
    return number


def test_a_cell_that_ends_its_process_is_tried_again_and_named(tmp_path: Path) -> None:
    cells = [Cell(f"cell-{number}", _deadly, {"number": number}, cost=number) for number in range(3)]
    with pytest.raises(EscalaError, match="cell cell-1: its process ended before its time, twice"):
        run_cells(tmp_path, cells, {}, 2)
    left = run_cells(tmp_path, [cells[0], cells[2]], {}, 2)
    assert left == {"cell-0": 0, "cell-2": 2}
    assert run_cells(tmp_path / "one", [cells[2], cells[0]], {}, 1) == {"cell-2": 2, "cell-0": 0}


def test_results_without_their_settings_are_refused(tmp_path: Path) -> None:
    cells = [Cell("cell-0", _finalize, {"number": 0})]
    run_cells(tmp_path, cells, {"scale": 1}, 1)
    with pytest.raises(EscalaError, match=r"of other settings.*remove the whole"):
        run_cells(tmp_path, cells, {"scale": 2}, 1)
    (tmp_path / "cells" / "settings.json").unlink()
    with pytest.raises(EscalaError, match="holds results, but not their settings"):
        run_cells(tmp_path, cells, {"scale": 2}, 1)


def test_a_signal_that_ends_nothing_is_answered_again_once(tmp_path: Path) -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        run_cells(tmp_path, [Cell(f"cell-{number}", _finalize, {"number": number}) for number in range(4)], {}, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT] * 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_came_in_a_finalizer_is_answered_after_the_cell(tmp_path: Path) -> None:
    cells = [Cell(f"cell-{number}", _finalize, {"number": number}) for number in range(3)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_cells(tmp_path, cells, {}, 1)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(path.stem for path in (tmp_path / "cells").glob("cell-*")) == ["cell-0", "cell-1"]
    assert run_cells(tmp_path, cells, {}, 1) == {f"cell-{number}": number for number in range(3)}
