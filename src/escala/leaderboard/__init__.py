"""Leaderboards: policies on fixed logs, judged on their later weeks, in entries that anybody can make, compare and
verify.

`suite` fixed logs with their hashes, the promise, what is made small; `judged` one policy on one log; `entry` a policy
on every log of a suite, as one small file; `standing` entries beside each other, with intervals over weeks that are
paired.
"""

from escala.leaderboard.entry import Entry, check, enter, read_entry
from escala.leaderboard.standing import Standing, standing
from escala.leaderboard.suite import SUITES, Suite, read_suite

__all__ = ["SUITES", "Entry", "Standing", "Suite", "check", "enter", "read_entry", "read_suite", "standing"]
