"""One machine, a chart of the time to come and a window of waiting jobs: the worlds of R1 and R2 (`slots`), and those
of several agents with machines of their own (`team`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from escala.envs.slots.heuristics import RULES as HEURISTICS
    from escala.envs.slots.playing import play, tune_hold_back
    from escala.envs.slots.policy import SlotPolicy
    from escala.envs.slots.slots import Slots, SlotsBatch, SlotsVector, job_lists

__all__ = ["HEURISTICS", "SlotPolicy", "Slots", "SlotsBatch", "SlotsVector", "job_lists", "play", "tune_hold_back"]

_HOME = {"HEURISTICS": "heuristics", "SlotPolicy": "policy", "play": "playing", "tune_hold_back": "playing"}


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME.get(name, 'slots')}")
    return getattr(module, "RULES" if name == "HEURISTICS" else name)
