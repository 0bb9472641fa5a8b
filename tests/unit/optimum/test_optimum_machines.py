"""Several machines: bounds below, and schedules found not below, the best of all assignments and orders."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.optimum import Instance, bound, on_machines, pool
from escala.optimum.machines import check_machines
from tests.unit.optimum.optimum_worlds import best_of_orders, random_instance


def best_of_machines(instance: Instance, machines: int) -> float:
    """Every assignment of jobs to machines, on each machine every order."""
    least = Fraction(10**9)
    for machine in product(range(machines), repeat=instance.jobs):
        total = Fraction(0)
        for k in set(machine):
            rows = np.flatnonzero(np.array(machine) == k)
            one = replace(
                instance, release=instance.release[rows], length=instance.length[rows], demand=instance.demand[rows]
            )
            total += best_of_orders(one)[0] * len(rows)
        least = min(least, total / instance.jobs)
    return float(least)


def test_bound_and_schedule_enclose_the_best_of_all_assignments() -> None:
    rng = np.random.default_rng(17)
    equal = 0
    for _ in range(40):
        machines = int(rng.integers(1, 4))
        jobs, kinds = int(rng.integers(1, 6)), int(rng.integers(1, 3))
        capacity = rng.integers(2, 8, kinds)
        instance = Instance(
            rng.integers(0, 5, jobs), rng.integers(1, 6, jobs), rng.integers(1, capacity + 1, (jobs, kinds)), capacity
        )
        best = best_of_machines(instance, machines)
        found = on_machines(instance, machines, effort=0.02)
        check_machines(instance, found.starts, found.machine)
        assert found.machine.max() < machines and found.value == pytest.approx(instance.value(found.starts))
        assert found.value >= best - 1e-9
        equal += found.value <= best + 1e-9
        proved = bound(pool(instance, machines), steps=("wspt", "lagrange"), known=found.starts)
        assert proved.lower is not None and proved.lower <= best + 1e-9
    assert equal >= 38


def test_one_machine_is_the_pool_itself() -> None:
    rng = np.random.default_rng(3)
    instance = random_instance(rng, 6, "slowdown")
    assert on_machines(instance, 1, effort=0.1).value == pytest.approx(float(best_of_orders(instance)[0]))


def test_wide_jobs_do_not_share_what_two_machines_leave() -> None:
    """Three jobs of 6 of 10 on two machines: as one pool of 20 all would run at once; the roundings know that one must
    wait."""
    instance = Instance([0, 0, 0], [4, 4, 4], [6, 6, 6], 10)
    assert on_machines(instance, 2).value == pytest.approx(4 / 3)
    plain = replace(instance, capacity=np.array([20]))
    assert bound(plain).found == 1.0
    assert bound(pool(instance, 2), exact=False).lower == pytest.approx(4 / 3)


def test_bad_requests_are_refused() -> None:
    instance = Instance([0], [1], [1], 1)
    with pytest.raises(EscalaError, match="at least one machine"):
        on_machines(instance, 0)
    with pytest.raises(EscalaError, match="mean over jobs"):
        on_machines(replace(instance, objective="makespan"), 2)
