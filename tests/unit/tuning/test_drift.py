"""Whether a log's later weeks are like its past: a log that stays, one that changes in one feature, and what a policy gives there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.tuning import drift
from escala.tuning.split import WEEK_S
from escala.workload import write_swf

WEEKS = 20


def _log(change: str = "", seed: int = 1, weeks: int = WEEKS, per_week: int = 150) -> escala.Workload:
    """Jobs at random; from the week before the end of the 12th on, `change` is another."""
    rng = np.random.default_rng(seed)
    n = weeks * per_week
    submit = np.sort(rng.uniform(0.0, weeks * WEEK_S, n))
    late = submit >= 0.6 * weeks * WEEK_S
    cores = rng.choice([1, 2, 4, 8], n)
    walltime = rng.choice([600.0, 3600.0, 7200.0], n)
    runtime = walltime * rng.uniform(0.2, 0.9, n)
    if change == "cores":
        cores = np.where(late, np.minimum(cores * 2, 8), cores)
    if change == "runtime":
        runtime = np.where(late, runtime * 0.3, runtime)
    return escala.Workload.from_jobs({"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": cores}, name="weeks")


def test_a_log_that_stays_has_not_drifted() -> None:
    """Over 40 logs there are few false alarms: three of four weeks beyond the usual, in one of four features."""
    alarms = sum(drift(_log(seed=seed)).tune_again for seed in range(40))
    assert alarms <= 3


@pytest.mark.parametrize("change", ["cores", "runtime"])
def test_a_change_is_found_where_it_is(change: str) -> None:
    found = drift(_log(change))
    assert found.drifted == [change] and found.tune_again
    assert all(change in week.unlike for week in found.weeks)
    assert found.weeks[0].distance[change] == pytest.approx(_by_hand(_log(change), change), abs=1e-12)


def _by_hand(log: escala.Workload, feature: str) -> float:
    """The distance of the first later week, over all values."""
    column = log.jobs[{"cores": "cores", "runtime": "runtime_s"}[feature]].to_numpy()
    submit = log.jobs["submit_s"].to_numpy()
    at = submit[0] + 0.6 * (submit[-1] - submit[0])
    week, past = column[(submit >= at) & (submit < at + WEEK_S)], column[submit < at]
    return max(abs(float((week <= x).mean() - (past <= x).mean())) for x in np.unique(column))


def test_a_policy_is_judged_beside_easy() -> None:
    log = _log("cores")
    found = drift(log, "60%", "8x1", "saf")
    bounded = {}
    for name in ("saf", "easy"):
        jobs = escala.simulate(log, "8x1", name).jobs
        slowdown = np.maximum((jobs["wait_s"] + jobs["runtime_s"]).to_numpy() / np.maximum(jobs["runtime_s"].to_numpy(), 10.0), 1.0)
        bounded[name] = slowdown[: int((log.jobs["submit_s"].to_numpy() < log.jobs["submit_s"][0] + 0.6 * log.span_s).sum())].sum()
    assert found.past_ratio == pytest.approx(bounded["saf"] / bounded["easy"])
    assert found.last_ratio is not None and all(week.ratio is not None for week in found.weeks)
    assert found.behind == (found.last_ratio > 1.0)


def test_logs_that_tell_nothing_are_refused() -> None:
    with pytest.raises(EscalaError, match="its past has 2 weeks of at least 20 jobs; 5 are needed"):
        drift(_log(weeks=5))
    with pytest.raises(EscalaError, match="give both"):
        drift(_log(), scheduler="saf")


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_swf(_log("cores"), tmp_path / "log.swf")
    assert run(["drift", str(tmp_path / "log.swf")]) == 0
    told = capsys.readouterr().out
    assert "The last 4 weeks are unlike the past in cores of jobs. Tune again: escala tune." in told
    asked = ["drift", str(tmp_path / "log.swf"), "--platform", "8x1", "--scheduler", "easy", "--json"]
    assert run(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["drifted"] == ["cores"] and document["last_ratio"] == 1.0 and document["tune_again"]
