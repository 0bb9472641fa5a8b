"""The loop with a scheduler inside: one driver a family of schedulers, so that a run compiles only what it uses.

Each takes its decisions at the same pause, by the same starts, as somebody outside would; it merely does not leave
compiled code.
"""

from __future__ import annotations

from typing import Any

from escala.compile import compiled
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.agenda import kept
from escala.kernel.conservative import conservative
from escala.kernel.easy import easy, easy_fast
from escala.kernel.priority import easy_priority
from escala.kernel.schedule import greedy, strict
from escala.kernel.single import easy_fast_single, easy_single
from escala.kernel.world import one


@compiled
def drive_outside(table: Any, i: int, until: int) -> int:
    """No scheduler inside: pause at every decision."""
    return advance(one(table, i), until)


@compiled
def drive_strict(table: Any, i: int, until: int) -> int:
    """Strict order (fcfs, sjf, ...)."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            strict(w)


@compiled
def drive_greedy(table: Any, i: int, until: int) -> int:
    """Whatever fits (first-fit, packer, ...)."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            greedy(w)


@compiled
def drive_easy(table: Any, i: int, until: int) -> int:
    """EASY backfilling of jobs that take cores of any nodes."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            easy(w, w.frontier)


@compiled
def drive_easy_priority(table: Any, i: int, until: int) -> int:
    """EASY backfilling with a queue in order of priority."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            easy_priority(w, w.frontier)


@compiled
def drive_easy_single(table: Any, i: int, until: int) -> int:
    """EASY backfilling where some jobs need one node or several kinds of resource."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            easy_single(w)


@compiled
def drive_easy_fast(table: Any, i: int, until: int) -> int:
    """The reference engine's fast EASY."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            easy_fast(w, w.frontier)


@compiled
def drive_easy_fast_single(table: Any, i: int, until: int) -> int:
    """The same where some jobs need one node or several kinds of resource."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            easy_fast_single(w)


@compiled
def drive_conservative(table: Any, i: int, until: int) -> int:
    """Conservative backfilling."""
    w = one(table, i)
    while True:
        stop = advance(w, until)
        if stop != codes.DECISION:
            return stop
        if w.s[0].n_queued > 0:
            conservative(w)
        elif w.s[0].changed == 1 and not kept(w):
            w.s[0].n_slices = 0  # something was released while nobody waited: the agenda is out of date


DRIVERS = {
    codes.EXTERNAL: drive_outside,
    codes.STRICT: drive_strict,
    codes.GREEDY: drive_greedy,
    codes.EASY: drive_easy,
    codes.EASY_FAST: drive_easy_fast,
    codes.CONSERVATIVE: drive_conservative,
    codes.EASY_PRIORITY: drive_easy_priority,
}
SINGLE = {
    codes.EASY: drive_easy_single,
    codes.EASY_PRIORITY: drive_easy_single,
    codes.EASY_FAST: drive_easy_fast_single,
}
"""In place of these where jobs go by nodes, or ask for several kinds of resource."""
