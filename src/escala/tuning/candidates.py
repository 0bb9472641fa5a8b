"""The rules that are tried: easy with other orders of its backfilling, and greedy ones."""

from __future__ import annotations

PLAIN = ("easy", "easy-sjf", "easy-saf")
BASELINES = ("easy", "easy-sjf")
"""What a tuned policy is compared with, and what a promise can name."""


def candidates() -> list[str]:
    """Names of the rules, the plainest first: of rules that are equally good the first is taken."""
    return [*PLAIN, "easy-f4", "easy-smallest", "sjf-fit", "saf-fit", "f4-fit"]
