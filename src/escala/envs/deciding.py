"""What decides: a trained agent as it is asked for choices, whoever works out its preferences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.choosing import choose, probabilities


class Deciding:
    """What agents with torch and exported agents share. `manifest`: how it came to be, and what it needs."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = dict(manifest)

    def logits(self, seen: NDArray[np.float32]) -> NDArray[np.float64]:
        """Preferences [n, actions] for observations [n, ...], before the mask."""
        raise NotImplementedError

    def arrays(self) -> list[dict[str, NDArray[np.float32]]]:
        """The weights of its one network, by name."""
        raise NotImplementedError

    @property
    def env_id(self) -> str:
        """The environment in which it was trained."""
        return str(self.manifest["env_id"])

    @property
    def env_options(self) -> dict[str, Any]:
        """The environment's options."""
        return dict(self.manifest["env_options"])

    @property
    def name(self) -> str:
        """For tables."""
        return f"agent ({self.manifest['algorithm']})"

    def probabilities(self, observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Probability of each action, [n, actions], for observations [n, ...] and masks [n, actions]. Masked actions
        have none."""
        return probabilities(self.logits(np.array(observation, np.float32)), mask)

    def act(
        self, observation: NDArray[np.float32], mask: NDArray[np.bool_], random: np.random.Generator | None
    ) -> NDArray[np.int64]:
        """Actions [n]: sampled by `random` (one draw an observation), or the greedy ones without."""
        return choose(self.probabilities(observation, mask), random)

    @property
    def sampled(self) -> bool:
        """Does it do better by sampled actions than by greedy ones? What is taken where nothing is said."""
        return bool(self.manifest.get("sampled", True))

    def policy(self, sampled: bool | None = None, seed: int = 0) -> Any:
        """A policy for `simulate`: a shutdown policy (off-reservation) or a scheduler. sampled: draw actions by `seed`;
        else greedy ones; by default as its preset does better."""
        from escala.envs.learnt import policy_of

        return policy_of(self, self.sampled if sampled is None else sampled, seed)
