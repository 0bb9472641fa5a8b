"""What fits now, and starting it."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel.jobs import start
from escala.kernel.parts import may_lie, room_in
from escala.kernel.placement import has_room, readiness, readiness_of_parts
from escala.kernel.reservation import permission, usable
from escala.kernel.state import World


@inlined
def may_wake(w: World, j: int) -> bool:
    """May job `j` be given nodes that are not on, now?"""
    return w.o[0].given == 1 and permission(w, j) <= w.s[0].now


@lean
def fits_now(w: World, j: int) -> bool:
    """May job `j` be given its cores now?"""
    if w.job[j].single != 0:
        return has_room(w, j, may_wake(w, j))
    return w.job[j].cores <= usable(w, j)


@lean
def on_at(w: World, j: int) -> int:
    """When all nodes would be on that job `j`, which fits now, would be given, us."""
    cores = np.int64(w.job[j].cores)
    if w.job[j].single != 0:
        return readiness_of_parts(w, j, may_wake(w, j))
    return w.s[0].now if cores <= w.s[0].free_on else readiness(w, cores, False)


@lean
def start_if_fits(w: World, j: int) -> bool:
    """Start job `j` if it may be given its cores now."""
    if not fits_now(w, j):
        return False
    start(w, j, False, may_wake(w, j))
    return True


@inlined
def can_hold(w: World, j: int, n: int, left: int) -> int:
    """How many parts of job `j`, of `left`, could node `n` hold, none of whose resources is taken?"""
    return room_in(w, j, left, np.int64(w.node[n].cores), w.room[n]) if may_lie(w, j, n) else 0
