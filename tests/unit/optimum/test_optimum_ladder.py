"""The public `bound`: statuses, limits, and one hand-made instance per relaxation."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from optimum_worlds import best_of_orders, random_instance

from escala.errors import EscalaError
from escala.optimum import RELAXATIONS, Bound, Instance, bound
from escala.optimum.ladder import _Ladder
from escala.optimum.lagrange import Dual


def test_statuses_say_no_more_than_was_proved() -> None:
    rng = np.random.default_rng(40)
    seen = set()
    for _ in range(30):
        instance = random_instance(rng, int(rng.integers(1, 7)))
        best = float(best_of_orders(instance)[0])
        for steps in (("wspt",), ("wspt", "lagrange"), ("search",), ("wspt", "lagrange", "search")):
            result = bound(instance, steps=steps)
            seen.add(result.status)
            assert (result.lower is None) == (result.status == "found-only")
            assert (result.found is None) == (result.status == "bound-only")
            if result.lower is not None:
                assert result.lower <= best * (1 + 1e-12)
            if result.found is not None:
                assert result.found >= best * (1 - 1e-12)
            if result.status == "optimal":
                assert result.found == pytest.approx(best, rel=1e-9) and result.gap == pytest.approx(0, abs=1e-6)
            if result.status == "interval":
                assert result.gap is not None and result.gap > 1e-6
            assert result.relaxations == RELAXATIONS and result.jobs == instance.jobs
    assert seen == {"optimal", "interval", "bound-only", "found-only"}


def optimum(instance: Instance) -> Bound:
    """The optimum, proved by trying all orders; the ladder must find it and may not claim more."""
    result = bound(instance)
    best = float(best_of_orders(instance)[0])
    assert result.found == pytest.approx(best) and result.lower is not None and result.lower <= best + 1e-12
    return result


def test_relaxation_clairvoyant() -> None:
    """A wide long job at 0, a short one at 1. Who knows of the short one idles: (1.2 + 1) / 2; starting what is there:
    (1 + 10) / 2."""
    assert optimum(Instance([0, 1], [10, 1], [2, 2], 2)).found == pytest.approx((12 / 10 + 1) / 2)


def test_relaxation_no_slot_window() -> None:
    """One machine, three jobs at 0 in the order long, long, short. The optimum takes the short one first: (1 + 11/10 +
    21/10) / 3; who sees the first two only cannot: (1 + 2 + 21) / 3 at best, or (1 + 11 + 21/10) / 3 with the short one
    seen after the first start."""
    result = optimum(Instance([0, 0, 0], [10, 10, 1], [1, 1, 1], 1))
    assert result.found == pytest.approx((1 + 1.1 + 2.1) / 3) and result.found < (1 + 11 + 2.1) / 3


def test_relaxation_end_of_arrivals_known() -> None:
    """The same jobs at the start; only the arrivals that follow differ, and with them what is best to do at 0: idle, or
    start at once."""
    many = optimum(Instance([0, 1, 2, 3], [10, 1, 1, 1], [2] * 4, 2))
    none = optimum(Instance([0], [10], [2], 2))
    assert many.starts is not None and many.starts[0] == 4
    assert none.starts is not None and none.starts[0] == 0


def test_relaxation_cores_as_one_pool() -> None:
    """Two nodes of 3 cores, each with a job of 2 cores for 3 ticks from 0; a job of 2 cores on one node at 1. The pool
    has 2 cores free and runs it at once (wait 0); on nodes it must wait till 3, whatever the placement, since no node
    holds two of these jobs."""
    result = optimum(Instance([0, 0, 1], [3, 3, 1], [2, 2, 2], 6, "wait"))
    assert result.status == "optimal" and result.found == 0


def test_limit_is_respected() -> None:
    rng = np.random.default_rng(41)
    instance = random_instance(rng, 500, "slowdown", kinds=1)
    bound(random_instance(rng, 80, "slowdown", kinds=1), limit_s=0.1)  # compiled now
    begin = time.monotonic()
    result = bound(instance, limit_s=0.3)
    assert time.monotonic() - begin < 3.0
    assert result.cut and result.limit_s == 0.3


def test_interrupt_between_the_steps_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("escala.optimum.ladder.search", stopped)
    result = bound(random_instance(np.random.default_rng(45), 20, "slowdown", kinds=1))
    assert result.interrupted and result.status == "bound-only" and result.steps[-1].name == "search"


def test_interrupt_while_progress_is_shown_keeps_what_was_proved() -> None:
    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    result = bound(random_instance(np.random.default_rng(45), 20, "slowdown", kinds=1), progress=stopped)
    assert result.interrupted and [step.name for step in result.steps] == ["wspt"] and result.lower is not None


def test_waits_are_rounded_up() -> None:
    """Summed waits are whole: a bound of 1.2 ticks is one of 2."""
    rng = np.random.default_rng(46)
    for _ in range(20):
        instance = random_instance(rng, 5, "wait")
        result = bound(instance, steps=("wspt", "lagrange"))
        assert result.lower is not None and result.lower * 5 == pytest.approx(round(result.lower * 5), abs=1e-9)
        assert result.lower <= float(best_of_orders(instance)[0]) + 1e-12


def test_interrupt_in_the_dual_keeps_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = random_instance(np.random.default_rng(42), 20, "slowdown", kinds=1)
    improve = Dual.improve

    def stopped(self: Dual, target: float, iterations: int, expired: object) -> bool:
        improve(self, target, 200)
        raise KeyboardInterrupt

    monkeypatch.setattr(Dual, "improve", stopped)
    result = bound(instance)
    assert result.interrupted and result.status == "bound-only"
    assert [step.name for step in result.steps] == ["wspt", "lagrange"]
    assert "Lagrangian" in result.prover and result.lower is not None and result.lower > 1


def test_progress_tells_each_step() -> None:
    told = []
    instance = random_instance(np.random.default_rng(43), 8, "slowdown", kinds=1)
    result = bound(instance, progress=told.append)
    assert tuple(told) == result.steps
    lowers = [step.lower for step in told if step.lower is not None]
    assert lowers == sorted(lowers)


def test_known_schedule_is_checked_and_used() -> None:
    instance = Instance([0, 0], [2, 2], [1, 1], 1, "wait")
    assert bound(instance, steps=("wspt",), known=np.array([2, 0])).status == "optimal"
    with pytest.raises(EscalaError, match="capacity"):
        bound(instance, known=np.array([0, 1]))
    with pytest.raises(EscalaError, match="unknown"):
        bound(instance, steps=("magic",))
    with pytest.raises(EscalaError, match="limit_s"):
        bound(instance, limit_s=0)
    with pytest.raises(EscalaError, match="limit_s"):
        bound(instance, limit_s=float("nan"))


@pytest.mark.slow
def test_many_jobs_get_a_bound_only() -> None:
    """Above the size at which schedules are generated: a bound in bounded time and memory, and no schedule claimed."""
    rng = np.random.default_rng(44)
    jobs = 30_000
    instance = Instance(
        np.sort(rng.integers(0, 400_000, jobs)),
        rng.integers(1, 200, jobs),
        rng.integers(1, 9, jobs),
        10,
        "bounded-slowdown",
    )
    result = bound(instance, limit_s=2.0)
    assert result.status == "bound-only" and result.lower is not None and result.lower > 1
    assert result.seconds < 60


def test_half_of_a_limit_is_kept_for_a_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which half of the limit is always over: prices wait for the search, and a bound alone does not
    care."""
    instance = random_instance(np.random.default_rng(3), 12, "slowdown")
    free = bound(instance)
    monkeypatch.setattr(_Ladder, "left", lambda self: 0.4 * self.limit_s)
    late = bound(instance)
    assert late.cut and not free.cut
    assert late.found == free.found and [step.name for step in late.steps] == ["wspt", "lagrange", "search", "lagrange"]
    assert not bound(instance, steps=("wspt", "lagrange")).cut


def test_a_solver_that_is_missing_is_told_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("escala.optimum.exact.available", lambda: (False, False))
    with pytest.raises(EscalaError, match="needs a solver"):
        bound(random_instance(np.random.default_rng(3), 5, "wait"), exact=True, progress=told.append)
    assert told == []


@pytest.mark.parametrize(
    "given", [{"limit_s": "a"}, {"limit_s": float("nan")}, {"limit_s": 0}, {"seed": -1}, {"seed": 1.5}]
)
def test_bad_limits_and_seeds_are_one_clear_line(given: dict[str, Any]) -> None:
    with pytest.raises(EscalaError, match=f"{next(iter(given))} is .*: give"):
        bound(random_instance(np.random.default_rng(3), 5, "wait"), **given)


def test_capacities_too_large_to_search_still_give_a_bound() -> None:
    """Three resources of 2^30 - 1 units need 93 bits, and the search has 63."""
    rng = np.random.default_rng(5)
    large = (1 << 30) - 1
    instance = Instance(
        rng.integers(0, 5, 6), rng.integers(1, 5, 6), rng.integers(large // 2, large, (6, 3)), np.full(3, large)
    )
    result = bound(instance)
    assert result.status == "bound-only" and result.lower is not None and result.lower > 1.0
    with pytest.raises(EscalaError, match="of 63"):
        bound(instance, exact=True)
