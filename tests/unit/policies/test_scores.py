"""Scores by their formulas, worked by hand, and what names of policies stand for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import escala
from escala.options import Options
from escala.policies import compose
from escala.policies.futures import Lists, Memory
from escala.policies.shutdown import Inertial
from escala.scores import FIXED, PACKING, by_size

# submitted after 100 s, requests 400 s on 4 cores: log10(100) = 2, log10(400) = 2.602059991328, sqrt(400) = 20, sqrt(4)
# = 2
BY_HAND = {
    "sjf": 400e6,
    "ljf": -400e6,
    "saf": 1600e6,
    "sqrt-area": 800e6,
    "smallest": 4.0,
    "f1": 4 * 2.602059991328 + 870 * 2,
    "f2": 20 * 4 + 25_600 * 2,
    "f3": 400 * 4 + 6_860_000 * 2,
    "f4": 400 * 2 + 530_000 * 2,
    "packer": -4.0,
    "tetris": -(4 / 2 + 1 / 800),
}


def _score(name: str, submit_s: float) -> float:
    score = FIXED[name] if name in FIXED else PACKING[name][1]
    return float(score(np.array([round(submit_s * 1e6)]), np.array([400_000_000]), np.array([4]))[0])


@pytest.mark.parametrize("name", [*FIXED, *PACKING])
def test_a_score_is_its_formula(name: str) -> None:
    assert _score(name, 100.0) == pytest.approx(BY_HAND[name], rel=1e-12)


@pytest.mark.parametrize(("name", "factor"), [("f1", 870), ("f2", 25_600), ("f3", 6_860_000), ("f4", 530_000)])
def test_submissions_of_the_first_second_count_as_of_its_end(name: str, factor: float) -> None:
    begin = _score(name, 0.0)
    assert begin == _score(name, 0.5) == _score(name, 1.0)
    assert _score(name, 5.0) - begin == pytest.approx(factor * 0.698970004336, rel=1e-9)


@pytest.mark.parametrize("longest_us", [5, 10**9, 2**61])
def test_by_size_is_by_cores_then_walltime_then_place(longest_us: int) -> None:
    draw = np.random.default_rng(7)
    walltime, cores = draw.integers(1, longest_us, 200, endpoint=True), draw.integers(1, 9, 200)
    order = np.argsort(by_size(np.zeros(200), walltime, cores), kind="stable").tolist()
    assert order == sorted(range(200), key=lambda k: (cores[k], walltime[k], k))


def test_inertial_halves_what_is_off_under_a_growing_backlog_and_doubles_it_else() -> None:
    policy, told = Inertial(), list[int]()
    act: Any = SimpleNamespace(reserve_off=told.append)
    for backlog_s in (0, 0, 0, 0, 60, 60, 61, 30, 29, 30):
        view: Any = SimpleNamespace(n_nodes=7, waiting_work=float(backlog_s))
        policy.decide(view, act)
    assert told == [1, 2, 4, 7, 3, 1, 0, 1, 2, 1]


def test_with_run_times_as_estimates_the_limit_still_ends_a_job() -> None:
    """A runs 100 s and is ended after 50 s, which is less than B's 60 s: A is the shorter one."""
    log = escala.Workload.from_jobs(
        {
            "submit_s": [0.0, 1.0, 1.0],
            "runtime_s": [10.0, 60.0, 100.0],
            "walltime_s": [10.0, 80.0, 50.0],
            "cores": [1, 1, 1],
        }
    )
    assert escala.simulate(log, "1x1", "sjf", estimate="runtime").jobs["start_s"].to_list() == [0.0, 60.0, 10.0]


def test_oracle_holds_for_half_of_the_request_by_default() -> None:
    assert compose.shutdown("oracle", Options())[0]["fraction"] == 0.5
    assert compose.shutdown("oracle:0.25", Options())[0]["fraction"] == 0.25


def test_jobs_of_this_instant_are_not_to_come() -> None:
    log = escala.Workload.from_jobs({"submit_s": [0.0, 10.0, 20.0], "runtime_s": [1.0, 2.0, 3.0], "cores": [1, 1, 1]})
    coming = Lists([log]).draw(Memory(), 10_000_000, 2, 5, np.random.default_rng(0))
    assert coming.at[:, 0].tolist() == [10_000_000, 10_000_000] and coming.runtime[:, 0].tolist() == [
        3_000_000,
        3_000_000,
    ]
