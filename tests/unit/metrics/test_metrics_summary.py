"""The flat summary of a run."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hand_tables import JOBS_SCHEMA, job_table

import escala
from escala.metrics import machine, summarise
from escala.workload.generate_lublin import lublin


def test_by_hand(jobs: pl.DataFrame, power: pl.DataFrame) -> None:
    got = summarise(jobs, power, nodes=2, cores=2, start_s=0.0, end_s=20.0)
    assert got["mean_wait_s"] == pytest.approx(14 / 3)
    assert got["max_wait_s"] == 8.0
    assert got["mean_slowdown"] == pytest.approx(5.5 / 3)
    assert got["mean_bounded_slowdown"] == pytest.approx(3.6 / 3)
    assert got["makespan_s"] == 18.0
    assert got["window_s"] == 20.0
    assert got["utilisation"] == 38 / 40
    assert got["energy_j"] == 6416.0
    assert got["waste_j"] == 291.0
    assert got["mean_power_w"] == 320.8
    assert got["n_unfinished"] == 2
    assert got["mean_turnaround_s"] - got["mean_wait_s"] == pytest.approx(got["mean_runtime_s"])


def test_bound_and_threshold_are_passed_on(jobs: pl.DataFrame, power: pl.DataFrame) -> None:
    got = summarise(jobs, power, nodes=2, cores=2, start_s=0.0, end_s=20.0, bound_s=5.0, theta=0.1)
    assert got["mean_bounded_slowdown"] == pytest.approx(5 / 3)
    assert got["mean_delay_s"] == pytest.approx(9.2 / 3)


def test_a_run_without_jobs(power: pl.DataFrame) -> None:
    empty = pl.DataFrame(schema=JOBS_SCHEMA)
    got = summarise(empty, power.clear(), nodes=2, cores=2, start_s=0.0, end_s=0.0)
    assert got["n_jobs"] == 0 and got["energy_j"] == 0.0
    assert math.isnan(got["mean_wait_s"]) and math.isnan(got["utilisation"]) and math.isnan(got["makespan_s"])


def test_one_job(power: pl.DataFrame) -> None:
    one = job_table([(5.0, 5.0, 15.0, 2, 20.0, "COMPLETED")])
    got = summarise(one, power, nodes=2, cores=2, start_s=5.0, end_s=15.0)
    assert got["mean_wait_s"] == got["sd_wait_s"] == 0.0
    assert got["utilisation"] == 1.0 and got["makespan_s"] == 10.0


def test_names_are_the_same_for_any_run(jobs: pl.DataFrame, power: pl.DataFrame) -> None:
    full = summarise(jobs, power, nodes=2, cores=2, start_s=0.0, end_s=20.0)
    empty = summarise(jobs.clear(), power.clear(), nodes=2, cores=2, start_s=0.0, end_s=0.0)
    assert list(full) == list(empty)
    assert all(isinstance(v, int | float) for v in [*full.values(), *empty.values()])


def test_a_million_jobs(power: pl.DataFrame) -> None:
    n, random = 1_000_000, np.random.default_rng(0)
    submit = np.sort(random.uniform(0, 1e7, n))
    wait, run = random.exponential(100, n), random.exponential(1000, n)
    jobs = pl.DataFrame(
        {
            "job_id": np.arange(n).astype(str),
            "submit_s": submit,
            "start_s": submit + wait,
            "finish_s": submit + wait + run,
            "cores": random.integers(1, 64, n),
            "walltime_s": 2 * run,
            "runtime_s": run,
            "state": ["COMPLETED"] * n,
        }
    )
    got = summarise(jobs, power, nodes=100, cores=10_000, start_s=0.0, end_s=1e7)
    assert got["n_completed"] == n
    assert got["mean_wait_s"] == pytest.approx(wait.mean())


def test_some_metrics_alone_are_those_of_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """What campaigns ask for; what takes long and nobody wants is not computed."""
    log = lublin(jobs=80, cores=16, seed=1)
    result = escala.simulate(log, "16x1:grid5000", "easy", "timeout:300")
    whole = result.summary()
    short = escala.simulate(log, "16x1:grid5000", "easy", "timeout:300", record=False)
    assert short.summary() == whole and set(short.jobs["nodes"]) == {""}
    monkeypatch.setattr(machine, "loss_of_capacity", None)
    some = result.metrics({"mean_wait_s", "p95_wait_s", "mean_stretch"})
    assert some.items() <= whole.items() and {"mean_wait_s", "p95_wait_s", "mean_stretch", "energy_j"} <= some.keys()
    assert not some.keys() & {"mean_slowdown", "p95_delay_s", "loss_of_capacity"}
