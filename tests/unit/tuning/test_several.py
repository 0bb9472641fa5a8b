"""One policy for several logs: chosen on the pasts of all of them, each counting alike, and judged on the later weeks
of each."""

from __future__ import annotations

import functools
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.tuning import Several, judge, tune_several
from escala.tuning.split import WEEK_S, split_of
from escala.workload import Workload

MACHINES = ("8x1", "4x2")


def _log(seed: int, gap_s: float, weeks: float = 6.0, long_s: float = 7200.0) -> Workload:
    """Short and long jobs of all sizes, one every `gap_s` in the mean."""
    random = np.random.default_rng(seed)
    n = int(weeks * WEEK_S / gap_s)
    runtime = np.where(random.random(n) < 0.7, 60.0, long_s) * random.uniform(0.5, 1.5, n)
    columns: dict[str, Any] = {
        "submit_s": np.sort(random.uniform(0, weeks * WEEK_S, n)),
        "runtime_s": runtime,
        "walltime_s": runtime * random.uniform(1.0, 3.0, n),
        "cores": random.choice([1, 2, 4, 8], n),
        "user": [f"u{k}" for k in random.integers(0, 12, n)],
    }
    return Workload.from_jobs(columns, name="small")


@functools.cache
def _logs(weeks: float = 6.0, gap_s: float = 1150.0) -> tuple[tuple[Workload, str], ...]:
    """Two logs of one name, the second with longer jobs, so that the best rules differ."""
    return tuple(zip((_log(0, gap_s, weeks), _log(5, 5000.0, weeks, 30_000.0)), MACHINES, strict=True))


@functools.cache
def _found() -> Several:
    return tune_several(_logs())


def test_the_rule_is_that_of_the_least_mean_over_the_logs() -> None:
    """By plain means of what each log alone says of every rule."""
    alone = [escala.tune(log, machine) for log, machine in _logs()]
    means, kept = dict[str, float](), set[str]()
    for rules in zip(*(one.tried for one in alone), strict=True):
        assert len({rule.name for rule in rules}) == 1
        means[rules[0].name] = sum(rule.value for rule in rules) / 2
        kept |= {rules[0].name} if all(rule.excess == 0.0 for rule in rules) else set()
    found = _found()
    assert found.rule == found.chosen == min(kept, key=lambda name: means[name])
    assert [one.rule for one in found.logs] == [one.rule for one in alone]
    assert any(one.rule != found.rule for one in alone), "the logs differ, or this test says nothing"


def test_each_log_is_judged_in_one_replay_of_the_whole_log() -> None:
    found = _found()
    names = [one.about["workload"]["name"] for one in found.logs]
    assert names == ["small", "small 2"]
    product = 1.0
    for one, (log, machine) in zip(found.logs, _logs(), strict=True):
        jobs = escala.simulate(log, machine, found.chosen).jobs.filter(pl.col("submit_s") >= split_of(log, "60%").at_s)
        assert one.later["policy"]["mean_wait_s"] == pytest.approx(jobs["wait_s"].mean())
        assert one.about["platform"] == escala.read_platform(machine).name and one.chosen == found.chosen
        product *= one.later["policy"]["bounded_slowdown"] / one.later["easy"]["bounded_slowdown"]
    told = found.as_dict()
    assert found.ratio() == told["ratio"]["easy"]["bounded_slowdown"] == pytest.approx(math.sqrt(product))
    assert told["promise_kept"] == sum(all(clause["kept"] for clause in one["promise"]) for one in told["logs"])


def test_later_weeks_change_nothing_that_is_chosen() -> None:
    (first, machine), second = _logs(16.0, 1500.0)
    options: dict[str, Any] = {"promise": "longest-wait<=100*easy", "predictors": ["last2"], "searches": 0}
    found = tune_several([(first, machine), second], **options)
    other = first.jobs.with_columns(
        runtime_s=pl.when(pl.col("submit_s") >= split_of(first, "60%").at_s).then(77.0).otherwise("runtime_s")
    )
    again = tune_several([(first.with_jobs(other), machine), second], **options)
    assert found.steps and {step.part for step in found.steps} == {"prediction", "backfill", "given score"}
    assert [step.as_dict() for step in again.steps] == [
        step.as_dict() for step in found.steps
    ] and again.chosen == found.chosen
    assert again.logs[0].later != found.logs[0].later and again.logs[1].later == found.logs[1].later


def test_weights_are_searched_on_the_pasts_of_all_logs(tmp_path: Path) -> None:
    logs = [(log.with_jobs(log.jobs.filter(pl.col("cores") > 1)), machine) for log, machine in _logs(14.0, 1500.0)]
    found = tune_several(logs, promise="longest-wait<=100*easy", predictors=["model"], scores=[], searches=1)
    assert found.without == "No model of run times was fitted: it is of one log, and the policy of several."
    step = next(step for step in found.steps if step.part == "weights")
    assert not isinstance(step.scheduler, str)
    for (log, machine), own in zip(logs, step.figures, strict=True):
        waits = escala.simulate(split_of(log, "60%").past(log), machine, step.scheduler).jobs["wait_s"]
        assert own["mean_wait_s"] == pytest.approx(waits.mean())
    folder = found.save(tmp_path / "policy")
    written = tomllib.loads((folder / "policy.toml").read_text(encoding="utf-8"))
    assert [one["name"] for one in written["log"]] == ["small", "small 2"]
    assert written["log"][1]["later"]["mean_wait_s"] == found.logs[1].later["policy"]["mean_wait_s"]
    own = escala.simulate(*logs[1], f"policy:{folder}").jobs["wait_s"]
    assert own.equals(escala.simulate(*logs[1], found.scheduler).jobs["wait_s"])
    rules = pl.read_csv(folder / "rules.csv")
    assert rules["log"].to_list()[:2] == ["small", "small 2"] and rules["rule"][0] == rules["rule"][1] == found.rule


def test_a_mean_over_logs_counts_each_log_alike() -> None:
    long, short = (np.log(np.full(40, 0.5)), np.ones(40)), (np.log(np.array([2.0, 8.0])), np.array([1.0, 1.0]))
    value, low, high = judge.mean_over_logs([long, short], 0)
    assert value == pytest.approx(math.sqrt(0.5 * 4.0)) and low is not None and high is not None
    assert low == pytest.approx(math.sqrt(0.5 * 2.0)) and high == pytest.approx(math.sqrt(0.5 * 8.0))


def test_a_promise_that_one_log_breaks_is_refused_by_its_name() -> None:
    idle = _log(1, 90_000.0)
    longest = max(escala.simulate(idle, "8x1", name).jobs["wait_s"].max() for name in ("easy", "easy-sjf"))  # type: ignore[type-var]
    with pytest.raises(
        escala.EscalaError, match=r"keeps the promise on the pasts of all 2 logs: the nearest is .* on small 2\)"
    ):
        tune_several([(idle, "8x1"), _logs()[0]], promise=f"longest-wait<={longest + 1:.0f}")


def test_one_log_is_refused() -> None:
    with pytest.raises(escala.EscalaError, match="at least two logs, not 1"):
        tune_several(_logs()[:1])
