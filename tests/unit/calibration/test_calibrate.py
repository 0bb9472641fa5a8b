"""Calibrations: a log of the simulator stands for its machine, and a planted limit, pause, drained node or wrong size
is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import escala
from escala import EscalaError, Workload
from escala.calibration import calibrate, warm_start
from escala.calibration.calibrate import RESEMBLES, STANDS, UNLIKE, UNTESTED, rank_correlation
from escala.calibration.curves import grid_of, levels, over_time
from escala.report import calibration as page

DAY = 86400.0


def _jobs(n: int = 600, seed: int = 1, days: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, days * DAY, n))
    runtime = np.round(rng.lognormal(8.3, 1.0, n)) + 1.0
    return {
        "submit_s": submit, "runtime_s": runtime, "walltime_s": 2 * runtime, "cores": rng.integers(1, 5, n),
        "user": [f"u{k % 3}" for k in range(n)], "queue": ["a" if k % 2 else "b" for k in range(n)],
    }  # fmt: skip


def _recorded(jobs: dict[str, Any], platform: str, scheduler: str = "easy", **meta: Any) -> Workload:
    """The log of a run: its starts are the recorded ones."""
    run = escala.simulate(Workload.from_jobs(jobs), platform, scheduler).jobs
    return Workload.from_jobs({**jobs, "wait_s": run["wait_s"].to_list()}, **meta)


def test_a_log_of_the_simulator_stands_for_its_machine() -> None:
    log = _recorded(_jobs(), "8x1", origin_s=1.7e9)
    assert log.jobs["wait_s"].mean() > 600
    found = calibrate(log, "8x1", "easy")
    whole = found.whole
    assert (
        found.verdict == STANDS
        and whole["rank_correlation_of_days"] == pytest.approx(1.0)
        and whole["within_5_min_share"] > 0.99
    )
    assert abs(whole["error_of_mean_s"]) < 0.01 * whole["mean_recorded_s"]
    assert found.curves["utilisation_recorded"].to_numpy() == pytest.approx(
        found.curves["utilisation_replayed"].to_numpy(), abs=0.05
    )
    assert found.causes == [] and set(found.groups) == {"day", "partition", "size", "user"}
    assert found.groups["size"]["size"].to_list() == ["1", "2-4"] and found.groups["day"]["day"][0] == "2023-11-14"
    assert sum(found.groups["user"]["jobs"]) == whole["jobs"] and page.answer(found).startswith(
        "This replay stands for the cluster: "
    )


def test_another_order_and_another_size_do_not_stand() -> None:
    log = _recorded(_jobs(), "8x1")
    wide = calibrate(log, "32x1", "easy")
    assert wide.verdict == UNLIKE and "larger than the machine was" in wide.causes[0]
    narrow = calibrate(log, "3x1", "easy")
    assert any("jobs can never run on 3x1" in one for one in narrow.causes) and any(
        "it is too small" in one for one in narrow.causes
    )
    other = calibrate(log, "8x1", "conservative")
    assert other.verdict in (STANDS, RESEMBLES) and other.whole["rank_correlation"] < 1.0
    idle = calibrate(_recorded(_jobs(60), "64x1"), "64x1", "easy")
    assert idle.verdict == UNTESTED and "cannot be told" in page.answer(idle)


def test_with_few_days_the_jobs_must_rank_alike() -> None:
    """The log's own waits, and the same ones given to other jobs: one mean, another order."""
    jobs = _jobs(150, days=2)
    own = _recorded(jobs, "8x1")
    assert own.jobs["wait_s"].mean() > 600
    same = calibrate(own, "8x1", "easy")
    assert same.whole["rank_correlation_of_days"] is None and same.verdict == STANDS
    waits = np.random.default_rng(2).permutation(own.jobs["wait_s"].to_numpy())
    other = calibrate(Workload.from_jobs({**jobs, "wait_s": waits}), "8x1", "easy")
    assert (
        abs(other.whole["error_of_mean_s"]) <= 0.1 * other.whole["mean_recorded_s"]
        and other.whole["rank_correlation"] < 0.9
    )
    assert other.verdict == RESEMBLES


def test_a_warm_start_puts_running_jobs_on_the_machine_and_lets_the_waiting_come() -> None:
    """By hand: 1 and 2 ran when the log begins, at the end of 1 (100); 3 had waited since 10; 4 comes after."""
    log = Workload.from_jobs({
        "job_id": ["1", "2", "3", "4", "5", "6"], "submit_s": [-50.0, 0.0, 10.0, 120.0, 130.0, 140.0],
        "wait_s": [50.0, 40.0, 90.0, 0.0, 70.0, 160.0], "runtime_s": [100.0, 160.0, 50.0, 100.0, 100.0, 20.0],
        "cores": [1, 1, 1, 1, 1, 1],
    })  # fmt: skip
    warm = warm_start(log)
    assert (warm.since_s, warm.running, warm.waiting) == (100.0, 2, 1)
    assert dict(warm.log.jobs.select("job_id", "submit_s").iter_rows()) == {
        "1": 0.0,
        "2": 40.0,
        "3": 100.0,
        "4": 120.0,
        "5": 130.0,
        "6": 140.0,
    }
    assert sorted(warm.measured) == ["3", "4", "5", "6"]
    found = calibrate(log, "3x1", "fcfs")
    assert dict(found.jobs.filter("measured").select("job_id", "replayed_s").iter_rows()) == {
        "3": 90.0,
        "4": 0.0,
        "5": 20.0,
        "6": 60.0,
    }
    assert found.about["running"] == 2 and any(
        one.startswith("Warm start: 2 jobs ran and 1 waited") for one in page.sentences(found)
    )


def test_a_log_that_begins_with_an_empty_machine_starts_cold() -> None:
    log = Workload.from_jobs(
        {"submit_s": [0.0, 1.0, 2.0], "runtime_s": [50.0, 50.0, 50.0], "cores": [1] * 3, "wait_s": [0.0, 0.0, 0.0]}
    )
    warm = warm_start(log)
    assert warm.since_s is None and warm.log is log and len(warm.measured) == 3


def test_another_order_under_slurm_is_no_test_of_a_site() -> None:
    log = _recorded(_jobs(), "8x1", origin_s=1.7e9)
    said = "An order of the queue other than the site's own is no test of the site."
    for name, told in (("slurm", False), ("slurm:queue=saf", True), ("slurm:queue=sjf:guard=3h", True)):
        assert (said in calibrate(log, "8x1", name).causes) is told


def test_a_planted_limit_of_running_jobs_is_named() -> None:
    n = 80
    log = Workload.from_jobs({
        "submit_s": [0.0] * n, "runtime_s": [3600.0] * n, "cores": [1] * n, "user": ["greedy"] * n,
        "wait_s": [3600.0 * (k // 4) for k in range(n)]
    })  # fmt: skip
    found = calibrate(log, "16x1", "easy")
    assert any("greedy 4 (100 % of the time)" in one for one in found.causes), found.causes
    assert not any("greedy" in one for one in calibrate(log, "4x1", "easy").causes), "there no cores are free"


def test_a_planted_pause_is_named() -> None:
    jobs = _jobs(300)
    log = _recorded(jobs, "8x1")
    pause = (4 * DAY, 4.5 * DAY)
    start = pl.col("submit_s") + pl.col("wait_s")
    held = pl.when(start.is_between(*pause)).then(pause[1] - pl.col("submit_s")).otherwise("wait_s")
    paused = calibrate(log.with_jobs(log.jobs.with_columns(wait_s=held)), "8x1", "easy")
    assert any("Nothing started for more than an hour" in one and "downtime" in one for one in paused.causes), (
        paused.causes
    )


def test_nodes_that_ran_nothing_are_named() -> None:
    log = _recorded(_jobs(100), "4x1")
    log = log.with_jobs(log.jobs.with_columns(hosts=pl.Series([f"n{k % 3 + 1}" for k in range(len(log))])))
    platform = escala.Platform.uniform(5, 4)
    from dataclasses import replace

    found = calibrate(log, replace(platform, names=("n1", "n2", "n3", "n4", "n5")), "easy")
    assert any("2 of the 5 nodes never ran a job of this log: n[4-5]" in one for one in found.causes), found.causes


def test_what_cannot_be_held_against_anything_is_one_line() -> None:
    with pytest.raises(EscalaError, match="records no waits"):
        calibrate(Workload.from_jobs({"submit_s": [0.0], "runtime_s": [1.0], "cores": [1]}), "4x1")
    with pytest.raises(EscalaError, match="none of its jobs with a recorded wait can run"):
        calibrate(
            Workload.from_jobs({"submit_s": [0.0], "runtime_s": [1.0], "cores": [9], "wait_s": [0.0]}), "4x1", "easy"
        )


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(1, 30), st.integers(1, 8)),
        min_size=1,
        max_size=20,
    )
)
def test_means_over_time_are_exact(rows: list[tuple[int, int, int, int]]) -> None:
    """Against a count of each second."""
    jobs = pl.DataFrame(
        {"submit_s": [float(s) for s, *_ in rows], "start": [float(s + w) for s, w, *_ in rows],
         "end": [float(s + w + r) for s, w, r, _ in rows], "cores": [c for *_, c in rows]}
    )  # fmt: skip
    grid = grid_of(0.0, 120.0, 12)
    found = over_time(jobs, "start", "end", 10, grid)
    second = np.arange(120)
    busy = sum(c * ((second >= s + w) & (second < s + w + r)) for s, w, r, c in rows)
    queue = sum(1 * ((second >= s) & (second < s + w)) for s, w, r, c in rows)
    assert found["utilisation"].to_numpy() == pytest.approx(np.asarray(busy).reshape(12, 10).mean(1) / 10)
    assert found["queue"].to_numpy() == pytest.approx(np.asarray(queue).reshape(12, 10).mean(1))
    _, held = levels(jobs["start"].to_numpy(), jobs["end"].to_numpy(), jobs["cores"].to_numpy().astype(float))
    assert held.max() == np.asarray(busy).max() and held[-1] == 0


def test_rank_correlation_by_hand() -> None:
    """Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5 over the roots of 4.5 and 5."""
    assert rank_correlation(pl.Series([0.0, 5.0, 5.0, 9.0]), pl.Series([1.0, 2.0, 3.0, 40.0])) == pytest.approx(
        4.5 / (4.5 * 5) ** 0.5
    )
    assert rank_correlation(pl.Series([1.0, 1.0, 1.0]), pl.Series([1.0, 2.0, 3.0])) is None


def test_the_page(tmp_path: Path) -> None:
    found = calibrate(_recorded(_jobs(), "8x1", origin_s=1.7e9), "32x1", "easy")
    page.write_page(found, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") >= 2 and "This replay does not stand for the cluster" in text and "By partition" in text
    assert all(one.split(" (")[0][:60] in text for one in found.causes)
