"""How well a user's walltimes have told the runtime: a mean of runtime / walltime over `RECENT` of the user's jobs (R3, DeepScheduler).

ENDED: over those that ended last. SUBMITTED: over those submitted last, as far as they have ended by now: R3 prints "the last u
submissions", and only what has ended is known. A user without such a job has confidence 1: the walltime is taken at its word. Jobs without
a user share one.
"""

from __future__ import annotations

from typing import Any

from escala.compile import inlined, lean
from escala.envs.rjms.state import RECENT
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


@lean
def note_placed(w: World, memory: Any, live: Any, j: int) -> None:
    """Job j has been given its cores: its end is to be noted."""
    live[memory.n_live] = j
    memory.n_live += 1


@inlined
def ratio_of(w: World, j: int) -> float:
    """runtime / walltime of job j."""
    return w.job[j].runtime / w.job[j].walltime


@lean
def judge(u: int, ratios: Any, entered: Any, confidence: Any) -> None:
    """The confidence of user u anew: the mean over the jobs of the ring that have ended."""
    total = 0.0
    known = 0
    for k in range(min(entered[u], RECENT)):
        ratio = ratios[u, k]
        if ratio >= 0.0:
            total += ratio
            known += 1
    confidence[u] = total / known if known > 0 else 1.0


@lean
def enter(u: int, value: float, ratios: Any, entered: Any, confidence: Any) -> None:
    """A job of user u enters the ring over the oldest."""
    ratios[u, entered[u] % RECENT] = value
    entered[u] += 1
    judge(u, ratios, entered, confidence)


@lean
def note_submitted(w: World, memory: Any, ratios: Any, entered: Any, confidence: Any) -> None:
    """Jobs enter when they are submitted, as -1 - row: how long they run is not known yet."""
    while memory.seen_jobs < w.s[0].next_job:
        j = memory.seen_jobs
        memory.seen_jobs += 1
        enter(place_of(w, j, confidence.shape[0]), -1.0 - j, ratios, entered, confidence)


@lean
def note_end(w: World, settings: Any, j: int, ratios: Any, entered: Any, confidence: Any) -> None:
    """Job j has ended: it enters, or, if it has, what it told takes its place, unless that has been taken."""
    u = place_of(w, j, confidence.shape[0])
    if settings[0].confidence == ENDED:
        enter(u, ratio_of(w, j), ratios, entered, confidence)
        return
    for k in range(min(entered[u], RECENT)):
        if ratios[u, k] == -1.0 - j:
            ratios[u, k] = ratio_of(w, j)
            judge(u, ratios, entered, confidence)


@lean
def note_jobs(w: World, settings: Any, memory: Any, live: Any, ratios: Any, entered: Any, confidence: Any) -> None:
    """Take the jobs that were submitted and those that ended since the last look, lowest row first, into the records of their users.

    live int64: placed jobs. ratios [users, RECENT]: rings of runtime / walltime, -1 - row of a job that has not ended; entered int64
    [users]: jobs that came into them; confidence [users].
    """
    if settings[0].confidence == SUBMITTED:
        note_submitted(w, memory, ratios, entered, confidence)
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
        note_end(w, settings, j, ratios, entered, confidence)
