"""N slotted games at once in one process, of one agent or several: the form in which agents learn and rules are
judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Rows, Turn
from escala.envs.core.checks import chosen_actions
from escala.envs.core.records import Records
from escala.envs.slots import heuristics
from escala.envs.slots import step as steps
from escala.envs.slots.lists import JobLists, SlotWorlds
from escala.envs.slots.picture import picture_of
from escala.envs.slots.state import MEMORY, SHADES
from escala.errors import EscalaError

ADVICE = "use the same options and num_envs"


class SlottedBatch:
    """See `escala.envs.core.batch.Batch`. `lists`: the job lists; `worlds`: the kernel's side; `games`: the world's own
    (fields: `slots.state.GAME`). RULES: names -> codes of `slots.heuristics`; FIGURES: of the memory, what `info`
    tells; least: the least action."""

    RULES: ClassVar[Mapping[str, int]]
    FIGURES: ClassVar[tuple[str, ...]]
    least: ClassVar[int] = 0

    def __init__(self, num_envs: int, lists: JobLists, games: Records, observation_space: spaces.Box) -> None:
        self.num_envs, self.lists, self.games = num_envs, lists, games
        self.worlds = SlotWorlds(num_envs, lists)
        settings = games.settings
        self.image = bool(settings["image"])
        self.noop = 0 if settings["first"] else int(settings["machines"] * settings["slots"])
        self.action_space = spaces.Discrete(int(settings["machines"] * settings["slots"]) + 1)
        self.observation_space = observation_space
        floats = self.image and observation_space.dtype == np.float32
        self._picture = np.zeros((num_envs, int(np.prod(observation_space.shape)) if floats else 0), np.uint8)
        self._nothing = np.zeros((num_envs, 0), np.float32)
        # units before the first decision hold no job and cost nothing
        self._unpaid = np.zeros((num_envs, int(settings["agents"])))

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Seeds of rows."""
        self.worlds.seed(rows, seeds)

    def restart(self, rows: Rows, turn: Turn, options: Mapping[str, Any] | None = None) -> None:
        """Begin the next episode of these rows: the list in `options["list"]` (a number, or one for each row), else one
        drawn by seed. Writes observations and masks, nothing else."""
        drawn = self.worlds.begin(rows, options or {})
        self.games.forget(rows)
        self.games.memory["shade"][rows] = (drawn >> np.uint64(40)) % np.uint64(SHADES)
        self.games.memory["rng"][rows] = drawn
        written = (*self._seen(turn.observation), turn.mask, self._unpaid)
        self._check(steps.begin(self.worlds.table, self.games.table, np.asarray(rows, np.int64), written))

    def _seen(self, observation: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers and picture as compiled code writes them."""
        flat = observation.reshape(self.num_envs, -1)
        return (self._nothing, flat) if flat.dtype == np.uint8 else (flat, self._picture)

    def step(self, actions: Any, turn: Turn) -> None:
        """One action of every row."""
        actions = chosen_actions(actions, self.num_envs, int(self.action_space.n), self.least)
        paid = turn.reward.reshape(self.num_envs, -1)
        written = (*self._seen(turn.observation), turn.mask, paid, turn.terminated, turn.truncated)
        self._check(steps.step(self.worlds.table, self.games.table, actions, written))

    def decide(self, rule: str, out: NDArray[np.int64]) -> None:
        """Write the actions of a rule for the agents whose turn it is, [N]."""
        if rule not in self.RULES:
            raise EscalaError(f"unknown rule {rule!r}: use one of {', '.join(self.RULES)}")
        if out.shape != (self.num_envs,):
            raise EscalaError(f"room for {out.shape} actions: give one of {self.num_envs} numbers")
        heuristics.decide_all(self.worlds.table, self.games.table, self.RULES[rule], out)

    def _check(self, fine: bool) -> None:
        if not fine:
            raise EscalaError("a game of the batch cannot go on: please report the workload and the options")

    def info(self) -> dict[str, NDArray[Any]]:
        """row: the clock, in units; list: the job list played. After the end of a run also means over its jobs, in
        units (0 before): slowdown, turnaround, wait, and makespan."""
        memory = self.games.memory.view(np.int64).copy().view(MEMORY)  # numpy copies records field by field
        return {name: memory[name] for name in ("row", *self.FIGURES)} | {"list": self.worlds.chosen.copy()}

    def info_of(self, i: int) -> dict[str, Any]:
        """The same of simulation i."""
        memory = self.games.memory
        shown = {name: memory[name].item(i) for name in ("row", *self.FIGURES)}
        shown["list"] = self.worlds.chosen.item(i)
        return shown

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.worlds.state() | self.games.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        self.worlds.restore(state)
        self.games.restore(state, ADVICE)

    def frame(self, i: int) -> NDArray[np.uint8]:
        """The charts, the slots and the backlog, as in R1's figures 1 and 5 and R4's figure 1."""
        return picture_of(self, i)
