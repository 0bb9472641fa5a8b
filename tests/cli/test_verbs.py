"""Each verb does its work; figures are worked out by hand from the small log of `program.LOG`.

Four jobs on four nodes of one core. Under EASY: job 1 runs 0-100 on two cores; job 2 (four cores) waits for it,
100-150, wait 90; job 3 fits beside job 1 and ends, by walltime, before job 2's reservation at 200: it starts at once;
job 4 is killed at its walltime, 400-420. Under FCFS job 3 waits behind job 2 until 150.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

import escala
from tests.cli.program import Escala, Outcome

MEAN_WAIT = {"easy": 90 / 4, "fcfs": (90 + 130) / 4}
CORE_SECONDS = 2 * 100 + 4 * 50 + 30 + 20
JOULES = 4 * 420 * 95 + CORE_SECONDS * 95
"""Four nodes idle at 95 W over the makespan of 420 s; a computing node draws 95 W more."""


def _json(outcome: Outcome) -> Any:
    assert outcome.status == 0, outcome.err
    assert outcome.err == ""
    return json.loads(outcome.out)


@pytest.mark.parametrize("scheduler", MEAN_WAIT)
def test_simulate_prints_the_metrics(escala_: Escala, log: Path, scheduler: str) -> None:
    summary = _json(escala_("simulate", log, "--platform", "4x1:grid5000", "--scheduler", scheduler, "--json"))
    assert summary["mean_wait_s"] == pytest.approx(MEAN_WAIT[scheduler], abs=1e-6)
    assert summary["n_jobs"] == 4 and summary["n_killed"] == 1 and summary["makespan_s"] == 420.0
    assert summary["energy_j"] == pytest.approx(JOULES, rel=1e-12)
    assert summary["utilisation"] == pytest.approx(CORE_SECONDS / (4 * 420), rel=1e-12)


def test_simulate_shows_a_table_with_units(escala_: Escala, log: Path) -> None:
    outcome = escala_("simulate", log, "--platform", "4x1:grid5000")
    assert outcome.status == 0 and outcome.err == ""
    shown = [line.split() for line in outcome.out.splitlines()]
    assert ["Mean", "wait", "22.50", "s"] in shown and ["Makespan", "7", "min"] in shown and ["Killed", "1"] in shown


def test_simulate_saves_a_result_that_can_be_loaded_and_reported(escala_: Escala, log: Path) -> None:
    out = log.parent / "out"
    assert escala_("simulate", log, "--platform", "4x1:grid5000", "--export", "batsim", "--out", out).status == 0
    result = escala.Result.load(out)
    starts = dict(result.jobs.select("job_id", "start_s").iter_rows())
    assert starts == {"1": 0.0, "2": 100.0, "3": 20.0, "4": 400.0}
    assert json.loads((out / "summary.json").read_text())["mean_wait_s"] == pytest.approx(22.5)
    with (out / "batsim" / "jobs.csv").open() as file:
        rows = {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file)}
    assert rows == starts
    before = sorted(os.listdir(out))
    assert escala_("simulate", log, "--platform", "4x1:grid5000", "--export", "batsim", "--out", out).status == 0, (
        "our own output may be replaced"
    )
    assert sorted(os.listdir(out)) == before and sorted(os.listdir(log.parent)) == ["out", "small.swf"]
    assert _json(escala_("report", out, "--json"))["runs"] == ["easy + never"]
    page = (out / "report.html").read_text()
    assert "<svg" in page and "Mean wait" in page
    assert not any(word in page for word in ('src="http', 'href="http', "@import")), "the page loads nothing"


def test_options_reach_the_simulator(escala_: Escala, log: Path) -> None:
    def simulate(*more: str) -> Any:
        return _json(escala_("simulate", log, "--platform", "4x1:grid5000", "--json", *more))

    assert simulate("--stop-at", "120")["n_running"] == 1
    assert simulate("--shutdown", "timeout:0")["transitions"] > 0
    assert simulate("--shutdown", "timeout:0", "--start-off")["mean_wait_s"] > 22.5
    assert simulate("--estimate", "runtime", "--scheduler", "conservative")["mean_wait_s"] == 22.5
    for more in (
        ["--rules", "batsched"],
        ["--head", "latest-released"],
        ["--depth", "1", "--scheduler", "conservative"],
        ["--rebuild", "--scheduler", "conservative"],
        ["--plan-margin", "5"],
        ["--seed", "3"],
    ):
        assert simulate(*more)["n_jobs"] == 4


def test_compare_tells_policies_apart(escala_: Escala, log: Path) -> None:
    verb = ["compare", log, "--platform", "4x1:grid5000", "--schedulers", "fcfs,easy", "--shutdowns", "never,timeout:0"]
    pairs = ["fcfs + never", "fcfs + timeout:0", "easy + never", "easy + timeout:0"]
    rows = {row["policy"]: row for row in _json(escala_(*verb, "--json"))}
    assert list(rows) == pairs
    assert (
        rows["fcfs + never"]["mean_wait_s"] == MEAN_WAIT["fcfs"]
        and rows["easy + never"]["mean_wait_s"] == MEAN_WAIT["easy"]
    )
    assert rows["easy + never"]["mean_wait_s_change"] == pytest.approx(MEAN_WAIT["easy"] / MEAN_WAIT["fcfs"] - 1.0)
    outcome = escala_(*verb, "--out", log.parent / "out")
    assert outcome.status == 0 and outcome.out.count("timeout:0") == 2 and "Mean wait" in outcome.out
    assert _json(escala_("report", log.parent / "out", "--json"))["runs"] == pairs


def test_compare_tells_the_share_of_what_is_possible(escala_: Escala, log: Path) -> None:
    verb = ["compare", log, "--platform", "4x1:grid5000", "--schedulers", "fcfs,easy", "--headroom", "wait"]
    rows = _json(escala_(*verb, "--json"))
    best = escala.bound(escala.read_workload(log), "4x1:grid5000", "wait", policies=()).found
    assert best is not None
    assert [row["headroom"] for row in rows] == [
        0.0,
        pytest.approx((MEAN_WAIT["fcfs"] - MEAN_WAIT["easy"]) / (MEAN_WAIT["fcfs"] - best)),
    ]
    shown = escala_(*verb)
    assert "Headroom" in shown.out and "proved: none below" in shown.out
    assert escala_(*verb, "--stop-at", "100").status == 2


def test_compare_reports_what_a_cut_run_left_out(escala_: Escala, log: Path) -> None:
    outcome = escala_("compare", log, "--platform", "4x1:grid5000", "--schedulers", "fcfs,easy", "--stop-at", "120")
    assert outcome.status == 0 and "unfinished" in outcome.out


def test_describe(escala_: Escala, log: Path) -> None:
    described = _json(escala_("workload", "describe", log, "--platform", "4x1:grid5000", "--json"))
    assert described["jobs"] == 4 and described["cores"] == 4 and described["sequential_share"] == pytest.approx(2 / 3)
    shown = escala_("workload", "describe", log)
    assert shown.status == 0 and "2001-09-09" in shown.out and "over request" in shown.out


def test_convert_and_generate_round_trip(escala_: Escala, log: Path) -> None:
    packed = log.parent / "part.swf.gz"
    assert _json(escala_("workload", "convert", log, "--first", "2", "--out", packed, "--json"))["jobs"] == 2
    assert escala.read_workload(packed).jobs["runtime_s"].to_list() == [100.0, 50.0]
    batsim = log.parent / "part.json"
    assert escala_("workload", "convert", log, "--out", batsim, "--speed", "1e9").status == 0
    assert len(escala.read_workload(batsim, speed=1e9)) == 4
    month = log.parent / "month.swf"
    verb = ["workload", "generate", "grid5000", "cluster=orion", "days=3", "--seed", "5", "--out", month, "--json"]
    first = _json(escala_(*verb))
    text = month.read_text()
    assert first["jobs"] == len(escala.read_workload(month)) > 0
    assert escala_(*verb).status == 2, "a file is not replaced unasked"
    _json(escala_(*verb, "--force"))
    assert month.read_text() == text, "one seed, one log"


def test_columns_of_a_table_may_be_named(escala_: Escala, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("site,at,took,asked,size\na,0,5,9,1\na,1,5,9,1\nb,0,7,9,2\n")
    fields = [f"--column={pair}" for pair in ("submit_s=at", "runtime_s=took", "walltime_s=asked", "cores=size")]
    described = _json(
        escala_("workload", "describe", tmp_path / "jobs.csv", *fields, "--select", "site=a", "--unit", "min", "--json")
    )
    assert described["jobs"] == 2 and described["quantiles"]["runtime_s"]["max"] == 300.0


def test_one_column_more_of_a_known_table_may_be_named_alone(escala_: Escala, tmp_path: Path) -> None:
    """Two jobs that a plan by the column `guess` lets pass, and one by requests does not."""
    path = tmp_path / "jobs.csv"
    rows = ("1,0,10,10,1,10", "2,1,10,10,2,10", "3,2,5,20,1,8")
    path.write_text("\n".join(("job_id,submit_s,runtime_s,walltime_s,cores,guess", *rows)) + "\n")
    verb = ("simulate", path, "--platform", "2x1", "--json")
    assert _json(escala_(*verb))["mean_wait_s"] == (0 + 9 + 18) / 3
    named = ("--column", "estimate_guess=guess", "--estimate", "estimate_guess")
    assert _json(escala_(*verb, *named))["mean_wait_s"] == (0 + 9 + 0) / 3
    path.write_text("job_id,at,runtime_s,cores\n1,0,10,1\n")
    told = escala_(*verb, "--column", "user=job_id")
    assert told.status == 2 and "must name submit_s, cores" in told.err


def test_help_everywhere(escala_: Escala) -> None:
    assert "simulate" in escala_().out
    for verb in (
        "demo",
        "simulate",
        "compare",
        "evaluate",
        "train",
        "report",
        "workload describe",
        "workload convert",
        "workload generate",
        "study list",
    ):
        outcome = escala_(*verb.split(), "--help")
        assert outcome.status == 0 and outcome.err == "" and "--json" in outcome.out, verb
