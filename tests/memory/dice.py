"""Agents that know nothing: every action that the mask allows is as likely as any other, or a fixed one is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.deciding import Deciding
from escala.envs.rjms import off_reservation, scheduling

OFF, SCHEDULING = "escala/OffReservation-v0", "escala/Scheduling-v0"


class Dice(Deciding):
    """always: the one action that it chooses, allowed or not."""

    def __init__(
        self, env_id: str, options: dict[str, Any], shape: tuple[int, ...], actions: int, always: int | None = None
    ) -> None:
        told = {
            "env_id": env_id,
            "env_options": options,
            "observation_shape": shape,
            "actions": actions,
            "algorithm": "dice",
        }
        super().__init__(told)
        self.always = always

    def logits(self, seen: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.zeros((len(seen), int(self.manifest["actions"])))

    def act(
        self, observation: NDArray[np.float32], mask: NDArray[np.bool_], random: np.random.Generator | None
    ) -> NDArray[np.int64]:
        return super().act(observation, mask, random) if self.always is None else np.full(len(mask), self.always)


def shutdown_dice(platform: Any, always: int | None = None, **options: Any) -> Dice:
    chosen = off_reservation.options_of(options)
    return Dice(OFF, options, chosen.shape, chosen.actions(platform), always)


def scheduling_dice(actions: int | None = None, always: int | None = None, **options: Any) -> Dice:
    chosen = scheduling.options_of(options)
    return Dice(SCHEDULING, options, chosen.shape, actions or chosen.places + 1, always)
