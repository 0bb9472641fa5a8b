"""Jobs that could not pass EASY's head in a decision: whoever asks for no less cannot either, for room only shrinks
until the next decision.

Asks for no less: at least as long, with as many parts at least, each at least as large, and on no other nodes; so nodes
need not be looked at once more. Kept are the last so many of them.
"""

from __future__ import annotations

import numpy as np

from escala.compile import lean
from escala.kernel.parts import allowed_of, parts_of, share_of
from escala.kernel.state import MISSES, World

LENGTH, PARTS, MOST, SHARE, WAKING, ALLOWED, KINDS = range(7)  # columns of `World.missed`, kinds from the last on
ALWAYS = -1  # a length: it has no room now, however short it is


@lean
def is_hopeless(w: World, j: int, waking: bool, n: int) -> bool:
    """Does job `j` ask for no less than one of the `n` jobs that could not pass? waking: it may be given nodes that are
    not on."""
    spread = w.job[j].single == 0
    parts = 0 if spread else parts_of(w, j)
    share = np.int64(w.job[j].cores) if spread else share_of(w, j)
    most = np.int64(w.shape[j].most) if w.job[j].single == 2 else 1
    allowed = allowed_of(w, j)
    length = w.job[j].walltime if w.o[0].exact == 0 else w.job[j].walltime - 1  # residues may tell equal ones apart
    for m in range(min(n, MISSES)):
        row = w.missed[m]
        alike = (row[PARTS] == 0) == spread and row[PARTS] <= parts and most <= row[MOST]
        alike = alike and (row[ALLOWED] == 0 or row[ALLOWED] == allowed)
        if alike and row[LENGTH] <= length and row[SHARE] <= share and (row[WAKING] == 1 or not waking):
            worse = True
            if w.demand.shape[0] > 0 and not spread:
                for k in range(w.demand.shape[1]):
                    worse = worse and row[KINDS + k] <= w.demand[j, k]
            if worse:
                return True
    return False


@lean
def miss(w: World, j: int, waking: bool, fits: bool, n: int) -> int:
    """Job `j` could not pass, the n-th of them; `fits`: there is room for it now. Returns n + 1."""
    row = w.missed[n % MISSES]
    spread = w.job[j].single == 0
    row[LENGTH] = w.job[j].walltime if fits else ALWAYS
    row[PARTS] = 0 if spread else parts_of(w, j)
    row[MOST] = np.int64(w.shape[j].most) if w.job[j].single == 2 else 1
    row[SHARE] = np.int64(w.job[j].cores) if spread else share_of(w, j)
    row[WAKING] = 1 if waking else 0
    row[ALLOWED] = allowed_of(w, j)
    if w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            row[KINDS + k] = 0 if spread else w.demand[j, k]
    return n + 1
