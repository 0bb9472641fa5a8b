"""Two more things that a replay cannot explain: another order of the queue, and what jobs waited for though nothing was
in their way."""

from __future__ import annotations

import polars as pl

PASSED_S = 60.0
PASSED_SHARE = 0.02
AT_ONCE_S = 2.0
LAG_S = (5.0, 300.0)
FEWEST = 20


def passed(jobs: pl.DataFrame, start: str) -> float:
    """The share of the jobs that a later one of the same partition, cores and requested time passed by over a minute,
    by their column of starts. 0 without jobs."""
    same = ("partition", "cores", "walltime_s")
    ordered = jobs.sort("submit_s", descending=True)
    later = pl.col(start).cum_min().shift(1).over(*same)
    return float(ordered.select((later < pl.col(start) - PASSED_S).fill_null(False).mean()).item() or 0.0)


def order(jobs: pl.DataFrame) -> list[str]:
    """Is the log's order further from that of submission, among jobs that are alike, than the replay's? jobs: those of
    both."""
    own, ours = (passed(jobs, f"{how}_start_s") for how in ("recorded", "replayed"))
    if own - ours < PASSED_SHARE:
        return []
    return [
        f"{100 * own:.0f} % of the jobs were passed by a later one of the same partition, cores and requested time, "
        f"{100 * ours:.0f} % in the replay: priorities, fair share, limits of users, holds or dependencies that the "
        "replay has not."
    ]


def lag(jobs: pl.DataFrame) -> list[str]:
    """Do jobs that the replay starts at once wait for some seconds or minutes in the log?"""
    waits = jobs.filter(pl.col("replayed_start_s") - pl.col("submit_s") < AT_ONCE_S)["recorded_s"]
    middle = 0.0 if len(waits) < FEWEST else float(waits.median())  # type: ignore[arg-type]
    if not LAG_S[0] <= middle <= LAG_S[1]:
        return []
    return [
        f"The {len(waits):,} jobs that the replay starts at once waited {middle:,.0f} s in the log, in the median: "
        "the pace of the scheduler's own passes, prologs or booting nodes."
    ]
