"""Ticks too many to count: what is proved of rounded times holds for the times themselves, and schedules are real
ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from optimum_worlds import best_by_force, feasible, random_instance, tick_by_tick, value

from escala.errors import EscalaError
from escala.optimum import OBJECTIVES, Instance, bound, check_schedule, on_machines
from escala.optimum.coarse import above, below, proved, unit_for
from escala.optimum.instance import MAX_TICK
from escala.optimum.searcher import Searcher
from escala.optimum.wspt import mean_busy_bound

LONG = [pytest.param(one, marks=pytest.mark.long) for one in ("bounded-slowdown", "wait")]
YEAR_US = 365 * 86_400 * 10**6


def cost(instance: Instance, starts: np.ndarray) -> Fraction:
    """The objective by the instance's own ready ticks and divisors, exactly."""
    if not instance.summed:
        return Fraction(int((starts + instance.length).max()) - int(instance.release.min()))
    late = np.maximum(0, starts - instance.ready)
    return (
        instance.base
        + sum(Fraction(int(x), int(d)) for x, d in zip(late, instance.divisor, strict=True)) / instance.jobs
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_schedule_has_one_below_and_every_coarse_one_above_is_real(objective: str) -> None:
    rng = np.random.default_rng(50)
    shorter = 0
    for _ in range(300):
        unit = int(rng.choice([2, 3, 10]))
        instance = random_instance(rng, int(rng.integers(1, 9)), objective, 40, int(rng.integers(1, 3)))
        if not instance.summed and int(instance.length.max()) < unit:
            continue  # less than a tick in all: `unit_for` never rounds so far
        low, high = below(instance, unit), above(instance, unit)
        order = rng.permutation(instance.jobs)
        starts = np.array(tick_by_tick(instance, tuple(order.tolist())))
        since = (starts - instance.release.min()) // unit
        if not instance.summed:
            none = instance.length < unit
            since = np.where(none, np.maximum(0, since - 1), since)
        check_schedule(low, since)
        assert proved(instance, unit, 1.0) * (cost(low, since) - low.base) + low.base <= value(instance, starts)
        shorter += int((instance.length < unit).sum())
        rough = np.array(tick_by_tick(high, tuple(order.tolist())))
        assert feasible(instance, rough * unit + int(instance.release.min()))
        assert Searcher(instance, 0).generate(order).tolist() == starts.tolist()
    assert shorter > 50


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_of_rounded_times_enclose_the_optimum(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 200 ticks were too many to count."""
    monkeypatch.setattr("escala.optimum.coarse.MAX_TICK", 200)
    rng = np.random.default_rng(51)
    rounded = useful = 0
    for _ in range(25):
        instance = random_instance(rng, 6, objective, 200, 1)
        best, _ = best_by_force(instance)
        result = bound(instance)
        rounded += result.unit > 1
        assert result.unit == unit_for(instance) and ("rounded" in result.prover) == (result.unit > 1)
        assert result.lower is not None and Fraction(result.lower) <= best
        assert result.found is not None and result.starts is not None and value(instance, result.starts) >= best
        assert result.found == pytest.approx(float(value(instance, result.starts)), rel=1e-12)
        assert feasible(instance, result.starts)
        useful += result.lower > instance.base and result.found <= 1.05 * best
    assert rounded > 20 and useful > 15


def log(rng: np.random.Generator, objective: str, jobs: int = 60) -> Instance:
    """A year in microseconds, in bursts of jobs that crowd each other."""
    release = np.sort(rng.integers(0, 10, jobs) * (YEAR_US // 10) + rng.integers(0, 3600 * 10**6, jobs))
    return Instance(
        release, rng.integers(10**6, 86_400 * 10**6, jobs), rng.integers(1, 9, jobs), 10, objective, 10 * 10**6
    )


@pytest.mark.parametrize("objective", ["slowdown", "makespan", *LONG])
def test_a_year_in_microseconds_has_an_interval_close_to_that_of_milliseconds(objective: str) -> None:
    fine = log(np.random.default_rng(52), objective)
    assert fine.horizon > 16 * MAX_TICK
    told: list[float | None] = []
    result = bound(fine, limit_s=20.0, progress=lambda step: told.append(step.lower))
    assert result.status in ("interval", "optimal") and result.unit == 100 and len(result.steps) == len(told) >= 2
    assert result.starts is not None and result.found == fine.value(result.starts)
    check_schedule(fine, result.starts)
    coarse = Instance(fine.release // 1000, fine.length // 1000, fine.demand, fine.capacity, objective, fine.pi // 1000)
    plain = bound(coarse, limit_s=20.0)
    per = 1.0 if objective.endswith("slowdown") else 1000.0
    assert plain.lower is not None and plain.found is not None and result.lower is not None and told[-1] == result.lower
    assert result.lower == pytest.approx(plain.lower * per, rel=0.03) and result.found == pytest.approx(
        plain.found * per, rel=0.03
    )
    assert result.lower <= result.found


def test_known_schedules_limits_and_proofs_alone() -> None:
    fine = log(np.random.default_rng(53), "slowdown")
    first = Searcher(fine, 0).generate(np.argsort(fine.release, kind="stable"))
    assert bound(fine, steps=("wspt",)).status == "bound-only"
    known = bound(fine, steps=("wspt",), known=first)
    assert known.status == "interval" and known.found == fine.value(first)
    short = bound(fine, known=first, limit_s=0.05)
    assert short.lower is not None and short.found is not None and short.found <= fine.value(first) and short.cut
    with pytest.raises(EscalaError, match="coarser tick"):
        on_machines(fine, 2)
    with pytest.raises(EscalaError, match="before its release"):
        bound(fine, known=first - 1)


def test_ctrl_c_in_the_search_keeps_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fine = log(np.random.default_rng(54), "slowdown")
    monkeypatch.setattr("escala.optimum.ladder.search", stopped)
    result = bound(fine)
    assert result.interrupted and result.status == "bound-only" and result.lower is not None and result.lower > 1


def test_a_tick_of_grace_does_not_cost_the_mean_busy_bound_its_worth() -> None:
    """Short jobs with a long period of grace beside long ones: only the long ones say something, before and after
    rounding."""
    rng = np.random.default_rng(55)
    length = np.concatenate([np.full(50, 1_001), rng.integers(10**5, 10**6, 50)])
    fine = Instance(rng.integers(0, 1000, 100), length, np.full(100, 6), 10, "bounded-slowdown", 5 * 10**5)
    low = below(fine, 10)
    assert float(mean_busy_bound(low)) == pytest.approx(float(mean_busy_bound(fine)), rel=1e-3)
    assert mean_busy_bound(low) <= mean_busy_bound(fine)


@pytest.mark.slow
def test_exact_of_rounded_times_is_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools")
    monkeypatch.setattr("escala.optimum.coarse.MAX_TICK", 400)
    rng = np.random.default_rng(56)
    for objective in ("slowdown", "bounded-slowdown", "wait", "makespan"):
        instance = random_instance(rng, 7, objective, 200, 1)
        best, _ = best_by_force(instance)
        result = bound(instance, exact=True, limit_s=20.0)
        assert result.unit > 1 and result.lower is not None and result.found is not None
        assert result.lower <= best * (1 + Fraction(1, 10**6)) and result.found >= best * (1 - Fraction(1, 10**9))
        assert result.found == pytest.approx(float(best), rel=0.05) and result.lower == pytest.approx(
            float(best), rel=0.25
        )


@pytest.mark.long
def test_exact_goes_on_in_ticks_that_solvers_take() -> None:
    """Twelve jobs in two bursts half a year apart: in ticks of 0.1 ms the solvers prove nothing, in ticks of 100
    seconds nearly all."""
    pytest.importorskip("ortools")
    rng = np.random.default_rng(57)
    release = np.repeat([0, YEAR_US // 2], 6) + rng.integers(0, 3000 * 10**6, 12)
    fine = Instance(release, rng.integers(60 * 10**6, 40_000 * 10**6, 12), rng.integers(2, 9, 12), 10)
    plain, exactly = bound(fine), bound(fine, exact=True, limit_s=20.0)
    assert plain.gap is not None and exactly.gap is not None and exactly.gap < 0.02 < plain.gap
    assert plain.unit == 100 and exactly.unit == 10**8 and "rounded to 100000000 ticks" in exactly.prover
    assert exactly.found == plain.found
