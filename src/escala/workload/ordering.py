"""Records that come in pieces, in the order of submission: as they come where that is nearly it, else by way of a disk.

Frames have the column `AT`, s: the submission, or where that is unknown one nearby.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from escala.errors import EscalaError

AT = " at"
PLACE = " place"
"""The number of a record in the file, where it is kept: of JSON all may stand in one line."""
INSTANT_S = 2e-6  # submissions less apart may be one on the clock of microseconds
RUN = 4  # pieces that are sorted in memory
GROUP_ROWS = 10_000  # that are read from a disk at once


class OutOfOrder(EscalaError):
    """A log is not in the order of submission, not even nearly."""


def cut(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """The records in pieces of about `rows`, sorted; what one instant submits stays together. Records may stand some
    `rows` behind their place; OutOfOrder where they stand further."""
    rest, last = pl.DataFrame(), -np.inf
    for frame in frames:
        rest = pl.concat([rest, frame], how="diagonal")
        if rest.height <= rows:
            continue
        rest = rest.sort(AT, maintain_order=True)
        while (ready := _whole_instants(rest[AT], rows)) > 0:
            yield _behind(rest.head(ready), last)
            last, rest = float(rest[AT][ready - 1]), rest.tail(rest.height - ready)
    if rest.height:
        yield _behind(rest.sort(AT, maintain_order=True), last)


def _whole_instants(at: pl.Series, rows: int) -> int:
    """How many of the first records, about `rows`, make a piece: all that an instant submits; 0: more must be read
    first."""
    if len(at) <= rows:
        return 0
    ends = np.flatnonzero(np.diff(at.to_numpy()) > INSTANT_S) + 1
    before = int(np.searchsorted(ends, rows, side="right"))
    if before:
        return int(ends[before - 1])
    return int(ends[0]) if len(ends) else 0


def _behind(piece: pl.DataFrame, last_s: float) -> pl.DataFrame:
    if float(piece[AT][0]) <= last_s + INSTANT_S:
        job = piece["job_id"][0]
        raise OutOfOrder(
            f"job {job!r} is not submitted after those of an earlier piece: the log is not in the order of submission"
        )
    return piece


def sorted_on_disk(
    frames: Iterable[pl.DataFrame], folder: Path, rows: int, by: Sequence[str] = (AT,)
) -> Iterator[pl.DataFrame]:
    """The records in order, some `rows` at a time; those of one instant in the order in which they came, or of what
    else stands in `by`. folder: an empty one, for tables that are as large as the records."""
    held: list[pl.DataFrame] = []
    runs: list[Path] = []
    for frame in frames:
        held.append(frame)
        if sum(each.height for each in held) >= RUN * rows:
            runs.append(_write(held, folder / f"{len(runs):06d}.parquet", by))
            held = []
    if not runs:
        yield from [pl.concat(held, how="diagonal").sort(by, maintain_order=True)] if held else []
        return
    yield from _merged([*runs, _write(held, folder / f"{len(runs):06d}.parquet", by)] if held else runs, rows, by)


def _write(frames: list[pl.DataFrame], path: Path, by: Sequence[str]) -> Path:
    """A sorted run."""
    pl.concat(frames, how="diagonal").sort(by, maintain_order=True).write_parquet(path, row_group_size=GROUP_ROWS)
    return path


def _merged(runs: list[Path], rows: int, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Sorted runs as one."""
    scans = [pl.scan_parquet(run) for run in runs]
    heights = [int(scan.select(pl.len()).collect().item()) for scan in scans]
    block = max(RUN * rows // len(runs), 1)
    heads, read = [scan.head(0).collect() for scan in scans], [0] * len(runs)
    while True:
        for k, scan in enumerate(scans):
            if not heads[k].height and read[k] < heights[k]:
                heads[k], read[k] = scan.slice(read[k], block).collect(), min(read[k] + block, heights[k])
        ends = [float(head[AT][-1]) for head, at, height in zip(heads, read, heights, strict=True) if at < height]
        limit = min(ends, default=np.inf)  # behind it a run may go on
        ready = [int(head[AT].search_sorted(limit, side="left")) if head.height else 0 for head in heads]
        if any(ready):
            some = pl.concat([head.head(n) for head, n in zip(heads, ready, strict=True)], how="diagonal")
            yield some.sort(by, maintain_order=True)
            heads = [head.tail(head.height - n) for head, n in zip(heads, ready, strict=True)]
        elif limit == np.inf:
            return
        else:  # a block of one instant
            k = next(k for k, head in enumerate(heads) if read[k] < heights[k] and float(head[AT][-1]) == limit)
            heads[k] = pl.concat([heads[k], scans[k].slice(read[k], block).collect()])
            read[k] = min(read[k] + block, heights[k])
