"""Overtaking and lag: counted as planted, and not told where the replay has them too."""

from __future__ import annotations

import polars as pl
import pytest

from escala.calibration.order import lag, order, passed

JOBS = pl.DataFrame(
    {
        "partition": ["a", "a", "a", "a", "b"],
        "cores": [1, 1, 1, 2, 1],
        "walltime_s": [60.0] * 5,
        "submit_s": [0.0, 1.0, 2.0, 3.0, 4.0],
        "recorded_start_s": [500.0, 100.0, 450.0, 600.0, 10.0],
        "replayed_start_s": [0.0, 1.0, 2.0, 3.0, 4.0],
    }
)


def test_a_job_is_passed_by_one_like_it_alone_and_by_over_a_minute() -> None:
    assert passed(JOBS, "recorded_start_s") == pytest.approx(1 / 5), (
        "the first by the second; the third was but 50 s before it"
    )
    assert passed(JOBS, "replayed_start_s") == 0.0 and passed(JOBS.clear(), "recorded_start_s") == 0.0
    assert (
        order(JOBS)[0].startswith("20 % of the jobs were passed by a later one")
        and "0 % in the replay" in order(JOBS)[0]
    )
    assert order(JOBS.with_columns(replayed_start_s="recorded_start_s")) == []


@pytest.mark.parametrize(("wait", "told"), [(45.0, True), (1.0, False), (5000.0, False)])
def test_lag_is_the_median_of_jobs_that_the_replay_starts_at_once(wait: float, told: bool) -> None:
    at = [float(k) for k in range(30)]
    jobs = pl.DataFrame({"submit_s": at, "replayed_start_s": at, "recorded_s": [wait] * 30})
    assert (lag(jobs) != []) == told and lag(jobs.head(19)) == []
    assert not told or "waited 45 s in the log" in lag(jobs)[0]
    assert lag(jobs.with_columns(replayed_start_s=pl.col("submit_s") + 60.0)) == []
