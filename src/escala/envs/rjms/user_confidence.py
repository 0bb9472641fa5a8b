"""How well a user's walltimes have foretold the runtime: a mean of runtime / walltime over `RECENT` of the user's jobs
(R3, DeepScheduler).

ENDED: over those that ended last. SUBMITTED: over those submitted last, as far as they have ended by now: R3 prints
"the last u submissions", and only what has ended is known. A user without such a job has confidence 1: the walltime is
taken at its word. Jobs without a user share one.
"""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.envs.rjms.state import RECENT, Game
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
def note_placed(g: Game, j: int) -> None:
    """Job j has been given its cores: its end is to be noted."""
    g.live[g.memory.n_live] = j
    g.memory.n_live += 1


@inlined
def ratio_of(w: World, j: int) -> float:
    """runtime / walltime of job j."""
    return w.job[j].runtime / w.job[j].walltime


@lean
def judge(g: Game, u: int) -> None:
    """The confidence of user u anew: the mean over the jobs of the ring that have ended."""
    total = 0.0
    known = 0
    for k in range(min(g.entered[u], RECENT)):
        ratio = g.ratios[u, k]
        if ratio >= 0.0:
            total += ratio
            known += 1
    g.confidence[u] = total / known if known > 0 else 1.0


@lean
def enter(g: Game, u: int, value: float) -> None:
    """A job of user u enters the ring over the oldest."""
    g.ratios[u, g.entered[u] % RECENT] = value
    g.entered[u] += 1
    judge(g, u)


@lean
def note_submitted(w: World, g: Game) -> None:
    """Jobs enter when they are submitted, as -1 - row: how long they run is not known yet."""
    m = g.memory
    while m.seen_jobs < w.s[0].next_job:
        j = m.seen_jobs
        m.seen_jobs += 1
        enter(g, place_of(w, j, g.confidence.shape[0]), -1.0 - j)


@lean
def note_end(w: World, g: Game, j: int) -> None:
    """Job j has ended: it enters, or, if it has, its ratio takes its place, unless that has been taken."""
    u = place_of(w, j, g.confidence.shape[0])
    if g.settings.confidence == ENDED:
        enter(g, u, ratio_of(w, j))
        return
    for k in range(min(g.entered[u], RECENT)):
        if g.ratios[u, k] == -1.0 - j:
            g.ratios[u, k] = ratio_of(w, j)
            judge(g, u)


@lean
def note_jobs(w: World, g: Game) -> None:
    """Take the jobs that were submitted and those that ended since the last look, lowest row first, into the records of
    their users."""
    m, live = g.memory, g.live
    if g.settings.confidence == SUBMITTED:
        note_submitted(w, g)
    if w.s[0].n_ended == m.seen_ended:
        return
    m.seen_ended = w.s[0].n_ended
    while True:
        best = codes.NONE
        for k in range(m.n_live):
            state = w.run[live[k]].state
            if (state == codes.COMPLETED or state == codes.KILLED) and (best == codes.NONE or live[k] < live[best]):
                best = k
        if best == codes.NONE:
            return
        j = live[best]
        m.n_live -= 1
        live[best] = live[m.n_live]
        note_end(w, g, j)
