"""N games of several agents at once, in one process: the form in which agents learn and rules are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Rows, draw, take_up
from escala.envs.core.checks import chosen_actions, wanted_lists
from escala.envs.slots.lists import SlotWorlds
from escala.envs.slots.team import heuristics
from escala.envs.slots.team import step as steps
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.state import MEMORY
from escala.errors import EscalaError
from escala.kernel import codes

STATE = ("memory", "slots", "used", "ends", "running", "seeds", "count")
FIGURES = ("slowdown", "turnaround", "wait", "makespan", "submitted", "left", "finished_slowdown", "finished_runtime")
LEAVE = -1
"""The action that leaves a game as it stands."""


class MultiTurn(NamedTuple):
    """What a step writes: arrays of the caller's, leading axis [N]."""

    observation: NDArray[Any]  # of the agent whose turn it is
    mask: NDArray[np.bool_]  # [N, N_machines x M + 1]: its jobs and machines that fit, and the void
    reward: NDArray[np.float64]  # [N, agents]: what passed in this step cost each agent
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class MultiBatch:
    """See `escala.envs.multi.slots` for rules and options. `agent` [N]: whose turn it is in each game.

    After a step that ends the episode of some games the caller restarts these before the next step.
    """

    def __init__(self, num_envs: int, workload: Any = None, **options: Any) -> None:
        self.options = options_of(options)
        chosen = self.options
        self.lists = chosen.job_lists(workload)
        self.worlds = SlotWorlds(num_envs, self.lists)
        self.num_envs = num_envs
        self.settings = chosen.settings(self.lists)
        self.capacity = chosen.capacities()
        self.scale = self.capacity.max(axis=0).astype(np.float64)
        self.points = chosen.points()
        self.image = chosen.observation == "image"
        self.width = chosen.width()
        self.action_space = spaces.Discrete(chosen.machines * chosen.slots + 1)
        if self.image:
            self.observation_space: spaces.Box = spaces.Box(0, 255, (chosen.horizon, self.width), np.uint8)
        else:
            self.observation_space = spaces.Box(0.0, 1.0, (chosen.numbers(),), np.float32)
        ring = chosen.ring(self.lists.longest)
        self.memory = np.zeros(num_envs, MEMORY)
        self.slots = np.full((num_envs, chosen.slots), codes.NONE, np.int64)
        self.used = np.zeros((num_envs, chosen.owned * chosen.resources, ring), np.int64)
        self.ends = np.zeros((num_envs, chosen.agents, ring))
        self.running = np.zeros((num_envs, chosen.agents))
        self.seeds = np.zeros(num_envs, np.uint64)
        self.count = np.zeros(num_envs, np.int64)
        self._no_numbers, self._no_picture = np.zeros((num_envs, 0), np.float32), np.zeros((num_envs, 0), np.uint8)

    @property
    def agent(self) -> NDArray[np.int64]:
        """Whose turn it is, [N]."""
        return self.memory["agent"]

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
        self.seeds[rows] = seeds
        self.count[rows] = 0

    def restart(self, rows: Rows, turn: MultiTurn, options: Mapping[str, Any] | None = None) -> None:
        """Begin the next episode of these games: the list in `options["list"]` (a number, or one for each), else one drawn by seed. Writes
        observations and masks, nothing else."""
        options = options or {}
        unknown = set(options) - {"list"}
        if unknown:
            raise EscalaError(f"reset option {sorted(unknown)[0]!r} is not known: use list")
        drawn = draw(self.seeds[rows], self.count[rows])
        if "list" in options:
            chosen = wanted_lists(options["list"], len(rows), len(self.lists))
        else:
            chosen = (drawn % np.uint64(len(self.lists))).astype(np.int64)
        self.count[rows] += 1
        self.worlds.begin(rows, chosen)
        self.memory[rows] = np.zeros((), MEMORY)
        self.memory["luck"][rows] = drawn
        self.slots[rows] = codes.NONE
        for array in (self.used, self.ends, self.running):
            array[rows] = 0
        unpaid = np.zeros((self.num_envs, self.options.agents))  # units before the first decision hold no job and cost nothing
        rows = np.asarray(rows, np.int64)
        self._check(steps.begin(self.worlds.table, rows, *self.lens(), *self._outputs(turn.observation), turn.mask, unpaid))

    def lens(self) -> tuple[Any, ...]:
        """Arguments of the compiled code."""
        return (
            self.settings, self.capacity, self.scale, self.points, self.memory, self.slots, self.used, self.ends, self.running,
        )  # fmt: skip

    def _outputs(self, observation: NDArray[Any]) -> tuple[Any, ...]:
        flat = observation.reshape(self.num_envs, -1)
        return (self.width, self._no_numbers, flat) if self.image else (self.width, flat, self._no_picture)

    def step(self, actions: NDArray[np.int64], turn: MultiTurn) -> None:
        """One action in each game, of the agent whose turn it is; `LEAVE` leaves a game (and what the turn says of it, but for reward and
        end) as it stands."""
        actions = chosen_actions(actions, self.num_envs, int(self.action_space.n), LEAVE)
        fine = steps.step(
            self.worlds.table, actions, *self.lens(), *self._outputs(turn.observation), turn.mask, turn.reward, turn.terminated,
            turn.truncated,
        )  # fmt: skip
        self._check(fine)

    def look(self, agents: NDArray[np.int64], observation: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Write what agents [N], one in each game, see now, whosever turn it is."""
        agents = chosen_actions(agents, self.num_envs, self.options.agents, what="agents")
        steps.look(self.worlds.table, agents, *self.lens(), *self._outputs(observation), mask)

    def decide(self, rule: str, out: NDArray[np.int64]) -> None:
        """Write the actions of a rule of `slots.team.heuristics` for the agents whose turn it is."""
        if rule not in heuristics.RULES:
            raise EscalaError(f"unknown rule {rule!r}: use one of {', '.join(heuristics.RULES)}")
        if out.shape != (self.num_envs,):
            raise EscalaError(f"room for {out.shape} actions: give one of {self.num_envs} numbers")
        heuristics.decide_all(self.worlds.table, self.settings, self.scale, self.memory, self.slots, heuristics.RULES[rule], out)

    def _check(self, fine: bool) -> None:
        if not fine:
            raise EscalaError("a game of the batch cannot go on: please report the workload and the options")

    def info(self) -> dict[str, NDArray[Any]]:
        """row: the clock, in units; list: the job list played; after the end of a run also its figures: means over its submitted jobs, in
        units, where a waiting job counts as if it started now; left: jobs that have not ended; finished_...: means over those that have."""
        return {"row": self.memory["row"].copy(), "list": self.worlds.chosen.copy()} | {name: self.memory[name].copy() for name in FIGURES}

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.worlds.state() | {name: getattr(self, name).copy() for name in STATE}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a saved state."""
        self.worlds.restore(state)
        for name in STATE:
            take_up(getattr(self, name), state[name], name, "use the same options and number of games")

    def frame(self, i: int) -> NDArray[np.uint8]:
        """Every agent's machines, the slots and the backlog."""
        from escala.envs.slots.team.picture import picture_of

        return picture_of(self, i)
