"""Energy: the bound is below every schedule with the best possible switching; the pieces equal slow, obvious
answers."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.optimum import PowerInstance, energy_bound, waste_of
from escala.optimum.record import Record
from escala.optimum.switching import LIVES, least_life, lives_of

pytestmark = pytest.mark.slow


def random_day(rng: np.random.Generator, jobs: int, total: int, span: int = 8) -> PowerInstance:
    release = rng.integers(0, span, jobs)
    return PowerInstance(
        release,
        rng.integers(1, 5, jobs),
        rng.integers(1, total + 1, jobs),
        release + rng.integers(0, 4, jobs),
        total,
        tick_s=60.0,
        idle_w=float(rng.choice([0.0, 1.0, 95.0])),
        on_j=float(rng.integers(0, 10_000)),
        off_j=float(rng.integers(0, 10_000)),
        on_at_start=int(rng.integers(0, total + 1)),
    )


def busy_nodes(day: PowerInstance, starts: tuple[int, ...] | np.ndarray) -> list[int]:
    """Busy nodes at each tick from the first submission to the makespan."""
    end = max(int(s + p) for s, p in zip(starts, day.length))
    return [
        sum(int(q) for s, p, q in zip(starts, day.length, day.nodes) if s <= tick < s + p)
        for tick in range(int(day.release.min()), end)
    ]


def least_waste(day: PowerInstance, busy: list[int]) -> float:
    """Over all numbers of nodes on at each tick, by dynamic programme over that number."""
    cost = {day.on_at_start: 0.0}
    for need in busy:
        after: dict[int, float] = {}
        for on, before in cost.items():
            for now in range(need, day.total + 1):
                step = (
                    day.on_j * max(0, now - on) + day.off_j * max(0, on - now) + day.idle_w * day.tick_s * (now - need)
                )
                after[now] = min(after.get(now, np.inf), before + step)
        cost = after
    return min(cost.values())


def test_waste_of_fixed_starts_is_the_least() -> None:
    rng = np.random.default_rng(50)
    for _ in range(300):
        day = replace(random_day(rng, 4, 12), nodes=rng.integers(1, 4, 4))
        starts = np.array([rng.integers(r, l + 1) for r, l in zip(day.release, day.latest)])
        assert waste_of(day, starts) == pytest.approx(least_waste(day, busy_nodes(day, starts)))


def test_bound_is_below_every_schedule() -> None:
    """All starts within the limits and the number of nodes, each with its least waste."""
    rng = np.random.default_rng(51)
    ratios = []
    while len(ratios) < 80:
        day = random_day(rng, 3, 4)
        spans = [range(int(r), int(l) + 1) for r, l in zip(day.release, day.latest)]
        wastes = [
            least_waste(day, busy) for busy in (busy_nodes(day, s) for s in product(*spans)) if max(busy) <= day.total
        ]
        if not wastes:
            continue
        lower = energy_bound(day, rounds=2000, max_cells=int(rng.choice([3, 100]))).lower_j
        assert lower <= min(wastes) * (1 + 1e-12)
        ratios.append(lower / min(wastes) if min(wastes) > 0 else 1.0)
    assert np.mean(ratios) > 0.7


def test_solver_is_between_the_bound_and_every_schedule() -> None:
    pytest.importorskip("highspy")
    rng = np.random.default_rng(52)
    tried = 0
    while tried < 6:
        day = random_day(rng, 3, 4)
        spans = [range(int(r), int(l) + 1) for r, l in zip(day.release, day.latest)]
        wastes = [
            least_waste(day, busy) for busy in (busy_nodes(day, s) for s in product(*spans)) if max(busy) <= day.total
        ]
        if not wastes or day.idle_w == 0:
            continue
        tried += 1
        cheap, proved = energy_bound(day, rounds=400), energy_bound(day, exact=True)
        assert cheap.lower_j * (1 - 1e-9) <= proved.lower_j <= min(wastes) * (1 + 1e-6) + 1e-6
        # the relaxation lets nodes go free from the earliest possible makespan on; with no choice of starts that is all
        # that is missing
        assert proved.lower_j >= min(wastes) - day.total * day.off_j - 1e-6


def test_a_nodes_cheapest_life() -> None:
    rng = np.random.default_rng(53)
    for _ in range(200):
        cells, width, free, warm = 7, int(rng.integers(1, 4)), int(rng.integers(0, 8)), int(rng.integers(0, 2))
        prices, idle, on, off = rng.integers(0, 20, (1, cells)), 5, int(rng.integers(0, 40)), int(rng.integers(0, 40))
        lives = Record(LIVES, **lives_of((idle, on, off), free, width, prices))
        best = least_life(lives.table, warm)

        def life(
            states: tuple[int, ...], warm=warm, width=width, free=free, prices=prices, idle=idle, on=on, off=off
        ) -> int:
            total, state = 0, warm
            for edge, now in enumerate(states):
                total += on if now > state else (off if edge < free else 0) if now < state else 0
                total += now * (idle - int(prices[0, edge])) * width
                state = now
            return total

        assert best == min(life(states) for states in product((0, 1), repeat=cells))
        assert best == life(tuple(lives.path[warm].tolist()))


def test_hand_made_days() -> None:
    """Two jobs of one node, ten ticks apart; idle 60 J a tick. A cycle of 200 J beats idling 600 J: 100 on + 200
    between (the last off is free). May the second start up to ten ticks later, nothing changes; may the first, they
    follow each other: 100."""
    pytest.importorskip("highspy")
    day = PowerInstance([0, 15], [5, 5], [1, 1], [0, 15], 4, 60.0, 1.0, 100.0, 100.0)
    assert waste_of(day, np.array([0, 15])) == 300
    assert energy_bound(day).lower_j == pytest.approx(300, rel=1e-3)
    assert energy_bound(replace(day, latest=[0, 25]), exact=True).lower_j == pytest.approx(300, rel=1e-5)
    assert energy_bound(replace(day, latest=[10, 15]), exact=True).lower_j == pytest.approx(100, rel=1e-5)
    warm = replace(day, on_at_start=4)
    assert energy_bound(warm).lower_j <= waste_of(warm, np.array([0, 15])) == 500


def test_a_day_in_seconds_with_real_sizes() -> None:
    """Coarse cells: still below what is reached, in bounded time."""
    rng = np.random.default_rng(54)
    release = np.sort(rng.integers(0, 86_400, 200))
    length = rng.integers(30, 20_000, 200)
    day = PowerInstance(release, length, rng.integers(1, 4, 200), release, 400, 1.0, 95.0, 7_500.0, 18_180.0)
    result = energy_bound(day, limit_s=20.0)
    fixed = waste_of(day, release)
    assert 0.9 * fixed < result.lower_j <= fixed
    moved = energy_bound(replace(day, latest=release + length // 2), limit_s=20.0)
    assert moved.lower_j < result.lower_j


def test_limit_and_interrupt_keep_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(55)
    release = np.sort(rng.integers(0, 1440, 300))
    day = PowerInstance(
        release, rng.integers(1, 500, 300), rng.integers(1, 9, 300), release + 60, 2000, 60.0, 95.0, 7_500.0, 18_180.0
    )
    energy_bound(day, rounds=1)
    begin = time.monotonic()
    result = energy_bound(day, limit_s=0.05)
    assert result.cut and result.lower_j > 0 and time.monotonic() - begin < 2

    def stop(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("escala.optimum.nodeprices.NodeDual.improve", stop)
    stopped = energy_bound(day)
    assert (
        stopped.interrupted
        and stopped.prover == "nodes that must be on at once"
        and stopped.lower_j >= 7_500.0 * day.nodes.max()
    )


def test_bad_days_are_refused_in_one_line() -> None:
    good = {
        "release": [0, 1],
        "length": [1, 2],
        "nodes": [1, 2],
        "latest": [0, 5],
        "total": 4,
        "tick_s": 60.0,
        "idle_w": 95.0,
        "on_j": 1.0,
        "off_j": 1.0,
    }
    PowerInstance(**good)  # type: ignore[arg-type]
    for bad in (
        {"nodes": [1, 5]}, {"nodes": [0, 1]}, {"latest": [0, 0]}, {"length": [0, 1]}, {"release": [-1, 1]},
        {"length": [1]},
        {"idle_w": -1.0}, {"tick_s": 0.0}, {"on_j": float("nan")}, {"on_at_start": 5}, {"release": [0.5, 1]},
        {"latest": [0, 1 << 41]},
    ):  # fmt: skip
        with pytest.raises(EscalaError) as error:
            PowerInstance(**{**good, **bad})  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
    day = PowerInstance(**good)  # type: ignore[arg-type]
    with pytest.raises(EscalaError, match="outside"):
        waste_of(day, np.array([1, 1]))
    with pytest.raises(EscalaError, match="nodes busy"):
        waste_of(PowerInstance([0, 0], [2, 2], [2, 3], [0, 0], 4, 1.0, 1.0, 1.0, 1.0), np.array([0, 0]))
