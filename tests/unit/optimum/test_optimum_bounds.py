"""No bound is above any schedule; prices are evaluated exactly; nothing that an optimum needs is thinned out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from optimum_worlds import (
    best_by_force,
    best_of_all,
    best_of_orders,
    best_of_starts,
    feasible,
    random_instance,
    tick_by_tick,
    value,
)

from escala.optimum import OBJECTIVES, Instance, bound
from escala.optimum.conflicts import MAX_WORK, sharpened
from escala.optimum.lagrange import Dual, Window, everywhere, grid_for, prove
from escala.optimum.prices import NEVER
from escala.optimum.splitting import Parts
from escala.optimum.thinning import open_starts
from escala.optimum.wspt import makespan_bound, mean_busy_bound


def cost(instance: Instance, starts: list[int]) -> Fraction:
    return (value(instance, starts) - instance.base) * instance.jobs


@pytest.mark.slow
@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.long)])
def test_bounds_are_never_above_a_schedule(count: int) -> None:
    """Random instances, one or two kinds, all objectives, coarse and fine cells: compared in exact fractions."""
    rng = np.random.default_rng(7)
    useful = raised = 0
    objectives: list[str] = []
    for trial in range(count):
        instance = random_instance(rng, int(rng.integers(1, 12)), longest=int(rng.choice([3, 12, 100])))
        objectives.append(instance.objective)
        orders = [np.argsort(instance.length, kind="stable"), rng.permutation(instance.jobs), np.arange(instance.jobs)]
        schedules = [tick_by_tick(instance, tuple(order.tolist())) for order in orders]
        best = min(schedules, key=lambda s: value(instance, s))
        if not instance.summed:
            lower = makespan_bound(instance)
            assert lower <= value(instance, best)
            useful += lower == value(instance, best)
            continue
        floor = cost(instance, best)
        assert mean_busy_bound(instance) <= floor
        end = int(max(s + p for s, p in zip(best, instance.length)))
        dual = Dual(instance, end if trial % 2 else end // 2 + 1, max_cells=int(rng.choice([3, 10, 1000])))
        dual.improve(float(floor), 60)
        assert dual.proof().cost <= floor
        parts = Parts(dual, float(floor) * float(rng.choice([0.8, 1.0, 1.3])))
        parts.split(8)
        assert dual.proof().cost <= parts.cost() <= floor
        useful += dual.proof().cost > floor / 2
        raised += parts.cost() > dual.proof().cost * Fraction(101, 100)
    assert len(objectives) == count and all(objectives.count(objective) > count // 5 for objective in OBJECTIVES)
    assert useful > count // 5  # the bounds are not empty either
    assert raised > count // 10


def test_any_prices_are_evaluated_exactly() -> None:
    """L(u) from its definition over every tick, in fractions, against the compiled evaluation over few candidates; also
    of the schedules of a window."""
    rng = np.random.default_rng(8)
    for trial in range(300):
        instance = random_instance(rng, 5, str(rng.choice(["slowdown", "bounded-slowdown", "wait"])))
        grid = grid_for(instance, int(rng.integers(5, 60)), int(rng.choice([2, 7, 100])))
        prices = rng.random((instance.capacity.size, grid.cells)) * rng.choice(
            [0.0, 0.1, 1.0], (instance.capacity.size, grid.cells)
        )
        window = everywhere(instance, grid)
        if trial % 2:
            earliest = window.earliest + rng.integers(0, 30, instance.jobs)
            window = Window(
                earliest,
                np.where(rng.random(instance.jobs) < 0.7, earliest + rng.integers(0, 20, instance.jobs), NEVER),
            )
        proof = prove(instance, grid, prices, window)

        def price(kind: int, tick: int, grid=grid, proof=proof) -> int:
            cell = (tick - grid.origin) // grid.width
            return int(proof.prices[kind, cell]) if 0 <= cell < grid.cells else 0

        total = -sum(int(c) * grid.width * int(proof.prices[k].sum()) for k, c in enumerate(instance.capacity))
        for j in range(instance.jobs):
            last = grid.origin + min(int(window.latest[j]), grid.width * grid.cells + 60)
            total += min(
                int(proof.weight[j]) * max(0, s - int(instance.ready[j]))
                + sum(
                    int(q) * sum(price(k, t) for t in range(s, s + int(instance.length[j])))
                    for k, q in enumerate(instance.demand[j])
                )
                for s in range(grid.origin + int(window.earliest[j]), last + 1)
            )
        assert proof.numerator == total
        assert np.all(proof.weight * instance.divisor <= proof.scale)


def test_splitting_proves_what_prices_alone_cannot() -> None:
    """Four jobs of which two fit at once, with room for half a third: the relaxed schedules use that room, and the
    bound stays below the optimum, 2."""
    instance = Instance([0, 0, 0, 0], [4, 4, 4, 4], [2, 2, 2, 2], [5])
    dual = Dual(instance, 12)
    dual.improve(2.0, 500)
    assert not dual.sharp and dual.proof().cost < Fraction(17, 10)
    parts = Parts(dual, 2.0)
    before = parts.cost()
    for _ in range(40):
        parts.split(5)
        assert before <= parts.cost() <= 2
        before = parts.cost()
    assert before > Fraction(199, 100)
    assert len(parts) > 5


def test_conflicts_prove_what_the_capacity_alone_cannot() -> None:
    """Three jobs of which no two fit at once, by hand: starts 0, 4 and 8, a cost of 1 + 2. The capacity alone lets 5/3
    of them run."""
    instance = Instance([0, 0, 0], [4, 4, 4], [3, 3, 3], [5])
    dual = Dual(instance, 12)
    dual.improve(3.0, 500)
    assert dual.sharp and Fraction(299, 100) < dual.proof().cost <= 3
    assert bound(instance).prover == "Lagrangian of the capacity and of conflicts, exact integers"


def test_conflicts_leave_out_no_schedule() -> None:
    """Random start times are feasible for an instance with its conflicts written out if and only if they are for the
    instance itself."""
    rng = np.random.default_rng(14)
    sharper, told = 0, [0, 0]
    for _ in range(400):
        instance = random_instance(rng, int(rng.integers(2, 7)), kinds=int(rng.integers(1, 3)))
        sharp = sharpened(instance, 100)
        assert sharpened(instance, MAX_WORK) is instance
        sharper += sharp is not instance
        assert sharp is instance or np.array_equal(sharp.demand[:, : instance.capacity.size], instance.demand)
        for _ in range(20):
            starts = (instance.release + rng.integers(0, 1 + 2 * int(instance.length.max()), instance.jobs)).tolist()
            fits = feasible(instance, starts)
            assert feasible(sharp, starts) == fits
            told[fits] += sharp is not instance
    assert sharper > 200 and min(told) > 500


def test_splitting_stops_when_asked_and_keeps_every_schedule() -> None:
    rng = np.random.default_rng(4)
    cuts = 0
    for _ in range(20):
        instance = random_instance(rng, 6, "slowdown")
        best, _ = best_of_orders(instance)
        floor = (best - instance.base) * instance.jobs
        dual = Dual(instance, int(instance.length.sum()))
        dual.improve(float(floor), 100)
        asked = iter([False, False, True])
        parts = Parts(dual, float(floor) + 5.0)
        cuts += parts.split(50, lambda asked=asked: next(asked))
        assert len(parts) <= 3
        assert dual.proof().cost <= parts.cost() <= floor
    assert cuts > 5


def test_thinning_keeps_every_optimal_start() -> None:
    """Of every optimal schedule that an order makes, with the proof of all schedules and with those of parts."""
    rng = np.random.default_rng(9)
    removed = fewer = 0
    for _ in range(60):
        instance = random_instance(rng, 5, str(rng.choice(["slowdown", "bounded-slowdown", "wait"])))
        _, starts = best_of_orders(instance)
        dual = Dual(instance, max(s + int(p) for s, p in zip(starts, instance.length)))
        dual.improve(float(cost(instance, starts)), 300)
        whole = open_starts(
            dual.instance, dual.grid, [(dual.whole.window, dual.proof())], float(cost(instance, starts))
        )
        parts = Parts(dual, float(cost(instance, starts)) * 1.1 + 1.0)
        parts.split(30)
        kept = open_starts(dual.instance, dual.grid, parts.proofs(), float(cost(instance, starts)))
        assert kept is not None and whole is not None
        for schedule in best_of_all(instance):
            for job, start in enumerate(schedule):
                for left in (whole, kept):
                    assert start in left.ticks[left.first[job] : left.first[job + 1]]
        removed += int((instance.horizon - instance.length - instance.release + 1).sum()) - whole.ticks.size
        fewer += whole.ticks.size - kept.ticks.size
    assert removed > 1000 and fewer > 100


def test_orders_hold_an_optimum() -> None:
    """The oracle itself against all start times."""
    rng = np.random.default_rng(10)
    for _ in range(15):
        instance = random_instance(rng, 3, longest=4)
        assert best_of_orders(instance)[0] == best_of_starts(
            instance, int(instance.release.max() + instance.length.sum())
        )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_fast_oracle_is_the_slow_one(objective: str) -> None:
    rng = np.random.default_rng(13)
    for k in range(40):
        instance = random_instance(rng, 1 + k % 5, objective, kinds=1 + k % 3)
        best, starts = best_by_force(instance)
        assert best == best_of_orders(instance)[0] == value(instance, starts) and feasible(instance, starts)


def test_search_finds_the_optimum_of_small_instances() -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        instance = random_instance(rng, int(rng.integers(2, 6)))
        best, _ = best_of_orders(instance)
        result = bound(instance)
        assert result.found == pytest.approx(float(best), rel=1e-12)
        assert result.lower is not None and result.lower <= float(best)


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective", ["slowdown", *(pytest.param(one, marks=pytest.mark.long) for one in ("bounded-slowdown", "wait"))]
)
def test_coarse_prices_stay_valid_in_seconds(objective: str) -> None:
    """A day in seconds: cells are minutes wide, starts are not; the bound holds against what the search finds."""
    rng = np.random.default_rng(12)
    release, length = np.sort(rng.integers(0, 20_000, 40)), rng.integers(1, 9_000, 40)
    instance = Instance(release, length, rng.integers(1, 9, 40), 10, objective)
    dual = Dual(instance, instance.horizon, 64)
    assert dual.grid.width > 1000
    result = bound(instance)
    assert result.found is not None and result.lower is not None
    dual.improve((result.found - instance.base) * 40, 500)
    coarse = instance.base + float(dual.proof().cost) / 40
    assert instance.base <= coarse <= result.found
    assert coarse <= result.lower * 1.001 + 0.01  # coarser prices cannot be better by more than convergence


def test_deep_overload_favours_mean_busy_times() -> None:
    """One machine, all jobs at 0: the bound is the optimum, by Smith's rule (hand-computed: lengths 1, 2, 3 wait 0, 1,
    3)."""
    instance = Instance([0, 0, 0], [1, 2, 3], [4, 4, 4], 4, "wait")
    assert mean_busy_bound(instance) == 4
    assert bound(instance, steps=("wspt", "search")).status == "optimal"
