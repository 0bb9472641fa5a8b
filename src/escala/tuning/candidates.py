"""The rules that are tried: scores times guards, and easy with other orders of its backfilling."""

from __future__ import annotations

from escala.policies.queues import queue

SCORES = ("sjf", "saf", "sqrt-area", "xfactor", "wfp3")
GUARDS_H = (3, 6, 9, 12, 18, 24, 36, 48, 100, 200)
"""Who has waited so long stands in front, h. The best guard goes with the log: what is short on one is without effect
on another."""
PLAIN = ("easy", "easy-sjf", "easy-saf")
BASELINES = ("easy", "easy-sjf")
"""What a tuned policy is compared with, and what a promise can name."""


def candidates() -> list[str]:
    """Names of the rules, the plainest first: of rules that are equally good the first is taken."""
    return [*PLAIN, *(queue(score, 3600.0 * hours) for score in SCORES for hours in GUARDS_H)]
