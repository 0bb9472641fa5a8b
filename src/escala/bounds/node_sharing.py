"""Nodes that jobs may share, for the bound of the waste.

Jobs take cores, not nodes: a node is idle only if none of its cores computes, so a job on scattered cores keeps more
nodes
from being idle than it needs. How many at most follows from the placement rule (lowest cores first, node by node): a
job finds partly taken nodes only where a job of no whole number of nodes, or one that met such, may be about at the
same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shared(
    demand: NDArray[np.int64], single: NDArray[np.bool_], release: NDArray[np.int64], latest: NDArray[np.int64],
    length: NDArray[np.int64], nodes: int, cores: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """(nodes that a job needs beside all others, nodes that it keeps from being idle at most), each [jobs].

    partly[j] bounds the nodes of which job j has a part only. It has none if it wants whole nodes and no job with parts
    may be about when it is placed; else at most one more than those jobs have together: cores are taken node by node,
    and only nodes that somebody has, or has planned, a part of offer less than all. Jobs i that may be about when j is
    placed: release[i] <= latest[j] and latest[i] + length[i]
    > release[j]. The least such numbers by iteration. A job that may meet no other with parts shares no node.
    """
    ragged = demand % cores != 0
    about = (release[:, None] <= latest[None, :]) & ((latest + length)[:, None] > release[None, :])
    np.fill_diagonal(about, False)
    partly = np.zeros(len(demand), np.int64)
    while True:
        others = np.minimum(nodes, about.T @ partly)
        next_partly = np.where(ragged | (others > 0), np.minimum(np.minimum(nodes, others + 1), demand), 0)
        next_partly[single] = np.minimum(next_partly[single], ragged[single])
        if np.array_equal(next_partly, partly):
            break
        partly = next_partly
    spread = np.minimum(partly + (demand - partly) // cores, nodes)
    spread[single] = 1
    meets = ((about | about.T) & (partly > 0)[:, None]).any(axis=0) & (partly > 0)
    needed = np.where(meets, demand // cores, -(-demand // cores))
    return needed, spread
