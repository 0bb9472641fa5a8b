"""Workloads made of other workloads: windows, days, filters, loads. Pure functions; each is a method of `Workload` as
well."""

from __future__ import annotations

import hmac
import itertools
import math
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from escala.errors import EscalaError, quoted
from escala.workload.shapes import clocked, submitted

if TYPE_CHECKING:
    from escala.workload.table import Workload

PERSONAL = ("user", "group", "account", "job_name", "executable")
"""Columns that name persons, projects or what they run."""
HASH_DIGITS = 12
OF_WHOLE = "whole_log"
"""Stands beside the counts of `Workload.ignored` that hold for the whole log, where only part of its jobs is there."""


def of_whole(ignored: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Counts of a whole log, as they are kept beside part of its jobs."""
    return {name: {**about, OF_WHOLE: True} for name, about in ignored.items()}


def shift(workload: Workload, by_s: float) -> Workload:
    """Submissions moved earlier by `by_s` seconds; `origin_s` grows by as much, so absolute times stay known."""
    jobs = workload.jobs.with_columns(clocked(workload.jobs) - by_s)
    return workload.with_jobs(jobs, origin_s=workload.origin_s + by_s)


def window(workload: Workload, start_s: float, length_s: float) -> Workload:
    """The jobs submitted in [start_s, start_s + length_s), with `start_s` as the new time 0."""
    _positive("the length of a window", length_s)
    submit = workload.jobs["submit_s"]
    first, last = (int(submit.search_sorted(at, side="left")) for at in (start_s, start_s + length_s))
    part = workload.with_jobs(
        workload.jobs.slice(first, last - first), name=f"{workload.name}@{start_s:g}+{length_s:g}", cleaning={}
    )
    return shift(part, start_s)


def split_days(workload: Workload, day_s: float = 86400.0, origin_s: float | None = None) -> list[Workload]:
    """One workload a day that has jobs, each with its own midnight as time 0, named `NAME#k` (k = number of the day).

    `day_s`: length of a day, s. `origin_s`: when day 0 begins on the workload's clock, s; by default at its time 0 (for
    a log with an absolute `origin_s`, `-(workload.origin_s % 86400)` makes days begin at midnight UTC). Earlier jobs
    fall in days with negative numbers.
    """
    _positive("the length of a day", day_s)
    begin = 0.0 if origin_s is None else origin_s
    day = ((workload.jobs["submit_s"] - begin) / day_s).floor().cast(pl.Int64)
    bounds = [0, *(day.diff().fill_null(0) != 0).arg_true().to_list(), len(day)]
    days = []
    for first, last in itertools.pairwise(bounds):
        if last > first:
            part = workload.with_jobs(
                workload.jobs.slice(first, last - first), name=f"{workload.name}#{day[first]}", cleaning={}
            )
            days.append(shift(part, begin + int(day[first]) * day_s))
    return days


def filter_jobs(workload: Workload, *predicates: pl.Expr) -> Workload:
    """The jobs for which all predicates hold (polars expressions over the columns of the table), e.g. `pl.col("user")
    == "7"`."""
    try:
        kept = workload.jobs.filter(*predicates)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise EscalaError(
            f"workload {workload.name!r}: the filter failed ({reason}): columns are {workload.jobs.columns}"
        ) from error
    return _noted(workload, kept, "filtered out")


def hash_names(workload: Workload, key: str | None = None) -> Workload:
    """With names of persons, projects and programs (user, group, account, job_name, executable) replaced by hashes of
    theirs.

    key: equal names become equal hashes under one key, and nobody can try names without it; None: a key that nobody
    knows. Queues, partitions and QOS stay as they are.
    """
    secret = secrets.token_bytes(32) if key is None else key.encode()
    columns = [name for name in PERSONAL if name in workload.jobs.columns]
    return workload.with_jobs(workload.jobs.with_columns(_hashed(workload.jobs[name], secret) for name in columns))


def _hashed(names: pl.Series, secret: bytes) -> pl.Series:
    known = names.unique().drop_nulls()
    hashes = [hmac.new(secret, f"{names.name} {name}".encode(), "sha256").hexdigest()[:HASH_DIGITS] for name in known]
    return names.replace_strict(known, pl.Series(hashes, dtype=pl.String), default=None, return_dtype=pl.String)


def limit_cores(workload: Workload, cores: int) -> Workload:
    """Without the jobs of more than `cores` cores; `max_cores` becomes `cores`."""
    if cores < 1:
        raise EscalaError(f"cores is {cores}: give a limit of at least 1")
    kept = workload.jobs.filter(pl.col("cores") <= cores)
    return _noted(workload, kept, f"larger than {cores} cores").with_jobs(kept, max_cores=cores)


def head(workload: Workload, n: int) -> Workload:
    """The first n jobs."""
    if n < 0:
        raise EscalaError(f"the number of jobs is {n}: give 0 or more")
    return workload.with_jobs(workload.jobs.head(n))


def rescale_load(workload: Workload, factor: float) -> Workload:
    """The offered load times `factor`: the times between submissions are divided by it (first submission fixed); jobs
    stay as they are, begin times as far behind submissions."""
    _positive("the load factor", factor)
    first = pl.col("submit_s").first()
    jobs = submitted(workload.jobs, first + (pl.col("submit_s") - first) / factor)
    return workload.with_jobs(jobs, name=f"{workload.name}x{factor:g}")


def _noted(workload: Workload, kept: pl.DataFrame, rule: str) -> Workload:
    """With the number of lost jobs added to `cleaning`."""
    lost = len(workload) - kept.height
    cleaning = workload.cleaning if not lost else {**workload.cleaning, rule: workload.cleaning.get(rule, 0) + lost}
    return workload.with_jobs(kept, cleaning=cleaning)


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise EscalaError(f"{what} is {value}: give a finite number above 0")


def share_of(after: str | float) -> float:
    """The share of a log's time that is its past, from "60%" or 0.6; EscalaError for what is neither."""
    text = str(after).strip()
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if isinstance(after, bool) or not 0.0 < share < 1.0:
        raise EscalaError(
            f"after={quoted(after)} (--after): give the share of the log's time that is its past, such as 60%"
        )
    return share
