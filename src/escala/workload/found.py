"""What the readers of all formats give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import polars as pl


class Found(NamedTuple):
    """What a reader makes of a file, before cleaning."""

    frame: pl.DataFrame
    counts: dict[str, int]
    shift: bool  # whether the first submission becomes time 0
    note: str  # what the file is
    origin_s: Callable[[float], float] = lambda first_s: 0.0  # first submission -> Unix time of the file's time 0
    max_cores: int | None = None
    firsts: Mapping[str, str] = {}  # rule of `counts` -> the first record, in words
    # what is kept beside the table of a log that was read before, as `Workload.ignored`
    ignored: Mapping[str, dict[str, int]] = {}
    rows: int = 0  # of that table, until now
