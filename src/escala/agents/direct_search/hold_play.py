"""Whole days under the linear score of `hold_features`, in compiled code: what a search asks for again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import compiled, lean
from escala.envs.core.batch import new_turn
from escala.envs.rjms.decision_times import FAILED, observe_machine
from escala.envs.rjms.hold_features import FEATURES, check_shape, write_features
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.off_reservation_step import go_on, settle
from escala.envs.rjms.state import shutdown_game
from escala.errors import EscalaError
from escala.kernel.world import one


@lean
def nearest(seen: Any, weights: Any, numbers: Any, last: int) -> int:
    """The choice 0 .. last nearest to the score `weights` [1 + features]: its first is the choice where all numbers are
    0."""
    write_features(seen, numbers)
    score = weights[0]
    for f in range(numbers.shape[0]):
        score += weights[1 + f] * numbers[f]
    return np.int64(min(max(np.rint(score), 0.0), np.float64(last)))  # type: ignore[return-value]


@compiled
def play(worlds: Any, games: Any, seen: Any, weights: Any, numbers: Any, last: int, total: Any) -> int:
    """Play simulations that stand at their first question to their end, one behind the other: sums of rewards [n].
    Returns the number of decisions; -1 where one cannot go on."""
    decisions = 0
    for i in range(total.shape[0]):
        w, g = one(worlds, i), shutdown_game(games, i)
        while g.memory.over == 0:
            observe_machine(w, g, seen)
            decisions += 1
            if go_on(worlds, i, g, nearest(seen, weights, numbers, last)) == FAILED:
                return -1
            total[i] += settle(w, g)
            if w.s[0].now >= g.settings.limit_us:
                break
    return decisions


def whole_days(weights: NDArray[np.float64], batch: OffReservationBatch) -> tuple[NDArray[np.float64], int]:
    """Return of each day [days] under the greedy choices, and the number of decisions. weights [1 + len(FEATURES)].
    batch: one simulation a day."""
    check_shape(tuple(batch.observation_space.shape or ()))
    if weights.shape != (1 + len(FEATURES),):
        raise EscalaError(f"weights of shape {weights.shape}: the score has {1 + len(FEATURES)}")
    rows, turn, total = np.arange(batch.num_envs), new_turn(batch), np.zeros(batch.num_envs)
    batch.restart(rows, turn, {"day": rows})
    last, numbers = int(batch.action_space.n) - 1, np.zeros(len(FEATURES))
    decisions = play(batch.episodes.table, batch.games.table, turn.observation[0], weights, numbers, last, total)
    if decisions < 0:
        raise EscalaError("a simulation of the batch cannot go on: please report the workload and the options")
    return total, int(decisions)
