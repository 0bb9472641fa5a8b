"""Every registered environment: its name, and where its single and its vector form are."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium


@dataclass(frozen=True)
class Entry:
    """module: where the classes are; single, vector: their names there (`BatchEnv` and `BatchVectorEnv`)."""

    module: str
    single: str
    vector: str


ENVIRONMENTS: dict[str, Entry] = {
    "escala/OffReservation-v0": Entry("escala.envs.offreservation", "OffReservation", "OffReservationVector"),
    "escala/Scheduling-v0": Entry("escala.envs.scheduling", "Scheduling", "SchedulingVector"),
    "escala/Slots-v0": Entry("escala.envs.slots", "Slots", "SlotsVector"),
}
"""All registered names. An environment's version moves when any number of it moves."""


def register() -> None:
    """Tell Gymnasium about them (again, if need be)."""
    for name, entry in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=f"{entry.module}:{entry.single}",
                vector_entry_point=f"{entry.module}:{entry.vector}",
                disable_env_checker=False,
            )
