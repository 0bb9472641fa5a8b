"""N games of several agents at once, in one process: the form in which agents learn and rules are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Rows
from escala.envs.core.checks import chosen_actions
from escala.envs.slots.lists import SlotWorlds
from escala.envs.slots.team import heuristics
from escala.envs.slots.team import step as steps
from escala.envs.slots.team.options import options_of
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import microseconds

ADVICE = "use the same options and number of games"
FIGURES = ("slowdown", "turnaround", "wait", "makespan", "submitted", "left", "finished_slowdown", "finished_runtime")
LEAVE = -1
"""The action that leaves a game as it stands."""


class MultiTurn(NamedTuple):
    """What a step writes: arrays of the caller's, leading axis [N]."""

    observation: NDArray[Any]  # of the agent whose turn it is
    mask: NDArray[np.bool_]  # [N, N_machines x M + 1]: its jobs and machines that fit, and the no-op
    reward: NDArray[np.float64]  # [N, agents]: what passed in this step cost each agent
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class MultiBatch:
    """See `escala.envs.multi.slots` for rules and options. `agent` [N]: whose turn it is in each game; `games`: the arrays of
    `slots.team.state.GAME`.

    After a step that ends the episode of some games the caller restarts these before the next step.
    """

    def __init__(self, num_envs: int, workload: Any = None, **options: Any) -> None:
        self.options = options_of(options)
        chosen = self.options
        self.lists = chosen.job_lists(workload)
        self.worlds = SlotWorlds(num_envs, self.lists)
        self.num_envs = num_envs
        self.games = chosen.games(num_envs, chosen.capacities(), int(microseconds(self.lists.unit_s)), self.lists.longest)
        self.image = chosen.observation == "image"
        self.action_space = spaces.Discrete(chosen.machines * chosen.slots + 1)
        if self.image:
            self.observation_space: spaces.Box = spaces.Box(0, 255, (chosen.horizon, chosen.width()), np.uint8)
        else:
            self.observation_space = spaces.Box(0.0, 1.0, (chosen.numbers(),), np.float32)
        self._no_numbers, self._no_picture = np.zeros((num_envs, 0), np.float32), np.zeros((num_envs, 0), np.uint8)

    @property
    def agent(self) -> NDArray[np.int64]:
        """Whose turn it is, [N]."""
        return self.games.memory["agent"]

    def new_turn(self) -> MultiTurn:
        """Arrays for the steps of this batch."""
        n, space = self.num_envs, self.observation_space
        return MultiTurn(
            np.zeros((n, *space.shape), space.dtype),
            np.zeros((n, int(self.action_space.n)), bool),
            np.zeros((n, self.options.agents)),
            np.zeros(n, bool),
            np.zeros(n, bool),
        )

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Seeds of games."""
        self.worlds.seed(rows, seeds)

    def restart(self, rows: Rows, turn: MultiTurn, options: Mapping[str, Any] | None = None) -> None:
        """Begin the next episode of these games: the list in `options["list"]` (a number, or one for each), else one drawn by seed. Writes
        observations and masks, nothing else."""
        drawn = self.worlds.begin(rows, options or {})
        games = self.games
        games.forget(rows)
        games.memory["rng"][rows] = drawn
        games.slots[rows] = codes.NONE
        for array in (games.used, games.ends, games.running):
            array[rows] = 0
        unpaid = np.zeros((self.num_envs, self.options.agents))  # units before the first decision hold no job and cost nothing
        written = (*self._seen(turn.observation), turn.mask, unpaid)
        self._check(steps.begin(self.worlds.table, games.table, np.asarray(rows, np.int64), written))

    def _seen(self, observation: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers and picture as compiled code writes them."""
        flat = observation.reshape(self.num_envs, -1)
        return (self._no_numbers, flat) if self.image else (flat, self._no_picture)

    def step(self, actions: NDArray[np.int64], turn: MultiTurn) -> None:
        """One action in each game, of the agent whose turn it is; `LEAVE` leaves a game (and what the turn says of it, but for reward and
        end) as it stands."""
        actions = chosen_actions(actions, self.num_envs, int(self.action_space.n), LEAVE)
        written = (*self._seen(turn.observation), turn.mask, turn.reward, turn.terminated, turn.truncated)
        self._check(steps.step(self.worlds.table, self.games.table, actions, written))

    def look(self, agents: NDArray[np.int64], observation: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Write what agents [N], one in each game, see now, whosever turn it is."""
        agents = chosen_actions(agents, self.num_envs, self.options.agents, what="agents")
        steps.look(self.worlds.table, self.games.table, agents, (*self._seen(observation), mask))

    def decide(self, rule: str, out: NDArray[np.int64]) -> None:
        """Write the actions of a rule of `slots.team.heuristics` for the agents whose turn it is."""
        if rule not in heuristics.RULES:
            raise EscalaError(f"unknown rule {rule!r}: use one of {', '.join(heuristics.RULES)}")
        if out.shape != (self.num_envs,):
            raise EscalaError(f"room for {out.shape} actions: give one of {self.num_envs} numbers")
        heuristics.decide_all(self.worlds.table, self.games.table, heuristics.RULES[rule], out)

    def _check(self, fine: bool) -> None:
        if not fine:
            raise EscalaError("a game of the batch cannot go on: please report the workload and the options")

    def info(self) -> dict[str, NDArray[Any]]:
        """row: the clock, in units; list: the job list played; after the end of a run also its figures: means over its submitted jobs, in
        units, where a waiting job counts as if it started now; left: jobs that have not ended; finished_...: means over those that have."""
        memory = self.games.memory
        return {"row": memory["row"].copy(), "list": self.worlds.chosen.copy()} | {name: memory[name].copy() for name in FIGURES}

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.worlds.state() | self.games.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        self.worlds.restore(state)
        self.games.restore(state, ADVICE)

    def frame(self, i: int) -> NDArray[np.uint8]:
        """Every agent's machines, the slots and the backlog."""
        from escala.envs.slots.team.picture import picture_of

        return picture_of(self, i)
