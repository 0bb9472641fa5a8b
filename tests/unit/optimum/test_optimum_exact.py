"""Solvers: equal to brute force, honest at limits and interruptions."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from optimum_worlds import begin_worker, best_by_force, random_instance, solved, value

import escala.optimum.exact
from escala.errors import EscalaError
from escala.optimum import OBJECTIVES, Instance, bound, check_schedule
from escala.optimum.lagrange import Dual
from escala.optimum.searcher import Searcher
from escala.optimum.solver import Run, _message
from escala.optimum.splitting import Parts

pytestmark = pytest.mark.slow
pytest.importorskip("highspy")
pytest.importorskip("ortools")


def crowded(jobs: int, seed: int = 0) -> Instance:
    """Slotted jobs as in overload: far from closed by the cheap bounds."""
    rng = np.random.default_rng(seed)
    length = np.where(rng.random(jobs) < 0.8, rng.integers(1, 4, jobs), rng.integers(10, 16, jobs))
    demand = np.where(rng.random(jobs) < 0.5, rng.integers(1, 6, jobs), 10)
    return Instance(np.sort(rng.integers(0, int(1.4 * jobs), jobs)), length, demand, 10)


PAIRS = [
    (solver, objective)
    for solver in ("HiGHS", "CP-SAT")
    for objective in OBJECTIVES
    if (solver, objective) != ("HiGHS", "makespan")
]


def check_exact(solver: str, instance: Instance, starts: np.ndarray, best: Fraction) -> None:
    """From a schedule that is not optimal the solver must find the optimum, and prove it."""
    result = bound(instance, steps=("wspt", "lagrange", "exact"), known=starts, limit_s=30)
    assert result.status == "optimal" and not result.cut and result.steps[-1].name == "exact"
    assert result.found == pytest.approx(float(best), rel=1e-9)
    assert result.lower == pytest.approx(float(best), rel=2e-6)
    assert result.starts is not None and value(instance, result.starts) == best
    check_schedule(instance, result.starts)
    assert solver in result.prover or "exact integers" in result.prover


def not_optimal(
    rng: np.random.Generator, jobs: int, objective: str, kinds: int, longest: int = 12
) -> tuple[Instance, np.ndarray, Fraction]:
    """A random instance, a schedule that is not optimal, and the optimum by brute force."""
    while True:
        instance = random_instance(rng, jobs, objective, longest, kinds)
        starts = Searcher(instance, 0).generate(np.argsort(-instance.release, kind="stable"))
        best, _ = best_by_force(instance)
        if value(instance, starts) != best:
            return instance, starts, best


@pytest.mark.parametrize("solver, objective", PAIRS)
def test_exact_equals_brute_force(solver: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver in a process of its own, as in use; with one kind of resource or two."""
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (solver == "HiGHS", solver == "CP-SAT"))
    rng = np.random.default_rng([30, len(objective)])
    check_exact(solver, *not_optimal(rng, 7, objective, 1 + PAIRS.index((solver, objective)) % 2))


@pytest.mark.parametrize("share", [0.4, pytest.param(1.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("solver, objective", PAIRS)
def test_exact_equals_brute_force_on_many_instances(
    solver: str, objective: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """360 instances in all, or a share of them, of 2 to 7 jobs and one to three kinds, most with releases, solved in
    one process that stays. HiGHS, whose model grows with the ticks, gets fewer and shorter ones."""
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (solver == "HiGHS", solver == "CP-SAT"))
    count, longest = (int(40 * share), 6) if solver == "HiGHS" else (int(60 * share), 12)
    rng = np.random.default_rng([33, len(objective), len(solver)])
    asked = released = 0
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin_worker) as worker:

        def solve(name: str, data: dict[str, Any], limit_s: float, report: Callable[[float], None]) -> Run:
            nonlocal asked
            asked += 1
            told = worker.submit(solved, name, data, limit_s).result()
            bounds, solutions = ([message[key] for message in told if key in message] for key in ("bound", "solution"))
            for proved in bounds:
                report(proved)
            return Run(
                max(bounds, default=-np.inf),
                solutions[-1] if solutions else None,
                told[-1]["done"],
                told[-1]["version"],
                False,
            )

        monkeypatch.setattr(escala.optimum.exact, "solve", solve)
        for k in range(count):
            instance, starts, best = not_optimal(
                rng, 7 if k % 2 else int(rng.integers(2, 7)), objective, 1 + k % 3, longest
            )
            check_exact(solver, instance, starts, best)
            released += int(np.ptp(instance.release) > 0)
    assert asked == count and released > count // 2


def test_solvers_agree_on_crowded_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for solver in (True, False):
        monkeypatch.setattr(escala.optimum.exact, "available", lambda solver=solver: (solver, not solver))
        result = bound(crowded(14), exact=True)
        assert result.status == "optimal"
        found.append(result.lower)
    assert found[0] == pytest.approx(found[1], rel=2e-6)


def test_a_limit_leaves_an_interval() -> None:
    instance = crowded(60)
    begin = time.monotonic()
    result = bound(instance, exact=True, limit_s=2.0)
    assert time.monotonic() - begin < 2.0 + 4.0
    assert result.status == "interval" and result.cut
    assert result.lower is not None and result.found is not None and result.lower < result.found


def test_ctrl_c_keeps_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = crowded(60)
    cheap = bound(instance)
    assert cheap.starts is not None
    whole, timers = escala.optimum.exact.solve, []

    def watched(*given: Any) -> Any:
        timers.append(threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()
        try:
            return whole(*given)
        finally:
            timers[-1].cancel()

    monkeypatch.setattr(escala.optimum.exact, "solve", watched)
    # in the background of a shell it would be ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = bound(instance, steps=("wspt", "lagrange", "exact"), known=cheap.starts, limit_s=60.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.interrupted and len(timers) == 1
    assert result.status == "interval"
    assert result.lower is not None and cheap.lower is not None and result.lower > 0.98 * cheap.lower
    assert result.found == cheap.found


def test_bounds_reported_before_the_interruption_count() -> None:
    """Ctrl-C at the moment the solver reports its first bound: that bound is in the result."""
    instance = crowded(30)
    starts = Searcher(instance, 0).starts
    dual = Dual(instance, int((starts + instance.length).max()))
    seen = []

    def stop(bound: float) -> None:
        seen.append(bound)
        raise KeyboardInterrupt

    result = escala.optimum.exact.exact(instance, Parts(dual, 0.0), starts, -np.inf, 30.0, stop)
    assert result.interrupted and len(seen) == 1
    assert result.lower == pytest.approx(seen[0])
    assert "HiGHS" in result.prover


def test_log_lines_of_highs_are_read_downwards() -> None:
    line = (
        " T       0       0         0   0.00%   489.0353802     494.77             1.16%     1611    131    355    "
        " 15478    12.4s\n"
    )
    assert 489.0353 < _message(line)["bound"] < 489.0353802
    assert (
        _message(
            "         2       2         1   0.00%   474.0353802     inf                  inf        0      0      2   "
            "    250     0.3s"
        )
        != {}
    )
    for other in (
        "        0       0         0   0.00%   -inf            inf                  inf        0",
        "Presolving model",
        "     Nodes      |",
        "",
    ):
        assert _message(other) == {}


def test_without_solvers_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (False, False))
    with pytest.raises(EscalaError, match=r"escala\[optimum\]"):
        bound(crowded(12), exact=True)
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (True, False))
    rng = np.random.default_rng(31)
    spread = Instance(rng.integers(0, 20, 12), rng.integers(1, 20, 12), rng.integers(3, 8, 12), 10, "makespan")
    with pytest.raises(EscalaError, match="OR-Tools"):
        bound(spread, exact=True, steps=("exact",))


def test_a_failing_solver_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (False, True))
    monkeypatch.setattr("escala.optimum.solver.sys.executable", "/bin/false")
    with pytest.raises(EscalaError, match="solver 'cpsat' failed") as error:
        bound(crowded(30), exact=True)
    assert "\n" not in str(error.value) and "exit code 1" in str(error.value)


def test_exact_alone_and_from_nothing() -> None:
    for objective in ("wait", "makespan"):
        instance = random_instance(np.random.default_rng(32), 7, objective, kinds=2)
        result = bound(instance, steps=("exact",))
        assert result.status == "optimal" and result.found == pytest.approx(float(best_by_force(instance)[0]))


def test_exact_is_refused_for_very_many_jobs() -> None:
    jobs = 20_001
    with pytest.raises(EscalaError, match="exact is for up to"):
        bound(Instance(np.zeros(jobs), np.ones(jobs), np.ones(jobs), 1, "wait"), steps=("exact",))
