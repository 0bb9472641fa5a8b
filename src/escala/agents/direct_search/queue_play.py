"""Whole days under the two linear scores of `queue_features`, in compiled code: what a search asks for again and again.

The same choices as those of the network at its sharpest, on the same observation, of which only what the scores read is
written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import compiled, lean
from escala.envs.core.batch import new_turn
from escala.envs.rjms import scheduling_step as steps
from escala.envs.rjms.observation import SNAPSHOT
from escala.envs.rjms.queue_features import JOB_FEATURES, SCORES, leaving_soon, write_features
from escala.envs.rjms.reward import waste_j
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.envs.rjms.state import scheduling_game
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.world import one

NOW = steps.QUEUED + steps.RUNNING


@lean
def best(seen: Any, mask: Any, weights: Any, numbers: Any) -> int:
    """The action that the scores `weights` [2, features] choose: of the jobs that may start and are released the one of
    the highest order, the first of equals; 0 without one."""
    soon = leaving_soon(seen)
    chosen = 0
    highest = -np.inf
    for place in range(seen.shape[0]):
        if mask[place + 1]:
            write_features(seen, place, soon, numbers)
            order = 0.0
            release = 0.0
            for f in range(numbers.shape[0]):
                order += weights[0, f] * numbers[f]
                release += weights[1, f] * numbers[f]
            if release > 0.0 and order > highest:
                highest = order
                chosen = place + 1
    return chosen


@compiled
def play(worlds: Any, games: Any, seen: Any, mask: Any, weights: Any, numbers: Any, waste: Any, waits: Any) -> int:
    """Play simulations that stand at their first question to their end, one behind the other: waste [n], J, and sums of
    waits [n], s. Returns the number of choices; -1 where one cannot go on."""
    decisions = 0
    for i in range(waste.shape[0]):
        w, g = one(worlds, i), scheduling_game(games, i)
        m = g.memory
        while m.over == 0:
            steps.remember(w, g)
            steps.show_jobs(w, g, seen, mask)
            for c in range(SNAPSHOT):
                seen[seen.shape[0] - 1, NOW + c] = g.history[m.newest, c]
            decisions += 1
            if not steps.choose(w, g, best(seen, mask, weights, numbers)):
                stop = steps.to_question(worlds, i, g)
                if stop == steps.FAILED:
                    return -1
                m.over = 1 if stop == codes.DONE or w.s[0].now >= g.settings.limit_us else 0
        waste[i] = waste_j(w, g.watts)
        waited = 0
        for j in range(w.o[0].n_jobs):
            start = w.run[j].start
            # none where it is submitted later
            waited += max(0, (start if start >= 0 else w.s[0].now) - w.job[j].submit)
        waits[i] = waited * 1e-6
    return decisions


def whole_days(
    weights: NDArray[np.float64], batch: SchedulingBatch
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """(waste of each day [days], J; sum of the waits of its jobs [days], s, of those that have not started until its
    end; decisions).
    batch: one simulation a day, with `waits=True`."""
    if weights.size != len(SCORES) * len(JOB_FEATURES):
        raise EscalaError(f"weights of shape {weights.shape}: the scores have {len(SCORES)} x {len(JOB_FEATURES)}")
    if not batch.options.waits:
        raise EscalaError("option waits=False: the scores read how long jobs have waited: leave it out")
    n, rows, turn = batch.num_envs, np.arange(batch.num_envs), new_turn(batch)
    batch.restart(rows, turn, {"day": rows})
    waste, waits = np.zeros(n), np.zeros(n)
    decisions = play(
        batch.episodes.table, batch.games.table, turn.observation[0], turn.mask[0],
        np.ascontiguousarray(weights.reshape(len(SCORES), -1)), np.zeros(len(JOB_FEATURES)), waste, waits,
    )  # fmt: skip
    if decisions < 0:
        raise EscalaError("a simulation of the batch cannot go on: please report the workload and the options")
    return waste, waits, int(decisions)
