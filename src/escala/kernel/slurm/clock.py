"""Moments of slurmctld's clock."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import (
    BEAT,
    BEAT_EVERY_S,
    BEAT_S,
    FAR,
    NOW,
    PURGE,
    PURGE_EVERY_S,
    PURGE_LEAST_S,
    PURGE_S,
    SECOND,
    Ints,
    Rules,
)


@lean
def unix_s(rules: Rules, us: int) -> int:
    """The whole second of unix time of a moment."""
    return (us + rules.epoch_us) // SECOND


@lean
def kill_beat(s: Ints, rules: Rules, due_us: int) -> int:
    """The first beat at or behind a moment, and behind now, at which slurmctld kills."""
    return _beat(s, rules, due_us, BEAT, BEAT_S, BEAT_EVERY_S)


@lean
def forgotten_us(s: Ints, rules: Rules, end_us: int) -> int:
    """When slurmctld forgets a job that ended then: at the first beat of purging MinJobAge later, in whole seconds.
    (_list_find_job_old in job_mgr.c)"""
    if rules.min_job_age == 0:
        return FAR
    every = PURGE_EVERY_S
    if rules.min_job_age < PURGE_EVERY_S:
        every = max(PURGE_LEAST_S, rules.min_job_age)
    due = (unix_s(rules, end_us) + rules.min_job_age) * SECOND - rules.epoch_us
    return _beat(s, rules, due, PURGE, PURGE_S, every)


@lean
def _beat(s: Ints, rules: Rules, due_us: int, last: int, last_s: int, every_s: int) -> int:
    """A tick of the loop in which event passes are too, before the pass there: the first at which so many whole seconds
    have gone by since the beat before. last, last_s: the counters of the last one. (_slurmctld_background in
    controller.c)"""
    at, at_s = s[last], s[last_s]
    while at < due_us or at <= s[NOW]:
        least = (at_s + every_s) * SECOND - rules.epoch_us
        at += -((at - least) // rules.tick_us) * rules.tick_us
        at_s = unix_s(rules, at)
        if at <= s[NOW]:
            s[last], s[last_s] = at, at_s
    return at
