"""Splitting: bounds of parts of the schedules instead of one bound of all.

Either a job starts by some tick, or it starts later; the bound of both together is the lower one of the two. In each
part the prices go on from those of the whole: a few short steps raise them, as what the part leaves out is often what
the relaxed schedules made use of. The part with the lowest bound is split next (branch and bound, best first: Land and
Doig 1960), on the job whose weighted start swings most between the relaxed schedules, at its mean start. Parts in which
no schedule can be (jobs that run at one time wherever they start demand too much together) are left out. Every other
part is proved in integers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from escala.optimum.lagrange import Dual, Part, Proof, Window

THETA, STEPS = 0.02, 50  # first length and number of the steps in a new part: longer ones lose the prices of the whole
STILL = 1e-6  # ticks that a job's start counts as swinging by at least


class Parts:
    """The parts that the schedules of `dual` have been split into. target: summed cost of a schedule."""

    def __init__(self, dual: Dual, target: float) -> None:
        self.dual, self.target = dual, target
        self._heap: list[tuple[float, int, Part]] = [(dual.whole.bound, 0, dual.whole)]
        self._made = 0

    def __len__(self) -> int:
        return len(self._heap)

    def split(self, times: int, expired: Callable[[], bool] = lambda: False) -> bool:
        """Split up to `times` times; returns whether `expired` cut it short. Ends where every part is at the target, or
        the lowest has no choice left."""
        for _ in range(times):
            bound, _, part = self._heap[0]
            if bound >= self.target - 1e-9 * abs(self.target):
                return False
            if expired():
                return True
            halves = self._halves(part)
            if halves is None:
                return False
            for half in halves:
                self.dual.ascend(half, THETA, self.target, STEPS)
            for half in halves:
                self._made += 1
                heapq.heappush(self._heap, (max(bound, half.bound), self._made, half))
            # last, so that no schedule is in no part at any moment, whenever an interrupt comes
            heapq.heappop(self._heap)
        return False

    def _halves(self, part: Part) -> list[Part] | None:
        """The halves of a part in which schedules can be; None if no job has a choice left."""
        earliest, latest = part.window
        swing = np.where(latest > earliest, (part.spread + STILL) / self.dual.instance.divisor, 0.0)
        job = int(np.argmax(swing))
        if swing[job] == 0:
            return None
        cut = max(int(earliest[job]), min(int(part.starts[job]), int(latest[job]) - 1))
        soon, late = latest.copy(), earliest.copy()
        soon[job], late[job] = cut, cut + 1
        return [
            Part(window, part.prices.copy(), part.starts.copy(), part.spread.copy())
            for window in (Window(earliest, soon), Window(late, latest))
            if self._possible(window)
        ]

    def _possible(self, window: Window) -> bool:
        """False if the ticks in which jobs run wherever they start in the window are too many for the capacities: no
        schedule is there."""
        instance = self.dual.instance
        end = window.earliest + instance.length  # [latest, end) is every schedule's
        sure = np.flatnonzero(window.latest < end)
        # at equal ticks ends come first
        order = np.argsort(np.concatenate([end[sure], window.latest[sure]]), kind="stable")
        change = np.concatenate([-instance.demand[sure], instance.demand[sure]])[order]
        return bool(np.all(np.cumsum(change, axis=0) <= instance.capacity))

    def proofs(self) -> list[tuple[Window, Proof]]:
        """The exact bound of every part."""
        return [(part.window, self.dual.proof(part)) for _, _, part in self._heap]

    def cost(self) -> Fraction:
        """The exact bound of the summed cost: the lowest of the parts' own, or that of the whole (rounding prices down
        may cost more than a part gains)."""
        least = min(proof.cost for _, proof in self.proofs())
        return max(least, self.dual.proof().cost)
