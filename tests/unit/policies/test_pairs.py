"""Many pairs side by side: the same results as one after the other, and the first error ends them."""

from __future__ import annotations

import threading

import pytest
from polars.testing import assert_frame_equal

import escala
from escala.engines.threads import Threads
from escala.errors import EscalaError
from escala.policies import pairs

NAMES = ("fcfs", "first-fit", "easy", "saf", "conservative", "rollout:2")


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return escala.workload.generate.lublin(cores=32, jobs=60, seed=3)


def test_the_number_of_threads_changes_nothing(log: escala.Workload) -> None:
    one, three = (escala.compare(log, "4x8:grid5000", NAMES, ["never", "timeout:60"], jobs=jobs) for jobs in (1, 3))
    assert list(one.results) == list(three.results)
    for name, result in one.results.items():
        assert_frame_equal(result.jobs, three.results[name].jobs)
        assert_frame_equal(result.nodes, three.results[name].nodes)
        assert_frame_equal(result.totals, three.results[name].totals)


def test_named_pairs_run_side_by_side_and_objects_one_after_the_other() -> None:
    """Two named pairs wait for each other, which no single thread could do; pairs with an object run in the caller's
    thread."""
    both, places = threading.Barrier(2, timeout=60), {}

    def run(pair: pairs.Named) -> str:
        places[pair.name] = threading.current_thread()
        if pair.scheduler != own:
            both.wait()
        return pair.name

    def own(view: object, act: object) -> None: ...

    todo = pairs.pairs_of(["fcfs", "easy", own], ["never"])
    assert list(pairs.play(todo, run, each=Threads(2))) == [pair.name for pair in todo]
    assert [places[pair.name] is threading.current_thread() for pair in todo] == [False, False, True]


def test_the_share_grows_to_one_and_an_error_comes_through(log: escala.Workload) -> None:
    shares: list[float] = []
    escala.compare(log, "4x8", ["fcfs", "easy"], progress=lambda _, share: shares.append(share), jobs=2)
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 1.0
    with pytest.raises(EscalaError, match="unknown scheduler"):
        escala.compare(log, "4x8", ["fcfs", "nothing"], jobs=2)
    with pytest.raises(EscalaError, match="jobs=0"):
        escala.compare(log, "4x8", ["fcfs"], jobs=0)


def test_after_an_error_nothing_more_begins_and_what_ran_is_kept() -> None:
    begun, told = [], []

    def run(pair: pairs.Named) -> str:
        begun.append(pair.name)
        if pair.scheduler == "sjf":
            raise EscalaError("planted")
        return pair.name

    todo = pairs.pairs_of(["fcfs", "sjf", "easy", "saf", "ljf", "f1", "f2", "f3", "f4"], ["never"])
    with pytest.raises(EscalaError, match="planted"):
        pairs.play(todo, run, progress=lambda name, _: told.append(name), each=Threads(2))
    assert set(told) - {""} == set(begun) - {"sjf + never"}


@pytest.mark.parametrize("given", [{"schedulers": "fcfs,easy"}, {"shutdowns": "never"}])
def test_one_text_in_place_of_a_list_is_refused_with_the_list(given: dict[str, str]) -> None:
    (name, text), *_ = given.items()
    with pytest.raises(EscalaError, match=f"{name}=.*is one text: give a list, {name}=.*{text.split(',')[0]}"):
        pairs.pairs_of(**{"schedulers": ["easy"], "shutdowns": ["never"], **given})


def test_one_text_is_refused_by_tune_and_predict_too() -> None:
    log = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [1.0], "cores": [1]})
    with pytest.raises(EscalaError, match=r"predictors='last2' is one text: give a list, predictors=\['last2'\]"):
        escala.tune(log, "1x1", predictors="last2")
    with pytest.raises(EscalaError, match=r"by='user' is one text: give a list, by=\['user'\]"):
        escala.predict(log, "1x1", by="user")


def test_an_object_works_on_a_copy_in_each_run(log: escala.Workload) -> None:
    class Counting:
        decisions = 0

        def decide(self, view: escala.View, act: escala.Commands) -> None:
            self.decisions += 1
            for job in view.queue:
                act.start(job)

    given = Counting()
    escala.compare(log, "4x8", [given], ["never"])
    assert given.decisions == 0
    assert escala.simulate(log, "4x8", given).jobs.height == 60 and given.decisions > 0


def test_what_cannot_be_copied_is_refused_before_the_first_run(log: escala.Workload) -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def decide(self, view: escala.View, act: escala.Commands) -> None:
            raise AssertionError("it runs")

    with pytest.raises(
        EscalaError, match=r"^policy 'Locked' cannot be copied, .*lock.*: give it a method __deepcopy__"
    ) as told:
        escala.compare(
            log,
            "4x8",
            ["fcfs", Locked()],
            ["never"],
            jobs=1,
            progress=lambda name, _: pytest.fail(name) if name else None,
        )
    assert "\n" not in str(told.value)
