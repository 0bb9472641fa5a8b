"""What the readers do with records that cannot be simulated as they are. Every rule is counted; nothing vanishes
silently.

The rules, in order (a job is counted under the first that drops it):

| rule | what happens | why |
|---|---|---|
| filtered out | dropped | outside the part that was asked for (`filters`) |
| no submission time | dropped | the field is missing or negative |
| absurd submission | dropped | after the year 5000: milliseconds taken for seconds, or a sentinel |
| never started, still running, partial execution, repeated record, ... | dropped by the format's reader | see there |
| no runtime | dropped | the field is empty, or no number |
| negative runtime | dropped | unknown (SWF writes -1): mostly cancelled before the start |
| no processors | dropped | neither allocated nor requested processors are known |
| absurd runtime, absurd processors | dropped | over `longest_s`, over `most_cores` |
| zero runtime | becomes `zero_runtime_s` (1 s), or dropped | clocks of 1 s; the literature keeps these jobs |
| no request | walltime = runtime and no limit (`limited` False), a limit in s, or dropped | logs without requests |
| absurd request | capped at `longest_s` | "unlimited" written as a huge number |
| fractional processors | rounded up | |
| over request | kept, counted only | the simulator kills the job at its walltime, as the real system should have |
| repeated id | kept, renamed `ID#2`, `ID#3`, ... | array tasks, requeued jobs, ids that wrapped around |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl

from escala.errors import EscalaError, number_of, quoted
from escala.workload.shapes import MOST_S
from escala.workload.table import LEAST_S, MOST_CORES

KEEPING = ("zero runtime", "no request", "absurd request", "fractional processors", "over request", "repeated id")
ABSURD_SIZE = "note: absurd machine size"
FILTERED = "filtered out"
COMPONENT = "component of a heterogeneous job"
INSIDE, CONTAINER, SHARING, AGAIN = (
    "inside a container job",
    "note: container job",
    "note: shared cores",
    "note: submitted again",
)
"""Of OAR."""
FAITHFUL = (
    "over request",
    "no request",
    "job step rows",
    "repeated record",
    "partial execution",
    ABSURD_SIZE,
    FILTERED,
    COMPONENT,
    CONTAINER,
    AGAIN,
)
"""Rules that neither lose a job nor change one: the table says what the log says."""
TOLD = {
    "job step rows": "belong to jobs that have rows of their own",
    "repeated record": "the same as an earlier one, read once",
    "partial execution": "of jobs that have lines of their own",
    FILTERED: "left out, as was asked for",
    INSIDE: "left out: the container, a job of its own, has their cores",
    CONTAINER: "kept, each as one job with all its cores",
    SHARING: "given cores of their own (types timesharing, allowed)",
    AGAIN: "kept: each attempt is a job of its own, the earlier ones too",
    COMPONENT: "joined with the others to one job: all their cores, as long as the longest",
    "fractional processors": "rounded up",
    "repeated id": "renamed ID#2, ID#3, ...",
    ABSURD_SIZE: "in the header passed over",
    "note: communication ignored": "without their communication, whose time depends on a network model",
    "note: shared GPU taken whole": "given whole GPUs",
    "note: began before the trace": "submitted at its beginning",
    "note: unknown collection": "without what its events would tell",
}
"""What becomes of the records of a rule, for those that are not simply left out."""


Earlier = Callable[[pl.Series], pl.Series]


@dataclass(frozen=True)
class CleaningRules:
    """The choices left open by the rules above."""

    zero_runtime_s: float | None = 1.0  # None: drop these jobs
    no_request: Literal["runtime", "drop"] | float = "runtime"  # a number: a limit of that many seconds
    longest_s: float = 1e9  # about 32 years
    most_cores: int = MOST_CORES

    def __post_init__(self) -> None:
        numbers = {"zero_runtime_s": self.zero_runtime_s, "longest_s": self.longest_s, "most_cores": self.most_cores}
        if not isinstance(self.no_request, str):
            numbers["no_request"] = self.no_request
        elif self.no_request not in ("runtime", "drop"):
            raise EscalaError(f"no_request is {self.no_request!r}: give 'runtime', 'drop' or a number of seconds")
        for name, value in numbers.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise EscalaError(f"{name} is {value}: give a number above 0")
        if self.longest_s > MOST_S:
            raise EscalaError(f"longest_s is {self.longest_s}: give at most {MOST_S:g} s")
        if self.most_cores > 2**53:
            raise EscalaError(
                f"most_cores is {self.most_cores}: give at most 2^53, up to where numbers of logs are exact"
            )


class Cleaned(NamedTuple):
    """Jobs that satisfy the workload's rules; rule -> number of records touched; rule -> the first of them, in
    words."""

    jobs: pl.DataFrame
    counts: dict[str, int]
    firsts: dict[str, str]


def dropped(cleaning: dict[str, int]) -> int:
    """How many records of the log are not in the workload."""
    return sum(count for rule, count in cleaning.items() if rule not in KEEPING and not rule.startswith("note: "))


def remarks(counts: Mapping[str, int], firsts: Mapping[str, str], rules: CleaningRules | None = None) -> list[str]:
    """One line for each rule that touched a record: how many, what became of them, and the first. Jobs over their
    request are left out: they are read as they are."""
    chosen = rules or CleaningRules()
    given = chosen.no_request
    told = TOLD | {
        "zero runtime": f"run {chosen.zero_runtime_s} s",
        "no request": "without limit; policies see the actual runtime as walltime"
        if isinstance(given, str)
        else f"limited to {given} s",
        "absurd request": f"cut to {chosen.longest_s:g} s",
    }
    lines = []
    for rule, count in counts.items():
        if rule != "over request":
            first = f" (first: {firsts[rule]})" if rule in firsts else ""
            lines.append(
                f"{rule.removeprefix('note: ')}: {number_of(count, 'record')} {told.get(rule, 'left out')}{first}"
            )
    return lines


def record_name(frame: pl.DataFrame, row: int) -> str:
    """A record in words: its id, and its line where that is known (column `line`)."""
    line = f", line {frame['line'][row]}" if "line" in frame.columns else ""
    return f"job {quoted(frame['job_id'][row])}{line}"


def clean(frame: pl.DataFrame, rules: CleaningRules, earlier: Earlier | None = None) -> Cleaned:
    """Records as a reader found them -> jobs that satisfy the workload's rules, the counts, and the first record of
    each. earlier: of a log in pieces, how often each of these ids was there before.

    `frame`: job_id, submit_s, runtime_s, walltime_s, cores (float or int; null, NaN or not positive where unknown), any
    other column of the table, `flops` for jobs whose runtime waits for a speed, and (dropped here) `line` where the
    file has lines.
    """
    frame = frame.with_columns(pl.col("submit_s", "runtime_s", "walltime_s", "cores").cast(pl.Float64))
    working = pl.col("flops") > 0 if "flops" in frame.columns else pl.lit(False)
    firsts: dict[str, str] = {}
    kept, counts = _drop(frame, rules, working.fill_null(False), firsts)
    kept, repaired = _repair(kept, rules, working.fill_null(False), firsts)
    kept, repeated = _distinct(kept, firsts, earlier)
    counts = {rule: count for rule, count in {**counts, **repaired, **repeated}.items() if count}
    return Cleaned(kept.drop("line") if "line" in kept.columns else kept, counts, firsts)


def _unknown(name: str, least: float = 0.0) -> pl.Expr:
    """Null, NaN, or below `least`."""
    return ~(pl.col(name) >= least).fill_null(False) | pl.col(name).is_nan().fill_null(False)


def _drop(
    frame: pl.DataFrame, rules: CleaningRules, working: pl.Expr, firsts: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Without the records that no rule can repair; the first of each rule is noted in `firsts`."""
    runtime, walltime = pl.col("runtime_s"), pl.col("walltime_s")
    tests = {
        "no submission time": _unknown("submit_s"),
        "absurd submission": pl.col("submit_s") > MOST_S,
        "no runtime": (runtime.is_null() | runtime.is_nan()) & ~working,
        "negative runtime": (runtime < 0) & ~working,
        "no processors": _unknown("cores") | (pl.col("cores") <= 0),
        "absurd runtime": (runtime > rules.longest_s) & ~working,
        "absurd processors": pl.col("cores") > rules.most_cores,
    }
    if rules.zero_runtime_s is None:
        tests["zero runtime (dropped)"] = (runtime < LEAST_S) & ~working
    if rules.no_request == "drop":
        tests["no request (dropped)"] = ~(walltime >= LEAST_S).fill_null(False) | walltime.is_nan().fill_null(False)
    fate = pl.lit(len(tests), dtype=pl.Int8)
    for k, test in reversed(list(enumerate(tests.values()))):
        fate = pl.when(test.fill_null(False)).then(pl.lit(k, dtype=pl.Int8)).otherwise(fate)
    fates = frame.select(fate.alias("fate"))["fate"]
    counts = {name: int((fates == k).sum()) for k, name in enumerate(tests)}
    for k, name in enumerate(tests):
        if counts[name]:
            firsts[name] = record_name(frame, int((fates == k).arg_max() or 0))
    return (frame.filter(fates == len(tests)) if any(counts.values()) else frame), counts


def _repair(
    frame: pl.DataFrame, rules: CleaningRules, working: pl.Expr, firsts: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Zero runtimes, missing or absurd requests, fractions of processors."""
    runtime, walltime, cores = pl.col("runtime_s"), pl.col("walltime_s"), pl.col("cores")
    short = (runtime < LEAST_S) & ~working
    unasked = ~(walltime >= LEAST_S).fill_null(False) | walltime.is_nan().fill_null(False)
    tests = {
        "zero runtime": short,
        "no request": unasked,
        "absurd request": (walltime > rules.longest_s) & ~unasked,
        "fractional processors": cores % 1 != 0,
    }
    counts = frame.select(test.sum().alias(name) for name, test in tests.items()).row(0, named=True)
    for name, count in counts.items():
        if count:
            firsts[name] = record_name(frame, int(frame.select(tests[name].fill_null(False).arg_max()).item()))
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


def _distinct(
    frame: pl.DataFrame, firsts: dict[str, str], earlier: Earlier | None
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Different ids for different records: array tasks and requeued jobs often share one."""
    if earlier is None and frame["job_id"].n_unique() == frame.height:
        return frame, {}
    before = pl.lit(0) if earlier is None or frame.is_empty() else pl.lit(earlier(frame["job_id"]))
    turn = pl.int_range(1, pl.len() + 1).over("job_id") + before
    ids = pl.when(turn > 1).then(pl.concat_str("job_id", pl.lit("#"), turn.cast(pl.String))).otherwise(pl.col("job_id"))
    again = frame.select((turn > 1).alias("again"))["again"]
    if not again.any():
        return frame, {}
    firsts["repeated id"] = record_name(frame, int(again.arg_max() or 0))
    return frame.with_columns(job_id=ids), {"repeated id": int(again.sum())}
