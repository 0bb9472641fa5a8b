"""What the readers do with records that cannot be simulated as they are. Every rule is counted; nothing vanishes silently.

The rules, in order (a job is counted under the first that drops it):

| rule | what happens | why |
|---|---|---|
| no submission time | dropped | the field is missing or negative |
| absurd submission | dropped | after the year 5000: milliseconds taken for seconds, or a sentinel |
| never started, still running, partial execution, repeated record, ... | dropped by the reader of the format | see there |
| negative runtime | dropped | unknown (SWF writes -1): mostly cancelled before the start; the Parallel Workloads Archive's usage |
| no processors | dropped | neither allocated nor requested processors are known |
| absurd runtime, absurd processors | dropped | over `longest_s`, over `most_cores` |
| zero runtime | becomes `zero_runtime_s` (1 s), or dropped | clocks of 1 s resolution; the literature keeps these jobs |
| no request | walltime = runtime and no limit (`limited` False), a given limit in seconds, or dropped | usual for logs without requests |
| absurd request | capped at `longest_s` | "unlimited" written as a huge number |
| fractional processors | rounded up | |
| over request | kept, counted only | the simulator kills the job at its walltime, as the real system should have |
| repeated id | kept, renamed `ID#2`, `ID#3`, ... | array tasks, requeued jobs, ids that wrapped around |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import polars as pl

from escala.errors import EscalaError

RESOLUTION_S = 0.5e-6  # the kernel's clock ticks in microseconds: a shorter runtime would round to nothing
LATEST_S = 1e11
KEEPING = ("zero runtime", "no request", "absurd request", "fractional processors", "over request", "repeated id")


@dataclass(frozen=True)
class CleaningRules:
    """The choices left open by the rules above."""

    zero_runtime_s: float | None = 1.0  # None: drop these jobs
    no_request: Literal["runtime", "drop"] | float = "runtime"  # a number: a limit of that many seconds
    longest_s: float = 1e9  # about 32 years
    most_cores: int = 2**31 - 1

    def __post_init__(self) -> None:
        numbers = {"zero_runtime_s": self.zero_runtime_s, "longest_s": self.longest_s, "most_cores": self.most_cores}
        if not isinstance(self.no_request, str):
            numbers["no_request"] = self.no_request
        elif self.no_request not in ("runtime", "drop"):
            raise EscalaError(f"no_request is {self.no_request!r}: give 'runtime', 'drop' or a number of seconds")
        for name, value in numbers.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise EscalaError(f"{name} is {value}: give a number above 0")


def dropped(cleaning: dict[str, int]) -> int:
    """How many records of the log are not in the workload."""
    return sum(count for rule, count in cleaning.items() if rule not in KEEPING and not rule.startswith("note: "))


def clean(frame: pl.DataFrame, rules: CleaningRules) -> tuple[pl.DataFrame, dict[str, int]]:
    """Records as a reader found them -> jobs that satisfy the workload's rules, and the counts.

    `frame`: job_id, submit_s, runtime_s, walltime_s, cores (float or int; null, NaN or not positive where unknown), any other column of the
    table, and `flops` for jobs whose runtime waits for a speed.
    """
    frame = frame.with_columns(pl.col("submit_s", "runtime_s", "walltime_s", "cores").cast(pl.Float64))
    working = pl.col("flops") > 0 if "flops" in frame.columns else pl.lit(False)
    kept, counts = _drop(frame, rules, working.fill_null(False))
    kept, repaired = _repair(kept, rules, working.fill_null(False))
    kept, repeated = _distinct(kept)
    return kept, {rule: count for rule, count in {**counts, **repaired, **repeated}.items() if count}


def _unknown(name: str, least: float = 0.0) -> pl.Expr:
    """Null, NaN, or below `least`."""
    return ~(pl.col(name) >= least).fill_null(False) | pl.col(name).is_nan().fill_null(False)


def _drop(frame: pl.DataFrame, rules: CleaningRules, working: pl.Expr) -> tuple[pl.DataFrame, dict[str, int]]:
    """Without the records that no rule can repair."""
    runtime, walltime = pl.col("runtime_s"), pl.col("walltime_s")
    tests = {
        "no submission time": _unknown("submit_s"),
        "absurd submission": pl.col("submit_s") > LATEST_S,
        "negative runtime": _unknown("runtime_s") & ~working,
        "no processors": _unknown("cores") | (pl.col("cores") <= 0),
        "absurd runtime": (runtime > rules.longest_s) & ~working,
        "absurd processors": pl.col("cores") > rules.most_cores,
    }
    if rules.zero_runtime_s is None:
        tests["zero runtime (dropped)"] = (runtime < RESOLUTION_S) & ~working
    if rules.no_request == "drop":
        tests["no request (dropped)"] = ~(walltime > 0).fill_null(False) | walltime.is_nan().fill_null(False)
    fate = pl.lit(len(tests), dtype=pl.Int8)
    for k, test in reversed(list(enumerate(tests.values()))):
        fate = pl.when(test.fill_null(False)).then(pl.lit(k, dtype=pl.Int8)).otherwise(fate)
    fates = frame.select(fate.alias("fate"))["fate"]
    counts = {name: int((fates == k).sum()) for k, name in enumerate(tests)}
    return (frame.filter(fates == len(tests)) if any(counts.values()) else frame), counts


def _repair(frame: pl.DataFrame, rules: CleaningRules, working: pl.Expr) -> tuple[pl.DataFrame, dict[str, int]]:
    """Zero runtimes, missing or absurd requests, fractions of processors."""
    runtime, walltime, cores = pl.col("runtime_s"), pl.col("walltime_s"), pl.col("cores")
    short = (runtime < RESOLUTION_S) & ~working
    unasked = ~(walltime > 0).fill_null(False) | walltime.is_nan().fill_null(False)
    counts = frame.select(
        short.sum().alias("zero runtime"),
        unasked.sum().alias("no request"),
        ((walltime > rules.longest_s) & ~unasked).sum().alias("absurd request"),
        (cores % 1 != 0).sum().alias("fractional processors"),
    ).row(0, named=True)
    frame = frame.with_columns(
        runtime_s=pl.when(working).then(math.nan).when(short).then(rules.zero_runtime_s).otherwise(runtime),
        cores=cores.ceil().cast(pl.Int64),
    )
    asked = pl.min_horizontal(walltime, rules.longest_s)
    given = runtime if isinstance(rules.no_request, str) else pl.lit(float(rules.no_request))
    if counts["no request"] and isinstance(rules.no_request, str):
        limited = pl.col("limited") if "limited" in frame.columns else pl.lit(True)
        frame = frame.with_columns(limited=limited & ~unasked)
    frame = frame.with_columns(walltime_s=pl.when(unasked).then(given).otherwise(asked))
    over = int(frame.select(((runtime > walltime) & ~working).sum()).item())
    if "wait_s" in frame.columns:
        wait = pl.col("wait_s").cast(pl.Float64)
        frame = frame.with_columns(wait_s=pl.when(wait.is_finite() & (wait >= 0)).then(wait))
    return frame, {**counts, "over request": over}


def _distinct(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Different ids for different records: array tasks and requeued jobs often share one."""
    if frame["job_id"].n_unique() == frame.height:
        return frame, {}
    turn = pl.int_range(1, pl.len() + 1).over("job_id")
    ids = pl.when(turn > 1).then(pl.concat_str("job_id", pl.lit("#"), turn.cast(pl.String))).otherwise(pl.col("job_id"))
    return frame.with_columns(job_id=ids), {"repeated id": int(frame.select((turn > 1).sum()).item())}
