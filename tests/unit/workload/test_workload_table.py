"""The table of jobs: what it fills in, what it keeps, what it refuses."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.workload import SCHEMA, Workload

ONE: dict[str, Any] = {"submit_s": [0.0], "runtime_s": [10.0], "cores": [1]}


def test_defaults() -> None:
    jobs = Workload.from_jobs({"submit_s": [3, 1.5], "runtime_s": [10, 20], "cores": [2, 4]}).jobs
    assert dict(jobs.schema) == {**SCHEMA, "limited": pl.Boolean()}
    assert jobs["limited"].to_list() == [False, False]  # no walltimes: no limits
    assert jobs["job_id"].to_list() == ["2", "1"]  # numbered as given, then sorted by submission
    assert jobs["submit_s"].to_list() == [1.5, 3.0]
    assert jobs["walltime_s"].to_list() == [20.0, 10.0]
    assert jobs["load"].to_list() == [1.0, 1.0]
    assert jobs["single_node"].to_list() == [False, False]
    assert [jobs[name].null_count() for name in ("user", "status", "wait_s", "queue")] == [2, 2, 2, 2]


def test_rows_columns_arrays_and_frames_give_the_same_table() -> None:
    columns = {"submit_s": [0.0, 1.0], "runtime_s": [5.0, 6.5], "cores": [1, 2], "user": ["a", None]}
    rows = [{name: values[k] for name, values in columns.items()} for k in range(2)]
    arrays = {**columns, "submit_s": np.array([0.0, 1.0]), "cores": np.array([1, 2], dtype=np.int32)}
    tables = [Workload.from_jobs(source).jobs for source in (columns, rows, arrays, pl.DataFrame(columns))]
    assert all(table.equals(tables[0]) for table in tables)


def test_jobs_of_one_instant_keep_the_order_of_the_log() -> None:
    ids = ["c", "a", "d", "b", "e"]
    workload = Workload.from_jobs({"job_id": ids, "submit_s": [5, 5, 1, 5, 1], "runtime_s": [1] * 5, "cores": [1] * 5})
    assert workload.jobs["job_id"].to_list() == ["d", "e", "c", "a", "b"]


def test_null_walltime_becomes_the_runtime_and_is_counted() -> None:
    workload = Workload.from_jobs({**ONE, "walltime_s": [None], "submit_s": [4]})
    assert workload.jobs["walltime_s"].to_list() == [10.0]
    assert workload.cleaning == {"no request": 1}


def test_flops_wait_for_a_speed() -> None:
    rows = [
        {"submit_s": 0, "cores": 1, "flops": 3e9},
        {"submit_s": 1, "cores": 1, "flops": None, "runtime_s": 7, "walltime_s": 9},
    ]
    workload = Workload.from_jobs(rows)
    assert workload.needs_speed()
    assert math.isnan(workload.jobs["runtime_s"][0]) and math.isnan(workload.jobs["walltime_s"][0])
    ready = workload.at_speed(1e9)
    assert not ready.needs_speed() and "flops" not in ready.jobs.columns
    assert ready.jobs["runtime_s"].to_list() == [3.0, 7.0]
    assert ready.jobs["walltime_s"].to_list() == [3.0, 9.0]
    assert ready.at_speed(5.0) is ready
    with pytest.raises(EscalaError, match="positive"):
        workload.at_speed(0)


def test_ten_columns_of_a_million_jobs_are_cheap() -> None:
    n = 1_000_000
    workload = Workload.from_jobs(
        {"submit_s": np.arange(n), "runtime_s": np.ones(n), "cores": np.ones(n, dtype=np.int64)}
    )
    assert len(workload) == n
    assert workload.jobs.estimated_size() < 120e6  # bytes


def test_pickle_keeps_everything() -> None:
    workload = Workload.from_jobs(
        ONE, name="w", origin_s=5.0, max_cores=7, source="here", cleaning={"no processors": 2}
    )
    again = pickle.loads(pickle.dumps(workload))
    assert again.jobs.equals(workload.jobs)
    assert (again.name, again.origin_s, again.max_cores, again.source, again.cleaning) == (
        "w",
        5.0,
        7,
        "here",
        {"no processors": 2},
    )


def test_repr_says_the_size() -> None:
    workload = Workload.from_jobs(
        {"submit_s": [0, 86400], "runtime_s": [1, 1], "cores": [1, 1]}, name="two", max_cores=8
    )
    assert repr(workload) == "Workload('two', 2 jobs, 1.00 days, 8 cores)"


def test_empty_workload() -> None:
    workload = Workload.from_jobs({"submit_s": [], "runtime_s": [], "cores": []})
    assert len(workload) == 0 and workload.span_s == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runtime_s": [0.0]}, ["'1'", "runtime_s = 0.0", "above 0"]),
        ({"runtime_s": [-3.0]}, ["runtime_s = -3.0"]),
        ({"runtime_s": [math.nan]}, ["runtime_s = nan"]),
        ({"runtime_s": [math.inf]}, ["runtime_s = inf"]),
        ({"runtime_s": [None]}, ["runtime_s = None"]),
        ({"walltime_s": [0.0]}, ["walltime_s = 0.0"]),
        ({"submit_s": [math.nan]}, ["submit_s = nan"]),
        ({"submit_s": [None]}, ["submit_s = None"]),
        ({"submit_s": ["x"]}, ["submit_s", "String"]),
        ({"cores": [0]}, ["cores = 0", "at least 1"]),
        ({"cores": [1.5]}, ["cores", "fractions"]),
        ({"cores": [None]}, ["cores = None"]),
        ({"load": [1.5]}, ["load = 1.5"]),
        ({"load": [math.nan]}, ["load = nan"]),
        ({"wait_s": [-1.0]}, ["wait_s = -1.0"]),
        ({"status": ["DONE"]}, ["status = DONE", "COMPLETED"]),
        ({"flops": [0.0]}, ["flops = 0.0"]),
        ({"demand_memory": [4]}, ["demand_memory = 4", "single_node"]),
        ({"demand_memory": [-1], "single_node": [True]}, ["demand_memory = -1"]),
        ({"weight": [4]}, ["unknown column 'weight'"]),
        ({"single_node": ["yes"]}, ["single_node", "Boolean"]),
    ],
)
def test_refused_values_are_named(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(EscalaError) as caught:
        Workload.from_jobs({**ONE, **change})
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_job_is_named_by_its_id() -> None:
    with pytest.raises(EscalaError, match=r"job 'b' \(row 2\) has cores = -4"):
        Workload.from_jobs({"job_id": ["a", "b"], "submit_s": [0, 1], "runtime_s": [1, 1], "cores": [1, -4]})


@pytest.mark.parametrize(
    "jobs",
    [5, "text", [1, 2], {"submit_s": [1], "runtime_s": [1]}, {"submit_s": [1, 2], "runtime_s": [1], "cores": [1]}],
)
def test_what_is_no_table_is_refused(jobs: Any) -> None:
    with pytest.raises(EscalaError) as caught:
        Workload.from_jobs(jobs)
    assert "\n" not in str(caught.value)


def test_repeated_ids_are_refused() -> None:
    with pytest.raises(EscalaError, match=r"'a'.*its own id"):
        Workload.from_jobs({"job_id": ["a", "a"], "submit_s": [0, 1], "runtime_s": [1, 1], "cores": [1, 1]})


@pytest.mark.parametrize("meta", [{"max_cores": 0}, {"origin_s": math.nan}])
def test_refused_facts(meta: dict[str, Any]) -> None:
    with pytest.raises(EscalaError):
        Workload.from_jobs(ONE, **meta)


def test_constructor_needs_the_whole_schema() -> None:
    with pytest.raises(EscalaError, match="from_jobs"):
        Workload(pl.DataFrame(ONE))


@pytest.mark.parametrize("name", ["runtime_s", "walltime_s"])
@pytest.mark.parametrize(
    ("value", "word"), [(1e-9, "half a microsecond"), (4.9e-7, "half a microsecond"), (1e14, "1e\\+11")]
)
def test_times_that_the_clock_cannot_hold_are_refused(name: str, value: float, word: str) -> None:
    with pytest.raises(EscalaError, match=rf"job '1' .*{name} = .*{word}"):
        Workload.from_jobs({"submit_s": [0.0], "cores": [1], "runtime_s": [5.0], "walltime_s": [5.0], name: [value]})


def test_the_shortest_and_the_latest_job_run_as_they_are() -> None:
    """Half a microsecond rounds up to the one tick that the clock has; a time of 1e11 s still fits its integers."""
    workload = Workload.from_jobs(
        {"submit_s": [0.0, 1e11], "cores": [1, 1], "runtime_s": [5e-7, 1e11], "walltime_s": [1.0, 1e11]}
    )
    jobs = escala.simulate(workload, "1x1:none").jobs
    assert jobs["runtime_s"].to_list() == [1e-6, 1e11] and jobs["finish_s"].to_list() == [1e-6, 2e11]
    with pytest.raises(EscalaError, match=r"submit_s = 1000.*milliseconds"):
        Workload.from_jobs({"submit_s": [1e14], "cores": [1], "runtime_s": [5.0]})


def test_work_that_takes_no_time_on_so_fast_a_core_is_refused() -> None:
    with pytest.raises(EscalaError, match=r"job '1' .*half a microsecond"):
        Workload.from_jobs({"submit_s": [0.0], "cores": [1], "flops": [1e3]}).at_speed(1e12)


@pytest.mark.parametrize("column", ["runtime_s", "walltime_s", "flops"])
def test_text_in_a_column_of_times_is_one_line(column: str) -> None:
    jobs = {"submit_s": [0.0], "runtime_s": [1.0], "cores": [1]} | {column: ["soon"]}
    with pytest.raises(EscalaError, match=f"column '{column}'.*convert it first") as caught:
        Workload.from_jobs(jobs)
    assert "\n" not in str(caught.value)
