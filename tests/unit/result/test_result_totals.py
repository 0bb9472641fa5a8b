"""The tables of a Result agree with each other: `totals` come from the kernel's ledger, `power` and `nodes` from
recorded lives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.platform import Platform, PowerProfile
from tests.oracle.engines import run_kernel
from tests.oracle.worlds import draw

WORLDS = 150
SMALL = PowerProfile(200.0, 90.0, 5.0, 110.0, 130.0, 3.0, 11.0, name="small")
LARGE = PowerProfile(733.3, 301.7, 17.1, 350.0, 402.9, 5.5, 120.25, name="large")
FIXED = PowerProfile(50.0, 20.0, can_switch=False, name="fixed")


def mixed_platform() -> Platform:
    """Three profiles, nodes of 1, 4 and 16 cores."""
    cores = np.array([1] * 4 + [4] * 6 + [16] * 3)
    return Platform(
        name="mixed",
        cores=cores,
        profiles=(SMALL, LARGE, FIXED),
        profile_of=np.array([0] * 4 + [1] * 4 + [2] * 2 + [1] * 3),
    )


def jobs(seed: int, count: int = 400) -> escala.Workload:
    """Sizes that use nodes in part, loads from 0 to 1, microsecond times, gaps in which nodes go off."""
    rng = np.random.default_rng(seed)
    runtime = np.exp(rng.uniform(np.log(0.01), np.log(500.0), count)).round(6)
    return escala.Workload.from_jobs(
        {
            "submit_s": (np.cumsum(rng.exponential(20.0, count) * rng.choice([0.0, 1.0, 6.0], count)) + 13.5).round(6),
            "runtime_s": runtime,
            "walltime_s": (runtime * rng.uniform(0.9, 3.0, count)).round(6),
            "cores": rng.integers(1, 40, count),
            "load": rng.choice([0.0, 0.25, 0.7, 1.0], count),
        }
    )


OPTIONS: list[dict[str, Any]] = [
    {"scheduler": "fcfs", "shutdown": "timeout:0"},
    {"scheduler": "fcfs", "shutdown": "timeout:30", "start_off": True},
    {"scheduler": "easy", "shutdown": "never"},
    {"scheduler": "easy", "shutdown": "timeout:0"},
    {"scheduler": "easy", "shutdown": "timeout:60", "until_s": 2500.125},
    {"scheduler": "saf", "shutdown": "timeout:10+2", "start_off": True, "until_s": 3000.0},
    {"scheduler": "conservative", "shutdown": "timeout:5"},
    {"scheduler": "first-fit", "shutdown": "off-reservation:2"},
    {"scheduler": "easy", "shutdown": "proportional:0.3", "start_off": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(str(value) for value in options.values()))
def test_tables_agree(options: dict[str, Any]) -> None:
    result = escala.simulate(jobs(3), mixed_platform(), **options)
    seconds = dict(result.totals.select("state", "seconds").iter_rows())
    assert seconds["off"] > 0 or options["shutdown"] == "never"
    agree(result)


def test_tables_agree_in_random_worlds() -> None:
    rng = random.Random(11)
    for _ in range(WORLDS):
        case = draw(rng)
        if case.options.get("scheduler") is not None:
            agree(run_kernel(case))


def agree(result: escala.Result) -> None:
    """Sums over nodes = totals, state by state; node seconds = window x nodes; energy of jobs + idle rest = energy of
    computing nodes."""
    power = result.power.group_by("state", maintain_order=True).agg(pl.col("seconds", "joules", "transitions").sum())
    totals = result.totals.join(power, on="state", suffix="_of_nodes", validate="1:1")
    assert len(totals) == 5
    window = result.manifest["window"]["end_s"] - result.manifest["window"]["start_s"]
    capacity = window * result.manifest["n_nodes"]
    for row in totals.iter_rows(named=True):
        assert row["transitions"] == row["transitions_of_nodes"], row
        assert row["seconds"] == pytest.approx(row["seconds_of_nodes"], rel=1e-12, abs=1e-15 * capacity), row
        assert row["joules"] == pytest.approx(row["joules_of_nodes"], rel=1e-12, abs=1e-12), row
    assert totals["seconds"].sum() == pytest.approx(capacity, rel=1e-12)
    lasted = result.nodes.select((pl.col("to_s") - pl.col("from_s")).sum()).item()
    assert lasted == pytest.approx(capacity, rel=1e-11)
    shares(result)


def shares(result: escala.Result) -> None:
    """What jobs drew, plus idle watts of the cores that computing nodes left unused, is what computing nodes drew."""
    platform = Platform.from_spec(result.platform)
    idle = np.array([profile.idle_w for profile in platform.profiles])[platform.profile_of]
    end = result.manifest["window"]["end_s"]
    ran = result.jobs.select("job_id", seconds=pl.col("finish_s").fill_null(end) - pl.col("start_s"))
    held = result.allocations.join(ran, on="job_id")
    node, seconds = held["node"].to_numpy(), held["seconds"].fill_null(0.0).to_numpy()
    used = np.bincount(node, seconds * held["cores"].to_numpy() / platform.cores[node], minlength=platform.n_nodes)
    computing = result.power.filter(pl.col("state") == "computing").sort("node")
    unused = float((computing["seconds"].to_numpy() - used) @ idle)
    total = float(computing["joules"].sum())
    assert float(held["joules"].sum()) + unused == pytest.approx(total, rel=1e-9, abs=1e-9)
