"""A trained team as it is asked for choices, whoever works out the preferences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.choosing import choose, probabilities
from escala.envs.slots.playing import Member
from escala.envs.slots.team.playing import RESCUE
from escala.errors import EscalaError

Preferences = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Observations [n, numbers] -> preferences [n, actions], before the mask."""


class Player:
    """A network as a member of a team. sees: numbers and actions of the game it was trained on. random: samples
    actions; None: the greedy ones."""

    def __init__(self, preferences: Preferences, sees: tuple[int, int], random: np.random.Generator | None) -> None:
        self.preferences, self.sees, self.random = preferences, sees, random

    def __call__(self, seen: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Actions [n]. Raises EscalaError where the game shows or offers something else than the one it was trained
        on."""
        if (seen.shape[1], mask.shape[1]) != self.sees:
            raise EscalaError(
                f"a team that was trained on {self.sees[0]} numbers and {self.sees[1]} actions cannot play a game of "
                f"{seen.shape[1]} and {mask.shape[1]}: give the options that it was trained with (agents, machines, "
                "slots, information, ...: Team.options)"
            )
        return choose(probabilities(self.preferences(np.asarray(seen, np.float32)), mask), self.random)


class DecidingTeam:
    """What teams with torch and exported teams share. manifest: how it came to be."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = dict(manifest)

    def networks_asked(self) -> list[Preferences]:
        """One for each agent, or a single one that all share."""
        raise NotImplementedError

    def arrays(self) -> list[dict[str, NDArray[np.float32]]]:
        """The weights of each network, by name."""
        raise NotImplementedError

    @property
    def options(self) -> dict[str, Any]:
        """The game's options."""
        return dict(self.manifest["options"])

    @property
    def name(self) -> str:
        """For tables."""
        return f"team ({self.manifest['mode']})"

    def members(self, sampled: bool = True, seed: int = 0) -> list[Member]:
        """One player for each agent, for `escala.envs.slots.team.playing.play`."""
        chance = np.random.default_rng([seed, 0x7EA]) if sampled else None
        sees = int(self.manifest["shape"][4]), int(self.manifest["actions"])
        players = [Player(ask, sees, chance) for ask in self.networks_asked()]
        return players * int(self.manifest["agents"]) if len(players) == 1 else list(players)

    def policy(self, sampled: bool = True, seed: int = 0) -> Any:
        """A scheduler for `simulate` and `compare`. sampled: draw actions by `seed`; else the greedy ones, no no-op
        where idle machines saw no submission for `RESCUE` units."""
        from escala.envs.slots.team.policy import TeamPolicy

        return TeamPolicy(
            lambda: self.members(sampled, seed), name=self.name, rescue=0 if sampled else RESCUE, **self.options
        )
