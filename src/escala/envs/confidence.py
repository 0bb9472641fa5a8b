"""How well a user's walltimes have told the runtime: the mean of runtime / walltime over the user's `RECENT` jobs that ended last (R3,
DeepScheduler).

Only what has ended is known. A user without an ended job has confidence 1: the walltime is taken at its word. Jobs without a user share
one.
"""

from __future__ import annotations

from typing import Any

from escala.compile import inlined, lean
from escala.envs.tables import RECENT
from escala.kernel import codes
from escala.kernel.state import World


@inlined
def place_of(w: World, j: int, users: int) -> int:
    """Row of the user of job j; the last row is for jobs without."""
    user = w.job[j].user
    return user if user >= 0 else users - 1


@lean
def note_placed(w: World, memory: Any, live: Any, j: int) -> None:
    """Job j has been given its cores: its end is to be noted."""
    live[memory.n_live] = j
    memory.n_live += 1


@lean
def note_ends(w: World, memory: Any, live: Any, ratios: Any, ended: Any, confidence: Any) -> None:
    """Take the jobs that ended since the last look, lowest row first, into the records of their users.

    live int64: placed jobs. ratios [users, RECENT]: rings of runtime / walltime; ended int64 [users]: jobs ended; confidence [users].
    """
    if w.s[0].n_ended == memory.seen_ended:
        return
    memory.seen_ended = w.s[0].n_ended
    while True:
        best = codes.NONE
        for k in range(memory.n_live):
            state = w.run[live[k]].state
            if (state == codes.COMPLETED or state == codes.KILLED) and (best == codes.NONE or live[k] < live[best]):
                best = k
        if best == codes.NONE:
            return
        j = live[best]
        memory.n_live -= 1
        live[best] = live[memory.n_live]
        u = place_of(w, j, confidence.shape[0])
        ratios[u, ended[u] % RECENT] = w.job[j].runtime / w.job[j].walltime
        ended[u] += 1
        known = min(ended[u], RECENT)
        total = 0.0
        for k in range(known):
            total += ratios[u, k]
        confidence[u] = total / known
