"""Escala against the reference engine: every start, finish, host and joule of its recorded runs, through the public
functions alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import escala
from tests.golden.compare import job_differences, relative, switch_differences, work_joules
from tests.golden.runs import RUNS, Run, read_jobs, read_platform, read_workload, rows_of, totals
from tests.golden.test_oracle import list_of
from tests.laws.laws import check, rows

MOST_NODES = 300  # the laws are held against runs of up to so many nodes; plain Python


def simulate(folder: Path, workload: str, summary: dict[str, float], **options: Any) -> escala.Result:
    platform = escala.read_platform(f"{folder / 'platform.xml.gz'}#{summary['nb_computing_machines']:.0f}")
    return escala.simulate(escala.read_workload(folder / workload), platform, **options)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_run(run: Run, traces: Path) -> None:
    folder = traces / "batsim" / "golden-runs" / run.name
    summary = totals(folder / "out_schedule.csv")
    options = {
        "scheduler": run.scheduler,
        "shutdown": run.shutdown,
        "rules": run.rules,
        "plan_margin_s": run.plan_margin_s,
    }
    result = simulate(folder, "workload.json.gz", summary, **options)
    platform = read_platform(folder / "platform.xml.gz", int(summary["nb_computing_machines"]))
    jobs = read_workload(folder / "workload.json.gz", platform["speed"])
    if len(platform["cores"]) <= MOST_NODES:
        check(result, jobs, platform)
    gold = read_jobs(folder / "out_jobs.csv.gz")
    if not run.starts:
        ours, theirs = work_joules(platform, jobs, result.jobs), work_joules(platform, jobs, list_of(gold, jobs))
        assert relative(ours, theirs) < 1e-9
        return
    assert not job_differences(result.jobs, gold, states=not run.flop)
    joules = float(result.power["joules"].sum())
    if summary["consumed_joules"]:
        assert relative(joules, summary["consumed_joules"]) < 1e-9
    if run.shutdown != "never":
        first = min(row["submit_s"] for row in jobs)
        assert not switch_differences(result.nodes, rows_of(folder / "switches.csv.gz"), first, summary["makespan"])


def test_easy_on_medium_late(traces: Path) -> None:
    """All 801 jobs and the energy of the published run."""
    folder = traces / "batsim" / "golden-medium_late"
    summary = totals(folder / "easy" / "out_schedule.csv")
    result = simulate(folder, "medium_late.json", summary, scheduler="easy", rules="batsched")
    assert not job_differences(result.jobs, read_jobs(folder / "easy" / "out_jobs.csv"), states=True)
    assert relative(float(result.power["joules"].sum()), summary["consumed_joules"]) < 1e-9


def test_conservative_on_medium_late(traces: Path) -> None:
    """The mean wait that the reference engine's conservative backfilling printed for this workload (six decimals)."""
    folder = traces / "batsim" / "golden-medium_late"
    result = simulate(
        folder, "medium_late.json", {"nb_computing_machines": 32}, scheduler="conservative", rules="batsched"
    )
    waits = [row["wait_s"] for row in rows(result.jobs)]
    assert round(sum(waits) / len(waits), 6) == 9.852251
