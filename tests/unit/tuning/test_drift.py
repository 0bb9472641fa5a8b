"""Whether a log's later weeks are like its past: a log that stays, one that changes in one feature, and what a policy
gives there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.tuning import Drift, drift
from escala.tuning.split import WEEK_S
from escala.tuning.unlike import Week
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
    return escala.Workload.from_jobs(
        {"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": cores}, name="weeks"
    )


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
        slowdown = np.maximum(
            (jobs["wait_s"] + jobs["runtime_s"]).to_numpy() / np.maximum(jobs["runtime_s"].to_numpy(), 10.0), 1.0
        )
        bounded[name] = slowdown[
            : int((log.jobs["submit_s"].to_numpy() < log.jobs["submit_s"][0] + 0.6 * log.span_s).sum())
        ].sum()
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


def _folder(where: Path, ratio: str) -> str:
    where.mkdir()
    (where / "policy.toml").write_text(f'format = 1\nformula = "saf"\n[ratio_to_easy]\nbounded_slowdown = {ratio}\n')
    return f"policy:{where}"


def test_a_policy_is_held_to_its_own_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same scheduler in folders that promise what it does on these weeks, and much more; on a log of which it does
    worse later."""
    write_swf(_log(), tmp_path / "log.swf")
    honest, boasting = (
        _folder(tmp_path / "honest", "[0.8, 0.7, 0.99]"),
        _folder(tmp_path / "boasting", "[0.1, 0.1, 0.11]"),
    )
    asked = ["drift", str(tmp_path / "log.swf"), "--platform", "8x1", "--scheduler"]
    for name in (honest, boasting):
        assert run([*asked, name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        past = [week for week in found["weeks"] if week["ratio"] > max(found["usual_ratio"], found["promised"][2])]
        assert found["worse"] == (len([week for week in found["weeks"][-4:] if week in past]) >= 3) is False, (
            "usual for its past"
        )
    assert run([*asked, honest]) == 0
    assert "Its folder says 0.80 [0.70, 0.99]." in capsys.readouterr().out
    assert run([*asked, _folder(tmp_path / "bad", '"much"')]) == 2
    assert "ratio_to_easy.bounded_slowdown = 'much': three numbers are needed" in capsys.readouterr().err


def test_a_policy_that_does_worse_than_it_promised_is_tuned_again() -> None:
    """By hand: three of the last four weeks beyond the usual and the promise, though it is ahead of EASY."""
    weeks = [Week(k, 50, {}, [], ratio) for k, ratio in enumerate((0.3, 0.6, 0.7, 0.4, 0.8))]
    one = Drift(9, weeks, {}, [], "policy:x", 0.4, 0.62, 0.5, (0.4, 0.3, 0.45))
    assert one.worse and one.tune_again and not one.behind and one.as_dict()["worse"]
    assert not replace(one, usual_ratio=0.65).worse, "two of four"
    assert not replace(one, promised=(0.7, 0.5, 0.75)).worse, "it never promised more"
    assert not replace(one, usual_ratio=None, promised=None).worse


def _journal(log: escala.Workload, folder: Path, policies: str) -> None:
    """Looks of weeks, each with the jobs that have ended since the last."""
    folder.mkdir()
    result = escala.simulate(log, "8x1", "easy").jobs
    begin = {
        "kind": "begin",
        "t": 0.0,
        "seq": 0,
        "mode": "shadow",
        "policies": policies,
        "partition": "batch",
        "slurm": "22.05",
    }
    begin |= {"names": [f"n{k}" for k in range(8)], "platform": escala.read_platform("8x1").spec(), "period_s": 10.0}
    lines, rows = [begin], list(zip(log.jobs.iter_rows(named=True), result.iter_rows(named=True), strict=True))
    last = max(row["finish_s"] for _, row in rows)
    for k in range(int(last // WEEK_S) + 1):
        over = [
            [
                f"{n}",
                "ended",
                job["submit_s"],
                row["start_s"],
                row["finish_s"],
                job["walltime_s"],
                job["cores"],
                job["cores"],
                1,
                0,
                False,
            ]
            + ["ann", "batch", ["n1"], "None"]
            for n, (job, row) in enumerate(rows)
            if k * WEEK_S <= row["finish_s"] < (k + 1) * WEEK_S
        ]
        seen = {"whole": True, "jobs": over, "nodes": [], "reservations": []}
        lines.append({"kind": "look", "t": (k + 1) * WEEK_S, "seq": k + 1, "lived": {}, "seen": seen})
    (folder / "journal.jsonl").write_text("".join(json.dumps({"v": 1, **one}) + "\n" for one in lines))


def test_a_journal_of_beside_is_compared_as_a_log_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _log("cores")
    write_swf(log, tmp_path / "log.swf")
    _journal(log, tmp_path / "beside", "saf + never")
    told = []
    for asked in (["log.swf", "--platform", "8x1", "--scheduler", "saf"], ["beside"], ["beside/journal.jsonl"]):
        assert run(["drift", str(tmp_path / asked[0]), *asked[1:], "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[1] == told[2] and told[1]["scheduler"] == "saf" and told[1]["drifted"] == ["cores"]
    for name, limit in told[0]["limits"].items():
        assert told[1]["limits"][name] == pytest.approx(limit, abs=0.02)
    assert told[1]["past_ratio"] == pytest.approx(told[0]["past_ratio"], rel=0.02)
    (tmp_path / "other").mkdir()
    text = (tmp_path / "beside" / "journal.jsonl").read_text()
    (tmp_path / "other" / "journal.jsonl").write_text(text.replace("saf + never", "policy:nowhere + never"))
    assert run(["drift", str(tmp_path / "other"), "--json"]) == 0
    outcome = capsys.readouterr()
    assert "the journal's scheduler is not judged" in outcome.err and json.loads(outcome.out)["past_ratio"] is None
    assert run(["drift", str(tmp_path / "beside"), "--until", "50%"]) == 2
    assert "a journal is read as it is" in capsys.readouterr().err
