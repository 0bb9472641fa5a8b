"""EASY where some jobs need one node, or several kinds of resource: what fits is a question to each node, not a count
of cores.

The head's reservation: at the earliest planned end at which some node has room for all its demands, the lowest such
node (a job without that restriction: as many cores as it needs on the lowest nodes). Another job may start on the first
node where it fits now and either ends by then or leaves the reservation intact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.easy import ends_in_time
from escala.kernel.fit import may_wake, start_if_fits
from escala.kernel.jobs import place, start
from escala.kernel.nodes import free_cores
from escala.kernel.placement import node_fits, readiness, take_single
from escala.kernel.plans import following
from escala.kernel.queue import NO_LIMIT, index_new, next_fit, row_at
from escala.kernel.reservation import first_release, hold_of_head, next_switch
from escala.kernel.schedule import leader
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, next_urgent


@lean
def _free_at(w: World, cores: Any, room: Any, only_on: bool) -> None:
    """Free cores [nodes] and room per kind [nodes, kinds] now, of nodes whose cores may be given."""
    for n in range(w.o[0].n_nodes):
        in_set = (
            w.node[n].held == 0
            and w.node[n].power != codes.SWITCHING_OFF
            and (w.node[n].power == codes.ON or not only_on)
        )
        cores[n] = free_cores(w, n) if in_set else 0
        for k in range(room.shape[1]):
            room[n, k] = w.room[n, k] if in_set else 0


@lean
def _release(w: World, j: int, cores: Any, room: Any) -> None:
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            cores[n] += w.chunk[c].per
            if w.job[j].single == 1 and w.demand.shape[0] > 0:
                for k in range(room.shape[1]):
                    room[n, k] += w.demand[j, k]
        c = np.int64(w.chunk[c].next)


@lean
def _home(w: World, j: int, cores: Any, room: Any) -> int:
    """Lowest node with room for the head; 0 stands for "enough cores in all" where the head is not bound to one node;
    NONE: not yet."""
    if w.job[j].single == 0:
        return 0 if cores.sum() >= w.job[j].cores else codes.NONE
    for n in range(w.o[0].n_nodes):
        fits = cores[n] >= w.job[j].cores
        if w.demand.shape[0] > 0:
            for k in range(room.shape[1]):
                fits = fits and room[n, k] >= w.demand[j, k]
        if fits:
            return n
    return codes.NONE


@lean
def _add_unclaimed(w: World, cores: Any, room: Any, until: int) -> None:
    """The end of the head's hold: unclaimed cores of nodes that are not on (or will be off by then) become usable."""
    for n in range(w.o[0].n_nodes):
        power = w.node[n].power
        if w.node[n].held == 0 and power != codes.ON and (power != codes.SWITCHING_OFF or w.node[n].done <= until):
            cores[n] += free_cores(w, n) if power != codes.SWITCHING_OFF else w.node[n].cores
            for k in range(room.shape[1]):
                room[n, k] += w.room[n, k]


@lean
def _add_switched(w: World, cores: Any, room: Any, time: int) -> None:
    """Nodes whose switch-off ends at `time` become usable."""
    for n in range(w.o[0].n_nodes):
        if w.node[n].held == 0 and w.node[n].power == codes.SWITCHING_OFF and w.node[n].done == time:
            cores[n] += w.node[n].cores
            for k in range(room.shape[1]):
                room[n, k] += w.room[n, k]


@lean
def _reserve(w: World, j: int, cores: Any, room: Any) -> int:
    """Set the reservation's time for the head `j`; `cores` and `room` become what others may use beyond it. Returns the
    head's node, NONE without a reservation."""
    s = w.s[0]
    held_until = hold_of_head(w, j)
    held = held_until != codes.NEVER_US
    _free_at(w, cores, room, held)
    s.head = j
    s.shadow_us = codes.NEVER_US
    s.shadow_fine = 0
    frontier = w.frontier
    frontier[0] = 0
    size = 1 if s.n_plans > 0 else 0
    switch = next_switch(w, s.now)
    home = codes.NONE
    while home == codes.NONE:
        us, fine = first_release(w, frontier, size, switch, held_until)
        if us == codes.NEVER_US:
            return codes.NONE
        while size > 0 and w.run[w.plans[frontier[0]]].plan == us and w.run[w.plans[frontier[0]]].fine == fine:
            position, size = following(w, frontier, size)
            _release(w, w.plans[position], cores, room)
        if held_until == us:
            held_until = codes.NEVER_US
            _add_unclaimed(w, cores, room, us)
            switch = next_switch(w, us)
        elif held_until == codes.NEVER_US and switch == us:
            _add_switched(w, cores, room, us)
            switch = next_switch(w, us)
        home = _home(w, j, cores, room)
        if home != codes.NONE:
            s.shadow_us = us
            s.shadow_fine = fine
    s.extra = cores.sum() - w.job[j].cores
    _set_aside(w, j, home, cores, room)
    if held and held_until != codes.NEVER_US:
        _add_unclaimed(w, cores, room, s.now)  # the head does without them
    return home


@lean
def _set_aside(w: World, j: int, home: int, cores: Any, room: Any) -> None:
    """Take the head's demands out of what others may use beyond its reservation."""
    if w.job[j].single == 1:
        cores[home] -= w.job[j].cores
        if w.demand.shape[0] > 0:
            for k in range(room.shape[1]):
                room[home, k] -= w.demand[j, k]
        return
    need = np.int64(w.job[j].cores)
    for n in range(w.o[0].n_nodes):
        k = min(need, cores[n])
        cores[n] -= k
        need -= k


@inlined
def _counted(w: World) -> bool:
    """latest-released: only the number of cores to spare beside the reservation is known. A single-node head names its
    node all the same."""
    return w.o[0].head == codes.LATEST_RELEASED and w.job[w.s[0].head].single == 0


@lean
def _pass(w: World, j: int, cores: Any, room: Any) -> None:
    """Start job `j` if some choice of nodes lets it pass the head."""
    s = w.s[0]
    waking = may_wake(w, j)
    if w.job[j].single == 0:
        _pass_spread(w, j, cores, waking)
        return
    last = codes.SET_OFF if waking else codes.SET_ON
    for which in range(codes.SET_ON, last + 1):
        row = w.bits[which]
        for i in range(row.shape[0]):
            word = row[i]
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                if not node_fits(w, j, n):
                    continue
                ready = s.now
                if which == codes.SET_BOOT:
                    ready = w.node[n].done
                elif which == codes.SET_OFF:
                    ready = s.now + w.profile[w.node[n].profile].on_us
                if ends_in_time(w, j, ready):
                    place(w, j, take_single(w, j, n))
                    return
                if _counted(w):
                    if w.job[j].cores <= s.extra:
                        s.extra -= w.job[j].cores
                        place(w, j, take_single(w, j, n))
                        return
                    continue
                fits = cores[n] >= w.job[j].cores
                if w.demand.shape[0] > 0:
                    for k in range(room.shape[1]):
                        fits = fits and room[n, k] >= w.demand[j, k]
                if fits:
                    cores[n] -= w.job[j].cores
                    if w.demand.shape[0] > 0:
                        for k in range(room.shape[1]):
                            room[n, k] -= w.demand[j, k]
                    place(w, j, take_single(w, j, n))
                    return


@lean
def _pass_spread(w: World, j: int, cores: Any, waking: bool) -> None:
    s = w.s[0]
    need = np.int64(w.job[j].cores)
    free = s.free_on + s.free_boot + s.free_off if waking else s.free_on
    if need > free:
        return
    ready = s.now if need <= s.free_on else readiness(w, need, False)
    if ends_in_time(w, j, ready):
        start_if_fits(w, j)
        return
    if _counted(w):
        if need <= s.extra:
            s.extra -= need
            start(w, j, False, waking)
        return
    total = 0
    for n in range(w.o[0].n_nodes):
        w.node[n].limit = max(cores[n], 0)
        in_set = w.node[n].held == 0 and (
            w.node[n].power == codes.ON or (waking and w.node[n].power != codes.SWITCHING_OFF)
        )
        if in_set:
            total += min(free_cores(w, n), w.node[n].limit)
        if w.o[0].unit == 1 and cores[n] > 0:
            bits.drop(w.bits[codes.SET_RESERVED], n)
        else:
            bits.put(w.bits[codes.SET_RESERVED], n)
    if need <= total:
        start(w, j, True, waking)
        c = np.int64(w.run[j].chunk)
        while c != codes.NONE:
            for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                cores[n] -= w.chunk[c].per
            c = np.int64(w.chunk[c].next)


@lean
def easy_single(w: World) -> None:
    """One decision of EASY."""
    s = w.s[0]
    o = w.o[0]
    s.head = codes.NONE
    while s.n_queued > 0 and start_if_fits(w, leader(w)):
        pass
    if s.n_queued == 0:
        return
    cores, room = w.cores, w.beyond
    cores[:] = 0
    room[:, :] = 0
    _reserve(w, leader(w), cores, room)
    if o.ordering == codes.BY_QUEUE:
        j = np.int64(w.run[s.first].next)
        while j != codes.NONE:
            after = np.int64(w.run[j].next)
            _pass(w, j, cores, room)
            j = after
        return
    if o.ordering in codes.CHANGING:
        k = 0 if o.passing == codes.BY_QUEUE else 1
        n = front_of(w, k, s.free_on + s.free_boot + s.free_off, NO_LIMIT, NO_LIMIT)
        while True:
            free = s.free_on + s.free_boot + s.free_off
            n = next_urgent(w, k, n, free, NO_LIMIT, NO_LIMIT)
            if n == 0:
                return
            if w.front[0].row != s.head:
                _pass(w, w.front[0].row, cores, room)
            n = beyond_first(w, k, n, free, NO_LIMIT, NO_LIMIT)
    index_new(w)
    rank = next_fit(w, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    while rank < o.n_ranks:
        if row_at(w, rank) != s.head:
            _pass(w, row_at(w, rank), cores, room)
        rank = next_fit(w, rank + 1, NO_LIMIT, NO_LIMIT, NO_LIMIT)
