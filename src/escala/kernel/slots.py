"""Starting a job on named nodes: what a reservation of concrete machines needs (nodes of one core, at most 64 of
them)."""

from __future__ import annotations

import numpy as np

from escala.compile import lean
from escala.kernel import bits, codes
from escala.kernel.jobs import place
from escala.kernel.nodes import add_free
from escala.kernel.placement import append_chunk
from escala.kernel.state import World


@lean
def command_start_nodes(w: World, j: int, nodes: int) -> int:
    """Start the queued job `j`, now, on the nodes whose bits are set in `nodes` (as many as it has cores); returns a
    refusal code."""
    s = w.s[0]
    if j < 0 or j >= w.o[0].n_jobs or w.o[0].unit == 0 or w.bits.shape[1] != 1:
        return codes.REFUSED_NO_SUCH
    if w.run[j].state != codes.QUEUED:
        return codes.REFUSED_NOT_QUEUED
    word = np.uint64(nodes)
    row = w.bits[codes.SET_ON]
    if bits.population(word) != w.job[j].cores or (word & ~row[0]) != bits.ZERO:
        return codes.REFUSED_NO_ROOM
    row[0] &= ~word
    add_free(w, codes.SET_ON, -w.job[j].cores)
    last = codes.NONE
    while word != bits.ZERO:
        n = bits.lowest(word)
        word &= word - bits.ONE
        last = append_chunk(w, j, last, n, n, 1)
    place(w, j, s.now)
    return codes.REFUSED_NONE
