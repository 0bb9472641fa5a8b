"""What is known of a job at its submission: by hand, and against a predictor in plain Python that sees what any
predictor sees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import escala
from escala.prediction.features import COLUMNS, FEATURES, KINDS, PROGRAM, known_by
from escala.prediction.inside import Recorder
from tests.unit.prediction.logs import MONDAY_S, PLATFORM, habits

EVERY = tuple(FEATURES)


def recorded(
    log: escala.Workload,
    scheduler: str = "easy",
    columns: tuple[str, ...] = ("user", "queue"),
    platform: str = PLATFORM,
) -> Any:
    """(features, rows of the jobs) in a replay."""
    features = known_by(columns, log.origin_s > 0)
    recorder = Recorder(features, columns)
    escala.simulate(log, platform, scheduler, estimate=recorder)
    return features, recorder.rows


def test_a_user_with_three_jobs_by_hand() -> None:
    """One core. Job 1 runs 0 to 100 (of 400), job 2 waits for it and runs 100 to 150 (of 200), job 3 comes at 120, job
    4 at 1000."""
    jobs = {
        "submit_s": [0.0, 10.0, 120.0, 1000.0],
        "runtime_s": [100.0, 50.0, 7.0, 1.0],
        "walltime_s": [400.0, 200.0, 200.0, 400.0],
    }
    log = escala.Workload.from_jobs({**jobs, "cores": [1] * 4, "user": ["a"] * 4}, origin_s=MONDAY_S + 3 * 3600.0)
    features, rows = recorded(log, columns=("user",), platform="1x1")
    told = [dict(zip(features, row, strict=True)) for row in rows]
    first = {
        "user_count": 0.0,
        "user_waiting": 0.0,
        "user_running": 0.0,
        "request": math.log(400),
        "cores": 0.0,
        "weekday": 0.0,
        "hour": 3.0,
    }
    assert {name: told[0][name] for name in first} == first
    assert all(
        math.isnan(told[0][name])
        for name in ("user_mean", "user_last", "user_last2", "user_ratio", "user_pause", "user_since")
    )
    assert (
        told[1]["user_running"] == 1.0 and told[1]["user_waiting"] == 0.0 and told[1]["user_pause"] == math.log1p(10.0)
    )
    third = {
        "user_count": math.log1p(1),
        "user_last": math.log(100),
        "user_mean": math.log(100),
        "user_last2": math.log(100),
    }
    third |= {
        "user_ratio": 0.25,
        "user_last_ratio": 0.25,
        "user_running": 1.0,
        "user_since": math.log1p(20.0),
        "user_pause": math.log1p(110.0),
    }
    third |= {"shape_count": 0.0, "user_shape_count": 0.0}
    assert {name: told[2][name] for name in third} == pytest.approx(third) and math.isnan(told[2]["user_before"])
    fourth = {
        "user_count": math.log1p(3),
        "user_last": math.log(7),
        "user_before": math.log(50),
        "user_last2": math.log(28.5),
    }
    fourth |= {"user_mean": (math.log(100) + math.log(50) + math.log(7)) / 3, "user_ratio": (0.25 + 0.25 + 0.035) / 3}
    fourth |= {
        "user_shape_last": math.log(100),
        "user_shape_count": math.log1p(1),
        "user_waiting": 0.0,
        "user_running": 0.0,
    }
    fourth |= {"user_since": math.log1p(1000.0 - 157.0)}
    assert {name: told[3][name] for name in fourth} == pytest.approx(fourth)


class InPython:
    """Every feature from what a predictor sees: `view.ended`, its own list of what was submitted, and the columns known
    at submission."""

    def __init__(self, log: escala.Workload, features: tuple[str, ...]) -> None:
        self.jobs = log.jobs.to_dicts()
        self.origin, self.features = log.origin_s, features
        self.rows: list[list[float]] = []
        self.came: list[int] = []

    def __deepcopy__(self, memo: Any) -> InPython:
        return self

    def estimate(self, view: Any, job: Any) -> float:
        ended, now = view.ended(), view.now_s
        mine = self.jobs[job.row]
        over = {run.row for run in ended}
        waits = {one.row for one in view.queue}
        own = [row for row in self.came if self.jobs[row]["user"] == mine["user"]]
        own_ended = [run for run in ended if self.jobs[run.row]["user"] == mine["user"]]
        at = self.origin + now
        plain = {
            "request": math.log(job.walltime_s),
            "cores": math.log(job.cores),
            "hour": at % 86400.0 / 3600.0,
            "weekday": float((int(at // 86400) + 3) % 7),
            "user_waiting": float(sum(row in waits for row in own)),
            "user_running": float(sum(row not in waits and row not in over for row in own)),
            "user_pause": math.log1p(now - self.jobs[own[-1]]["submit_s"]) if own else math.nan,
            "user_since": math.log1p(now - own_ended[-1].start_s - own_ended[-1].runtime_s) if own_ended else math.nan,
        }
        self.rows.append([plain[name] if name in plain else self._alike(name, mine, ended) for name in self.features])
        self.came.append(job.row)
        return float(job.walltime_s)

    def _alike(self, name: str, mine: dict[str, Any], ended: list[Any]) -> float:
        kind = next(kind for kind in sorted(KINDS, key=len, reverse=True) if name.startswith(f"{kind}_"))
        stat = name.removeprefix(f"{kind}_")
        like = [run for run in ended if all(self.jobs[run.row][column] == mine[column] for column in KINDS[kind])]
        times, ratios = [run.runtime_s for run in like], [run.runtime_s / run.walltime_s for run in like]
        if stat == "count":
            return math.log1p(len(like))
        if not like or (stat == "before" and len(like) < 2):
            return math.nan
        return {
            "mean": lambda: float(np.mean(np.log(times))),
            "ratio": lambda: float(np.mean(ratios)),
            "last": lambda: math.log(times[-1]),
            "before": lambda: math.log(times[-2]),
            "last_ratio": lambda: ratios[-1],
            "last2": lambda: math.log(np.mean(times[-2:])),
        }[stat]()


@pytest.mark.parametrize("scheduler", ["easy", "sjf", "easy:queue=saf:guard=3h", "conservative", "easy:queue=xfactor"])
def test_they_are_those_of_a_predictor_in_python(scheduler: str) -> None:
    log = habits(3, jobs=250, days=1.5)
    # several jobs of a user come at one instant
    twice = log.jobs.with_columns(submit_s=(log.jobs["submit_s"] // 600) * 600)
    log = log.with_jobs(twice)
    features, rows = recorded(log, scheduler)
    slow = InPython(log, features)
    escala.simulate(log, PLATFORM, scheduler, estimate=slow)
    assert rows.shape == (250, len(features))
    np.testing.assert_allclose(rows, np.array(slow.rows), rtol=1e-12, atol=1e-12, equal_nan=True)
    waiting = rows[:, features.index("user_waiting")]
    assert waiting.max() > 2 and rows[:, features.index("user_running")].max() > 1


def test_the_replay_is_the_one_by_requests() -> None:
    log = habits(4, jobs=300, days=4.0)
    recorder = Recorder(known_by(("user",), True), ("user",))
    both = [escala.simulate(log, PLATFORM, "easy", **how).jobs for how in ({}, {"estimate": recorder})]
    assert both[0].equals(both[1].drop("estimate_s")) and both[1]["estimate_s"].equals(
        both[1]["walltime_s"], check_names=False
    )


def test_what_nobody_requested_is_not_known() -> None:
    log = habits(5, jobs=80)
    jobs = log.jobs.with_columns(limited=log.jobs["queue"] == "short")
    features, rows = recorded(log.with_jobs(jobs))
    unasked = ~jobs["limited"].to_numpy()
    assert np.array_equal(np.isnan(rows[:, features.index("request")]), unasked)
    assert np.isnan(rows[unasked][:, features.index("user_shape_count")]).all() and unasked.any()


def test_every_feature_says_what_it_needs() -> None:
    assert set(known_by(COLUMNS, True)) == set(EVERY)
    assert set(known_by((), False)) == {"request", "cores", "shape_count", "shape_mean", "shape_ratio"}
    for program in PROGRAM:
        assert any(name.startswith("program_") for name in known_by((program,), False))
    assert all(name.startswith(("user_", "request", "cores", "shape_")) for name in known_by(("user",), False))
