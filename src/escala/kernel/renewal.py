"""Before each decision linear scores are brought up to date: their clock, and what users have.

The search order goes by user where a score looks at users, so what a user's terms add is the same for most cells' jobs:
only the cells that hold the first or the last of the user's jobs, and those above, can have another first job for it.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel import codes
from escala.kernel.keys import ordering_of
from escala.kernel.queue import outdate
from escala.kernel.state import UNTOUCHED, World
from escala.kernel.users import bias_of


@lean
def renew(w: World) -> None:
    """Compute the scores for now, those that are due."""
    s = w.s[0]
    awaited = False  # is there an order that is not due, but will have to know of whom something has changed?
    for k in range(w.terms.shape[0]):
        if ordering_of(w, k) != codes.BY_LINEAR:
            continue
        if s.now < w.terms[k].due_us:
            awaited = awaited or w.terms[k].by_user == 1
            continue
        w.terms[k].clock_us = s.now
        every = w.terms[k].every_us
        if every > 0:
            w.terms[k].due_us = (s.now // every + 1) * every
        if w.terms[k].fair != 0.0:
            for u in range(w.user.shape[0]):
                _revalue(w, k, u)
        elif w.terms[k].by_user == 1:
            u = s.touched
            while u != codes.NONE:
                _revalue(w, k, u)
                u = w.user[u].next
    while not awaited and s.touched != codes.NONE:
        u = s.touched
        s.touched = w.user[u].next
        w.user[u].next = UNTOUCHED


@lean
def _revalue(w: World, k: int, u: int) -> None:
    bias = bias_of(w, k, u)
    if bias != w.user[u].bias[k]:
        w.user[u].bias[k] = bias
        if w.tree.shape[1] > 0:
            outdate(w, k, w.user[u].low)
            outdate(w, k, w.user[u].high)
