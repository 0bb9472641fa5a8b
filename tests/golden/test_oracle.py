"""The oracle against the reference engine: every start, finish, host and joule of its recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import job_differences, relative, switch_differences, work_joules
from tests.golden.runs import RUNS, Run, read_jobs, read_platform, read_workload, rows_of, totals
from tests.laws.laws import check
from tests.oracle.oracle import Tables, simulate

pytestmark = pytest.mark.slow  # plain Python; the kernel itself is compared in test_reference

SHARE = 0.03  # of the makespan: how far the default tests follow the long runs


def inputs(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    hosts = int(totals(folder / "out_schedule.csv")["nb_computing_machines"])
    platform = read_platform(folder / "platform.xml.gz", hosts)
    jobs = read_workload(folder / "workload.json.gz", platform["speed"])
    return jobs, platform


def replay(run: Run, jobs: list[dict[str, Any]], platform: dict[str, Any], until_s: float | None = None) -> Tables:
    return simulate(
        jobs, platform, run.scheduler, run.shutdown, run.rules, plan_margin_s=run.plan_margin_s, until_s=until_s
    )


def assert_equal_to_reference(run: Run, folder: Path) -> None:
    jobs, platform = inputs(folder)
    result = replay(run, jobs, platform)
    check(result, jobs, platform)
    summary = totals(folder / "out_schedule.csv")
    gold = read_jobs(folder / "out_jobs.csv.gz")
    if not run.starts:
        ours, theirs = work_joules(platform, jobs, result.jobs), work_joules(platform, jobs, list_of(gold, jobs))
        assert relative(ours, theirs) < 1e-9
        return
    assert not job_differences(result.jobs, gold, states=not run.flop)
    if summary["consumed_joules"]:
        assert relative(float(result.joules), summary["consumed_joules"]) < 1e-9
    if run.shutdown != "never":
        first = min(row["submit_s"] for row in result.jobs)
        assert not switch_differences(result.nodes, rows_of(folder / "switches.csv.gz"), first, summary["makespan"])


def list_of(gold: dict[str, dict[str, Any]], jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cores = {job["job_id"]: job["cores"] for job in jobs}
    return [{"job_id": job_id, "cores": cores[job_id], **row} for job_id, row in gold.items()]


@pytest.mark.parametrize("run", [run for run in RUNS if not run.slow], ids=lambda run: run.name)
def test_whole_run(run: Run, traces: Path) -> None:
    assert_equal_to_reference(run, traces / "batsim" / "golden-runs" / run.name)


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=pytest.mark.long if run.long else ()) for run in RUNS if run.slow],
    ids=lambda run: run.name,
)
def test_whole_long_run(run: Run, traces: Path) -> None:
    assert_equal_to_reference(run, traces / "batsim" / "golden-runs" / run.name)


@pytest.mark.parametrize("run", [run for run in RUNS if run.slow and run.starts], ids=lambda run: run.name)
def test_beginning_of_long_run(run: Run, traces: Path) -> None:
    folder = traces / "batsim" / "golden-runs" / run.name
    jobs, platform = inputs(folder)
    until_s = SHARE * totals(folder / "out_schedule.csv")["makespan"]
    result = replay(run, jobs, platform, until_s)
    check(result, jobs, platform, until_s)
    started = [row for row in result.jobs if row["start_s"] is not None and row["start_s"] < until_s]
    gold = read_jobs(folder / "out_jobs.csv.gz")
    assert {row["job_id"] for row in started} == {job_id for job_id, row in gold.items() if row["start_s"] < until_s}
    ended = [row for row in started if row["finish_s"] is not None]
    assert not job_differences(ended, {row["job_id"]: gold[row["job_id"]] for row in ended}, states=not run.flop)
    assert all(abs(row["start_s"] - gold[row["job_id"]]["start_s"]) < 1e-5 for row in started)


def test_easy_on_medium_late(traces: Path) -> None:
    """All 801 jobs and the energy of the published run."""
    folder = traces / "batsim" / "golden-medium_late"
    platform = read_platform(folder / "platform.xml.gz", 32)
    jobs = read_workload(folder / "medium_late.json", platform["speed"])
    result = simulate(jobs, platform, "easy", rules="batsched")
    check(result, jobs, platform)
    assert not job_differences(result.jobs, read_jobs(folder / "easy" / "out_jobs.csv"), states=True)
    summary = totals(folder / "easy" / "out_schedule.csv")
    assert relative(float(result.joules), summary["consumed_joules"]) < 1e-9


def test_conservative_on_medium_late(traces: Path) -> None:
    """The mean wait that the reference engine's conservative backfilling printed for this workload (six decimals)."""
    folder = traces / "batsim" / "golden-medium_late"
    platform = read_platform(folder / "platform.xml.gz", 32)
    jobs = read_workload(folder / "medium_late.json", platform["speed"])
    result = simulate(jobs, platform, "conservative", rules="batsched")
    check(result, jobs, platform)
    assert round(sum(row["wait_s"] for row in result.jobs) / len(jobs), 6) == 9.852251
