"""How well a user's walltimes have told the runtime: a mean of runtime / walltime over `RECENT` of the user's jobs (R3, DeepScheduler).

ENDED: over those that ended last. SUBMITTED: over those submitted last, as far as they have ended by now: R3 prints "the last u
submissions", and only what has ended is known. A user without such a job has confidence 1: the walltime is taken at its word. Jobs without
a user share one.
"""

from __future__ import annotations

from typing import Any

from escala.compile import inlined, lean
from escala.envs.tables import RECENT
from escala.kernel import codes
from escala.kernel.state import World

ENDED = 0
SUBMITTED = 1
KINDS = {"ended": ENDED, "submitted": SUBMITTED}


@inlined
def place_of(w: World, j: int, users: int) -> int:
    """Row of the user of job j; the last row is for jobs without."""
    user = w.job[j].user
    return user if user >= 0 else users - 1


@inlined
def has_ended(w: World, j: int) -> bool:
    """Has job j ended?"""
    return w.run[j].state == codes.COMPLETED or w.run[j].state == codes.KILLED


@lean
def note_placed(w: World, memory: Any, live: Any, j: int) -> None:
    """Job j has been given its cores: its end is to be noted."""
    live[memory.n_live] = j
    memory.n_live += 1


@lean
def judge(w: World, u: int, recent: Any, entered: Any, confidence: Any) -> None:
    """The confidence of user u anew: the mean over the jobs of the ring that have ended."""
    total = 0.0
    known = 0
    for k in range(min(entered[u], RECENT)):
        j = recent[u, k]
        if has_ended(w, j):
            total += w.job[j].runtime / w.job[j].walltime
            known += 1
    confidence[u] = total / known if known > 0 else 1.0


@lean
def enter(w: World, j: int, recent: Any, entered: Any, confidence: Any) -> None:
    """Job j enters its user's ring over the oldest."""
    u = place_of(w, j, confidence.shape[0])
    recent[u, entered[u] % RECENT] = j
    entered[u] += 1
    judge(w, u, recent, entered, confidence)


@lean
def note_jobs(w: World, settings: Any, memory: Any, live: Any, recent: Any, entered: Any, confidence: Any) -> None:
    """Take the jobs that were submitted and those that ended since the last look, lowest row first, into the records of their users.

    live int64: placed jobs. recent int64 [users, RECENT]: rings of job rows; entered int64 [users]: jobs that came into them; confidence
    [users].
    """
    by_submission = settings[0].confidence == SUBMITTED
    while by_submission and memory.seen_jobs < w.s[0].next_job:
        enter(w, memory.seen_jobs, recent, entered, confidence)
        memory.seen_jobs += 1
    if w.s[0].n_ended == memory.seen_ended:
        return
    memory.seen_ended = w.s[0].n_ended
    while True:
        best = codes.NONE
        for k in range(memory.n_live):
            if has_ended(w, live[k]) and (best == codes.NONE or live[k] < live[best]):
                best = k
        if best == codes.NONE:
            return
        j = live[best]
        memory.n_live -= 1
        live[best] = live[memory.n_live]
        if by_submission:
            judge(w, place_of(w, j, confidence.shape[0]), recent, entered, confidence)
        else:
            enter(w, j, recent, entered, confidence)
