"""Jobs that are alike, as numbers: for each kind of `features.KINDS` the place of a job's group in one table of all
groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.prediction.features import COLUMNS, KINDS, PROGRAM

NO_KEY = -1


class Keys(NamedTuple):
    """of [jobs, kinds]: the place of each job's group, `NO_KEY` where something of it is not known; size: how many
    groups there are."""

    of: NDArray[np.int64]
    size: int


def there_in(jobs: pl.DataFrame) -> tuple[str, ...]:
    """The columns of `COLUMNS` in which a log says something."""
    return tuple(name for name in COLUMNS if name in jobs.columns and jobs[name].null_count() < jobs.height)


def check_columns(jobs: pl.DataFrame, columns: tuple[str, ...], whose: str, log: str) -> None:
    """EscalaError for the first of these columns in which the log says nothing. whose: what goes by them; log: its
    name."""
    there = there_in(jobs)
    lacking = next((name for name in columns if name not in there), None)
    if lacking is not None:
        has = f"it has {', '.join(there)}" if there else "it has none of these"
        raise EscalaError(
            f"{whose} goes by the column {quoted(lacking)}, of which workload {quoted(log)} says nothing ({has}): fit "
            "one without it (--by)"
        )


def keys_of(jobs: pl.DataFrame, columns: tuple[str, ...]) -> Keys:
    """The groups of the jobs of a workload's table, by these columns of `COLUMNS`, the cores and the request."""
    found = np.full((jobs.height, len(KINDS)), NO_KEY, np.int64)
    ranks = {name: _ranks(column) for name, column in _told(jobs, columns).items()}
    size = 0
    for number, kind in enumerate(KINDS.values()):
        if set(kind) <= set(ranks):
            known = np.all([ranks[name] != NO_KEY for name in kind], axis=0)
            place = np.zeros(int(known.sum()), np.int64)
            for name in kind:
                own = ranks[name][known]
                place = np.unique(place * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
            found[known, number] = place + size
            size += int(place.max(initial=-1)) + 1
    return Keys(found, size)


def _told(jobs: pl.DataFrame, columns: tuple[str, ...]) -> dict[str, pl.Series]:
    """What jobs are alike in: `program` among it; requests that nobody made are unknown."""
    asked = pl.when("limited").then("walltime_s") if "limited" in jobs.columns else pl.col("walltime_s")
    programs = [name for name in PROGRAM if name in columns]
    named = [pl.coalesce(programs).alias("program")] if programs else []
    table = jobs.select("cores", asked.alias("walltime_s"), *(name for name in columns if name not in PROGRAM), *named)
    return {name: table[name] for name in table.columns}


def _ranks(column: pl.Series) -> NDArray[np.int64]:
    """The values as whole numbers in their order; `NO_KEY` for null."""
    return column.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
