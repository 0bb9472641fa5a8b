"""Any environment as a policy inside a simulation that others drive: its own questions, asked and answered by the code
of its own steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.records import Records, from_plain
from escala.errors import EscalaError
from escala.policy import Commands


class EnvPolicy:
    """What follows from an environment's four answers: how a run begins, what is to be decided now, who chooses, what a
    choice does.

    Each begins with the simulation that pauses and its number in the batch. A run that has not been seen yet is begun
    from nothing. K agents take turns at each pause; each chooses until nothing is left to decide or its turn is over.
    """

    name: str
    role = "scheduler"
    agents = 1
    unasked = ""
    """Why it cannot be asked from outside (`escala.live`), in words that follow its name; "" where it can."""
    draws = False
    """Does it draw, in each run anew, by the seed that it was made with?"""
    remembers_rows = True
    """Does it know jobs by their rows from one decision to the next?"""
    one_pool = False
    """Does it take all nodes of a site as one pool, whatever its partitions?"""
    _games: Records
    _random: np.random.Generator | None = None

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        self._new = True
        self._told: Any = None  # what the first decision goes on from

    def state(self) -> Any:
        """What it remembers, as plain data for JSON; None before the first decision."""
        if self._new:
            return self._told
        told = {name: getattr(self._games, name).tolist() for name in self._forms()}
        return told | self._more() | {"random": None if self._random is None else self._random.bit_generator.state}

    def restore(self, state: Any) -> None:
        """Go on from what `state` gave; EscalaError for anything else."""
        self.begin_run()
        if state is not None:
            self._read(state)
        self._told = state

    def loaded(self, simulation: Any, i: int, users: int, ended: NDArray[np.int64]) -> None:
        """Beside a machine: the tables of the simulation have been loaded anew. users: how many are known; ended: rows
        of the jobs that ran and have ended since the last decision. EscalaError for a machine that is none of its
        own."""
        told, begins = self._told, self._new
        self._suits(simulation, i)
        if begins:
            self._games = self._begin(simulation, i)
            self._new, self._told = False, None
        self._make_room(simulation, i, users, len(ended))
        if begins and told is not None:
            for name, array in self._read(told).items():
                getattr(self._games, name)[...] = array
            self._recall(told)
            if self._random is not None and told["random"] is not None:
                self._random.bit_generator.state = told["random"]
        self._look_round(simulation, i, ended)

    def _read(self, state: Any) -> dict[str, NDArray[Any]]:
        """The arrays of a state; EscalaError where it is none of this policy's."""
        try:
            found = {name: from_plain(state[name], *form) for name, form in self._forms().items()}
            if state["random"] is not None:
                np.random.default_rng().bit_generator.state = state["random"]
            self._check(state, found)
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
            raise EscalaError(f"{self.name}: its state is none of its own: begin without the file") from None
        return found

    def _forms(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Arrays of the games that hold what no snapshot tells, with type and shape."""
        raise NotImplementedError

    def _more(self) -> dict[str, Any]:
        """What else of a state there is."""
        return {}

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        """ValueError, or what else comes of it, where a state or its arrays make no sense."""

    def _recall(self, state: Any) -> None:
        """Take what `_more` gave."""

    def _make_room(self, simulation: Any, i: int, users: int, ended: int) -> None:
        """Larger arrays, where the tables or the users have grown."""

    def _look_round(self, simulation: Any, i: int, ended: NDArray[np.int64]) -> None:
        """What happened on the machine that this policy has not done."""

    def decide_inside(self, simulation: Any, i: int, act: Commands) -> None:
        """One round of turns."""
        if self._new:
            self._suits(simulation, i)
            self._games = self._begin(simulation, i)
            self._new = False
        for agent in range(self.agents):
            while self._look(simulation, i, agent) and self._put(simulation, i, self._ask(simulation, i, agent)):
                pass
        self._wake(act)

    def _suits(self, simulation: Any, i: int) -> None:
        """EscalaError for jobs that it cannot decide about."""

    def _begin(self, simulation: Any, i: int) -> Records:
        """The environment's own record of a run, as at its start; EscalaError for a simulation that is none of its
        own."""
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
    """Where nothing runs and something can be done, the no-op is taken from a mask: greedy choices alone could idle for
    ever."""
    s = simulation.world.s[i, 0]
    if s["n_ends"] + s["n_starts"] == 0 and mask.sum() > mask[noop]:
        mask[noop] = False
