"""Look-ahead as a teacher of slotted agents: the scheduler `rollout` chooses among the visible jobs of many slotted
simulations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.batch import Turn
from escala.envs.slots.lists import JobLists
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.policies import Rollout
from escala.policies.futures import Lists
from escala.policies.rollout import BASES, Base
from escala.policy import View
from escala.shown import Shown

MOST_LISTS = 1000  # that futures are drawn from


class _Jobs:
    """`world.job[i, row]` of simulations that are pointed at job lists."""

    def __init__(self, batch: SlotsBatch) -> None:
        self._batch = batch

    def __getitem__(self, place: tuple[int, Any]) -> Any:
        worlds = self._batch.worlds
        i, row = place
        return worlds.lists.job[worlds.lists.first[worlds.chosen[i]] + row]


class _Shown:
    """What a `View` reads of a simulation."""

    numbers = closing = None

    def __init__(self, batch: SlotsBatch) -> None:
        self.world = batch.worlds.world._replace(job=_Jobs(batch))
        self.platform, self.table = batch.lists.platform, batch.worlds.table
        self._as = Shown(self.platform, ())

    def shown(self, i: int) -> Shown:
        """As of `Simulation`: users of job lists have the numbers of the tables."""
        return self._as

    def named(self, i: int) -> None:
        """Lists of jobs have no names."""


def look_ahead(lists: JobLists, futures: int, seed: int) -> Callable[[SlotsBatch, Turn], NDArray[np.int64]]:
    """A teacher that expects what the lists hold. EscalaError where jobs have further resource kinds."""
    if len(lists.kinds) > 1:
        raise EscalaError("teacher rollout: looks ahead over one pool of cores; these jobs demand further resources")
    rng = np.random.default_rng([seed, 0x5107])
    chosen = rng.permutation(len(lists))[:MOST_LISTS]
    of = [lists.job[lists.first[e] : lists.first[e + 1]] for e in chosen]
    law = Lists.of_arrays([(jobs["submit"], jobs["runtime"], jobs["runtime"], jobs["cores"]) for jobs in of])
    cores = lists.platform.total_cores
    bases = [Base(name, cores) for name in BASES]
    playing: dict[int, tuple[SlotsBatch, list[Rollout]]] = {}

    def choose(batch: SlotsBatch, turn: Turn) -> NDArray[np.int64]:
        if id(batch) not in playing:
            rollouts = [
                Rollout(futures, arrivals=law, objective="slowdown", optimism=1.0, seed=seed + i)
                for i in range(batch.num_envs)
            ]
            for one in rollouts:
                one.forget(cores, bases)
            playing[id(batch)] = batch, rollouts  # the batch is kept, so that its id stays its own
        out = np.zeros(batch.num_envs, np.int64)
        shown = _Shown(batch)
        for i in np.flatnonzero(turn.mask[:, 1:].any(axis=1) & (batch.games.memory["over"] == 0)):
            slots = batch.games.slots[i]
            job, _ = playing[id(batch)][1][i].choose(View(shown, int(i)), [int(row) for row in slots if row >= 0])
            if job is not None:
                out[i] = 1 + int(np.flatnonzero(slots == job.row)[0])
        return out

    return choose
