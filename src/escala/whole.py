"""Jobs that have their nodes to themselves.

Where all nodes on which such a job may lie have one size, its parts have all cores of it. On nodes of several sizes
they have the cores that they ask for, and all of what a node has of SHARERS; every part of another job then takes one
of it, and a job of cores of any nodes has a part for each core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.allowed import Allowed, by_nodes
from escala.partitions import Parted
from escala.platform import Platform
from escala.platform.sharers import sharers_of
from escala.workload.shapes import EXCLUSIVE
from escala.workload.tasks import ints_of

Ints = NDArray[np.int64]


def asking_whole(jobs: Any, parted: Parted | None) -> NDArray[np.bool_]:
    """Which jobs ask for whole nodes, by themselves or by their partition, bool [jobs]."""
    asking: NDArray[np.bool_] = ints_of(jobs, EXCLUSIVE, 0) > 0
    return asking if parted is None else asking | parted.exclusive


def one_size(asking: NDArray[np.bool_], allowed: Allowed | None, platform: Platform) -> Ints:
    """int64 [jobs]: cores of the nodes that jobs have whole; 0 for one that does not ask for whole nodes, or may lie on
    nodes of several sizes."""
    size = np.zeros(len(asking), np.int64)
    for cores, _, rows in by_nodes(allowed, np.flatnonzero(asking), platform, []):
        least = cores.min(initial=platform.cores.max())
        size[rows] = least if least >= cores.max(initial=0) else 0
    return size


def sharers_in(alone: NDArray[np.bool_], platform: Platform) -> Ints:
    """What a part of each job takes of SHARERS. alone: of which jobs all."""
    return np.where(alone, sharers_of(platform), 1)
