"""Moments of slurmctld's clock."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import BEAT, BEAT_EVERY_S, BEAT_S, NOW, SECOND, Ints, Rules


@lean
def unix_s(rules: Rules, us: int) -> int:
    """The whole second of unix time of a moment."""
    return (us + rules.epoch_us) // SECOND


@lean
def kill_beat(s: Ints, rules: Rules, due_us: int) -> int:
    """The first beat at or behind a moment, and behind now, at which slurmctld kills: a tick of the loop in which its
    event passes are too, the first at which 30 whole seconds have gone by since the last beat. (_slurmctld_background
    in controller.c)"""
    at, at_s = s[BEAT], s[BEAT_S]
    while at < due_us or at <= s[NOW]:
        least = (at_s + BEAT_EVERY_S) * SECOND - rules.epoch_us
        at += -((at - least) // rules.tick_us) * rules.tick_us
        at_s = unix_s(rules, at)
        if at <= s[NOW]:
            s[BEAT], s[BEAT_S] = at, at_s
    return at
