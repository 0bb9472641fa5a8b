"""The least of runs of slices: of each 8 to 16 that lie side by side, entry by entry.

So a window of many slices is looked at in few steps (`escala.kernel.holes`). They change with the agenda
(`escala.kernel.agenda`): what is added to all slices of a run is added to its least. A pool has none.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel.state import World
from escala.kernel.sums import ROW

LONGEST = 16
FIRST = 0  # position of the first slice of each run
LINE = 1  # where its least stands in `World.lows`; the first `n_lines` are a permutation
LOST = 2  # slices that it lost, see `agenda.tidy`


@inlined
def end_of(w: World, b: int) -> int:
    """Position behind the last slice of run `b`."""
    return np.int64(w.runs[FIRST, b + 1]) if b + 1 < w.s[0].n_runs else np.int64(w.s[0].n_slices)


@lean
def run_at(w: World, k: int) -> int:
    """The run in which slice `k` lies."""
    low = 0
    high = w.s[0].n_runs
    while low + 1 < high:
        middle = (low + high) >> 1
        if w.runs[FIRST, middle] <= k:
            low = middle
        else:
            high = middle
    return low


@lean
def find_least(w: World, b: int, low: int, high: int) -> None:
    """The least of run `b` anew, in the entries from `low` to `high`, without it."""
    into = w.lows[w.runs[LINE, b]]
    for k in range(w.runs[FIRST, b], end_of(w, b)):
        line = w.agenda[w.slices[ROW, k]]
        if k == w.runs[FIRST, b]:
            for entry in range(low, high):
                into[np.uint64(entry)] = line[np.uint64(entry)]
        else:
            for entry in range(low, high):
                into[np.uint64(entry)] = min(into[np.uint64(entry)], line[np.uint64(entry)])


@inlined
def _new_line(w: World) -> None:
    """The run behind the last has a line."""
    s = w.s[0]
    if s.n_runs == s.n_lines:
        w.runs[LINE, s.n_runs] = s.n_runs
        s.n_lines += 1


@lean
def make_runs(w: World) -> None:
    """Of all slices anew."""
    s = w.s[0]
    s.n_runs = 0
    for first in range(0, s.n_slices, LONGEST // 2):
        _new_line(w)
        w.runs[FIRST, s.n_runs] = first
        s.n_runs += 1
    for b in range(s.n_runs):
        find_least(w, b, 0, w.lows.shape[1])


@lean
def note_slice(w: World, at: int) -> None:
    """There is a new slice at position `at`, which says what the one before it says. A run that is too long is cut."""
    s = w.s[0]
    b = run_at(w, at - 1)
    for later in range(b + 1, s.n_runs):
        w.runs[FIRST, later] += 1
    first, end = np.int64(w.runs[FIRST, b]), end_of(w, b)
    if end - first <= LONGEST:
        return
    _new_line(w)
    line = w.runs[LINE, s.n_runs]
    for k in range(s.n_runs, b + 1, -1):
        w.runs[FIRST, k] = w.runs[FIRST, k - 1]
        w.runs[LINE, k] = w.runs[LINE, k - 1]
    w.runs[LINE, b + 1] = line
    s.n_runs += 1
    w.runs[FIRST, b + 1] = (first + end) >> 1
    find_least(w, b, 0, w.lows.shape[1])
    find_least(w, b + 1, 0, w.lows.shape[1])
