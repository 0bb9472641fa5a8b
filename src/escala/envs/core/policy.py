"""Any environment as a policy inside a simulation that others drive: its own questions, asked and answered by the code of its own steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.records import Records
from escala.policy import Commands


class EnvPolicy:
    """What follows from an environment's four answers: how a run begins, what is to be decided now, who chooses, what a choice does.

    Each begins with the simulation that pauses and its number in the batch. A run that has not been seen yet is begun from nothing. K
    agents take turns at each pause; each chooses until nothing is left to decide or its turn is over.
    """

    role = "scheduler"
    agents = 1
    _games: Records

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        self._new = True

    def decide_inside(self, simulation: Any, i: int, act: Commands) -> None:
        """One round of turns."""
        if self._new:
            self._games = self._begin(simulation, i)
            self._new = False
        for agent in range(self.agents):
            while self._look(simulation, i, agent) and self._put(simulation, i, self._ask(simulation, i, agent)):
                pass
        self._wake(act)

    def _begin(self, simulation: Any, i: int) -> Records:
        """The environment's own record of a run, as at its start; EscalaError for a simulation that is none of its own."""
        raise NotImplementedError

    def _look(self, simulation: Any, i: int, agent: int) -> bool:
        """Take in what has happened. Has this agent something to decide?"""
        raise NotImplementedError

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        """The action of this agent."""
        raise NotImplementedError

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        """Carry out an action; False: the turn is over."""
        raise NotImplementedError

    def _wake(self, act: Commands) -> None:
        """Ask for a decision at a time of the environment's own."""


def forbid_noop(simulation: Any, i: int, mask: NDArray[np.bool_], noop: int) -> None:
    """Where nothing runs and something can be done, the no-op is taken from a mask: greedy choices alone could idle for ever."""
    s = simulation.world.s[i, 0]
    if s["n_ends"] + s["n_starts"] == 0 and mask.sum() > mask[noop]:
        mask[noop] = False
