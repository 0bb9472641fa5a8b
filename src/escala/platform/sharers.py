"""How many parts of jobs a node can hold, counted like a further kind of resource: where some jobs have nodes of
several sizes to themselves, each part of the others takes one of it, and a part of theirs all that a node has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from escala.platform.platform import Platform

SHARERS = "jobs beside"
"""The name of that kind, which no platform may give to another."""


def sharers_of(platform: Platform) -> int:
    """How much of it each node has: as much as the largest has cores, so that no node lacks it for its cores."""
    return int(platform.cores.max())


def amounts_of(platform: Platform) -> dict[str, NDArray[Any]]:
    """What there is of each kind that jobs can be counted by, beside cores, int64 [nodes]; that one is the last."""
    return {**platform.resources, SHARERS: np.full(platform.n_nodes, sharers_of(platform))}
