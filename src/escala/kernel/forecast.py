"""How long a job is expected to run, where that is not the time requested: known beforehand, or found when the job is
submitted.

The length by which plans are made lies in `JOB.walltime`, the one by which the queue is ordered in `FORECAST.order`,
and the request, at which a job is killed whatever was expected, in `FORECAST.limit`. Nothing here looks at a run that
has not ended.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.backlog import weigh
from escala.kernel.keys import give_numbers
from escala.kernel.state import World


@inlined
def length_of(w: World, j: int) -> int:
    """The length by which the queue is ordered, us."""
    return w.forecast[j].order if w.forecast.shape[0] > 0 else w.job[j].walltime


@inlined
def limit_of(w: World, j: int) -> int:
    """The time requested, us."""
    return w.forecast[j].limit if w.forecast.shape[0] > 0 else w.job[j].walltime


@inlined
def remember(w: World, j: int) -> None:
    """Job `j` has ended: its user's last run."""
    user = np.int64(w.job[j].user)
    if user != codes.NONE and w.recent.shape[0] > 0:
        w.recent[user, 1] = w.recent[user, 0]
        w.recent[user, 0] = w.job[j].runtime
    if w.past.shape[0] > 0:
        w.past[w.s[0].n_ended] = j


@lean
def _last2(w: World, j: int, limit: int) -> int:
    """The mean of the last two runs of the user that have ended (of the one, if it is the only one), at most the
    request; the request of a user without any. Tsafrir, Etsion, Feitelson 2007."""
    user = np.int64(w.job[j].user)
    if user == codes.NONE or w.recent[user, 0] == codes.NONE:
        return limit
    last = w.recent[user, 0]
    mean = last if w.recent[user, 1] == codes.NONE else (last + w.recent[user, 1]) // 2
    return min(max(mean, 1), limit)


@lean
def foresee(w: World, j: int) -> None:
    """Job `j` is submitted: what is expected of it now stands."""
    o = w.o[0]
    if o.estimate == codes.LAST2:
        w.job[j].walltime = _last2(w, j, w.forecast[j].limit)
    if o.order_estimate == codes.LAST2:
        w.forecast[j].order = _last2(w, j, w.forecast[j].order)
        give_numbers(w, j)


@lean
def told(w: World, j: int, estimate: int, order: int) -> None:
    """Somebody outside says how long job `j` will run (us)."""
    o = w.o[0]
    if o.estimate == codes.ASKED:
        weigh(w, j, -1)
        w.job[j].walltime = estimate
        weigh(w, j, 1)
    if o.order_estimate == codes.ASKED:
        w.forecast[j].order = order
        give_numbers(w, j)
    w.s[0].told = j + 1
