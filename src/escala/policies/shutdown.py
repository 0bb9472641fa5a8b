"""Shutdown policies that decide outside the kernel: off-reservations that follow the load, or chance.

In the kernel: never, timeout, proportional, off-reservation:N, hold, arrivals-known, oracle (`escala.kernel.shutdown`).

*hold:X* wakes nodes for a job only when it has waited X x its walltime, idle nodes go off at once. *if-busy*: a job is
held only while some job runs, at the beginning of the decision; on a platform where nothing runs, or where nodes still
switch on, nodes are woken as by timeout:0. No job is held longer than an hour; *hold:X:SECONDS*: than that;
*hold:X:uncapped*: than its share, the rule of the papers.

*arrivals-known* knows when the jobs to come will be submitted and their cores, not how long jobs run. As timeout:0, but
an idle node stays on if a job comes before idling has cost as much as switching off and on again
(`PowerProfile.break_even_s`), and if the nodes before it that stay on have too few free cores for all jobs that come
until then. Jobs that will not fit what is free now do not count. It delays nothing and wakes nothing early: what
foresight of arrivals alone is worth. It is no bound.

*oracle* is R3's OR*: it knows
actual runtimes and wakes nodes for a job only when the job could not start before 0.5 x its walltime on cores of nodes
that are on or switching on, counting the running jobs that will have ended by then, and leaving out the cores that jobs
before it in the queue wait for; idle nodes go off at once, also those that a held job counts on (kept on for it, they
idle for hours where its plan fails: on the author's training days that wastes a fifth more than T(0), instead of a
fifth less). It is no bound: it knows nothing of jobs to come, and its plan ignores the head's reservation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.policy import Commands, View


class Inertial:
    """Inertial shutdown (Poquet 2017, p. 85), in our own reading: each `period_s` the backlog of the queue, sum of
    cores x walltime / cores of the platform, is compared with the last one; a backlog that has not fallen halves the
    number of nodes kept off (in the end to none), a falling or empty one doubles it (at least 1, at most all)."""

    name = "inertial"
    before_scheduler = True

    def __init__(self, period_s: float = 300.0) -> None:
        self.period_s = period_s
        self._last = 0.0
        self._off = 0

    def decide(self, view: View, act: Commands) -> None:
        """One adjustment."""
        backlog = view.waiting_work
        if backlog > 0 and backlog >= self._last:
            self._off //= 2
        else:
            self._off = min(max(1, 2 * self._off), view.n_nodes)
        self._last = backlog
        act.reserve_off(self._off)

    def state(self) -> list[float]:
        """The last backlog, and the nodes that are kept off."""
        return [self._last, self._off]

    def restore(self, state: list[float]) -> None:
        """Go on from there."""
        self._last, self._off = float(state[0]), int(state[1])


class RandomReservation:
    """A random number of nodes, 0 .. all, kept off, drawn anew each minute (R3 fig. 24's random OR). Without R3's
    safeguard for the queue's first job: one that needs all nodes waits for a draw of 0."""

    name = "random"
    before_scheduler = True
    period_s = 60.0

    def __init__(self, seed: int = 0) -> None:
        self._draw = np.random.default_rng([seed, 0x0FF])

    def decide(self, view: View, act: Commands) -> None:
        """One draw."""
        act.reserve_off(int(self._draw.integers(0, view.n_nodes + 1)))

    def state(self) -> dict[str, Any]:
        """Where the draws stand."""
        return dict(self._draw.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._draw.bit_generator.state = state
