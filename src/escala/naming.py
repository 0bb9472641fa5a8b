"""What a log says of jobs by name, as policies see it: known when a job is submitted, of waiting jobs alone, in words.

Words, and no numbers: a list of the names of a whole log would tell whose jobs are still to come.
"""

from __future__ import annotations

from typing import Any

import polars as pl

NAMES = ("partition", "account", "qos", "priority", "nice")
"""In the order of the fields of `escala.sealed.QueuedJob`."""
USUAL = {"nice": 0}
Named = tuple[str | None, str | None, str | None, int | None, int]
UNNAMED: Named = (None, None, None, None, 0)


def named_in(jobs: pl.DataFrame, rows: Any) -> list[Named] | None:
    """`NAMES` of these rows of a workload's table, the queue where a job names no partition; None where no job says
    anything."""
    table = jobs.select(_column(jobs, name) for name in NAMES)[rows]
    if all(table[name].null_count() == len(table) for name in NAMES):
        return None
    return table.with_columns(pl.col(name).fill_null(usual) for name, usual in USUAL.items()).rows()


def named_by(asked: dict[str, list[Any]], rows: list[int], partition: str | None) -> dict[int, Named] | None:
    """The same of jobs of a snapshot, by row. asked: what they say, by column; partition: theirs."""
    if partition is None and asked.keys().isdisjoint(NAMES):
        return None
    columns: dict[str, Any] = {name: asked.get(name, [None] * len(rows)) for name in NAMES}
    columns["partition"] = [partition] * len(rows)
    columns |= {name: [usual if one is None else one for one in columns[name]] for name, usual in USUAL.items()}
    return dict(zip(rows, zip(*columns.values(), strict=True), strict=True))


def _column(jobs: pl.DataFrame, name: str) -> pl.Expr:
    also = ("partition", "queue") if name == "partition" else (name,)
    kind = pl.Int64 if name in ("priority", "nice") else pl.String
    there = [pl.col(one).cast(kind) for one in also if one in jobs.columns]
    return pl.coalesce(*there, pl.lit(None, dtype=kind)).alias(name)
