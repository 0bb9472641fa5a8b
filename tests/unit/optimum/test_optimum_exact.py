"""Solvers: equal to brute force, honest at limits and interruptions."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from optimum_worlds import best_of_orders, random_instance, value

import escala.optimum.exact
from escala.errors import EscalaError
from escala.optimum import OBJECTIVES, Instance, bound, check_schedule
from escala.optimum.lagrange import Dual
from escala.optimum.searcher import Searcher
from escala.optimum.solver import _message

pytestmark = pytest.mark.slow
pytest.importorskip("scipy")
pytest.importorskip("ortools")


def crowded(jobs: int, seed: int = 0) -> Instance:
    """Slotted jobs as in overload: far from closed by the cheap bounds."""
    rng = np.random.default_rng(seed)
    length = np.where(rng.random(jobs) < 0.8, rng.integers(1, 4, jobs), rng.integers(10, 16, jobs))
    demand = np.where(rng.random(jobs) < 0.5, rng.integers(1, 6, jobs), 10)
    return Instance(np.sort(rng.integers(0, int(1.4 * jobs), jobs)), length, demand, 10)


PAIRS = [(solver, objective) for solver in ("HiGHS", "CP-SAT") for objective in OBJECTIVES if (solver, objective) != ("HiGHS", "makespan")]


@pytest.mark.parametrize("solver, objective", PAIRS)
def test_exact_equals_brute_force(solver: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances of up to 7 jobs that the cheap steps leave open, from a poor schedule, so that the solver itself must find the optimum."""
    monkeypatch.setattr(escala.optimum.exact, "available", lambda: (solver == "HiGHS", solver == "CP-SAT"))
    rng = np.random.default_rng([30, len(objective)])
    tried = 0
    while tried < 3:
        instance = random_instance(rng, 7 if tried == 0 else 6, objective, kinds=1 + tried % 2)
        starts = Searcher(instance, 0).generate(np.argsort(-instance.release, kind="stable"))
        best, _ = best_of_orders(instance)
        if value(instance, starts) == best:
            continue
        tried += 1
        result = bound(instance, steps=("wspt", "lagrange", "exact"), known=starts, limit_s=30)
        assert result.status == "optimal" and not result.cut
        assert result.found == pytest.approx(float(best), rel=1e-9)
        assert result.lower == pytest.approx(float(best), rel=2e-6)
        assert result.starts is not None and value(instance, result.starts) == best
        check_schedule(instance, result.starts)
        assert solver in result.prover or "exact integers" in result.prover


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
    result = bound(instance, exact=True, limit_s=4.0)
    assert time.monotonic() - begin < 4.0 + 4.0
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
    result = bound(instance, steps=("wspt", "lagrange", "exact"), known=cheap.starts, limit_s=60.0)
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

    result = escala.optimum.exact.exact(instance, dual, starts, -np.inf, 30.0, stop)
    assert result.interrupted and len(seen) == 1
    assert result.lower == pytest.approx(seen[0])
    assert "HiGHS" in result.prover


def test_log_lines_of_highs_are_read_downwards() -> None:
    line = " T       0       0         0   0.00%   489.0353802     494.77             1.16%     1611    131    355     15478    12.4s\n"
    assert 489.0353 < _message(line)["bound"] < 489.0353802
    assert (
        _message(
            "         2       2         1   0.00%   474.0353802     inf                  inf        0      0      2       250     0.3s"
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
        bound(crowded(12), exact=True)
    assert "\n" not in str(error.value) and "exit code 1" in str(error.value)


def test_exact_alone_and_from_nothing() -> None:
    for objective in ("wait", "makespan"):
        instance = random_instance(np.random.default_rng(32), 7, objective, kinds=2)
        result = bound(instance, steps=("exact",))
        assert result.status == "optimal" and result.found == pytest.approx(float(best_of_orders(instance)[0]))


def test_exact_is_refused_for_very_many_jobs() -> None:
    jobs = 20_001
    with pytest.raises(EscalaError, match="exact is for up to"):
        bound(Instance(np.zeros(jobs), np.ones(jobs), np.ones(jobs), 1, "wait"), steps=("exact",))
