"""Predictors that are objects: what they see, what they may say, and what they cannot do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import escala
from escala.errors import EscalaError
from escala.policies.compose import scheduler
from tests.laws.test_foresight import _depends_on_the_future

NAMES = ("easy", "easy-sjf", "easy:queue=saf:guard=3h", "easy:queue=xfactor", "conservative", "sjf", "tetris", "random")


class Last2:
    """The rule of the kernel, in Python."""

    name = "last2 in Python"

    def __init__(self) -> None:
        self.seen = 0
        self.runs: dict[int, list[float]] = {}

    def estimate(self, view: Any, job: Any) -> float:
        for run in view.ended(self.seen):
            self.runs.setdefault(run.user, []).append(run.runtime_s)
            self.seen += 1
        last = self.runs.get(job.user, [])[-2:]
        return sum(last) / len(last) if last and job.user >= 0 else float(job.walltime_s)


def log(seed: int, jobs: int = 400) -> escala.Workload:
    draw = np.random.default_rng(seed)
    walltime = draw.choice([600.0, 3600.0, 86400.0], jobs)
    columns = {
        "submit_s": np.sort(np.floor(draw.uniform(0, 3e5, jobs))),
        "walltime_s": walltime,
        "cores": draw.integers(1, 9, jobs),
    }
    columns["runtime_s"] = np.floor(walltime * draw.uniform(0.01, 1.1, jobs)) + 1.0
    return escala.Workload.from_jobs({**columns, "user": draw.choice(["a", "b", "c"], jobs)})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["estimate", "order_estimate"])
def test_it_is_the_same_as_in_the_kernel(name: str, which: str) -> None:
    jobs = log(1)
    ours, kernel = (escala.simulate(jobs, "2x8", name, **{which: one}) for one in (Last2(), "last2"))
    assert ours.jobs.equals(kernel.jobs)
    assert ours.manifest["options"][which] == "last2 in Python" and ours.knows == ""


def test_the_order_and_the_plans_ask_one_object_once() -> None:
    asked: list[int] = []

    class Counting(Last2):
        def __deepcopy__(self, memo: Any) -> Any:
            return self

        def estimate(self, view: Any, job: Any) -> float:
            asked.append(job.row)
            return super().estimate(view, job)

    escala.simulate(log(2), "2x8", "easy:queue=saf", estimate=Counting())
    assert asked == list(range(400))


def test_each_run_works_on_a_copy() -> None:
    mine, jobs = Last2(), log(3)
    first = escala.simulate(jobs, "2x8", estimate=mine).jobs
    assert mine.seen == 0 and first.equals(escala.simulate(jobs, "2x8", estimate=mine).jobs)
    both = escala.compare(jobs, "2x8", ["easy", "easy-sjf"], estimate=mine).results
    assert both["easy + never"].jobs.equals(first)


def test_it_sees_what_has_ended_and_no_more() -> None:
    class Looking:
        def estimate(self, view: Any, job: Any) -> float:
            ended = view.ended()
            assert [run.row for run in view.ended(2)] == [run.row for run in ended[2:]] and view.ended(len(ended)) == []
            ends = [run.start_s + run.runtime_s for run in ended]
            assert ends == sorted(ends) and all(end <= view.now_s for end in ends)
            assert all(
                run.runtime_s <= run.walltime_s and run.killed == (run.runtime_s == run.walltime_s) for run in ended
            )
            assert job.submit_s == view.now_s and not hasattr(view, "runtime_s")
            assert not {run.row for run in ended} & {waiting.row for waiting in view.queue}
            return 100.0

    escala.simulate(log(4), "2x8", estimate=Looking())


def test_an_honest_one_depends_on_nothing_to_come() -> None:
    assert not _depends_on_the_future("easy-sjf", "never", estimate=Last2())


@pytest.mark.parametrize("given", [None, "60", -1.0, 0, math.nan, math.inf, 10**400, True, [1.0, 2.0]])
def test_what_is_no_time_is_refused(given: Any) -> None:
    class Odd:
        name = "odd"

        def estimate(self, view: Any, job: Any) -> Any:
            return given

    with pytest.raises(
        EscalaError, match=r"odd: estimate\(view, job\) gave .* for job '1': return a number of seconds above 0"
    ) as caught:
        escala.simulate(log(5), "2x8", estimate=Odd())
    assert "\n" not in str(caught.value)


def test_beyond_the_request_is_the_request() -> None:
    class Long:
        def estimate(self, view: Any, job: Any) -> float:
            return 1e300

    found = escala.simulate(log(6), "2x8", estimate=Long()).jobs
    assert found["estimate_s"].equals(found["walltime_s"], check_names=False)


def test_a_class_is_no_predictor_and_no_name_holds_one() -> None:
    with pytest.raises(EscalaError, match="or an object with estimate"):
        escala.simulate(log(7), "2x8", estimate=Last2)
    with pytest.raises(EscalaError, match="option estimate='Last2' is not known"):
        scheduler("easy:estimate=Last2")


def test_a_run_of_an_object_cannot_be_had_again() -> None:
    first = escala.simulate(log(8), "2x8", estimate=Last2())
    with pytest.raises(EscalaError, match=r"the estimate of that run was an object \('last2 in Python'\)"):
        escala.rerun(first, log(8))
