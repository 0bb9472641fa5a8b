"""What users have: waiting jobs, cores, core time used; and what that adds to the linear scores of their jobs.

Core time decays: dU/dt = cores - decay x U. It is brought forward when the user's cores change and when scores are
computed. The fair-share factor is F = 2^(-U / S), U the user's part of all used core time and S of the shares of all
users who have submitted a job so far, all users on one level (Slurm's classic fair-share, simplified formula:
https://slurm.schedmd.com/classic_fair_share.html). It is kept to nine digits: equal users are then equal, whatever the
way to their sums.
"""

from __future__ import annotations

import math

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.state import UNTOUCHED, World

DIGITS = 1e9


@inlined
def _forward(used: float, cores: int, span: int, decay: float) -> float:
    """Core time after `span` us more with these cores, us."""
    if span <= 0:
        return used
    if decay == 0.0:
        return used + float(cores) * span
    kept = math.exp(-decay * span)
    return used * kept + cores * ((1.0 - kept) / decay)


@lean
def _bring_forward(w: World, k: int, u: int) -> None:
    """The used core time of user `u`, and of all, up to now."""
    now = w.s[0].now
    decay = w.terms[k].decay
    w.user[u].used[k] = _forward(w.user[u].used[k], w.user[u].cores, now - w.user[u].used_us[k], decay)
    w.user[u].used_us[k] = now
    w.terms[k].used = _forward(w.terms[k].used, w.terms[k].cores, now - w.terms[k].used_us, decay)
    w.terms[k].used_us = now


@lean
def bring_all_forward(w: World) -> None:
    """The used core time of all users up to now."""
    for k in range(w.terms.shape[0]):
        if w.terms[k].fair != 0.0:
            for u in range(w.user.shape[0]):
                _bring_forward(w, k, u)


@lean
def count(w: World, j: int, queued: int, given: int) -> None:
    """Job `j` joins (1) or leaves (-1) its user's waiting jobs, is given its cores (1) or gives them back (-1)."""
    u = np.int64(w.job[j].user)
    if u == codes.NONE:
        return
    cores = given * np.int64(w.job[j].cores)
    for k in range(w.terms.shape[0]):
        if cores != 0 and w.terms[k].fair != 0.0:
            _bring_forward(w, k, u)
        w.terms[k].cores += cores
        if w.user[u].seen == 0:
            w.terms[k].shares += w.user[u].share[k]
    w.user[u].seen = 1
    w.user[u].queued += queued
    w.user[u].cores += cores
    if w.user[u].next == UNTOUCHED:
        w.user[u].next = w.s[0].touched
        w.s[0].touched = u


@lean
def _fair_share(w: World, k: int, u: int) -> float:
    """The user's factor, 0 to 1."""
    _bring_forward(w, k, u)
    total = w.terms[k].used
    if total <= 0.0 or w.user[u].share[k] <= 0.0:
        return 1.0 if total <= 0.0 else 0.0
    own = w.user[u].share[k] / w.terms[k].shares
    return math.floor(math.exp(-math.log(2.0) * (w.user[u].used[k] / total / own)) * DIGITS + 0.5) / DIGITS


@lean
def bias_of(w: World, k: int, u: int) -> float:
    """What the terms of user `u` add to the scores of the user's jobs, in the order `k`."""
    bias = 0.0
    if w.terms[k].running != 0.0:
        bias += w.terms[k].running * (w.user[u].cores / w.o[0].n_cores)
    if w.terms[k].queued != 0.0:
        bias += w.terms[k].queued * math.log1p(w.user[u].queued)
    if w.terms[k].fair != 0.0:
        bias += w.terms[k].fair * _fair_share(w, k, u)
    return bias
