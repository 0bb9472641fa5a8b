"""Choosing a rule on the past of small logs, and judging it on later weeks; figures against plain sums."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.options import Options
from escala.tuning import Tuned, judge
from escala.tuning.candidates import candidates
from escala.tuning.choice import value
from escala.tuning.measures import FIGURES, Jobs, figures, jobs_of
from escala.tuning.promise import promise_of
from escala.tuning.split import WEEK_S, share_of, split_of

MACHINE = "8x1"
BASELINES = ("easy", "easy-sjf")


def _log(gap_s: float, weeks: float = 6.0, seed: int = 0) -> escala.Workload:
    """Short and long jobs of all sizes by twelve users, one every `gap_s` in the mean."""
    random = np.random.default_rng(seed)
    n = int(weeks * WEEK_S / gap_s)
    runtime = np.where(random.random(n) < 0.7, 60.0, 7200.0) * random.uniform(0.5, 1.5, n)
    columns: dict[str, Any] = {
        "submit_s": np.sort(random.uniform(0, weeks * WEEK_S, n)),
        "runtime_s": runtime,
        "walltime_s": runtime * random.uniform(1.0, 3.0, n),
        "cores": random.choice([1, 2, 4, 8], n),
        "user": [f"u{k}" for k in random.integers(0, 12, n)],
        "queue": [f"q{k}" for k in random.integers(0, 3, n)],
    }
    return escala.Workload.from_jobs(columns, name="small")


CONGESTED, IDLE = 1150.0, 90_000.0


@functools.cache
def _tuned(gap_s: float) -> Tuned:
    return escala.tune(_log(gap_s), MACHINE)


def test_a_congested_log_gains_by_another_order() -> None:
    tuned = _tuned(CONGESTED)
    value_, low, high = tuned.gain
    assert tuned.chosen != "easy" and tuned.ahead and not tuned.behind
    assert value_ is not None and low is not None and high is not None and low < value_ < high < 1.0
    own, easy = tuned.later["policy"]["bounded_slowdown"], tuned.later["easy"]["bounded_slowdown"]
    assert value_ == pytest.approx(own / easy)
    assert tuned.later["policy"] == tuned.later[tuned.chosen] and tuned.ratio["rule"]["wait"] == (1.0, 1.0, 1.0)
    chosen = next(rule for rule in tuned.tried if rule.name == tuned.chosen)
    assert chosen.excess == 0.0 and chosen.value == min(rule.value for rule in tuned.tried if rule.excess == 0.0)


def test_the_later_weeks_are_those_of_one_replay_of_the_whole_log() -> None:
    tuned, log = _tuned(CONGESTED), _log(CONGESTED)
    jobs = escala.simulate(log, MACHINE, tuned.chosen).jobs
    later = jobs.filter(pl.col("submit_s") >= split_of(log, "60%").at_s)
    wait, area = later["wait_s"].to_numpy(), (later["runtime_s"] * later["cores"]).to_numpy()
    found = tuned.later["policy"]
    assert found["mean_wait_s"] == pytest.approx(wait.mean()) and found["longest_wait_s"] == pytest.approx(wait.max())
    assert found["area_weighted_wait_s"] == pytest.approx((wait * area).sum() / area.sum())
    slowdown = escala.metrics.jobs.bounded_slowdown(later)
    assert found["bounded_slowdown"] == pytest.approx(float(slowdown.to_numpy().mean()))
    assert (
        tuned.about["split"]["later_jobs"]
        == len(later)
        == tuned.groups["by size"]["jobs"].sum()
        == tuned.groups["by queue"]["jobs"].sum()
    )


def test_a_rule_is_chosen_on_the_past_alone() -> None:
    """Other jobs behind the split change what is judged, never what is chosen."""
    log, tuned = _log(CONGESTED), _tuned(CONGESTED)
    at = split_of(log, "60%").at_s
    longer = pl.when(pl.col("submit_s") > at).then(pl.col("runtime_s") * 0.5).otherwise(pl.col("runtime_s"))
    other = escala.tune(log.with_jobs(log.jobs.with_columns(runtime_s=longer)), MACHINE)
    assert [(rule.name, rule.value) for rule in other.tried] == [(rule.name, rule.value) for rule in tuned.tried]
    assert other.chosen == tuned.chosen and other.later != tuned.later


def test_where_nobody_waits_easy_is_kept_and_nothing_is_gained() -> None:
    tuned = _tuned(IDLE)
    assert tuned.chosen == "easy" and not tuned.ahead and not tuned.behind
    assert tuned.gain == (1.0, 1.0, 1.0) and all(clause["kept"] for clause in tuned.clauses)
    assert judge.undecided(tuned.ratio) == []


def test_two_runs_are_alike_whatever_the_threads() -> None:
    one = escala.tune(_log(CONGESTED), MACHINE, jobs=1)
    assert one.as_dict() == _tuned(CONGESTED).as_dict()


def test_todays_scheduler_is_compared_too_and_may_be_promised() -> None:
    tuned = escala.tune(_log(CONGESTED), MACHINE, present="fcfs", promise="longest-wait<=2*fcfs", objective="wait")
    assert {"policy", "easy", "easy-sjf", "fcfs", tuned.chosen} == set(tuned.later) and set(tuned.ratio) == {
        *BASELINES,
        "fcfs",
        "rule",
    }
    assert tuned.ratio["fcfs"]["wait"][0] < 1.0  # type: ignore[operator]


def test_a_promise_that_no_rule_keeps_names_the_nearest() -> None:
    with pytest.raises(
        escala.EscalaError,
        match=r"no rule of \d+ keeps the promise on the log's past: the nearest is \S+, which misses p99",
    ):
        escala.tune(_log(CONGESTED), MACHINE, promise="p99-wait<=0.01*easy")


@pytest.mark.parametrize(
    ("text", "shown", "bounds"),
    [
        (
            "p99-wait<=1.05*easy, longest-wait<=1.25*easy",
            "p99-wait<=1.05*easy, longest-wait<=1.25*easy",
            [1.05 * 7, 1.25 * 7],
        ),
        (" longest-wait <= 48h ", "longest-wait<=48h", [172800.0]),
        ("slowdown<=3,mean-wait<=90", "slowdown<=3, mean-wait<=0.025h", [3.0, 90.0]),
    ],
)
def test_promises_are_read(text: str, shown: str, bounds: list[float]) -> None:
    promise = promise_of(text, BASELINES)
    found = {"easy": dict.fromkeys(FIGURES, 7.0)}
    assert str(promise) == shown and [clause.bound(found) for clause in promise.clauses] == pytest.approx(bounds)


def test_what_is_missed_is_counted() -> None:
    promise = promise_of("p99-wait<=2*easy", BASELINES)
    found = {"easy": dict.fromkeys(FIGURES, 3600.0)}
    assert promise.excess(dict.fromkeys(FIGURES, 7200.0), found) == 0.0
    assert promise.excess(dict.fromkeys(FIGURES, 14460.0), found) == pytest.approx(np.log(2.0), rel=1e-3)
    idle = {"easy": dict.fromkeys(FIGURES, 0.0)}
    assert promise.excess(dict.fromkeys(FIGURES, 0.0), idle) == 0.0 < promise.excess(dict.fromkeys(FIGURES, 1.0), idle)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the promise is empty"),
        ("p99-wait", "a condition is FIGURE<=FACTOR"),
        ("p99-wait<1.05*easy", "a condition is FIGURE<=FACTOR"),
        ("p98-wait<=1.05*easy", "'p98-wait' is no figure: did you mean p99-wait"),
        ("p99-wait<=1.05*fcfs", "'fcfs' is not replayed for comparison"),
        ("p99-wait<=lots*easy", "'lots' is no number"),
        ("p99-wait<=-1*easy", "'-1' is no number of at least 0"),
        ("p99-wait<=nan*easy", "'nan' is no number"),
        ("p99-wait<=two days", "is no time"),
        ("slowdown<=0.5", "'0.5' is no number of at least 1"),
    ],
)
def test_a_promise_that_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(escala.EscalaError, match=why):
        promise_of(text, BASELINES)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"objective": "makespan"}, "unknown objective 'makespan'"),
        ({"after": "much"}, "after='much'"),
        ({"after": 1.0}, "give the share"),
        ({"after": "99%"}, "less than a week before or after"),
        ({"present": "eazy"}, "did you mean"),
        ({"until_s": 5.0}, "leave --stop-at and --start-off out"),
        ({"estimate": "runtime"}, "leave --estimate"),
        ({"order_estimate": "runtime"}, "leave --estimate"),
        ({"present": "easy-sjf:estimate=runtime"}, "cannot be what runs today"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_work(given: dict[str, Any], why: str) -> None:
    with pytest.raises(escala.EscalaError, match=why):
        escala.tune(_log(IDLE), MACHINE, **given)


def test_a_short_log_is_refused() -> None:
    with pytest.raises(escala.EscalaError, match="give a log of at least 3 weeks"):
        escala.tune(_log(CONGESTED, weeks=2.9), MACHINE)
    assert share_of("60%") == share_of(0.6) == 0.6


def _jobs(runtime: list[float], users: list[str] | None = None) -> Jobs:
    n = len(runtime)
    return Jobs(
        np.arange(n),
        np.zeros(n),
        np.array(runtime),
        np.ones(n),
        pl.Series(users or ["u"] * n),
        pl.Series([None] * n, dtype=pl.String),
    )


def test_the_value_weighs_all_jobs_and_weeks_alike() -> None:
    jobs, week = _jobs([100.0] * 5), np.array([0, 0, 0, 0, 1])
    reference, waits = np.array([100.0] * 5), np.array([200.0] * 4 + [100.0])
    whole = np.log((180.0 + 60.0) / 160.0)
    weeks = np.average([np.log(260.0 / 160.0), 0.0], weights=[2.0, 1.0])
    assert value(jobs, waits, reference, "mean_wait_s", week) == pytest.approx(0.5 * whole + 0.5 * weeks)
    assert value(jobs, reference, reference, "bounded_slowdown", week) == 0.0


def test_intervals_are_over_whole_weeks() -> None:
    """With one ratio in every week there is nothing to draw from: the interval is the value."""
    jobs, week = _jobs([100.0] * 40), np.repeat(np.arange(4), 10)
    reference = np.random.default_rng(0).uniform(10, 500, 40)
    for name, found in judge.ratios(jobs, 0.5 * reference, reference, week).items():
        if name != "bounded_slowdown":
            assert found == pytest.approx((0.5, 0.5, 0.5)), name
    lucky = np.where(week == 0, 0.0, reference)
    _, low, high = judge.ratios(jobs, lucky, reference, week)["wait"]
    assert low is not None and high is not None and low < 0.75 and high == 1.0
    assert judge.ratios(jobs, reference, 0.0 * reference, week)["wait"] == (None, None, None)


def test_who_pays() -> None:
    users = ["a"] * 20 + ["b"] * 20 + ["c"] * 20 + ["d"] * 19
    jobs = _jobs([10.0] * 79, users)._replace(cores=np.array([1.0] * 20 + [4.0] * 20 + [5.0] * 20 + [16.0] * 19))
    before = np.full(79, 7200.0)
    after = np.concatenate([np.full(20, 3000.0), np.full(20, 11000.0), np.full(20, 7200.0), np.zeros(19)])
    assert judge.users(jobs, after, before) == {
        "users": 3.0,
        "better": pytest.approx(1 / 3),
        "worse": pytest.approx(1 / 3),
        "alike": pytest.approx(1 / 3),
    }
    sizes = judge.who_pays(jobs, after, before)["by size"]
    assert sizes["group"].to_list() == ["1", "2-4", "5-16"] and sizes["jobs"].to_list() == [20, 20, 39]
    assert sizes["mean_wait_s"].to_list() == pytest.approx([3000.0, 11000.0, 20 * 7200.0 / 39]) and sizes[
        "work_share"
    ].sum() == pytest.approx(1.0)
    assert "by queue" not in judge.who_pays(jobs, after, before)


@pytest.mark.long
def test_a_real_log_gains_a_third_with_the_promise_kept(traces: Path) -> None:
    tuned = escala.tune(traces / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz", "100x1", head="latest-released", searches=0)
    value_, _, high = tuned.gain
    assert tuned.ahead and value_ is not None and high is not None and value_ < 0.6 and high < 0.7
    assert tuned.later["easy"]["bounded_slowdown"] == pytest.approx(57.2, rel=0.03)
    assert tuned.later["easy-sjf"]["bounded_slowdown"] == pytest.approx(43.2, rel=0.03)
    assert all(clause["kept"] for clause in tuned.clauses) and tuned.about["split"]["later_weeks"] == 20


def test_figures_of_no_job_have_no_value() -> None:
    assert all(np.isnan(found) for found in figures(_jobs([]), np.zeros(0)).values())


def test_jobs_are_those_that_can_run_as_they_run() -> None:
    log = escala.Workload.from_jobs(
        {
            "submit_s": [0.0, 1.0, 2.0],
            "runtime_s": [50.0, 10.0, 5.0],
            "walltime_s": [20.0, 20.0, 9.0],
            "cores": [2, 9, 4],
        }
    )
    jobs = jobs_of(log, escala.read_platform(MACHINE), Options(oversized="drop"))
    assert jobs.row.tolist() == [0, 2] and jobs.runtime_s.tolist() == [20.0, 5.0] and jobs.cores.tolist() == [2.0, 4.0]


def test_candidates_are_some_fifty_schedulers() -> None:
    from escala.policies.compose import scheduler

    names = candidates()
    assert names[0] == "easy" and len(set(names)) == len(names) == 53 and "easy:queue=saf:guard=24h" in names
    assert all(scheduler(name) is not None for name in names)


def _weeks(seed: int = 1) -> escala.Workload:
    """Fourteen weeks in which each user's jobs are alike and requests say nothing: predictions by user are right."""
    random = np.random.default_rng(seed)
    n = int(14 * WEEK_S / 1700.0)
    user = random.integers(0, 12, n)
    runtime = np.where(user < 8, 60.0, 7200.0) * random.uniform(0.9, 1.1, n)
    columns: dict[str, Any] = {
        "submit_s": np.sort(random.uniform(0, 14 * WEEK_S, n)),
        "runtime_s": runtime,
        "walltime_s": np.full(n, 10_000.0),
        "cores": random.choice([1, 2, 4, 8], n),
        "user": [f"u{k}" for k in user],
    }
    return escala.Workload.from_jobs(columns, name="alike")


def test_predictions_are_kept_where_they_are_ahead_on_weeks_not_seen() -> None:
    tuned = escala.tune(_weeks(), MACHINE, promise="longest-wait<=100*easy", predictors=["last2"], searches=0)
    assert "last2" in tuned.chosen and tuned.rule != tuned.chosen and tuned.without == ""
    step = next(step for step in tuned.steps if step.name == tuned.chosen)
    assert step.ahead and step.excess == 0.0 and step.ratio[2] is not None and step.ratio[2] < 1.0
    assert [part.part for part in tuned.parts][-2:] == ["prediction", "perfect runtimes"] and tuned.parts[
        -1
    ].clairvoyant
    assert tuned.parts[-2].figures == tuned.later["policy"] and set(tuned.later) == {
        "policy",
        *BASELINES,
        tuned.rule,
        tuned.chosen,
    }
    high = tuned.ratio["rule"]["bounded_slowdown"][2]
    assert high is not None and high < 1.0
    jobs = escala.simulate(split_of(_weeks(), "60%").past(_weeks()), MACHINE, step.scheduler).jobs
    assert step.figures[0]["mean_wait_s"] == pytest.approx(jobs["wait_s"].mean())


def test_without_users_or_predictors_no_prediction_is_tried() -> None:
    log = _weeks()
    nobody = log.with_jobs(log.jobs.with_columns(user=pl.lit(None, dtype=pl.String)))
    tuned = escala.tune(nobody, MACHINE, predictors=["last2"], searches=0)
    assert tuned.without == "The log names no users: last2 was not tried." and {step.part for step in tuned.steps} == {
        "backfill",
        "given score",
    }
    one = escala.tune(
        log.with_jobs(log.jobs.with_columns(user=pl.lit("me"))), MACHINE, predictors=["last2"], searches=0
    )
    assert one.without.startswith("The log names one user only")
    assert not any(step.part == "prediction" for step in escala.tune(log, MACHINE, predictors=[], searches=0).steps)


def test_a_short_past_tries_only_what_held_on_other_logs_and_says_so() -> None:
    tuned = _tuned(CONGESTED)
    assert {step.part for step in tuned.steps} == {"prediction", "given score"} and all(s.held for s in tuned.steps)
    assert all(step.ratio == (None, None, None) and not step.ahead for step in tuned.steps), "too few weeks to say"
    assert tuned.without.startswith("Beyond the rules only given scores and orders by a model were tried: the rest")
    best = min(step.worth for step in tuned.steps if step.excess == 0.0)
    rule = min(rule.value for rule in tuned.tried if rule.excess == 0.0)
    assert tuned.chosen == tuned.rule and rule <= best
    assert [part.part for part in tuned.parts] == ["order", "guard", "perfect runtimes"]
    none = escala.tune(_log(CONGESTED), MACHINE, predictors=[], scores=[])
    assert none.steps == [] and none.without.startswith("Nothing beyond the rules was tried: that needs 3 weeks")


def test_a_short_past_may_keep_an_order_by_a_model() -> None:
    log = _weeks()
    short = log.with_jobs(log.jobs.filter(pl.col("submit_s") < 7 * WEEK_S))
    tuned = escala.tune(short, MACHINE, promise="longest-wait<=100*easy", searches=0)
    assert tuned.chosen.endswith("order_estimate=model:model") and tuned.rule in tuned.later
    kept = next(step for step in tuned.steps if step.name == tuned.chosen)
    assert kept.worth == min(step.worth for step in tuned.steps if step.excess == 0.0) and kept.part == "prediction"
    assert [part.part for part in tuned.parts][-2:] == ["prediction", "perfect runtimes"]


def test_where_nobody_waits_no_model_takes_the_place_of_easy() -> None:
    tuned = escala.tune(_weeks(), "400x1", searches=0)
    assert tuned.chosen == "easy" and any(step.by_model for step in tuned.steps)
    assert {step.whole for step in tuned.steps} == {0.0}


def test_a_past_with_an_empty_half_keeps_the_best_rule_and_says_so() -> None:
    log = _log(CONGESTED, weeks=14.0)
    quiet = pl.col("submit_s").is_between(4 * WEEK_S, 9 * WEEK_S)
    tuned = escala.tune(log.with_jobs(log.jobs.filter(~quiet)), MACHINE, searches=0)
    assert tuned.chosen == tuned.rule and tuned.steps == [] and "has no jobs" in tuned.without


@pytest.mark.parametrize("name", ["runtime", "walltime", "last3"])
def test_predictors_that_nobody_can_have_are_refused(name: str) -> None:
    with pytest.raises(escala.EscalaError, match="predictors"):
        escala.tune(_log(IDLE), MACHINE, predictors=[name])
