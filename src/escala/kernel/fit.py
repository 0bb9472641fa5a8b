"""What fits now, and starting it."""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.jobs import start
from escala.kernel.placement import find_single
from escala.kernel.reservation import permission, usable
from escala.kernel.state import World


@inlined
def may_wake(w: World, j: int) -> bool:
    """May job `j` be given nodes that are not on, now?"""
    return w.o[0].given == 1 and permission(w, j) <= w.s[0].now


@lean
def fits_now(w: World, j: int) -> bool:
    """May job `j` be given its cores now?"""
    if w.job[j].single == 1:
        return find_single(w, j, may_wake(w, j)) != codes.NONE
    return w.job[j].cores <= usable(w, j)


@lean
def start_if_fits(w: World, j: int) -> bool:
    """Start job `j` if it may be given its cores now."""
    return fits_now(w, j) and start(w, j, False, may_wake(w, j))


@inlined
def can_hold(w: World, j: int, n: int) -> bool:
    """Could node `n`, none of whose resources is taken, hold the single-node job `j`?"""
    if w.node[n].cores < w.job[j].cores:
        return False
    if w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            if w.room[n, k] < w.demand[j, k]:
                return False
    return True
