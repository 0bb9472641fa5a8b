"""Tuning: the order of the queue chosen by replaying a log's own past under a promise, and judged on its later weeks.

`promise` what may not get worse; `split` past and later weeks; `measures` waits in numbers; `candidates` what is tried; `replays` one
schedule after the other, kept; `choice` the best that keeps the promise; `judge` the later weeks, once; `tuner` all of it; `folder` what
is written; `joint` energy against wait of pairs of policies.
"""

from escala.tuning.joint import Frontier, frontier
from escala.tuning.tuner import DEFAULT_PROMISE, Tuned, tune

__all__ = ["DEFAULT_PROMISE", "Frontier", "Tuned", "frontier", "tune"]
