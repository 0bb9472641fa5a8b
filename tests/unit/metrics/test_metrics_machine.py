"""Utilisation and step functions: hand-worked, by law, and against the reference engine's trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.metrics import machine


def test_used_cores_and_queue_by_hand(jobs: pl.DataFrame) -> None:
    assert machine.used_cores(jobs).rows() == [(0.0, 2), (10.0, 2), (14.0, 2), (18.0, 1)]
    assert machine.queue_length(jobs).rows() == [(0.0, 0), (2.0, 1), (4.0, 2), (6.0, 3), (7.0, 4), (10.0, 2), (14.0, 1)]
    assert machine.queued_cores(jobs)["value"].to_list() == [0, 1, 2, 3, 4, 2, 1]


def test_utilisation_by_hand(jobs: pl.DataFrame) -> None:
    # [0, 20): A 2 x 10, B 8, C 4, and the running job from 14 to the end of the window
    assert machine.busy_core_seconds(jobs, 0.0, 20.0) == 20 + 8 + 4 + 6
    assert machine.utilisation(jobs, 2, 0.0, 20.0) == 38 / 40
    assert machine.busy_core_seconds(jobs, 5.0, 12.0) == 2 * 5 + 2 + 2
    assert np.isnan(machine.utilisation(jobs, 2, 3.0, 3.0))


def test_loss_of_capacity_by_hand(table: Any) -> None:
    # 4 cores; A holds 3 over [0, 10); B needs 2, waits over [2, 10): one core is free meanwhile, 8 core seconds of 80
    jobs = table([(0.0, 0.0, 10.0, 3, 10.0, "COMPLETED"), (2.0, 10.0, 20.0, 2, 10.0, "COMPLETED")])
    assert machine.loss_of_capacity(jobs, 4, 0.0, 20.0) == 0.1
    assert machine.loss_of_capacity(jobs, 4, 5.0, 20.0) == 5 / 60


def test_states_and_watts_over_time(nodes: pl.DataFrame, power: pl.DataFrame) -> None:
    count = machine.nodes_by_state(nodes)
    assert count["time_s"].to_list() == [0.0, 14.0, 15.0, 18.0, 20.0]
    assert count["computing"].to_list() == [2, 1, 1, 0, 0]
    assert count["off"].to_list() == [0, 0, 1, 1, 0]
    watts = machine.power_by_state(nodes, power)
    assert watts["computing"].to_list() == [380.0, 190.0, 190.0, 0.0, 0.0]
    assert watts["switching_off"].to_list() == [0.0, 101.0, 0.0, 0.0, 0.0]


def test_energy_is_the_integral_of_the_watts(nodes: pl.DataFrame, power: pl.DataFrame) -> None:
    edges = np.linspace(0.0, 20.0, 8)  # does not hit the changes
    mean = machine.binned_mean(machine.power_by_state(nodes, power), edges)
    for state, joules in power.group_by("state").agg(pl.col("joules").sum()).iter_rows():
        assert (mean[state] * (mean["to_s"] - mean["from_s"])).sum() == pytest.approx(joules, rel=1e-12)


@pytest.mark.parametrize("chunk", [1, 2, 2_000_000])
def test_mean_power_without_the_step_function(
    nodes: pl.DataFrame, power: pl.DataFrame, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_ROWS", chunk)
    for edges in (np.linspace(0.0, 20.0, 8), np.array([3.0, 14.0, 14.5, 25.0]), np.array([-5.0, 0.0, 20.0])):
        direct = machine.mean_power_by_state(nodes, power, edges)
        through_steps = machine.binned_mean(machine.power_by_state(nodes, power), edges)
        for state in direct.columns:
            assert direct[state].to_list() == pytest.approx(through_steps[state].to_list(), rel=1e-12, abs=1e-12)


step_tables = st.lists(st.tuples(st.floats(0, 1e6), st.integers(-5, 5)), min_size=1, max_size=300)


@given(step_tables, st.integers(4, 60))
@settings(deadline=None)
def test_resampling_keeps_extremes_and_ends(changes: list[tuple[float, int]], points: int) -> None:
    full = machine.steps(np.array([t for t, _ in changes]), {"value": np.array([d for _, d in changes])})
    assert full["time_s"].is_sorted() and full["time_s"].is_unique().all()
    few = machine.resample(full, points)
    assert few.height <= max(points, 4)
    assert few["value"].max() == full["value"].max() and few["value"].min() == full["value"].min()
    assert few.row(0) == full.row(0) and few.row(-1) == full.row(-1)
    assert set(few.rows()) <= set(full.rows())


@given(step_tables)
@settings(deadline=None)
def test_steps_sum_what_was_added(changes: list[tuple[float, int]]) -> None:
    full = machine.steps(np.array([t for t, _ in changes]), {"value": np.array([d for _, d in changes])})
    for time, value in full.rows():
        assert value == sum(d for t, d in changes if t <= time)


def test_resample_needs_room() -> None:
    with pytest.raises(EscalaError, match="at least 4"):
        machine.resample(pl.DataFrame({"time_s": [0.0], "value": [1]}), 3)


def test_empty() -> None:
    from hand_tables import JOBS_SCHEMA

    empty = pl.DataFrame(schema=JOBS_SCHEMA)
    assert machine.used_cores(empty).is_empty()
    assert machine.queue_length(empty).is_empty()
    assert machine.resample(machine.used_cores(empty), 10).is_empty()
    assert machine.busy_core_seconds(empty, 0.0, 10.0) == 0.0
    assert machine.loss_of_capacity(empty, 4, 0.0, 10.0) == 0.0
    none = pl.DataFrame(schema={"node": pl.Int64, "from_s": pl.Float64, "to_s": pl.Float64, "state": pl.String})
    drawn = pl.DataFrame(schema={"node": pl.Int64, "state": pl.String, "seconds": pl.Float64, "joules": pl.Float64})
    assert machine.mean_power_by_state(none, drawn, np.array([0.0, 1.0]))["idle"].to_list() == [0.0]
    assert machine.binned_mean(machine.used_cores(empty), np.array([0.0, 1.0, 2.0]))["value"].to_list() == [0.0, 0.0]


def test_busy_machines_equal_the_reference_engines_trace(traces: Path) -> None:
    """One core a node, so used cores are computing machines. Their file has one row per change, with times of six
    digits."""
    from test_metrics_jobs import reference_jobs

    folder = traces / "batsim" / "golden-medium_late" / "easy"
    theirs = pl.read_csv(folder / "out_machine_states.csv", infer_schema_length=None)
    jobs = reference_jobs(folder)
    schedule = pl.read_csv(folder / "out_schedule.csv", infer_schema_length=None).row(0, named=True)
    used = machine.used_cores(jobs)
    assert used["value"].max() == theirs["nb_computing"].max()
    assert machine.busy_core_seconds(jobs, 0.0, schedule["makespan"]) == pytest.approx(
        schedule["time_computing"], rel=1e-9
    )
    span = theirs["time"].diff().shift(-1).fill_null(0.0)
    assert machine.busy_core_seconds(jobs, 0.0, schedule["makespan"]) == pytest.approx(
        (theirs["nb_computing"] * span).sum(), rel=1e-4
    )


def test_a_step_function_in_a_window_by_hand() -> None:
    function = pl.DataFrame({"time_s": [2.0, 4.0, 8.0], "value": [1, 3, 0]})
    assert machine.within(function, 0.0, 10.0).rows() == [(0.0, 0), (2.0, 1), (4.0, 3), (8.0, 0), (10.0, 0)]
    assert machine.within(function, 3.0, 8.0).rows() == [(3.0, 1), (4.0, 3), (8.0, 0)]
    assert machine.within(function, 5.0, 6.0).rows() == [(5.0, 3), (6.0, 3)]
    assert machine.within(function, 9.0, 10.0).rows() == [(9.0, 0), (10.0, 0)]


def test_a_cut_run_ends_at_the_cut_by_hand(table: Any) -> None:
    # cut at 10 s: A ran over [0, 4), B runs since 4, C waits since 6, D was to come at 20
    jobs = table(
        [
            (0.0, 0.0, 4.0, 2, 4.0, "COMPLETED"),
            (1.0, 4.0, None, 3, 50.0, "RUNNING"),
            (6.0, None, None, 1, 50.0, "QUEUED"),
            (20.0, None, None, 1, 50.0, "QUEUED"),
        ]
    )
    window = (0.0, 10.0)
    assert machine.queue_length(jobs, window).rows() == [(0.0, 0), (1.0, 1), (4.0, 0), (6.0, 1), (10.0, 1)]
    assert machine.queued_cores(jobs, window).rows() == [(0.0, 0), (1.0, 3), (4.0, 0), (6.0, 1), (10.0, 1)]
    assert machine.used_cores(jobs, window).rows() == [(0.0, 2), (4.0, 3), (10.0, 3)]
    mean = machine.binned_mean(machine.used_cores(jobs, window), np.array([0.0, 10.0]))["value"].item()
    assert mean * 10.0 == machine.busy_core_seconds(jobs, *window) == 2 * 4 + 3 * 6
