"""The look-ahead scheduler: its futures are replayed exactly, it improves its base, and it knows nothing that a
scheduler may not."""

from __future__ import annotations

import numpy as np
import pytest

import escala
from escala.errors import EscalaError
from escala.kernel.clock import SECOND
from escala.kernel.lookahead import WAIT
from escala.policies import Rollout
from escala.policies.futures import Memory
from escala.policies.rollout import Base, Futures
from escala.workload import Workload
from escala.workload.generate_slots import bernoulli_model

PLATFORM = "10x1:none"
BASES = ["fcfs", "first-fit", "sjf", "sjf-fit", "saf-fit", "easy", "easy-sjf", "f1-fit"]


def lists(n: int, load: float = 1.9, first: int = 0) -> list[Workload]:
    return [bernoulli_model(load=load, steps=50, demand="clip10").workload(first + k) for k in range(n)]


def slowdown(workload: Workload, scheduler: object) -> float:
    jobs = escala.simulate(workload, PLATFORM, scheduler).jobs
    return float(((jobs["wait_s"] + jobs["runtime_s"]) / jobs["runtime_s"]).mean())  # type: ignore[arg-type]


class ChosenFirst:
    """At time 0 start this row, or nothing until `until_s`; then one of the kernel's orders by hand: greedy, shortest
    first."""

    def __init__(self, row: int, until_s: float) -> None:
        self.row, self.until_s = row, until_s

    def decide(self, view: escala.View, act: escala.Commands) -> None:
        if view.now_s == 0.0 and self.row != WAIT:
            act.start(self.row)
        if self.row == WAIT and view.now_s < self.until_s:
            act.call_at(self.until_s)
            return
        for job in sorted(view.queue, key=lambda job: (job.walltime_s, job.row)):
            act.start(job)


@pytest.mark.parametrize("seed", range(6))
def test_a_future_is_what_the_simulation_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    waiting, coming = 6, 9
    runtime, cores = rng.integers(1, 20, waiting + coming), rng.integers(1, 8, waiting + coming)
    submit = np.concatenate([np.zeros(waiting), np.sort(rng.integers(1, 30, coming))])
    workload = Workload.from_jobs({"submit_s": submit, "runtime_s": runtime, "cores": cores})
    weight = rng.random((1, waiting + coming))
    drawn = np.zeros((1, 5, waiting + coming), np.int64)
    drawn[0, :4] = runtime * SECOND, runtime * SECOND, cores, submit * SECOND
    soon = np.array([int(submit[waiting]) * SECOND])
    none = np.zeros((2, 0), np.int64), np.zeros((1, 0), np.int64)
    f = Futures(*none, drawn, weight, soon, np.zeros(1, np.int64), np.argsort(runtime, kind="stable")[None, :])
    choices = [*range(waiting), WAIT]
    cost = Base("sjf-fit", 10).cost(f, np.array(choices))
    for choice, value in zip(choices, cost[:, 0], strict=True):
        start = (
            escala.simulate(workload, PLATFORM, ChosenFirst(choice, float(submit[waiting]))).jobs["start_s"].to_numpy()
        )
        assert value == pytest.approx((weight[0] * start).sum() * SECOND, rel=1e-12)


@pytest.mark.parametrize("base", BASES)
def test_running_jobs_hold_their_cores(base: str) -> None:
    drawn = np.zeros((1, 5, 2), np.int64)
    drawn[0, :4] = [[5 * SECOND] * 2, [5 * SECOND] * 2, [6, 3], [0, 0]]
    running = np.array([[6], [50 * SECOND]])
    f = Futures(
        running,
        np.array([[20 * SECOND]]),
        drawn,
        np.ones((1, 2)),
        np.array([20 * SECOND]),
        np.zeros(1, np.int64),
        np.array([[0, 1]]),
    )
    cost = Base(base, 10).cost(f, np.array([1, WAIT]))
    # job 1 now, job 0 when the running job ends; or both then
    assert cost[:, 0].tolist() == [20.0 * SECOND, 40.0 * SECOND]


@pytest.mark.parametrize("base", [*BASES, "easy-saf", "saf", "hold-back", "hold-back:1"])
def test_choices_together_cost_what_each_costs_alone(base: str) -> None:
    """Of choices that come to the same, one is replayed for all; alone each is replayed. Random queues of up to 30
    jobs, some held back."""
    rng = np.random.default_rng(40)
    tables, alike, held = Base(base, 8), 0, base.startswith("hold")
    for _ in range(60):
        waiting, coming, k, busy = (int(n) for n in rng.integers((1, 0, 1, 0), (30, 30, 4, 4)))
        jobs = waiting + coming
        cores, ahead = rng.integers(1, 3, busy), rng.integers(1, 20, busy) * SECOND
        left = np.minimum(ahead, rng.integers(1, 20, (k, busy)) * SECOND)
        drawn = np.zeros((k, 5, jobs), np.int64)
        drawn[:, 0] = rng.integers(1, 10, (k, jobs)) * SECOND
        drawn[:, 1] = np.maximum(drawn[:, 0], rng.integers(1, 10, (k, jobs)) * SECOND)
        drawn[:, 2] = rng.integers(1, 6, jobs)
        drawn[:, 3, waiting:] = np.sort(rng.integers(1, 15, (k, coming)), axis=1) * SECOND
        drawn[:, 4] = held * (drawn[:, 1] > 5 * SECOND)
        score = tables.scheduler.score
        key = np.zeros((k, jobs)) if score is None else score(drawn[:, 3], drawn[:, 1], drawn[:, 2])
        soon, order = np.full(k, SECOND), np.argsort(key, axis=1, kind="stable")
        f = Futures(np.stack([cores, ahead]), left, drawn, 1.0 / drawn[:, 0], soon, drawn[:, 3].max(axis=1), order)
        choices = [j for j in range(waiting) if drawn[0, 2, j] <= 8 - cores.sum()]
        costs = tables.cost(f, np.array([*choices, WAIT], np.int64))
        for choice, together in zip([*choices, WAIT], costs):
            assert np.array_equal(tables.cost(f, np.array([choice], np.int64))[0], together)
        alike += len(choices) > len(np.unique(costs[:-1], axis=0))
    assert alike > 10


def test_knowing_the_future_it_is_never_worse_than_its_base() -> None:
    for workload in lists(12):
        known = Rollout(1, "sjf-fit", arrivals=[workload], objective="slowdown", every_s=1.0)
        assert slowdown(workload, known) <= slowdown(workload, "sjf-fit") + 1e-9


LONG = pytest.param(1.9, 0.40, "hold-back", marks=pytest.mark.long)
MANY = ("hold-back:0", "hold-back:2", "hold-back", "sjf-fit")


@pytest.mark.parametrize(("load", "least", "base"), [(1.0, 0.25, "hold-back"), LONG, (1.9, 0.40, MANY)])
def test_with_the_law_of_arrivals_it_saves_much(load: float, least: float, base: str | tuple[str, ...]) -> None:
    law = lists(300, load, first=10_000)
    policy = Rollout(64, base, arrivals=law, objective="slowdown", every_s=1.0, optimism=0.5)
    test = lists(20, load)
    ours, greedy = (np.mean([slowdown(w, s) for w in test]) for s in (policy, "sjf-fit"))
    assert ours <= (1 - least) * greedy


class Said:
    """A base whose costs are given."""

    def __init__(self, costs: list[list[float]]) -> None:
        self.costs = np.array(costs)

    def cost(self, f: object, choices: object) -> np.ndarray:
        return self.costs


class Whole:
    """Futures of which all are wanted."""

    def part(self, rows: slice) -> None:
        return None


@pytest.mark.parametrize(("optimism", "expected"), [(1.0, [[1, 1]]), (0.0, [[1, 4]]), (0.5, [[1, 2.5]])])
def test_optimism_mixes_the_best_in_each_future_with_the_best_in_the_mean(
    optimism: float, expected: list[list[float]]
) -> None:
    policy = Rollout(2, ("sjf-fit", "fcfs"), optimism=optimism)
    policy._bases = [Said([[1.0, 4.0]]), Said([[6.0, 1.0]])]  # type: ignore[list-item]
    assert policy._cost([Whole(), Whole()], np.array([0]), slice(0, 2)).tolist() == expected  # type: ignore[list-item]


@pytest.mark.parametrize("base", ["hold-back", "hold-back:0"])
def test_what_is_long_is_told_by_jobs_to_come_too(base: str) -> None:
    """The first job is the only one seen, so none is longer than the mean of those seen; but short jobs, most of them
    wide, are sure to come. It is held back for them."""
    jobs = {"submit_s": [0, 1, 2, 3, 4], "runtime_s": [15, 1, 1, 1, 1], "cores": [5, 5, 10, 10, 10]}
    workload = Workload.from_jobs(jobs)
    policy = Rollout(4, base, arrivals=[workload], objective="slowdown", every_s=1.0)
    assert escala.simulate(workload, PLATFORM, policy).jobs["start_s"].to_list() == [5.0, 1.0, 2.0, 3.0, 4.0]


def test_hold_back_goes_by_the_latest_arrival_of_all_futures() -> None:
    """One long job waits, and two futures bring a short job at 3 s and at 9 s. hold-back holds the long job until 3 s
    in the first, hold-back:0 until 9 s, hold-back:2 until two mean walltimes (of 2 s) before that."""
    running, left = np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)
    s = int(SECOND)
    drawn = np.zeros((2, 5, 2), np.int64)
    drawn[:, 0] = drawn[:, 1] = np.array([8, 1]) * s
    drawn[:, 2] = 10
    drawn[:, 3, 1] = np.array([3, 9]) * s
    release = drawn[:, 3, 1].copy()
    policy = Rollout(2, ("hold-back", "hold-back:0", "hold-back:2"), objective="wait")
    policy.forget(10)
    starts = []
    for base in policy._bases:
        f = policy._shaped(base, running, left, drawn, np.zeros(2, np.int64), 2.0 * s, release, release)
        assert (f.release >= release).all()  # so that no job starts before it comes
        starts.append((f.release / s).tolist())
    assert starts == [[3.0, 9.0], [9.0, 9.0], [5.0, 9.0]]


@pytest.mark.slow
def test_from_the_past_alone_it_improves_its_base() -> None:
    test = lists(10)
    policy = Rollout(64, ("sjf-fit", "hold-back"), objective="slowdown")
    assert np.mean([slowdown(w, policy) for w in test]) < 0.85 * np.mean([slowdown(w, "sjf-fit") for w in test])


def test_the_same_seed_gives_the_same_schedule_and_another_run_begins_anew() -> None:
    first, second = lists(2)
    policy = Rollout(8, seed=3)
    alone = escala.simulate(second, PLATFORM, Rollout(8, seed=3)).jobs
    escala.simulate(first, PLATFORM, policy)
    assert escala.simulate(second, PLATFORM, policy).jobs.equals(alone)


def test_it_does_not_know_how_long_jobs_run() -> None:
    jobs = {"submit_s": [0.0, 0.0, 0.0], "walltime_s": [100.0, 100.0, 90.0], "cores": [10, 10, 10]}
    starts = [
        escala.simulate(Workload.from_jobs({**jobs, "runtime_s": runtime}), PLATFORM, Rollout(16))
        .jobs["start_s"]
        .arg_min()
        for runtime in ([1.0, 100.0, 90.0], [100.0, 1.0, 90.0])
    ]
    assert starts == [2, 2]


def test_runtimes_are_drawn_from_the_shares_seen_and_beyond_what_has_passed() -> None:
    memory = Memory(shares=[0.1, 0.5, 1.0])
    rng = np.random.default_rng(0)
    drawn = memory.runtimes(np.array([1000, 1000, 1000]), np.array([0, 100, 600]), 4000, rng)
    assert set(drawn[:, 0].tolist()) == {100, 500, 1000}
    assert set(drawn[:, 1].tolist()) == {500, 1000}
    assert set(drawn[:, 2].tolist()) == {1000}
    assert np.mean(drawn[:, 0] == 100) == pytest.approx(1 / 3, abs=0.05)


def test_a_name_with_a_number() -> None:
    (workload,) = lists(1)
    assert escala.simulate(workload, PLATFORM, "rollout:4").jobs["state"].unique().to_list() == ["COMPLETED"]


def test_it_does_not_wait_where_nothing_can_come() -> None:
    workload = Workload.from_jobs({"submit_s": [5.0], "runtime_s": [50.0], "cores": [10]})
    policy = Rollout(8, arrivals=[workload])
    assert escala.simulate(workload, PLATFORM, policy).jobs["start_s"].to_list() == [5.0]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Rollout(0), "at least 1"),
        (lambda: Rollout(base="packer"), "'packer'"),
        (lambda: Rollout(base="conservative"), "'conservative'"),
        (lambda: Rollout(base="hold-back:-1"), "'-1' is no number"),
        (lambda: Rollout(base="hold-back:x"), "'x' is no number"),
        (lambda: Rollout(optimism=1.5), "optimism"),
        (lambda: Rollout(base="nothing"), "'nothing'"),
        (lambda: Rollout(objective="makespan"), "'makespan'"),
        (lambda: Rollout(every_s=0.0), "every_s"),
        (lambda: Rollout(arrivals=[]), "at least one workload"),
        (lambda: escala.simulate(lists(1)[0], PLATFORM, "rollout:none"), "'none'"),
    ],
)
def test_bad_options_are_one_clear_line(make: object, word: str) -> None:
    with pytest.raises(EscalaError, match=word) as error:
        make()  # type: ignore[operator]
    assert "\n" not in str(error.value)


def test_single_node_jobs_are_refused() -> None:
    workload = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [1], "single_node": [True]})
    with pytest.raises(EscalaError, match="single-node"):
        escala.simulate(workload, "2x4", Rollout())
