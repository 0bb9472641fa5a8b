"""A log replayed a window at a time: every job starts when it does in memory, on the same nodes, and the figures are
the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.streaming import stream
from escala.workload import generate, write_swf
from escala.workload.pieces import Pieces

SAME = ("job_id", "submit_s", "start_s", "finish_s", "wait_s", "cores", "runtime_s", "nodes", "state")
NAMES = (
    "fcfs", "easy", "first-fit", "saf", "sjf", "easy-sjf", "wfp3", "easy-wfp3", "unicep-fit", "xfactor",
    "easy:queue=saf:guard=3000",
    "easy:queue=xfactor:guard=2000", "easy:queue=sjf:backfill=xfactor", "sjf:guard=600", "f2-fit",
)  # fmt: skip


def _log(folder: Path, seed: int, jobs: int = 500, load: float = 0.9) -> Path:
    path = folder / f"log{seed}.swf"
    write_swf(generate.lublin(jobs=jobs, cores=32, load=load, seed=seed), path)
    return path


SITES = [
    ("32x1", "never"),
    ("8x4:grid5000", "timeout:300"),
    ("32x1:grid5000", "timeout:0"),
    ("8x4:grid5000", "timeout:60+3"),
]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("scheduler", NAMES)
def test_the_schedule_is_that_in_memory(scheduler: str, every: bool, tmp_path: Path) -> None:
    """Each scheduler with two of the sites, or with every one."""
    for seed, (platform, shutdown) in enumerate(SITES):
        if not every and (seed - NAMES.index(scheduler)) % 4 > 1:
            continue
        path = _log(tmp_path, seed, load=(0.6, 0.9, 1.2, 0.8)[seed])
        whole = escala.simulate(path, platform, scheduler, shutdown)
        out = tmp_path / f"streamed-{seed}"
        found = stream(path, platform, scheduler, shutdown, out=out, jobs=45 + 31 * seed)
        assert found.pieces >= 3
        saved = escala.Result.load(out)
        both = whole.jobs.sort("job_id"), saved.jobs.sort("job_id")
        for name in SAME:
            assert both[0][name].equals(both[1][name]), name
        told, summary = found.summary, whole.summary()
        assert {
            "mean_wait_s",
            "p95_wait_s",
            "max_wait_s",
            "mean_bounded_slowdown",
            "makespan_s",
            "utilisation",
            "transitions",
        } <= set(told)
        assert {name: summary[name] for name in told if name in summary} == pytest.approx(
            {name: told[name] for name in told if name in summary}, rel=1e-9
        )
        assert found.totals["transitions"].equals(whole.totals["transitions"])


def test_who_comes_at_an_end_is_known_when_it_is_decided_on(tmp_path: Path) -> None:
    """By hand: at 10 s the core is free and the short job of the next piece comes; it starts before the long one that
    waits."""
    jobs = {"job_id": ["a", "b", "c"], "submit_s": [0.0, 1.0, 10.0], "runtime_s": [10.0, 100.0, 2.0], "cores": [1] * 3}
    pl.DataFrame({**jobs, "walltime_s": jobs["runtime_s"]}).write_parquet(tmp_path / "log.parquet")
    stream(tmp_path / "log.parquet", "1x1", "sjf", jobs=2, out=tmp_path / "out")
    assert escala.Result.load(tmp_path / "out").jobs.sort("job_id")["start_s"].to_list() == [0.0, 12.0, 10.0]


def test_a_table_in_parquet_streams_like_a_log(tmp_path: Path) -> None:
    log = escala.read_workload(_log(tmp_path, 7))
    log.jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores").write_parquet(tmp_path / "log.parquet")
    found = stream(tmp_path / "log.parquet", "32x1", jobs=64)
    assert found.summary["mean_wait_s"] == pytest.approx(escala.simulate(log, "32x1").summary()["mean_wait_s"])
    assert found.summary["n_jobs"] == 500


def test_pieces_keep_what_one_instant_submits_together(tmp_path: Path) -> None:
    jobs = pl.DataFrame({"submit_s": [5.0, 6.0, 6.0, 6.0, 6.0, 9.0, 9.0], "runtime_s": [1.0] * 7, "cores": [1] * 7})
    jobs.write_parquet(tmp_path / "log.parquet")
    pieces = [piece.jobs["submit_s"].to_list() for piece in Pieces(tmp_path / "log.parquet", jobs=2)]
    assert pieces == [[5.0], [6.0] * 4, [9.0, 9.0]]


def test_jobs_that_fit_no_platform_may_be_dropped(tmp_path: Path) -> None:
    path = _log(tmp_path, 3)
    with pytest.raises(EscalaError, match=r"needs .* cores, and platform .* has 16: use a larger platform"):
        stream(path, "16x1", jobs=100)
    found = stream(path, "16x1", jobs=100, oversized="drop")
    assert found.summary["n_rejected"] == escala.simulate(path, "16x1", oversized="drop").summary()["n_rejected"] > 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"scheduler": "conservative"}, "conservative looks at more than the jobs in a window"),
        ({"scheduler": "random"}, "random orders need the whole log"),
        ({"scheduler": "easy++"}, "looks at more than the jobs in a window"),
        ({"shutdown": "hold:0.25", "platform": "32x1:grid5000"}, "hold:0.25 looks at more"),
        ({"until_s": 100.0}, "option 'until_s' is not known in a stream"),
        ({"jobs": 0}, "at least 1"),
    ],
)
def test_what_a_window_cannot_know_is_refused(asked: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match=message):
        stream(_log(tmp_path, 1, jobs=60), asked.pop("platform", "32x1"), **asked)  # type: ignore[arg-type]


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _log(tmp_path, 2)
    asked = ["simulate", str(path), "--platform", "32x1", "--stream"]
    assert run([*asked, "--out", str(tmp_path / "out")]) == 0
    assert "Streamed in 1 piece, with 500 jobs in memory at most." in capsys.readouterr().out
    assert run([*asked, "--partition", "3"]) != 0
    assert "no job of partition '3' (--partition)" in capsys.readouterr().err
    assert run([*asked, "--speed", "1e9"]) != 0
    assert "is read as swf, which takes no speed= (--speed)" in capsys.readouterr().err
    assert run([*asked, "--depth", "3"]) != 0
    assert "the option depth is not known in a stream" in capsys.readouterr().err
    pytest.importorskip("jinja2", reason="the extra [report] is not installed")
    assert run(["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")]) == 0
