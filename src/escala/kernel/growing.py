"""Scores that grow with the wait (WFP3, UNICEP, the expansion factor, linear scores), and scores that never change
beside them: what they are now, and how long a job surely stays ahead of another.

The first three are a power of slope x wait, with a slope of the job's own, so jobs are lines over time. Linear scores
are sums of terms whose rates only fall. `k` is the order: 0 that of the queue, 1 that of those who pass its first.
"""

from __future__ import annotations

import math

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.forecast import length_of
from escala.kernel.keys import HOUR_US, ordering_of
from escala.kernel.state import World

# slopes are kept as 32-bit numbers: two lines that are nearer than this share of their height may change places
DOUBT = 2e-7


@inlined
def growing_score(w: World, k: int, j: int) -> float:
    """WFP3: -(wait / walltime)^3 cores. UNICEP: -wait / (log2(max(cores, 2)) walltime) (Tang et al. 2009). Expansion
    factor: -wait / walltime. A fixed one: its place. A linear one: see `_linear`. -infinity for a job that has waited
    the guard. The smallest is first."""
    if j < w.s[0].aged:
        return -np.inf
    ordering = ordering_of(w, k)
    if ordering == codes.BY_PLACE:
        return w.fixed[k, j]
    if ordering == codes.BY_LINEAR:
        return _linear(w, k, j)
    ratio = (w.s[0].now - w.job[j].submit) / max(length_of(w, j), 1)  # one division of whole numbers: equal ratios tie
    cores = np.int64(w.job[j].cores)
    if ordering == codes.BY_WFP3:
        return -(ratio * ratio * ratio) * cores
    if ordering == codes.BY_XFACTOR:
        return -ratio
    return -ratio / np.log2(max(cores, 2))  # type: ignore[call-overload]


@inlined
def clock_of(w: World, k: int) -> int:
    """The time for which scores are computed, us."""
    return w.terms[k].clock_us if ordering_of(w, k) == codes.BY_LINEAR else w.s[0].now


@inlined
def _wait(w: World, k: int, j: int) -> int:
    """Of job `j` by the clock of a linear score; 0 for one that came since."""
    return max(w.terms[k].clock_us - w.job[j].submit, 0)


@inlined
def _bias(w: World, k: int, j: int) -> float:
    """What the user of job `j` adds to a linear score; 0 where no user is known."""
    u = np.int64(w.job[j].user)
    return w.user[u].bias[k] if u != codes.NONE else 0.0


@lean
def _linear(w: World, k: int, j: int) -> float:
    """A sum of weights x features: what is fixed, then log1p(wait / 1 h), log1p(wait / estimate), wait / max_age, what
    the user has."""
    wait = _wait(w, k, j)
    score = w.fixed[k, j]
    if w.terms[k].log_wait != 0.0:
        score += w.terms[k].log_wait * math.log1p(wait / HOUR_US)
    if w.terms[k].log_ratio != 0.0:
        score += w.terms[k].log_ratio * math.log1p(wait / max(length_of(w, j), 1))
    if w.terms[k].age != 0.0:
        score += w.terms[k].age * min(wait / w.terms[k].max_age_us, 1.0)
    if w.terms[k].by_user == 1:
        score += _bias(w, k, j)
    return score


@lean
def _closing(w: World, k: int, a: int, b: int) -> float:
    """How fast, at most, the lead of job `a` over job `b` shrinks from now on, 1/us, while the user's terms stay.

    Of log(c + wait) the rates of two jobs differ by a number whose sign never changes and whose size only falls. Ages
    grow side by side until the older is full.
    """
    wait_a = _wait(w, k, a)
    wait_b = _wait(w, k, b)
    closing = max(w.terms[k].log_wait * (1.0 / (HOUR_US + wait_a) - 1.0 / (HOUR_US + wait_b)), 0.0)
    if w.terms[k].log_ratio != 0.0:
        length_a = max(length_of(w, a), 1)
        length_b = max(length_of(w, b), 1)
        closing += max(w.terms[k].log_ratio * (1.0 / (length_a + wait_a) - 1.0 / (length_b + wait_b)), 0.0)
    younger = b if w.terms[k].age < 0.0 else a  # whose growth brings them together once the other is of full age
    if w.terms[k].age != 0.0 and min(wait_a, wait_b) == _wait(w, k, younger) < w.terms[k].max_age_us:
        closing += abs(w.terms[k].age) / w.terms[k].max_age_us
    return closing


@inlined
def _alike(w: World, k: int, a: int, b: int) -> bool:
    """Do two jobs differ in their submission at most, and fall with the wait? Then the one submitted first stays
    first."""
    t = w.terms[k]
    return (
        w.fixed[k, a] == w.fixed[k, b]
        and (t.log_ratio == 0.0 or length_of(w, a) == length_of(w, b))
        and (t.by_user == 0 or _bias(w, k, a) == _bias(w, k, b))
        and (w.job[a].submit == w.job[b].submit or (t.log_wait <= 0.0 and t.log_ratio <= 0.0 and t.age <= 0.0))
    )


@lean
def _stays_first_linear(w: World, k: int, a: int, b: int, least: float) -> int:
    """As `stays_first`, for linear scores, while the user's terms stay."""
    t = w.terms[k]
    if (t.log_wait == 0.0 and t.log_ratio == 0.0 and t.age == 0.0) or _alike(w, k, a, b):
        return codes.NEVER_US
    clock = t.clock_us
    lead = _linear(w, k, b) - least - t.doubt
    if lead <= 0.0 or max(w.job[a].submit, w.job[b].submit) > clock:
        return clock
    closing = _closing(w, k, a, b)
    if closing <= 0.0:
        return codes.NEVER_US
    until = clock + np.int64(min(lead / closing * (1.0 - 1e-9), 1e18))
    if t.log_wait == 0.0 and t.log_ratio == 0.0:
        until = max(until, min(w.job[a].submit, w.job[b].submit) + t.max_age_us)
    return until


@inlined
def slope_of(w: World, k: int, j: int) -> float:
    """Growth of the line of job `j`, 1/us."""
    cores = np.int64(w.job[j].cores)
    ordering = ordering_of(w, k)
    if ordering == codes.BY_WFP3:
        factor = np.cbrt(cores)
    else:
        factor = 1.0 / np.log2(max(cores, 2)) if ordering == codes.BY_UNICEP else 1.0  # type: ignore[call-overload]
    return factor / max(length_of(w, j), 1)


@inlined
def _kept_slope(w: World, k: int, j: int) -> float:
    """The slope of the queue's order is kept."""
    return w.run[j].slope if k == 0 else slope_of(w, k, j)


@lean
def stays_first(w: World, k: int, a: int, b: int, least: float) -> int:
    """Time up to which job `a`, which comes before job `b` now, surely does, us; now, where that cannot be told. least:
    the score of `a`."""
    if ordering_of(w, k) == codes.BY_PLACE:
        return codes.NEVER_US
    if a < w.s[0].aged:
        return codes.NEVER_US  # it has waited the guard
    if ordering_of(w, k) == codes.BY_LINEAR:
        return _stays_first_linear(w, k, a, b, least)
    if w.job[a].cores == w.job[b].cores and length_of(w, a) == length_of(w, b):
        return codes.NEVER_US  # the one submitted first
    now = w.s[0].now
    least = _kept_slope(w, k, a) * (1.0 - DOUBT)
    most = _kept_slope(w, k, b) * (1.0 + DOUBT)
    lead = least * (now - w.job[a].submit) - most * (now - w.job[b].submit)
    if lead <= 0.0:
        return now
    if most <= least:
        return codes.NEVER_US
    return now + np.int64(min(lead / (most - least), 1e18))
