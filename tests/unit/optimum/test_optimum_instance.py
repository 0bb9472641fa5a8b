"""Instances: objectives by definition, refusals in one line, the independent checker."""

from __future__ import annotations

import numpy as np
import pytest
from optimum_worlds import feasible, random_instance, value

from escala.errors import EscalaError
from escala.optimum import OBJECTIVES, Instance, check_schedule
from escala.optimum.wspt import rounded


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_value_is_the_definition(objective: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        instance = random_instance(rng, 6, objective)
        starts = instance.release + rng.integers(0, 30, 6)
        assert instance.value(starts) == pytest.approx(float(value(instance, starts)), rel=1e-14)


def test_checker_agrees_with_tick_by_tick() -> None:
    rng = np.random.default_rng(2)
    seen = {True: 0, False: 0}
    for _ in range(400):
        instance = random_instance(rng, 4)
        starts = instance.release + rng.integers(-1, 25, 4)
        good = bool(np.all(starts >= 0)) and feasible(instance, starts)
        seen[good] += 1
        if good:
            check_schedule(instance, starts)
        else:
            with pytest.raises(EscalaError):
                check_schedule(instance, starts)
    assert min(seen.values()) > 50


BAD = {
    "no jobs": {"release": [], "length": [], "demand": []},
    "fraction": {"release": [0.5, 1]},
    "text": {"release": ["a", "b"]},
    "not a number": {"release": [float("nan"), 1]},
    "short": {"length": [1]},
    "negative release": {"release": [-1, 0]},
    "zero length": {"length": [0, 1]},
    "negative demand": {"demand": [-1, 1]},
    "oversized": {"demand": [11, 1]},
    "kinds": {"demand": [[1, 1], [1, 1]]},
    "no capacity": {"capacity": [0]},
    "objective": {"objective": "energy"},
    "pi": {"pi": 0},
    "pi that is no number": {"pi": float("nan")},
    "pi that is a text": {"pi": "10"},
    "too long": {"length": [1 << 60, 1]},
    "cube": {"demand": np.ones((2, 1, 1))},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_line(name: str) -> None:
    good = {"release": [0, 0], "length": [1, 2], "demand": [1, 10], "capacity": [10], "objective": "slowdown", "pi": 10}
    Instance(**good)  # type: ignore[arg-type]
    with pytest.raises(EscalaError) as error:
        Instance(**{**good, **BAD[name]})  # type: ignore[arg-type]
    assert "\n" not in str(error.value) and ":" in str(error.value)


def test_roundings_are_dual_feasible() -> None:
    """Whatever fits together still fits after rounding: all multisets of demands up to the capacity."""

    def multisets(left: int, least: int) -> list[list[int]]:
        found: list[list[int]] = [[]]
        for first in range(least, left + 1):
            found += [[first, *rest] for rest in multisets(left - first, first)]
        return found

    for capacity in (1, 2, 5, 10, 12):
        demand = np.arange(1, capacity + 1)
        for shares, whole in rounded(demand, capacity):
            for together in multisets(capacity, 1):
                assert sum(shares[q - 1] for q in together) <= whole, (capacity, whole, together)
