"""Heterogeneous jobs of Slurm: components `123+0`, `123+1`, ..., each a record with a size and a partition of its own.

The components that started together become one job 123: the sum of their cores, from their common start to the last
end, with the longest limit. Slurm starts all of them at once or none; a replay that took them for jobs of their own
would let one run long before the others, and would count one wait several times. What is lost is that they ask for
different kinds of nodes, which a replay does not know anyway. A component alone (the others are of partitions that were
not asked for, or it was requeued by itself) stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from escala.workload.ignored import AMOUNTS
from escala.workload.shapes import BEGIN

COMPONENT = r"^(\d+)\+\d+$"  # JobID
WHOLE = (BEGIN, "dependency", "nice")
"""What the components were given together."""
TOGETHER_S = 2.0  # Slurm writes the starts of one job at most some seconds apart


def joined(frame: pl.DataFrame, shapes: Iterable[str] = ()) -> pl.DataFrame:
    """Records for `clean` (job_id, submit_s, wait_s, runtime_s, walltime_s, cores, ...) with one for each heterogeneous
    job, in the place of its first component. shapes: columns of what a component asks for, which the whole job does not
    have but for `WHOLE`."""
    start = pl.col("submit_s") + pl.col("wait_s")
    marked = frame.with_columns(whole=pl.col("job_id").str.extract(COMPONENT), start=start, row=pl.int_range(pl.len()))
    known = pl.col("whole").is_not_null() & pl.col("start").is_not_null()
    parts = marked.filter(known).sort("whole", "submit_s", "start", "row")
    if parts.is_empty():
        return frame
    later = (pl.col("start").diff() > TOGETHER_S).fill_null(False)
    parts = parts.with_columns(turn=later.cum_sum().over("whole", "submit_s")).sort("row")
    groups = parts.group_by("whole", "submit_s", "turn", maintain_order=True).agg(
        pl.exclude("cores", "runtime_s", "walltime_s", "job_id", *AMOUNTS).first(),
        pl.when(pl.len() > 1).then(pl.col("whole").first()).otherwise(pl.col("job_id").first()).alias("job_id"),
        (pl.col("start") + pl.col("runtime_s")).max().sub(pl.col("start").min()).alias("runtime_s"),
        pl.col("cores").sum(),
        pl.col("walltime_s", *AMOUNTS).max(),
    )
    several = pl.col("job_id") == pl.col("whole")
    groups = groups.with_columns(pl.when(~several).then(name).alias(name) for name in shapes if name not in WHOLE)
    groups = groups.with_columns(wait_s=pl.col("start") - pl.col("submit_s"))
    return (
        pl.concat([marked.filter(~known).select(*frame.columns, "row"), groups.select(*frame.columns, "row")])
        .sort("row")
        .drop("row")
    )
