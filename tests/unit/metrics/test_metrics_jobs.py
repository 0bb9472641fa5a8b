"""Job metrics against values worked out by hand, their definitions, and the reference engine's own figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.metrics import jobs as jm


def test_each_measure_by_hand(jobs: pl.DataFrame) -> None:
    assert jm.wait(jobs).to_list() == [0.0, 8.0, 6.0]
    assert jm.turnaround(jobs).to_list() == [10.0, 16.0, 10.0]
    assert jm.slowdown(jobs).to_list() == [1.0, 2.0, 2.5]
    assert jm.bounded_slowdown(jobs).to_list() == [1.0, 1.6, 1.0]  # runtimes 10, 8 -> 10, 4 -> 10
    assert jm.bounded_slowdown(jobs, bound_s=5.0).to_list() == [1.0, 2.0, 2.0]
    assert jm.pp_slowdown(jobs).to_list() == [1.0, 2.0, 2.5]  # the first: 10 / (2 x 10) = 0.5, raised to 1
    assert jm.stretch(jobs).to_list() == [0.0, 1.0, 0.15]
    assert jm.delay(jobs).to_list() == [0.0, 4.0, 0.0]
    assert jm.delay(jobs, theta=0.1).to_list() == pytest.approx([0.0, 7.2, 2.0])
    assert jm.makespan(jobs) == 18.0


def test_a_slowdown_is_at_least_1(table: Any) -> None:
    """A job far shorter than the bound that starts at once: 1 / 10 without that rule."""
    assert jm.bounded_slowdown(table([(0.0, 0.0, 1.0, 1, 20.0, "COMPLETED")])).to_list() == [1.0]


def test_delay_counts_from_the_threshold_itself(table: Any) -> None:
    at_threshold = table([(0.0, 10.0, 20.0, 1, 20.0, "COMPLETED")])
    assert jm.delay(at_threshold).to_list() == [0.0]  # wait / wall = theta: wait - theta wall = 0
    assert jm.delay(table([(0.0, 11.0, 20.0, 1, 20.0, "COMPLETED")])).to_list() == [1.0]


def test_every_job_is_counted_somewhere(jobs: pl.DataFrame) -> None:
    counts = jm.counts(jobs)
    assert counts == {
        "n_jobs": 6,
        "n_completed": 2,
        "n_killed": 1,
        "n_rejected": 1,
        "n_running": 1,
        "n_queued": 1,
        "n_unfinished": 2,
    }


def test_measures_hold_the_same_values_as_the_single_functions(jobs: pl.DataFrame) -> None:
    all_at_once = jm.measures(jobs)
    for name in ("wait", "turnaround", "slowdown", "bounded_slowdown", "pp_slowdown", "stretch", "delay"):
        column = all_at_once.columns[[c.removesuffix("_s") for c in all_at_once.columns].index(name)]
        assert getattr(jm, name)(jobs).to_list() == all_at_once[column].to_list()
    assert all_at_once["job_id"].to_list() == ["j0", "j1", "j2"]


def test_no_jobs() -> None:
    from hand_tables import JOBS_SCHEMA

    empty = pl.DataFrame(schema=JOBS_SCHEMA)
    assert jm.measures(empty).is_empty()
    assert jm.counts(empty)["n_jobs"] == 0
    assert math.isnan(jm.makespan(empty))
    assert math.isnan(jm.distribution(jm.wait(empty))["mean"])


def test_a_missing_column_is_named(jobs: pl.DataFrame) -> None:
    with pytest.raises(EscalaError, match="lacks the column 'start_s'"):
        jm.wait(jobs.drop("start_s"))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_distribution_is_numpys(values: list[float]) -> None:
    got = jm.distribution(values)
    assert got["mean"] == np.mean(values)
    assert got["sd"] == np.std(values)
    assert got["median"] == pytest.approx(np.median(values), rel=1e-12, abs=1e-12)  # two ways to halve a sum
    assert got["max"] == max(values)
    assert got["median"] <= got["p95"] <= got["max"]


def test_classes_by_time_since_the_last_submission(table: Any) -> None:
    jobs = table([(t, t, t + 60.0, 1, 60.0, "COMPLETED") for t in (0.0, 299.0, 599.0, 2399.0, 6000.0)])
    assert jm.interarrival(jobs).to_list() == [None, 299.0, 300.0, 1800.0, 3601.0]
    classes = jm.interarrival_classes(jobs)
    assert classes.to_list() == [None, "[0, 5) min", "[5, 10) min", "[30, 60) min", ">= 60 min"]
    by_class = jm.by_class(jm.slowdown(jobs), classes)
    assert by_class["n"].to_list() == [1, 1, 1, 1]
    assert by_class["share"].to_list() == [0.2] * 4


def test_gap_counts_jobs_that_never_ran(table: Any) -> None:
    jobs = table(
        [
            (0.0, 0.0, 1.0, 1, 1.0, "COMPLETED"),
            (50.0, None, None, 9, 1.0, "REJECTED"),
            (80.0, 80.0, 81.0, 1, 1.0, "COMPLETED"),
        ]
    )
    assert jm.interarrival(jobs).to_list() == [None, 30.0]


def test_slowdown_classes() -> None:
    got = jm.slowdown_classes(pl.Series([1.0, 1.0001, 5.0, 5.1, 10.0, 11.0]))
    assert got.to_list() == ["1", "(1, 5]", "(1, 5]", "(5, 10]", "(5, 10]", "> 10"]


def test_boxes_leave_out_what_is_far_from_the_quartiles() -> None:
    values = pl.Series([1.0, 2.0, 3.0, 4.0, 5.0, 100.0, 7.0])
    classes = pl.Series(["a"] * 6 + [None])
    row = jm.boxes_by_class(values, classes).to_dicts()[0]  # quartiles 2.25 and 4.75: whiskers reach at most to 8.5
    assert (row["class"], row["n"], row["q1"], row["median"], row["q3"]) == ("a", 6, 2.25, 3.5, 4.75)
    assert (row["low"], row["high"], row["mean"]) == (1.0, 5.0, 3.0) and row["beyond"] == pytest.approx(1 / 6)
    with pytest.raises(EscalaError, match="7 values but 2 classes"):
        jm.boxes_by_class(values, classes[:2])


def test_by_class_refuses_other_lengths() -> None:
    with pytest.raises(EscalaError, match="2 values but 1 classes"):
        jm.by_class(pl.Series([1.0, 2.0]), pl.Series(["a"]))


def reference_jobs(folder: Path) -> pl.DataFrame:
    """The reference engine's table of jobs in our columns."""
    read = pl.read_csv(folder / "out_jobs.csv", infer_schema_length=None)
    return read.select(
        pl.col("job_id").cast(pl.String),
        submit_s=pl.col("submission_time").cast(pl.Float64),
        start_s=pl.col("starting_time").cast(pl.Float64),
        finish_s=pl.col("finish_time").cast(pl.Float64),
        cores=pl.col("requested_number_of_resources"),
        walltime_s=pl.col("requested_time").cast(pl.Float64),
        runtime_s=pl.col("execution_time").cast(pl.Float64),
        state=pl.when(pl.col("success") == 1).then(pl.lit("COMPLETED")).otherwise(pl.lit("KILLED")),
    )


@pytest.mark.parametrize("run", ["easy", "easy_subpart5", "opportunistic_shutdown", "inertial_opportunistic_shutdown"])
def test_means_equal_the_reference_engines(traces: Path, run: str) -> None:
    folder = traces / "batsim" / "golden-medium_late" / run
    if not (folder / "out_jobs.csv").exists():
        pytest.skip(f"{folder} has no job table")
    jobs = reference_jobs(folder)
    theirs = pl.read_csv(folder / "out_schedule.csv", infer_schema_length=None).row(0, named=True)
    assert jm.counts(jobs)["n_completed"] == theirs["nb_jobs_success"]
    assert jm.counts(jobs)["n_killed"] == theirs["nb_jobs_killed"]
    printed = 1.5e-6  # a difference of two times of six decimals, against one
    assert jm.wait(jobs).mean() == pytest.approx(theirs["mean_waiting_time"], abs=printed)
    assert jm.turnaround(jobs).mean() == pytest.approx(theirs["mean_turnaround_time"], abs=printed)
    assert jm.slowdown(jobs).mean() == pytest.approx(theirs["mean_slowdown"], rel=1e-5)
    assert jm.slowdown(jobs).max() == pytest.approx(theirs["max_slowdown"], rel=1e-5)
    assert jm.wait(jobs).max() == pytest.approx(theirs["max_waiting_time"], abs=printed)
    assert jm.makespan(jobs) == pytest.approx(theirs["makespan"], abs=printed)
