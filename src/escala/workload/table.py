"""`Workload`: the jobs of a log or a model as one table, and what is known about where they came from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.forks import check_fork, note_use
from escala.workload import transform
from escala.workload.columns import ESTIMATE, HOSTS, MEASURED, NAMED, Columns, _completed, _frame, _typed
from escala.workload.rule import Rule
from escala.workload.shapes import BEGIN, MOST_S, OF_NODES, SHAPES, first_late, shape_rules

LEAST_S = 0.5e-6  # the clock ticks in microseconds: a shorter time would round to nothing
MOST_CORES = 2**31 - 1  # of a job or a machine; some 40 million is the most that was ever built

NULLABLE = ("user", "status", "wait_s", "queue", "flops", *NAMED, *SHAPES, HOSTS, MEASURED)
STATUSES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs, sorted by submission (stable: jobs submitted at one instant keep the order of the log).

    `jobs` has the columns of `SCHEMA`, then those of `OPTIONAL` that it needs, `estimate_<name>` (optional) and
    `demand_<kind>` (optional; only with `single_node`).
    Construction checks every value and raises `EscalaError` naming the first job that breaks a rule.
    """

    jobs: pl.DataFrame
    name: str = "workload"
    origin_s: float = 0.0  # what was subtracted from the submission times; Unix seconds where the log is absolute
    max_cores: int | None = None  # machine size that the log claims
    source: str = ""
    cleaning: dict[str, int] = field(default_factory=dict)  # rule -> number of jobs touched
    first_cleaned: dict[str, str] = field(default_factory=dict)  # rule -> the first job touched, in words, where known
    # what the log has and no replay looks at, see `workload.ignored`
    ignored: dict[str, dict[str, int]] = field(default_factory=dict)
    # path and options of `read_workload`, where it comes from a file
    read_as: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fork()
        note_use()
        jobs = _ordered(_typed(self.jobs))
        _check_values(jobs)
        if self.max_cores is not None and not 1 <= self.max_cores <= 2**53:
            raise EscalaError(
                f"workload {self.name!r}: max_cores is {quoted(self.max_cores)}: give the machine's number of cores "
                "(1 to 2^53) or None"
            )
        if not math.isfinite(self.origin_s):
            raise EscalaError(f"workload {self.name!r}: origin_s is {self.origin_s}: give a finite number of seconds")
        object.__setattr__(self, "jobs", jobs)
        object.__setattr__(self, "cleaning", dict(self.cleaning))
        known = {rule: first for rule, first in self.first_cleaned.items() if rule in self.cleaning}
        object.__setattr__(self, "first_cleaned", known)

    @classmethod
    def from_jobs(cls, jobs: pl.DataFrame | Columns | Sequence[Mapping[str, Any]], **meta: Any) -> Workload:
        """A workload from rows (dicts) or columns. Needed: `submit_s`, `cores`, and `runtime_s` or `flops`.

        Left out: `job_id` = "1".."n", `walltime_s` = `runtime_s`, `load` = 1, `single_node` = False, the others null. A
        walltime that is null in some rows becomes that job's runtime, counted in `cleaning` as "no request". Jobs
        without a walltime have no limit (`limited` = False). What a job asks of a site (`nodes`, `tasks`,
        `memory_mb_per_core`, ...): see `escala.workload.shapes`; with `tasks` or `nodes` there, `cores` may be left
        out.
        """
        check_fork()
        note_use()
        frame, unasked = _completed(_frame(jobs))
        if unasked:
            meta["cleaning"] = {**meta.get("cleaning", {}), "no request": unasked}
        return cls(frame, **meta)

    def __len__(self) -> int:
        return self.jobs.height

    def __repr__(self) -> str:
        cores = "" if self.max_cores is None else f", {self.max_cores} cores"
        return f"Workload({self.name!r}, {len(self)} jobs, {self.span_s / 86400:.2f} days{cores})"

    @cached_property
    def user_ranks(self) -> NDArray[np.int64]:
        """Users as whole numbers in the order of their names, by job; -1 for none."""
        users = self.jobs["user"]
        if users.null_count() == len(users):
            return np.full(len(users), -1, np.int64)
        names = users.unique().drop_nulls().sort()
        return users.replace_strict(names, np.arange(len(names)), default=-1, return_dtype=pl.Int64).to_numpy()

    def digest(self) -> str:
        """SHA-256 of what a simulation sees of the jobs: submissions, runtimes, walltimes (float64), cores (int64) and,
        where some are later than submissions, begin times (float64), one after the other."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        found = hashlib.sha256()
        for name in ("submit_s", "runtime_s", "walltime_s", "cores"):
            found.update(np.ascontiguousarray(self.jobs[name].to_numpy()).data)
        if first_late(self.jobs) is not None:
            found.update(
                np.fmax(
                    self.jobs[BEGIN].cast(pl.Float64).fill_null(-np.inf).to_numpy(), self.jobs["submit_s"].to_numpy()
                ).data
            )
        return found.hexdigest()

    def column_digests(self, names: Iterable[str], unseen: Iterable[str] = ()) -> dict[str, str]:
        """SHA-256 of these columns, by name, and of those that every simulation looks at where a job has something
        there (`load` that is not 1, `single_node`, `demand_...`, and what they ask of nodes but for `unseen`)."""
        jobs = self.jobs
        told = {name for name in jobs.columns if name.startswith("demand_") and (jobs[name] != 0).any()}
        told |= {name for name, usual in (("load", 1.0), ("single_node", False)) if (jobs[name] != usual).any()}
        told |= {name for name in OF_NODES if name in jobs.columns and jobs[name].null_count() < len(jobs)}
        told -= set(unseen)
        texts = {name: "\n".join(map(repr, jobs[name].to_list())) for name in sorted(told.union(names))}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}

    @property
    def span_s(self) -> float:
        """Last submission - first submission, s; 0 without jobs."""
        submit = self.jobs["submit_s"]
        return float(submit[-1] - submit[0]) if len(submit) else 0.0

    def with_jobs(self, jobs: pl.DataFrame, **meta: Any) -> Workload:
        """The same workload with other jobs (and, if given, other `name`, `origin_s`, `max_cores`, `source`,
        `cleaning`)."""
        ignored = transform.of_whole(self.ignored) if jobs.height < self.jobs.height else self.ignored
        return replace(self, **{"jobs": jobs, "ignored": ignored, **meta})

    def needs_speed(self) -> bool:
        """True while some runtimes are work (flops) that has not met a platform."""
        return "flops" in self.jobs.columns

    def at_speed(self, flop_per_s: float) -> Workload:
        """Runtimes of the jobs with `flops` on cores of `flop_per_s`; jobs without a request get walltime = runtime and
        no limit. The column goes."""
        if not self.needs_speed():
            return self
        if not (math.isfinite(flop_per_s) and flop_per_s > 0):
            raise EscalaError(f"workload {self.name!r}: speed is {flop_per_s} flop/s: give a positive number")
        runtime = (
            pl.when(pl.col("flops").is_not_null()).then(pl.col("flops") / flop_per_s).otherwise(pl.col("runtime_s"))
        )
        jobs = self.jobs.with_columns(runtime_s=runtime).drop("flops")
        unasked = jobs["walltime_s"].is_nan()
        if unasked.any():
            jobs = jobs.with_columns(limited=~unasked & (jobs["limited"] if "limited" in jobs.columns else True))
        return self.with_jobs(jobs.with_columns(walltime_s=pl.col("walltime_s").fill_nan(pl.col("runtime_s"))))

    def hash_names(self, key: str | None = None) -> Workload:
        """See `transform.hash_names`."""
        return transform.hash_names(self, key)

    def window(self, start_s: float, length_s: float) -> Workload:
        """See `transform.window`."""
        return transform.window(self, start_s, length_s)

    def split_days(self, day_s: float = 86400.0, origin_s: float | None = None) -> list[Workload]:
        """See `transform.split_days`."""
        return transform.split_days(self, day_s, origin_s)

    def filter(self, *predicates: pl.Expr) -> Workload:
        """See `transform.filter_jobs`."""
        return transform.filter_jobs(self, *predicates)

    def rescale_load(self, factor: float) -> Workload:
        """See `transform.rescale_load`."""
        return transform.rescale_load(self, factor)

    def head(self, n: int) -> Workload:
        """See `transform.head`."""
        return transform.head(self, n)

    def limit_cores(self, cores: int) -> Workload:
        """See `transform.limit_cores`."""
        return transform.limit_cores(self, cores)


def _ordered(jobs: pl.DataFrame) -> pl.DataFrame:
    """Sorted by submission, stable; untouched where already sorted. NaN and nulls are refused before they can hide at
    an end."""
    _refuse(
        jobs,
        [
            Rule(
                "submit_s",
                pl.col("submit_s").is_null() | ~pl.col("submit_s").is_finite(),
                "a finite number of seconds is needed",
            ),
            Rule(
                "submit_s",
                pl.col("submit_s").abs() > MOST_S,
                f"at most {MOST_S:g} s is possible; are these milliseconds?",
            ),
        ],
    )
    return jobs if jobs["submit_s"].is_sorted() else jobs.sort("submit_s", maintain_order=True)


def _rules(columns: list[str]) -> list[Rule]:
    """Every rule on the values of a table with these columns."""
    rules = [Rule(name, pl.col(name).is_null(), "a value is needed") for name in columns if name not in NULLABLE]
    working = pl.col("flops").is_not_null() if "flops" in columns else pl.lit(False)
    for name in ("runtime_s", "walltime_s"):
        good = pl.col(name).is_finite() & (pl.col(name) > 0)
        rules.append(
            Rule(name, ~(good | (working & pl.col(name).is_nan())), "a finite number of seconds above 0 is needed")
        )
        rules.append(Rule(name, pl.col(name) < LEAST_S, "at least half a microsecond is needed, the step of the clock"))
        rules.append(
            Rule(name, pl.col(name).is_not_nan() & (pl.col(name) > MOST_S), f"at most {MOST_S:g} s is possible")
        )
    wait = pl.col("wait_s").is_finite() & (pl.col("wait_s") >= 0)
    rules += [
        Rule("cores", pl.col("cores") < 1, "at least 1 is needed"),
        Rule("load", ~pl.col("load").is_between(0.0, 1.0), "a number from 0 to 1 is needed"),
        Rule("wait_s", ~wait, "a finite number of seconds, 0 or more, or null is needed"),
        Rule("status", ~pl.col("status").is_in(STATUSES), f"one of {', '.join(STATUSES)}, or null is needed"),
    ]
    if "flops" in columns:
        work = pl.col("flops").is_finite() & (pl.col("flops") > 0)
        rules.append(Rule("flops", ~work, "a finite amount of work above 0, or null is needed"))
    if "limited" in columns:
        short = ~pl.col("limited") & (pl.col("walltime_s") < pl.col("runtime_s"))
        rules.append(Rule("walltime_s", short, "a job without a limit needs at least its runtime_s"))
    for name in (name for name in columns if name.startswith(ESTIMATE)):
        good = pl.col(name).is_finite() & (pl.col(name) > 0)
        rules.append(Rule(name, ~good, "a finite number of seconds above 0 is needed"))
        rules.append(Rule(name, pl.col(name) > MOST_S, f"at most {MOST_S:g} s is possible"))
    for name in (name for name in columns if name.startswith("demand_")):
        rules.append(Rule(name, pl.col(name) < 0, "0 or more is needed"))
        rules.append(
            Rule(name, (pl.col(name) > 0) & ~pl.col("single_node"), "further resource kinds need single_node = True")
        )
    if "nodes" in columns:
        several = pl.col("single_node") & (pl.col("nodes") > 1)
        rules.append(Rule("nodes", several, "a job with single_node lies on one node: give 1, or single_node = False"))
    return rules + shape_rules(columns)


def _check_values(jobs: pl.DataFrame) -> None:
    """All rules in one pass; then the ids."""
    _refuse(jobs, _rules(jobs.columns))
    if jobs["job_id"].n_unique() < jobs.height:
        _refuse(jobs, [Rule("job_id", pl.col("job_id").is_duplicated(), "each job needs its own id")])


def _refuse(jobs: pl.DataFrame, rules: list[Rule]) -> None:
    """`EscalaError` naming the first broken rule and the first job that breaks it."""
    broken = jobs.select([rule.bad.any().alias(str(k)) for k, rule in enumerate(rules)]).row(0)
    for rule, is_broken in zip(rules, broken):
        if is_broken:
            first = int(jobs.select(rule.bad.fill_null(False).arg_max()).item())
            job, value = jobs["job_id"][first], jobs[rule.column][first]
            raise EscalaError(f"workload: job {quoted(job)} (row {first + 1}) has {rule.column} = {value}: {rule.need}")
