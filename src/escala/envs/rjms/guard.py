"""The guard of a learnt scheduler: a job that has waited for `guard_us` stands in front, oldest first, whatever the
agent wants.

It starts as soon as it fits. Until then it holds EASY's reservation, counted in cores: others may start that end before
it begins by their walltimes, or take what it leaves (Lifka 1995; Mu'alem and Feitelson 2001).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.rjms.state import Game
from escala.envs.rjms.user_confidence import note_placed
from escala.kernel import codes
from escala.kernel.commands import command_start
from escala.kernel.fit import fits_now
from escala.kernel.plans import following
from escala.kernel.reservation import usable
from escala.kernel.state import World


@lean
def serve(w: World, g: Game) -> None:
    """Start those in front that fit; note the reservation of the first that does not."""
    s, m = w.s[0], g.memory
    m.aged = 0
    while s.n_queued > 0 and s.now - w.job[s.first].submit >= g.settings.guard_us:
        j = np.int64(s.first)
        if command_start(w, j) != codes.REFUSED_NONE:
            m.aged = 1
            _reserve(w, g, j)
            return
        note_placed(g, j)


@lean
def _reserve(w: World, g: Game, j: int) -> None:
    """When the cores of job `j` will be free. Where only the end of a switch can tell, now: nothing passes."""
    m = g.memory
    free = usable(w, j)
    m.shadow_us = w.s[0].now
    m.spare = 0
    size = 0
    if w.s[0].n_plans > 0:
        g.frontier[0] = 0
        size = 1
    while size > 0:
        position, size = following(w, g.frontier, size)
        k = np.int64(w.plans[position])
        free += w.job[k].cores
        if free >= w.job[j].cores:
            m.shadow_us = w.run[k].plan
            m.spare = free - w.job[j].cores
            return


@lean
def may_start(w: World, g: Game, j: int) -> bool:
    """Does job `j` fit now, without making a job wait that stands in front?"""
    m, job = g.memory, w.job[j]
    free = m.aged == 0 or w.s[0].now + job.walltime <= m.shadow_us or job.cores <= m.spare
    return free and fits_now(w, j)


@lean
def first_of(w: World, g: Game, order: Any, queueing: int) -> int:
    """The waiting job that a base (STRICT, GREEDY, EASY) would start now, by counts of cores and behind those in front;
    NONE if none.
    order: rows of the waiting jobs, in the base's. The guard's own notes stay."""
    s, m = w.s[0], g.memory
    aged, shadow, spare = m.aged, m.shadow_us, m.spare
    held, until, left = False, np.int64(0), np.int64(0)  # the base's own reservation
    for k in range(order.shape[0]):
        j = np.int64(order[k])
        if w.run[j].state != codes.QUEUED:
            continue
        fits = may_start(w, g, j) and (not held or s.now + w.job[j].walltime <= until or w.job[j].cores <= left)
        if fits:
            return j
        if held or queueing == codes.GREEDY:
            continue
        if queueing == codes.STRICT:
            return codes.NONE
        _reserve(w, g, j)
        held, until, left = True, m.shadow_us, m.spare
        m.aged, m.shadow_us, m.spare = aged, shadow, spare
    return codes.NONE


@lean
def act_as(w: World, g: Game, order: Any, queueing: int) -> None:
    """Start what a base would start now; see `first_of`."""
    j = first_of(w, g, order, queueing)
    while j != codes.NONE and command_start(w, j) == codes.REFUSED_NONE:
        note_placed(g, j)
        serve(w, g)
        j = first_of(w, g, order, queueing)
