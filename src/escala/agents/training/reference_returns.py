"""What policies return on the days of an environment of R3, by its own reward: the levels beside a learning curve.

Choices that an agent could make for ever are played in the environment itself. The simulator's own policies run inside
the kernel, with the environment's clock and ledger on top: shutdown policies beneath an agent that never holds a node
back, schedulers in the agent's place. Their returns are what `simulate` says of these days (its waste, its waits), in
the units of the agent's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.agents.presets import SCHEDULING
from escala.compile import compiled
from escala.envs.core.batch import Batch, Turn, new_turn
from escala.envs.rjms.episodes import Episodes
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.envs.rjms.scheduling_step import settle
from escala.envs.rjms.state import scheduling_game
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.drive import drive_easy, drive_greedy
from escala.kernel.world import one
from escala.options import Options, Plan
from escala.policies.compose import hold, plan_for, scheduler, shutdown
from escala.workload import Workload

SHUTDOWNS = ("timeout:0", "timeout:60", "timeout:300", "never", "oracle")
SCHEDULERS = ("first-fit", "easy", "saf")
NEAR = 0.25  # the hold whose level is shown beside the last

Act = Callable[[Turn], NDArray[np.int64]]
Level = Callable[[float], float | None]
"""Seconds allowed -> mean return of the days, None where it takes longer."""


def levels(env_id: str, batch: Any) -> dict[str, Level]:
    """Policies by the names that they have outside. batch: one simulation a day."""
    if env_id == SCHEDULING:
        return {name: _scheduled(batch, name) for name in SCHEDULERS}
    return {name: _shut_down(batch, name) for name in SHUTDOWNS} | _held(batch)


def mean_return(batch: Batch, act: Act, allowed_s: float) -> float | None:
    """The mean over the batch of the sum of rewards when row i plays day i once; None where that takes longer than
    allowed."""
    turn, rows = new_turn(batch), np.arange(batch.num_envs, dtype=np.int64)
    batch.restart(rows, turn, {"day": rows})
    total, playing = np.zeros(batch.num_envs), np.ones(batch.num_envs, bool)
    end = time.monotonic() + allowed_s
    while playing.any():
        if time.monotonic() > end:
            return None
        batch.step(act(turn), turn)
        total[playing] += turn.reward[playing]
        over = turn.terminated | turn.truncated
        playing &= ~over
        again = np.flatnonzero(over)
        if again.size:
            batch.restart(again, turn, {"day": again})
    return float(total.mean())


def always(action: int, n: int) -> Act:
    """The same choice in all of n simulations."""
    chosen = np.full(n, action, np.int64)
    return lambda turn: chosen


def _held(batch: OffReservationBatch) -> dict[str, Level]:
    """Constant choices of the action `hold`; none of other actions, whose constant choices are policies above, or no
    policy's."""
    if batch.options.action != "hold":
        return {}
    holds = np.asarray(batch.options.holds, np.float64)
    places = dict.fromkeys((0, int(np.abs(holds - NEAR).argmin()), len(holds) - 1))

    def level(place: int) -> Level:
        return lambda allowed_s: mean_return(batch, always(place, batch.num_envs), allowed_s)

    return {hold(float(holds[k]), cap_s=math.inf): level(k) for k in places if holds[k] > 0.0}  # hold:0 is timeout:0


class Ruled(OffReservationBatch):
    """The days and the reward of another batch under a shutdown policy of the kernel: the last action holds nothing
    back."""

    def __init__(self, like: OffReservationBatch, policy: str) -> None:
        self.policy = policy
        given = {field.name: getattr(like.options, field.name) for field in fields(like.options)}
        given |= {"action": "wake", "guard": "none", "skip": False}
        super().__init__(like.num_envs, like.episodes.days, like.platform, **given)

    def plan(self, day: Workload, how: Options) -> Plan:
        """SAF, the policy, and a pause before each decision."""
        return plan_for(scheduler("saf"), shutdown(self.policy, how)[0] | self.options.pauses, day, how)

    @property
    def timers(self) -> int:
        """The policy may set a timer for every job."""
        return 1


def _shut_down(batch: OffReservationBatch, policy: str) -> Level:
    def level(allowed_s: float) -> float | None:
        ruled = Ruled(batch, policy)
        return mean_return(ruled, always(int(ruled.action_space.n) - 1, ruled.num_envs), allowed_s)

    return level


@compiled
def play(worlds: Any, games: Any, total: Any) -> bool:
    """Run simulations whose scheduler is the kernel's from the start to the end of their days: sums of rewards [n],
    settled at every pause before a decision, so that no wait is lost. False where one cannot go on."""
    for i in range(total.shape[0]):
        w, g = one(worlds, i), scheduling_game(games, i)
        stop = codes.BEFORE
        while stop == codes.BEFORE and w.s[0].now < g.settings.limit_us:
            greedy = w.o[0].queueing == codes.GREEDY
            stop = drive_greedy(worlds, i, codes.NEVER_US) if greedy else drive_easy(worlds, i, codes.NEVER_US)
            total[i] += settle(w, g)
        if stop != codes.BEFORE and stop != codes.DONE:
            return False
    return True


def _scheduled(batch: SchedulingBatch, name: str) -> Level:
    chosen = batch.options

    def plan(day: Workload, how: Options) -> Plan:
        return plan_for(scheduler(name), shutdown(chosen.shutdown, how)[0] | {"pause_before": 1}, day, how)

    def level(allowed_s: float) -> float | None:
        """As long as `simulate` takes: nothing is given up."""
        n = batch.num_envs
        episodes = Episodes(n, batch.episodes.days, batch.platform, plan, chosen.simulation_options())
        rows, total = np.arange(n, dtype=np.int64), np.zeros(n)
        episodes.begin(rows, {"day": rows})
        games = chosen.games(n, batch.platform, episodes.users, 0)
        if not play(episodes.table, games.table, total):
            raise EscalaError("a simulation of the batch cannot go on: please report the workload and the options")
        return float(total.mean())

    return level
