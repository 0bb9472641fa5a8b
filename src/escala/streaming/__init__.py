"""Replays of logs that do not fit into memory: a window of jobs at a time, with the same schedule as in memory.

`replay` the window that moves, `carried` what goes from one to the next, `summary` the figures, from what was written,
`again` a run once more.
"""

from escala.streaming.again import rerun
from escala.streaming.replay import Streamed, stream

__all__ = ["Streamed", "rerun", "stream"]
