"""How a shutdown agent is searched by whole days: what its days are like, and what a wait costs.

The reward is R3's energy term and, in place of its lateness, a cost of all waiting. It goes by the log: a walltime
waited costs what makes hold:0.25 about the best constant rule on the training days, so that an agent neither saves at
any wait nor avoids every wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from escala.agents.presets import ORDERED_HOLDS
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.studies.lab.days import played
from escala.workload import Workload

# of each day while searching: an agent must not gain by the day's end
SEEN: dict[str, Any] = {"window": "drain", "drain_days": 0.5}
USUAL_PRICE = 0.15  # of a walltime waited, in idle minutes of the platform
MOST_DAYS = 200  # that the price is taken from, evenly over the training days
NEVER_LATE = 1e6  # walltimes waited until R3's lateness counts


def price(days: Sequence[Workload], platform: Any) -> float:
    """What a walltime waited must cost for hold:0.25 to be about the best constant, in idle minutes of the platform:
    the slope of the frontier of hold(x) around it, on these days."""
    waste, waited = {}, {}
    for k in (ORDERED_HOLDS.index(0.15), ORDERED_HOLDS.index(0.35)):
        batch = OffReservationBatch(len(days), list(days), platform, action="hold", holds=ORDERED_HOLDS, **SEEN)
        rows, _, _ = played(batch, lambda seen, mask, k=k: np.full(len(seen), k), days)  # type: ignore[misc]
        waste[k], waited[k] = (sum(row[name] for row in rows) for name in ("waste_j", "waited"))
    (a, b), (c, d) = waste.values(), waited.values()
    if a <= b or d <= c:  # waiting longer saves nothing here, or costs nothing: no slope to go by
        return USUAL_PRICE
    idle_w = sum(platform.profiles[p].idle_w for p in platform.profile_of)
    return float(np.clip((a - b) / (idle_w * 60.0) / (d - c), USUAL_PRICE / 10, 10 * USUAL_PRICE))


def options_of(days: Sequence[Workload], platform: Any, worth: float = 1.0) -> dict[str, Any]:
    """Options of the environment for a search on these days: a wait costs `worth` times its price."""
    return {"stretch_cost": worth * price(days[:: max(1, len(days) // MOST_DAYS)], platform), "tau": NEVER_LATE, **SEEN}
