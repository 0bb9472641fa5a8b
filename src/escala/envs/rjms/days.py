"""Environments whose episodes are days of a log: the options and the batch that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Rows
from escala.envs.core.options import EnvOptions, choice, flag, nonnegative, seconds, whole
from escala.envs.rjms.episodes import ADVICE, Episodes, whole_us
from escala.envs.rjms.picture import Strip
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import Options


@dataclass(frozen=True)
class DayOptions(EnvOptions):
    """What a day is, and how it begins and ends."""

    window: str = choice("cut", "drain", about="end with the day, or with its last job")
    day_s: float = seconds(86400.0, about="an episode's length")
    period_s: float = seconds(60.0, about="time between two decisions")
    drain_days: float = nonnegative(7.0, about="window=drain: cut after so many more days")
    start_off: bool = flag(True, about="all nodes are off at the start")
    oversized: str = choice("error", "drop", about="jobs that can never run")
    min_jobs: int = whole(2, 1, about="days with fewer jobs are left out")

    def simulation_options(self) -> Options:
        """How one day is simulated."""
        until = self.day_s if self.window == "cut" else None
        return Options(until_s=until, start_off=self.start_off, oversized=self.oversized, record=False)

    def times(self) -> dict[str, int]:
        """Of the compiled code's settings, those of time."""
        drained = self.window == "drain"
        return {
            "period_us": whole_us(self.period_s, "period_s"),
            "day_us": whole_us(self.day_s, "day_s"),
            "limit_us": whole_us(self.day_s * (1.0 + self.drain_days), "drain_days") if drained else codes.NEVER_US,
        }


class DayBatch:
    """N days at once; see `escala.envs.core.batch.Batch`. options: those of its environment."""

    def __init__(self, num_envs: int, options: Any, episodes: Episodes, actions: int) -> None:
        self.episodes, self.platform, self.num_envs = episodes, episodes.platform, num_envs
        self.observation_space = spaces.Box(0.0, 1.0, options.shape, np.float32)
        self.action_space = spaces.Discrete(actions)
        self.games = options.games(num_envs, self.platform, episodes.users, episodes.world.plans.shape[1])
        self._strip = Strip(self.platform.n_nodes)

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Seeds of rows."""
        self.episodes.seed(rows, seeds)

    def _begin(self, rows: Rows, options: Mapping[str, Any]) -> None:
        """The next day of these rows, of which nothing is known yet."""
        self.episodes.begin(rows, options)
        self.games.forget(rows)
        if 0 in rows:
            self._strip.clear()

    def _check(self, fine: bool) -> None:
        if not fine:
            raise EscalaError("a simulation of the batch cannot go on: please report the workload and the options")

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.episodes.state() | self.games.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        self.episodes.restore(state)
        self.games.restore(state, ADVICE)

    def frame(self, i: int) -> NDArray[np.uint8]:
        """Nodes by state over time."""
        return self._strip.frame(self.episodes.world, i)
