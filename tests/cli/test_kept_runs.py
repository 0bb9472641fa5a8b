"""A comparison that is interrupted keeps its finished runs, and the same command goes on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.policies import pairs
from tests.cli.program import Escala


def _compare(escala_: Escala, log: Path, out: Path, *more: object) -> Any:
    return escala_(
        "compare",
        log,
        "--platform",
        "4x1",
        "--schedulers",
        "fcfs,sjf,easy,saf",
        "--out",
        out,
        "--jobs",
        "1",
        "--json",
        *more,
    )


def _interrupt(monkeypatch: pytest.MonkeyPatch, at: int) -> list[str]:
    """Let the run of this number, from 0, be interrupted; the runs that were begun."""
    begun: list[str] = []
    simulate = pairs.simulate

    def counted(log: Any, machine: Any, scheduler: Any, shutdown: Any, **options: Any) -> Any:
        begun.append(scheduler)
        if len(begun) == at + 1:
            raise KeyboardInterrupt
        return simulate(log, machine, scheduler, shutdown, **options)

    monkeypatch.setattr(pairs, "simulate", counted)
    return begun


def _timeless(table: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "elapsed_s"} for row in json.loads(table)]


def test_the_same_command_goes_on(escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _compare(escala_, log, tmp_path / "whole")
    assert whole.status == 0, whole.err
    with monkeypatch.context() as patch:
        _interrupt(patch, 2)
        stopped = _compare(escala_, log, tmp_path / "out")
    assert stopped.status == 130 and "2 of 4 runs are kept beside" in stopped.err and not (tmp_path / "out").exists()
    with monkeypatch.context() as patch:
        begun = _interrupt(patch, 9)
        resumed = _compare(escala_, log, tmp_path / "out")
    assert resumed.status == 0 and begun == ["easy", "saf"] and "2 of 4 runs were kept" in resumed.err
    assert _timeless(resumed.out) == _timeless(whole.out)
    assert (tmp_path / "out" / "table.csv").read_bytes() == (tmp_path / "whole" / "table.csv").read_bytes()
    for name in ("jobs", "nodes", "power", "totals"):
        one, other = (pl.read_parquet(tmp_path / out / "sjf + never" / f"{name}.parquet") for out in ("whole", "out"))
        assert one.equals(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "small.swf", "whole"]


@pytest.mark.parametrize("change", ["option", "log", "machine"])
def test_runs_of_another_request_are_not_taken(
    change: str, escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _interrupt(patch, 2)
        assert _compare(escala_, log, tmp_path / "out").status == 130
    if change == "log":
        log.write_text(log.read_text().replace(" 400 ", " 410 "))
    more = {"option": ("--estimate", "runtime"), "machine": ("--platform", "5x1"), "log": ()}[change]
    begun = _interrupt(monkeypatch, 9)
    assert _compare(escala_, log, tmp_path / "out", *more).status == 0
    assert begun == ["fcfs", "sjf", "easy", "saf"]


def test_a_pair_more_takes_those_that_are_there(
    escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _interrupt(patch, 3)
        assert _compare(escala_, log, tmp_path / "out").status == 130
    begun = _interrupt(monkeypatch, 9)
    assert _compare(escala_, log, tmp_path / "out", "--schedulers", "first-fit,easy").status == 0
    assert begun == ["first-fit"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "easy + never",
        "first-fit + never",
        "manifest.json",
        "table.csv",
    ]


def test_without_a_folder_nothing_is_kept(escala_: Escala, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(monkeypatch, 2)
    outcome = escala_("compare", log, "--platform", "4x1", "--schedulers", "fcfs,sjf,easy")
    assert outcome.status == 130 and "nothing was written" in outcome.err


def test_names_that_hold_paths_are_folders_of_their_own(escala_: Escala, log: Path, tmp_path: Path) -> None:
    """Two files whose paths differ in a stroke only, and a name of more letters than a folder may have."""
    deep = tmp_path / ("d" * 120)
    names = [tmp_path / "a" / "b.toml", tmp_path / "a-b.toml", deep / "c.toml"]
    for path in names:
        path.parent.mkdir(exist_ok=True)
        path.write_text('form = "linear"\n[weights]\nlog_wait = 1\n')
    schedulers = [f"easy:queue=score:{path}" for path in names]
    schedulers[2] += f":backfill=score:{deep / 'c.toml'}:guard=24h"
    out = tmp_path / "out"
    done = escala_("compare", log, "--platform", "4x1", "--schedulers", ",".join(schedulers), "--out", out)
    assert done.status == 0, done.err
    assert len(list(out.glob("*/jobs.parquet"))) == 3
    assert escala_("report", out).status == 0
    assert str(tmp_path) not in (out / "report.html").read_text()
