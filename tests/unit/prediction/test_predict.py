"""Models of run times: what they are fitted to, how near they are, and that nothing of the future is in them."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.fitting import accuracy
from escala.fitting.predict import STAGES
from tests.laws.test_foresight import JOBS, NOW_S, _otherwise, _world
from tests.laws.test_foresight import PLATFORM as MACHINE
from tests.unit.prediction.logs import DAY_S, MONDAY_S, PLATFORM, habits

pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return habits()


@pytest.fixture(scope="module")
def found(log: escala.Workload) -> escala.Predicted:
    return escala.predict(log, PLATFORM)


def test_it_learns_habits(log: escala.Workload, found: escala.Predicted) -> None:
    error = {name: one["mean_absolute_error_s"] for name, one in found.accuracy.items()}
    assert error["model"] < 0.5 * error["last2"] < 0.2 * error["request"]
    assert found.accuracy["request"]["underestimated"] == 0.0 and 0.3 < found.accuracy["model"]["underestimated"] < 0.7
    assert found.accuracy["model"]["rank_correlation"] > 0.9
    assert found.users == {"users": 8.0, "nearer_than_request": 1.0, "nearer_than_last2": 1.0}
    assert sum(found.gain.values()) == pytest.approx(1.0) and found.model.columns == ("user", "queue")
    assert (
        sum(row["jobs"] for row in found.by_size)
        == found.about["later_jobs"]
        == sum(row["jobs"] for row in found.by_past)
    )  # type: ignore[misc]


def test_accuracies_are_those_of_a_replay(log: escala.Workload) -> None:
    """Under fcfs no start depends on an estimate: what is said of each job is the same whoever is asked for plans."""
    found = escala.predict(log, PLATFORM, scheduler="fcfs")
    later = log.jobs["submit_s"].to_numpy() >= found.about["split"]["at_s"]
    runtime = log.jobs["runtime_s"].to_numpy()[later]
    for name, estimate in {"model": _seen(found), "last2": "last2", "request": "walltime"}.items():
        jobs = escala.simulate(log, PLATFORM, "fcfs", estimate=estimate).jobs
        said = jobs["walltime_s" if name == "request" else "estimate_s"].to_numpy()[later]
        figures, told = accuracy.figures(said, runtime), found.accuracy[name]
        assert {key: pytest.approx(value, abs=1e-5) for key, value in figures.items()} == told and len(
            said
        ) == found.about["later_jobs"]


def test_figures_by_hand() -> None:
    figures = accuracy.figures(np.array([10.0, 20.0, 30.0]), np.array([20.0, 20.0, 15.0]))
    assert figures["mean_absolute_error_s"] == pytest.approx(25 / 3) and figures["median_absolute_error_s"] == 10.0
    assert figures["underestimated"] == pytest.approx(1 / 3) and figures["nearness"] == pytest.approx(
        (0.5 + 1.0 + 0.5) / 3
    )
    rows = accuracy.by_size(np.array([1.0, 3.0, 4.0]), {"a": np.array([1.0, 2.0, 4.0])}, np.array([1.0, 1.0, 1.0]))
    assert rows == [{"group": "1", "jobs": 1, "a_error_s": 0.0}, {"group": "2-4", "jobs": 2, "a_error_s": 2.0}]
    users, past = pl.Series("user", ["a", "b", "b"]), pl.Series("user", ["b"] * 10 + ["c"])
    rows = accuracy.by_past(users, past, {"a": np.array([1.0, 2.0, 4.0])}, np.array([1.0, 1.0, 1.0]))
    assert rows == [{"group": "0", "jobs": 1, "a_error_s": 0.0}, {"group": "10-99", "jobs": 2, "a_error_s": 2.0}]


def test_what_has_not_ended_by_a_stage_is_not_in_its_trees(log: escala.Workload, found: escala.Predicted) -> None:
    """Other run times of all that has not ended by the second stage: the first two stages are the same, the third is
    not."""
    first, at = (found.about["split"][name] for name in ("first_s", "at_s"))
    stage = first + (at - first) * 2 / STAGES
    finish = escala.simulate(log, PLATFORM, "easy").jobs["finish_s"]
    longer = pl.when(pl.Series(finish > stage)).then(pl.col("walltime_s")).otherwise("runtime_s")
    other = escala.predict(log.with_jobs(log.jobs.with_columns(runtime_s=longer)), PLATFORM)
    same = [a.text == b.text for a, b in zip(found.model.stages, other.model.stages, strict=True)]
    assert same == [True, True, False, False, False]
    assert found.model.stages[1].jobs == (finish <= stage).sum() and found.model.stages[1].since_s == pytest.approx(
        stage + MONDAY_S
    )


def test_predictions_depend_on_nothing_to_come(tmp_path: object) -> None:
    """Two worlds that are the same until NOW_S: the predictions of all jobs submitted by then are the same."""
    compared = 0
    for seed in range(6):
        world = _world(seed)
        dates = {**_world(seed + 50), "user": world["user"]}
        model = _seen(escala.predict(escala.Workload.from_jobs(dates, max_cores=12), after=0.9), f"{tmp_path}/{seed}")
        first = escala.simulate(escala.Workload.from_jobs(world), MACHINE, "easy-sjf", estimate=model)
        finish, start = (first.jobs[name].fill_null(np.inf).to_numpy() for name in ("finish_s", "start_s"))
        other = escala.simulate(
            escala.Workload.from_jobs(_otherwise(world, finish, start, seed)), MACHINE, "easy-sjf", estimate=model
        )
        then = (first.jobs["submit_s"] <= NOW_S).sum()
        assert first.jobs["estimate_s"][:then].equals(other.jobs["estimate_s"][:then])
        assert not first.jobs["runtime_s"][:then].equals(other.jobs["runtime_s"][:then]) and 0 < then < JOBS
        compared += int((first.jobs["estimate_s"] < first.jobs["walltime_s"])[:then].sum())
    assert compared > 60 and first.knows == ""


def test_a_replay_of_the_past_meets_no_trees_that_know_it(
    log: escala.Workload, found: escala.Predicted, tmp_path: object
) -> None:
    stages = found.model.stages
    at = [found.model.stage_at(stage.since_s - MONDAY_S, MONDAY_S) for stage in stages]
    assert at == list(stages) and len(stages) == STAGES
    assert found.model.stage_at(stages[0].since_s - MONDAY_S - 1.0, MONDAY_S) is None
    assert found.model.stage_at(1.0, 0.0) is stages[-1]  # a log without dates
    assert found.model.stage_at(1.0, MONDAY_S + 400 * DAY_S) is stages[-1]
    early = (log.jobs["submit_s"] + MONDAY_S < stages[0].since_s).to_numpy()
    estimates = [
        escala.simulate(log, PLATFORM, "easy", estimate=how).jobs for how in (_seen(found, f"{tmp_path}/m"), "last2")
    ]
    model, last2 = (jobs["estimate_s"].to_numpy() for jobs in estimates)
    # then plans differ, and what has ended
    np.testing.assert_allclose(model[early][:100], last2[early][:100], atol=2e-6)
    assert early.sum() > 100 and (np.abs(model - last2)[~early] > 1.0).mean() > 0.9


def test_the_same_log_gives_the_same_model(log: escala.Workload, found: escala.Predicted) -> None:
    again = escala.predict(log, PLATFORM)
    assert again.as_dict() == found.as_dict() and [s.text for s in again.model.stages] == [
        s.text for s in found.model.stages
    ]


def test_columns_can_be_chosen(log: escala.Workload, found: escala.Predicted) -> None:
    without = escala.predict(log, PLATFORM, by=("queue",))
    assert without.model.columns == ("queue",) and not any("user" in name for name in without.model.features)
    assert without.accuracy["model"]["mean_absolute_error_s"] > 2.0 * found.accuracy["model"]["mean_absolute_error_s"]
    plain = escala.predict(log, by=())  # on one pool of the log's cores
    assert plain.model.columns == () and plain.about["platform"] == "1x8"


def test_a_log_without_dates_has_no_hours() -> None:
    found = escala.predict(habits(1, jobs=400, origin_s=0.0), PLATFORM)
    assert not found.model.dated and not {"hour", "weekday"} & set(found.model.features)
    assert found.model.stages[-1].since_s == found.about["split"]["at_s"]


REFUSED = {
    "by": ({"by": ("users",)}, r"by='users' \(--by\): a model may go by user, group"),
    "lacking": ({"by": ("account",)}, "goes by the column 'account', of which workload 'habits' says nothing"),
    "share": ({"after": "120%"}, r"after='120%' \(--after\)"),
    "nobody ended": ({"after": 0.001}, "only [0-9]+ jobs have ended by the end of the past"),
    "cut": ({"until_s": 100.0}, "leave --stop-at"),
    "estimate": ({"estimate": "last2"}, "replays by what jobs ask for"),
    "own estimate": ({"scheduler": "easy+"}, "has an estimate of its own"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused(log: escala.Workload, what: str) -> None:
    options, words = REFUSED[what]
    with pytest.raises(EscalaError, match=words) as caught:
        escala.predict(log, PLATFORM, **options)
    assert "\n" not in str(caught.value)


def test_a_log_without_requests_or_cores_is_refused(log: escala.Workload) -> None:
    with pytest.raises(EscalaError, match=r"no job tells the time that it asks for.*--no-request"):
        escala.predict(log.with_jobs(log.jobs.with_columns(limited=pl.lit(False))), PLATFORM)
    with pytest.raises(EscalaError, match=r"name a platform \(--platform"):
        escala.predict(log.with_jobs(log.jobs, max_cores=None))


def test_without_lightgbm_one_line_says_so(log: escala.Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(
        EscalaError, match=r"predict needs the extra \[predict\] of Escala, of which lightgbm is not installed"
    ) as caught:
        escala.predict(log, PLATFORM)
    assert "\n" not in str(caught.value)


def _seen(found: escala.Predicted, folder: str = "") -> str:
    """The estimate that asks this model."""
    import tempfile

    return f"model:{found.save(folder or tempfile.mkdtemp())}"
