"""Settings of Slurm's rules that stand in the name of the scheduler: `slurm:KEY=VALUE...`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.scores import FIXED
from escala.slurm.named import FCFS
from escala.slurm.settings import FLAGS, PARAMETERS, Settings, parameters

MOST_S = 1e9
QUEUE, ORDERS = "queue", (FCFS, *FIXED)
OF_ORDERS = ("guard", "order_estimate", "every")  # beside a queue, see `escala.policies.slurm_names`
PHASES = {
    "phase": "phase_s",
    "tick": "tick_s",
    "tick_every": "tick_every_s",
    "started": "started_s",
    "drift": "drift_s",
    "bf_test": "bf_test_s",
}


def changed(settings: Settings, name: str, whole: str = "") -> Settings:
    """The settings with those that stand in the scheduler's name; EscalaError for a key that is none. whole: the name
    with its order of the queue, where that is none of these settings."""
    found: dict[str, Any] = {}
    for part in name.split(":")[1:]:
        key, equals, value = part.partition("=")
        where = f"scheduler {quoted(whole or name)}"
        if key == QUEUE:
            found[QUEUE] = _order(value, where)
            continue
        if key in PHASES and equals:
            found[PHASES[key]] = _seconds(value, f"{where}, {key}", 0 if key == "bf_test" else -MOST_S)
        elif key in PARAMETERS or key == "bf_window" or key in FLAGS:
            unread: list[str] = []
            found |= parameters(part, where, unread)
            if unread or (not equals and key not in FLAGS):
                raise EscalaError(f"{where}: {key} needs a value, as in {key}=30")
        else:
            known = (*PARAMETERS, "bf_window", *FLAGS, *PHASES, QUEUE, *OF_ORDERS)
            raise EscalaError(f"{where}: unknown key {quoted(key)}: {nearest(key, known)}known are {', '.join(known)}")
    return replace(settings, **found)


def _order(value: str, where: str) -> str:
    if value not in ORDERS:
        raise EscalaError(
            f"{where}, {QUEUE}: {quoted(value)} is no order that stays as it is: {nearest(value, ORDERS)}known here "
            f"are {', '.join(ORDERS)}"
        )
    return value


def _seconds(text: str, where: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= MOST_S:
        raise EscalaError(f"{where}: {quoted(text)} is no number of seconds")
    return value
