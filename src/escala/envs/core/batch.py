"""What an environment is made of: a batch of simulations that take one action each, and the arrays into which a step
writes.

An environment is written once, as a `Batch` of N simulations in one process. `environment.BatchEnv` shows a batch of
one as a `gymnasium.Env`,
`vector.BatchVectorEnv` a batch of N as a `gymnasium.vector.VectorEnv`; both are thin. Randomness: row i has a seed of
its own and counts its
episodes; what an episode draws depends on these two numbers only, so a row plays the same in any batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.compile import inlined, lean

Rows = NDArray[np.int64]


class Turn(NamedTuple):
    """What a step writes: arrays of the caller's, leading axis [N]. Nothing in them is read by a batch."""

    observation: NDArray[Any]  # [N, *shape of one observation], in the type of the space
    mask: NDArray[np.bool_]  # [N, actions]: which actions make sense now
    reward: NDArray[np.float64]  # [N]
    terminated: NDArray[np.bool_]  # [N]: the episode came to its natural end
    truncated: NDArray[np.bool_]  # [N]: the episode was cut


class Batch(Protocol):
    """N simulations of one environment. After a step that ends the episode of some rows the caller restarts these rows
    before the next step."""

    num_envs: int
    observation_space: spaces.Box  # of one simulation
    action_space: spaces.Discrete  # of one simulation

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Give rows their seeds and set their count of episodes to 0."""

    def restart(self, rows: Rows, turn: Turn, options: Mapping[str, Any]) -> None:
        """Begin the next episode of these rows; writes their observations and masks, nothing else. `options`: as given
        to `reset`."""

    def step(self, actions: Any, turn: Turn) -> None:
        """One action of every row, whole numbers [N] (EscalaError for anything else); writes the whole turn."""

    def info(self) -> dict[str, NDArray[Any]]:
        """Figures of the last step by name, arrays [N]: what `info` tells beside the mask. New arrays, or ones that no
        later step changes."""

    def info_of(self, i: int) -> dict[str, Any]:
        """The same of simulation i alone, as plain numbers: a single environment's step asks for no more."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as arrays: with `restore` an interrupted run goes on exactly."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state saved by a batch of the same options."""

    def frame(self, i: int) -> NDArray[np.uint8]:
        """A picture of simulation i, [height, width, 3]."""


def new_turn(batch: Batch) -> Turn:
    """Arrays for the steps of a batch."""
    n = batch.num_envs
    return Turn(
        np.zeros((n, *batch.observation_space.shape), batch.observation_space.dtype),
        np.zeros((n, int(batch.action_space.n)), bool),
        np.zeros(n),
        np.zeros(n, bool),
        np.zeros(n, bool),
    )


def draw(seeds: NDArray[np.uint64], episodes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 random bits for each (seed, episode): SplitMix64's finaliser (Steele, Lea and Flood 2014), applied twice."""
    drawn = np.empty(len(seeds), np.uint64)
    _draw(seeds.astype(np.uint64), episodes.astype(np.uint64), drawn)
    return drawn


@inlined
def _finalise(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@lean
def _draw(seeds: Any, episodes: Any, out: Any) -> None:
    step = np.uint64(0x9E3779B97F4A7C15)
    for i in range(out.shape[0]):
        out[i] = _finalise(_finalise(seeds[i] + step) + (episodes[i] + np.uint64(1)) * step)
