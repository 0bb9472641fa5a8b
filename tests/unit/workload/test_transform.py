"""Windows, days, filters, loads."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.workload import Workload

DAY = 86400.0


def make(submits: list[float], **columns: list[object]) -> Workload:
    rest = {"runtime_s": [10.0] * len(submits), "cores": list(range(1, len(submits) + 1))}
    return Workload.from_jobs({"submit_s": submits, **rest, **columns}, name="w", origin_s=1000.0)


def test_window_is_half_open_and_starts_at_zero() -> None:
    part = make([0, 10, 20, 30]).window(10, 20)
    assert part.jobs["submit_s"].to_list() == [0.0, 10.0]
    assert part.jobs["job_id"].to_list() == ["2", "3"]
    assert part.origin_s == 1010.0


def test_days_are_numbered_and_cover_every_job() -> None:
    days = make([0, 5, DAY - 1, DAY, 3 * DAY + 7]).split_days()
    assert [day.name for day in days] == ["w#0", "w#1", "w#3"]
    assert [day.jobs["submit_s"].to_list() for day in days] == [[0, 5, DAY - 1], [0], [7]]
    assert [day.origin_s for day in days] == [1000.0, 1000.0 + DAY, 1000.0 + 3 * DAY]


def test_days_may_begin_elsewhere() -> None:
    days = make([0, 100, 3600]).split_days(day_s=3600, origin_s=-3500)
    assert [day.name for day in days] == ["w#0", "w#1"]
    assert [day.jobs["submit_s"].to_list() for day in days] == [[3500], [0, 3500]]


@given(st.lists(st.floats(0, 1e7), max_size=40), st.floats(1, 1e6))
def test_days_lose_no_job(submits: list[float], day_s: float) -> None:
    workload = make(submits)
    days = workload.split_days(day_s)
    assert [job for day in days for job in day.jobs["job_id"]] == workload.jobs["job_id"].to_list()
    assert all(-1e-6 <= submit <= day_s * (1 + 1e-9) for day in days for submit in day.jobs["submit_s"])


def test_filter_counts_what_it_drops() -> None:
    kept = make([0, 1, 2, 3]).filter(pl.col("cores") > 1, pl.col("submit_s") < 3)
    assert kept.jobs["job_id"].to_list() == ["2", "3"]
    assert kept.cleaning == {"filtered out": 2}
    with pytest.raises(EscalaError, match="filter failed"):
        kept.filter(pl.col("nothing") > 1)


def test_limit_cores_sets_the_machine() -> None:
    kept = make([0, 1, 2]).limit_cores(2)
    assert kept.jobs["cores"].to_list() == [1, 2]
    assert (kept.max_cores, kept.cleaning) == (2, {"larger than 2 cores": 1})


def test_rescale_load_divides_the_gaps() -> None:
    twice = make([5, 15, 45]).rescale_load(2)
    assert twice.jobs["submit_s"].to_list() == [5.0, 10.0, 25.0]
    assert twice.jobs["runtime_s"].to_list() == [10.0] * 3


def test_head() -> None:
    assert make([0, 1, 2]).head(2).jobs["job_id"].to_list() == ["1", "2"]
    assert len(make([0]).head(5)) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda w: w.window(0, 0),
        lambda w: w.window(0, float("inf")),
        lambda w: w.split_days(-1),
        lambda w: w.rescale_load(0),
        lambda w: w.rescale_load(float("nan")),
        lambda w: w.limit_cores(0),
        lambda w: w.head(-1),
    ],
)
def test_refused(call: object) -> None:
    with pytest.raises(EscalaError):
        call(make([0, 1]))  # type: ignore[operator]
