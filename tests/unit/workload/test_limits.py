"""Jobs without a requested time have no limit: they are not killed, and the formats that can say so do."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.workload import CleaningRules, Workload, describe, read_workload, write_batsim, write_swf

ROWS = {"submit_s": [0.0, 1.0, 2.0, 3.0], "runtime_s": [10.0, 20.0, 30.0, 40.0], "cores": [1, 1, 1, 1]}
ASKED = [None, 20.0, 100.0, 25.0]  # no request; exactly the runtime; longer; shorter
STATES = ["COMPLETED", "KILLED", "COMPLETED", "KILLED"]


def mixed() -> Workload:
    return Workload.from_jobs({**ROWS, "walltime_s": ASKED})


def test_from_jobs_marks_what_has_no_request() -> None:
    assert mixed().jobs["limited"].to_list() == [False, True, True, True]
    assert mixed().jobs["walltime_s"].to_list() == [10.0, 20.0, 100.0, 25.0]
    assert Workload.from_jobs(ROWS).jobs["limited"].to_list() == [False] * 4
    assert "limited" not in Workload.from_jobs({**ROWS, "walltime_s": [99.0] * 4}).jobs.columns


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "first-fit"])
def test_only_limited_jobs_are_killed(scheduler: str) -> None:
    result = escala.simulate(mixed(), "2x1", scheduler=scheduler)
    assert result.jobs["state"].to_list() == STATES
    assert result.jobs["runtime_s"].to_list() == [10.0, 20.0, 30.0, 25.0]
    assert result.jobs["limited"].to_list() == [False, True, True, True]
    assert result.summary()["n_killed"] == 2


def test_limits_last_through_transforms() -> None:
    later = mixed().window(0.0, 3.0).rescale_load(2.0).head(2)
    assert later.jobs["limited"].to_list() == [False, True]


def test_an_estimate_without_a_limit_may_be_long_but_not_short() -> None:
    """A job that outlives its plan would break every reservation behind it."""
    long = Workload.from_jobs({**ROWS, "walltime_s": [40.0] * 4, "limited": [False] * 4})
    assert escala.simulate(long, "2x1", scheduler="easy").jobs["state"].to_list() == ["COMPLETED"] * 4
    with pytest.raises(EscalaError, match=r"job '4' .*without a limit"):
        Workload.from_jobs({**ROWS, "walltime_s": [39.0] * 4, "limited": [False] * 4})


def test_work_in_flops_without_a_request() -> None:
    workload = Workload.from_jobs({"submit_s": [0, 0], "flops": [1e9, 1e9], "cores": [1, 1], "walltime_s": [None, 1.0]})
    ready = workload.at_speed(1e9)
    assert ready.jobs["walltime_s"].to_list() == [1.0, 1.0] and ready.jobs["limited"].to_list() == [False, True]
    assert escala.simulate(ready, "2x1").jobs["state"].to_list() == ["COMPLETED", "KILLED"]


def test_swf_says_minus_one(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(mixed(), path)
    assert [line.split()[8] for line in path.read_text().splitlines() if not line.startswith(";")] == [
        "-1",
        "20",
        "100",
        "25",
    ]
    back = read_workload(path)
    assert back.jobs["limited"].to_list() == [False, True, True, True] and back.cleaning["no request"] == 1
    assert back.jobs["walltime_s"].to_list() == mixed().jobs["walltime_s"].to_list()


def test_batsim_leaves_the_walltime_out(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    write_batsim(mixed(), path, speed=1e9)
    assert [job.get("walltime") for job in json.loads(path.read_text())["jobs"]] == ASKED
    back = read_workload(path, speed=1e9)
    assert back.jobs["limited"].to_list() == [False, True, True, True]
    waiting = read_workload(path)  # work in flops, until the platform's speed is known
    assert waiting.at_speed(1e9).jobs.select("walltime_s", "limited").equals(back.jobs.select("walltime_s", "limited"))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_escala_s_own_tables_keep_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"jobs.{suffix}"
    getattr(mixed().jobs, f"write_{suffix}")(path)
    assert read_workload(path).jobs.equals(mixed().jobs)


def test_a_default_limit_is_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(mixed(), path)
    log = read_workload(path, rules=CleaningRules(no_request=5.0))
    assert log.jobs["walltime_s"].to_list() == [5.0, 20.0, 100.0, 25.0] and "limited" not in log.jobs.columns
    assert escala.simulate(log, "2x1").jobs["state"].to_list() == ["KILLED", *STATES[1:]]


def test_the_description_counts_requests_only() -> None:
    described = describe(mixed())
    assert described["at_walltime_share"] == pytest.approx(2 / 3)
    assert described["quantiles"]["walltime_s"]["min"] == 20.0
    assert describe(Workload.from_jobs(ROWS))["quantiles"]["walltime_s"]["mean"] is None


def test_a_real_log_without_requests(traces: Path) -> None:
    """NASA-iPSC has no requests at all: no job is killed."""
    log = read_workload(traces / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz")
    assert log.cleaning["no request"] == len(log) == log.jobs["limited"].not_().sum()
    result = escala.simulate(log, f"{log.max_cores}x1", scheduler="easy")
    assert result.jobs["state"].unique().to_list() == ["COMPLETED"]


def test_export_writes_minus_one(tmp_path: Path) -> None:
    folder = escala.simulate(mixed(), "2x1").export("batsim", tmp_path / "out")
    table = pl.read_csv(folder / "jobs.csv").sort("job_id")
    assert table["requested_time"].to_list() == [-1.0, 20.0, 100.0, 25.0]
    assert table["success"].to_list() == [1, 0, 1, 0]
    assert read_workload(folder / "jobs.csv").jobs.sort("job_id")["limited"].to_list() == [False, True, True, True]
