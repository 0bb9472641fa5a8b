"""Schedules: generation against tick by tick, packed words against plain comparison, seeds, limits."""

from __future__ import annotations

import time

import numpy as np
import pytest
from optimum_worlds import feasible, random_instance, tick_by_tick

from escala.errors import EscalaError
from escala.optimum import OBJECTIVES, Instance, check_schedule
from escala.optimum.anneal import anneal
from escala.optimum.room import pack
from escala.optimum.search import search
from escala.optimum.searcher import Searcher


def test_generation_equals_tick_by_tick() -> None:
    rng = np.random.default_rng(20)
    for _ in range(300):
        instance = random_instance(rng, int(rng.integers(1, 15)))
        order = rng.permutation(instance.jobs)
        starts = Searcher(instance, 0).generate(order)
        assert starts.tolist() == tick_by_tick(instance, tuple(order.tolist()))
        assert feasible(instance, starts)


def test_packed_words_compare_like_plain_demands() -> None:
    rng = np.random.default_rng(21)
    for _ in range(200):
        kinds = int(rng.integers(1, 5))
        capacity = rng.integers(1, 5000, kinds)
        demand = np.stack([rng.integers(0, c + 1, 20) for c in capacity], axis=1)
        words, free, guards = pack(demand, capacity)
        left = capacity.astype(np.int64)
        for q, word in zip(demand, words.tolist()):
            fits = bool(np.all(q <= left))
            assert ((free - word) & guards == guards) == fits
            if fits:
                free, left = free - word, left - q


def test_too_many_bits_are_refused() -> None:
    with pytest.raises(EscalaError, match="larger units"):
        pack(np.array([[1, 1, 1], [3, 5, 7]]), np.array([1 << 30] * 3))
    pack(np.array([[1 << 20, 1 << 20, 1 << 20]]), np.array([1 << 30] * 3))  # whole units of 2^20


@pytest.mark.parametrize("jobs", [10, 120])
def test_same_seed_same_schedule(jobs: int) -> None:
    rng = np.random.default_rng(22)
    instance = random_instance(rng, jobs, "slowdown")
    first, again, other = (search(instance, seed=s, effort=0.02) for s in (1, 1, 2))
    assert first.starts.tolist() == again.starts.tolist() and first.value == again.value
    for found in (first, other):
        check_schedule(instance, found.starts)
        assert found.value == instance.value(found.starts)


def test_annealing_of_parts_keeps_the_rest_feasible() -> None:
    rng = np.random.default_rng(23)
    for objective in ("slowdown", "bounded-slowdown", "wait", "makespan"):
        instance = random_instance(rng, 90, objective, kinds=2)
        searcher = Searcher(instance, 3)
        for _ in range(30):
            before = searcher.value
            searcher.part(rng.choice(90, 12, replace=False), 200)
            check_schedule(instance, searcher.starts)
            assert searcher.value <= before


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_rest_that_is_as_before_is_not_generated_anew_and_costs_the_same(objective: str) -> None:
    """Annealing stops generating where a changed order meets the accepted one again: cost, starts and order still
    belong together, and are those of the order generated from the beginning."""
    rng = np.random.default_rng(26)
    for _ in range(40):
        jobs = int(rng.integers(2, 14))  # of few shapes, so that orders of other cost leave the same room
        release, length, demand = rng.integers(0, jobs, jobs), rng.integers(1, 5, jobs), rng.integers(1, 3, (jobs, 2))
        instance = Instance(release, length, demand, [3, 4], objective, pi=3)
        searcher = Searcher(instance, 0)
        room = searcher.room(instance.jobs)
        room.order[:], room.stream[:] = rng.permutation(instance.jobs), searcher.stream()
        told = anneal(room.table, 2.0 * searcher.unit, 0.1 * searcher.unit, 2000)
        assert room.starts.tolist() == tick_by_tick(instance, tuple(room.order.tolist()))
        late = np.maximum(0, room.starts - instance.ready)
        cost = (searcher.cost.weight * late).sum() + searcher.cost.span * (room.starts + instance.length).max()
        assert told == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_deadline_cuts_the_search_short() -> None:
    instance = random_instance(np.random.default_rng(24), 400, "slowdown")
    begin = time.monotonic()
    found = search(instance, effort=100.0, expired=lambda: time.monotonic() - begin > 0.5)
    assert found.cut and not found.interrupted
    check_schedule(instance, found.starts)


def test_interrupt_keeps_the_best() -> None:
    instance = random_instance(np.random.default_rng(25), 30, "slowdown")
    turns = 0

    def stop() -> bool:
        nonlocal turns
        turns += 1
        if turns == 3:
            raise KeyboardInterrupt
        return False

    found = search(instance, expired=stop)
    assert found.interrupted
    check_schedule(instance, found.starts)


def test_a_hint_is_taken_up() -> None:
    """An instance whose optimum idles: the wide job must let the ten short ones pass. Hand-computed: 10 waits of 0, one
    of 10."""
    instance = Instance([0] + list(range(1, 11)), [10] + [1] * 10, [2] + [2] * 10, 2, "slowdown")
    found = search(instance, hints=[np.array([11] + list(range(1, 11)))], effort=1e-9)
    assert found.value == pytest.approx((10 * 1 + 21 / 10) / 11)
