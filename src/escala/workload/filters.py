"""Part of a log: the jobs of some partitions, users or accounts, submitted in [since, until)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import polars as pl

from escala.errors import EscalaError, quoted
from escala.workload.clean import FILTERED

Names = str | Sequence[str]
Time = str | float | datetime.date
Keep = Callable[..., pl.DataFrame]
"""Called by a reader with its records, before it leaves any out, and the Unix time of its clock's 0 where that is known: the part that was
asked for."""

FIELDS = {"partition": ("partition", "queue"), "user": ("user",), "account": ("account", "group")}
"""Filter -> the columns of a reader's frame that hold it; the first that the log has counts."""
ABSOLUTE_FROM_S = 5e8  # a first submission later than this (1985) is Unix time, not time since the start of the log
MOST_TOLD = 6  # values in a message
YEAR_10000_S = 253402300800


class Moment(NamedTuple):
    """A time as it was given, in s since 1970 (a date) or on the log's own clock (a number)."""

    text: str
    seconds: float
    is_date: bool


def every(frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
    """All records: the `Keep` of a reader that is asked for no part."""
    return frame


class Filters:
    """A `Keep`: the records that all of these ask for; `counts` then tells how many others there were, `given` what was asked for, as JSON.

    partition, user, account: names, in a list or with commas between. since, until: a date or time (`2026-01-31`, `2026-01-31T12:00`; UTC
    where it has no zone), or a number of seconds on the clock of the log's submission times.
    """

    def __init__(
        self,
        partition: Names | None = None,
        user: Names | None = None,
        account: Names | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> None:
        names = {"partition": partition, "user": user, "account": account}
        self._names = {name: _names(name, value) for name, value in names.items() if value is not None}
        self._since = None if since is None else _moment("since", since)
        self._until = None if until is None else _moment("until", until)
        self.counts: dict[str, int] = {}
        times = {"since": since, "until": until}
        plain = {name: time if isinstance(time, int | float) else str(time) for name, time in times.items() if time is not None}
        self.given: dict[str, Any] = {**self._names, **plain}
        both = self._since and self._until and self._since.is_date == self._until.is_date
        if both and self._since.seconds >= self._until.seconds:  # type: ignore[union-attr]
            raise EscalaError(f"{self._period()} is no time at all: give an until= (--until) after since= (--since)")

    def __call__(self, frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
        """frame: submit_s, and those of queue, partition, user and account that the log has. origin_s: as for `Keep`.

        Raises:
            EscalaError: the log names no partitions, users or accounts, none of this name, or has no dates; or no record is left.
        """
        if not self.given:
            return frame
        submit = frame["submit_s"].cast(pl.Float64)
        origin_s = 0.0 if _number(submit.min()) >= ABSOLUTE_FROM_S else origin_s
        kept, asked = frame, list[str]()
        for name, wanted in self._names.items():
            column = _column(frame, name)
            if column is None:
                raise self._lacking(frame, name)
            there = set(frame[column].unique())
            unknown = next((value for value in wanted if value not in there), None)
            if unknown is not None:
                raise EscalaError(f"no job of {name} {quoted(unknown)} (--{name}); there are, with their jobs, {_counted(frame[column])}")
            asked.append(f"of {name} {', '.join(wanted)}")
            kept = kept.filter(pl.col(column).is_in(wanted))
        for moment, at_least in ((self._since, True), (self._until, False)):
            if moment is not None:
                at, submitted = _on_clock(moment, origin_s), pl.col("submit_s").cast(pl.Float64)
                kept = kept.filter(submitted >= at if at_least else submitted < at)
        asked += [f"submitted {self._period()}"] if self._period() else []
        if kept.is_empty():
            span = " to ".join(_shown(_number(at), origin_s) for at in (submit.min(), submit.max()))
            raise EscalaError(f"no job {', '.join(asked)}: the log's {frame.height:,} were submitted from {span}; give other filters")
        self.counts = {FILTERED: frame.height - kept.height} if kept.height < frame.height else {}
        return kept

    def _period(self) -> str:
        """The time in words."""
        return " ".join(f"{word} {moment.text}" for word, moment in (("since", self._since), ("until", self._until)) if moment is not None)

    def _lacking(self, frame: pl.DataFrame, name: str) -> EscalaError:
        """Names what there is."""
        there = {other: column for other in FIELDS if (column := _column(frame, other)) is not None}
        told = "; ".join(f"{other}s {_counted(frame[column])}" for other, column in there.items())
        return EscalaError(f"the log names no {name}s (--{name}){f', but {told}' if told else ''}: leave the filter out, or, of a table, "
                           f"say which column has them (--column {name}=NAME)")  # fmt: skip


def _column(frame: pl.DataFrame, name: str) -> str | None:
    """The column that holds what a filter asks for, None where the log does not say it."""
    return next((c for c in FIELDS[name] if c in frame.columns and frame[c].null_count() < frame.height), None)


def _names(filter_: str, given: Names) -> list[str]:
    """The names that are asked for."""
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else [str(entry) for entry in given]
    names = [name for name in names if name]
    if not names:
        raise EscalaError(f"{filter_}= (--{filter_}) is empty: name at least one {filter_}, or leave it out")
    return names


def _moment(filter_: str, given: Time) -> Moment:
    """A time as it was given."""
    text = str(given).strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            stamp = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise EscalaError(
                f"{filter_}={quoted(text)} (--{filter_}) is no time: give a date (2026-01-31), a time (2026-01-31T12:00), or seconds on "
                "the log's clock"
            ) from None
        return Moment(text, (stamp if stamp.tzinfo else stamp.replace(tzinfo=datetime.UTC)).timestamp(), True)
    if not math.isfinite(seconds):
        raise EscalaError(f"{filter_}={text} (--{filter_}): a finite number of seconds is needed")
    return Moment(f"{text} s", seconds, False)


def _on_clock(moment: Moment, origin_s: float | None) -> float:
    """Seconds of the log's clock."""
    if not moment.is_date:
        return moment.seconds
    if origin_s is None:
        raise EscalaError(f"the log has no dates, so {moment.text} is nowhere in it: give seconds on the clock of its submission times")
    return moment.seconds - origin_s


def _shown(at_s: float, origin_s: float | None) -> str:
    """A submission time as a filter takes it."""
    if origin_s is None or not 0 <= at_s + origin_s < YEAR_10000_S:
        return f"{at_s:.15g} s"
    return datetime.datetime.fromtimestamp(at_s + origin_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _counted(column: pl.Series) -> str:
    """The most frequent values, and how many jobs each has."""
    counts = column.drop_nulls().alias("name").value_counts(name="jobs").sort("jobs", "name", descending=[True, False])
    told = ", ".join(f"{quoted(name)[1:-1]} ({jobs:,})" for name, jobs in counts.head(MOST_TOLD).iter_rows())
    return told + (f" and {counts.height - MOST_TOLD:,} more" if counts.height > MOST_TOLD else "")
