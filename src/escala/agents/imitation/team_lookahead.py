"""Look-ahead as a teacher of teams: what each choice would come to cost, over sampled futures, see
`escala.envs.slots.team.lookahead`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.envs.slots.lists import JobLists
from escala.envs.slots.team import lookahead
from escala.envs.slots.team.batch import LEAVE, MultiBatch
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import microseconds

AHEAD = 15  # jobs behind the slots and to come that a future holds at most, for each machine


def law_of(lists: JobLists, long: int) -> lookahead.Law:
    """The lists as futures are drawn from them. long: jobs longer than this are held back."""
    unit = int(microseconds(lists.unit_s))
    job = lists.job
    length = -(-job["walltime"] // unit)
    jobs = np.column_stack([job["submit"] // unit, length, job["cores"], lists.demand]).astype(np.int64)
    return lookahead.Law(np.ascontiguousarray(jobs), lists.first.astype(np.int64), long)


def bases_of(agents: int, machines: int) -> lookahead.Bases:
    """The rule dense, and sjf that keeps a machine free of long jobs."""
    owned = agents * machines
    return lookahead.Bases(np.array([0.5 * owned, 0.0]), np.array([codes.NONE, owned - 1], np.int64))


class LookAhead:
    """Costs of choices in the games of a batch. futures: drawn anew at each decision, from the batch's own lists;
    loads: these hold so many loads, one behind the other in equal parts, and a game's futures are of its own load.
    ahead: jobs behind the slots and to come that a future holds at most, by default `AHEAD` for each machine."""

    def __init__(self, batch: MultiBatch, futures: int, seed: int, loads: int = 1, ahead: int | None = None) -> None:
        if futures < 1:
            raise EscalaError(f"teacher rollout: {futures} futures: give at least 1")
        chosen, lists = batch.options, batch.lists
        self.batch, self.futures, self.ahead = batch, futures, ahead or AHEAD * chosen.owned
        self._law = law_of(lists, chosen.horizon // 2)  # R4's short jobs take at most half the horizon
        self._edges = np.array([len(lists) * k // loads for k in range(loads + 1)], np.int64)
        self.use(bases_of(chosen.agents, chosen.machines))
        self._rng = np.random.default_rng([seed, 0x4011]).integers(0, 1 << 63, batch.num_envs).astype(np.uint64)
        self._costs = np.zeros((batch.num_envs, int(batch.action_space.n)))

    def use(self, bases: lookahead.Bases) -> None:
        """Follow these bases."""
        self._futures = lookahead.futures_of(self.batch.games, self._law, bases, self.futures, self.ahead)

    def sources(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Between which lists each game's futures are drawn: first, and one past the last, [N]."""
        part = np.searchsorted(self._edges, self.batch.worlds.chosen, side="right") - 1
        return self._edges[part], self._edges[part + 1]

    def costs(self, mask: NDArray[np.bool_], going: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean cost of each action [N, actions], in slowdowns summed over jobs; infinite where it makes no sense. In
        games that are over (not `going`) and where only the no-op is open: 0 for it."""
        batch, out = self.batch, self._costs
        asked = mask[:, :-1].any(axis=1) & going
        out[:, :-1], out[:, -1] = np.inf, 0.0
        lookahead.look_ahead(
            batch.worlds.table, batch.games.table, self._futures.table, asked, *self.sources(), self._rng, out
        )
        return out

    def choose(self, mask: NDArray[np.bool_], going: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The actions of least cost, [N]; `LEAVE` in games that are over."""
        return np.where(going, self.costs(mask, going).argmin(axis=1), LEAVE)
