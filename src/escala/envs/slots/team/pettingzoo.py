"""The game of several agents as PettingZoo knows games: an AEC face and a parallel face of a batch of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv

from escala.envs.slots.team.batch import MultiBatch
from escala.envs.slots.team.window import Window
from escala.errors import EscalaError

_ROW = np.zeros(1, np.int64)
RENDER_MODES = ["rgb_array", "human"]
FPS = 10


class _Table:
    """What both faces do with the one game."""

    def __init__(self, workload: Any, options: dict[str, Any], render_mode: str | None) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise EscalaError(f"render_mode {render_mode!r} is not known: use {' or '.join(RENDER_MODES)}")
        self.render_mode = render_mode
        self.window = Window("escala multi.slots", FPS)
        self.batch = MultiBatch(1, workload, **options)
        self.turn = self.batch.new_turn()
        self.names = [f"agent_{a}" for a in range(self.batch.options.agents)]
        self._seen, self._mask = np.zeros_like(self.turn.observation), np.zeros_like(self.turn.mask)
        self._random: np.random.Generator | None = None

    def begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if seed is not None or self._random is None:
            self._random, _ = seeding.np_random(seed)
            chosen = seed if seed is not None else int(self._random.integers(1 << 62))
            self.batch.seed(_ROW, np.array([chosen], np.uint64))
        if options is not None and not isinstance(options, Mapping):
            raise EscalaError(f"reset options {options!r}: give them by name, for instance {{'list': 3}}")
        given = {name: value for name, value in (options or {}).items() if name == "list"}
        self.batch.restart(_ROW, self.turn, given)
        self.shown()

    def legal(self, name: str, action: Any) -> int:
        """An agent's action, once it is known to be one; EscalaError otherwise."""
        value = action.item() if isinstance(action, np.ndarray | np.generic) and action.size == 1 else action
        n = int(self.batch.action_space.n)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < n:
            raise EscalaError(f"{name}: action {action!r} is none: give a whole number in 0..{n - 1}")
        return value

    def number(self, name: str) -> int:
        """Which agent this is."""
        if name not in self.names:
            raise EscalaError(f"agent {name!r} is not known: use one of {', '.join(self.names)}")
        return self.names.index(name)

    def act(self, action: int) -> None:
        self.batch.step(np.array([action], np.int64), self.turn)
        self.shown()

    def shown(self) -> None:
        if self.render_mode == "human":
            self.window.show(self.batch.frame(0))

    def picture(self) -> NDArray[np.uint8] | None:
        self.shown()
        return self.batch.frame(0) if self.render_mode == "rgb_array" else None

    def look(self, a: int) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Observation and mask of an agent, new arrays."""
        self.batch.look(np.array([a]), self._seen, self._mask)
        return self._seen[0].copy(), self._mask[0].astype(np.int8)

    def figures(self) -> dict[str, Any]:
        return {name: value[0].item() for name, value in self.batch.info().items()}


class _Face:
    """What both forms show of the one game."""

    def _sit(self, workload: Any, options: dict[str, Any], render_mode: str | None) -> None:
        self._table = _Table(workload, options, render_mode)
        self.render_mode = render_mode
        self.possible_agents = list(self._table.names)
        self.agents: list[str] = []
        batch = self._table.batch
        self.observation_spaces = dict.fromkeys(self.possible_agents, batch.observation_space)
        self.action_spaces = {name: spaces.Discrete(int(batch.action_space.n)) for name in self.possible_agents}

    @property
    def batch(self) -> MultiBatch:
        """The game underneath, a batch of one."""
        return self._table.batch

    def observation_space(self, agent: str) -> spaces.Box:
        """The same for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The same for all agents."""
        return self.action_spaces[agent]

    def render(self) -> NDArray[np.uint8] | None:
        """A picture, uint8 [height, width, 3], with `rgb_array`. With `human` each reset and step shows itself in a
        window."""
        return self._table.picture()

    def close(self) -> None:
        """Close the window, where there is one."""
        self._table.window.close()


class MultiSlotsAEC(_Face, AECEnv[str, NDArray[Any], int]):  # type: ignore[misc]
    """See `escala.envs.multi.slots`."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "escala_multi_slots_v0", "render_modes": RENDER_MODES, "render_fps": FPS, "is_parallelizable": False,
    }  # fmt: skip

    def __init__(self, workload: Any = None, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__()
        self._sit(workload, options, render_mode)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode."""
        self._table.begin(seed, options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in self.agents}
        self._pass_turn()

    def _pass_turn(self) -> None:
        a = int(self._table.batch.agent[0])
        self.agent_selection = self.possible_agents[a]
        self.infos[self.agent_selection] = {"action_mask": self.action_mask(self.agent_selection)}

    def step(self, action: Any) -> None:
        """One choice of the selected agent (None once its episode has ended)."""
        if not hasattr(self, "terminations"):
            raise EscalaError("step before reset: begin an episode with reset()")
        if not self.agents:
            raise EscalaError("no episode is under way: begin one with reset()")
        name = self.agent_selection
        if self.terminations[name] or self.truncations[name]:
            self._was_dead_step(action)
            return
        chosen = self._table.legal(name, action)
        self._cumulative_rewards[name] = 0.0
        self._table.act(chosen)
        turn = self._table.turn
        for a, other in enumerate(self.possible_agents):
            self.rewards[other] = float(turn.reward[0, a])
        self._accumulate_rewards()
        if turn.terminated[0] or turn.truncated[0]:
            for other in self.agents:
                self.terminations[other] = bool(turn.terminated[0])
                self.truncations[other] = bool(turn.truncated[0])
                self.infos[other] = {"action_mask": self.action_mask(other), **self._table.figures()}
            self.agent_selection = self.possible_agents[0]
        else:
            self._pass_turn()

    def observe(self, agent: str) -> NDArray[Any]:
        """What an agent sees now."""
        return self._table.look(self._table.number(agent))[0]

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        """Which actions make sense for an agent now, int8 [actions]."""
        return self._table.look(self._table.number(agent))[1]


class MultiSlotsParallel(_Face, ParallelEnv[str, NDArray[Any], int]):  # type: ignore[misc]
    """See `escala.envs.multi.parallel`."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "escala_multi_slots_parallel_v0",
        "render_modes": RENDER_MODES,
        "render_fps": FPS,
    }

    def __init__(self, workload: Any = None, *, render_mode: str | None = None, **options: Any) -> None:
        for name, only in (("turns", "single"), ("skip", "none")):
            if options.get(name, only) != only:
                raise EscalaError(
                    f"option {name}={options[name]!r}: in the parallel form all agents choose at once: leave it out"
                )
        self._sit(workload, options, render_mode)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, dict[str, Any]]]:
        """Begin an episode."""
        self._table.begin(seed, options)
        self.agents = list(self.possible_agents)
        return self._views({})

    def _views(self, figures: dict[str, Any]) -> tuple[dict[str, NDArray[Any]], dict[str, dict[str, Any]]]:
        seen, infos = {}, {}
        for a, name in enumerate(self.possible_agents):
            seen[name], mask = self._table.look(a)
            infos[name] = {"action_mask": mask, **figures}
        return seen, infos

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, NDArray[Any]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One choice of every agent, then one unit of time."""
        table = self._table
        if not self.agents:
            raise EscalaError("no episode is under way: begin one with reset()")
        if not isinstance(actions, Mapping) or set(actions) != set(self.possible_agents):
            given = f"of {', '.join(map(str, actions)) or 'nobody'}" if isinstance(actions, Mapping) else repr(actions)
            raise EscalaError(f"actions {given}: give one for each of {', '.join(self.possible_agents)}, by name")
        chosen = {name: table.legal(name, action) for name, action in actions.items()}
        shown = table.batch.games.slots[0].copy()
        noop, slots = int(table.batch.action_space.n) - 1, table.batch.options.slots
        for name in self.possible_agents:
            action = chosen[name]
            if action < noop and table.batch.games.slots[0, action % slots] != shown[action % slots]:
                action = noop  # taken by an agent before
            table.act(action)
        turn = table.turn
        ended = bool(turn.terminated[0]), bool(turn.truncated[0])
        seen, infos = self._views(table.figures() if any(ended) else {})
        rewards = {name: float(turn.reward[0, a]) for a, name in enumerate(self.possible_agents)}
        terminated, truncated = (dict.fromkeys(self.possible_agents, end) for end in ended)
        if any(ended):
            self.agents = []
        return seen, rewards, terminated, truncated, infos
