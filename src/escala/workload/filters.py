"""Part of a log: the jobs of some partitions, users or accounts, submitted in [since, until)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from escala.errors import EscalaError, quoted
from escala.workload.clean import FILTERED

Names = str | Sequence[str]
Time = str | float | datetime.date
Keep = Callable[..., pl.DataFrame]
"""Called by a reader with its records, before it leaves any out, and the Unix time of its clock's 0 where that is
known: the part that was asked for."""

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
    """A `Keep`: the records that all of these ask for; `counts` then tells how many others there were, `given` what was
    asked for, as JSON.

    partition, user, account: names, in a list or with commas between. since, until: a date or time (`2026-01-31`,
    `2026-01-31T12:00`; UTC where it has no zone), or a number of seconds on the clock of the log's submission times.
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
        self._seen, self._kept = _Seen(), 0
        times = {"since": since, "until": until}
        plain = {
            name: time if isinstance(time, int | float) else str(time)
            for name, time in times.items()
            if time is not None
        }
        self.given: dict[str, Any] = {**self._names, **plain}
        both = self._since and self._until and self._since.is_date == self._until.is_date
        if both and self._since.seconds >= self._until.seconds:  # type: ignore[union-attr]
            raise EscalaError(f"{self._period()} is no time at all: give an until= (--until) after since= (--since)")

    def __call__(self, frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
        """frame: submit_s, and those of queue, partition, user and account that the log has. origin_s: as for `Keep`.

        Raises:
            EscalaError: the log names no partitions, users or accounts, none of this name, or has no dates; or no
            record is left.
        """
        if not self.given:
            return frame
        self.look(frame, origin_s)
        kept = self.part(frame, origin_s)
        self.close()
        return kept

    def look(self, frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
        """A `Keep` for a log that comes in pieces: what there is in it is noted, and no record is kept. All pieces must
        be looked at before `part` is asked for the first."""
        self._seen.note(frame, origin_s, bool(self._names))
        return frame.head(0)

    def part(self, frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
        """A `Keep`: those of a piece that are asked for, which count."""
        kept = self.chosen(frame, origin_s)
        self._kept += kept.height
        return kept

    def chosen(self, frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
        """A `Keep`: those of a piece that are asked for, for a look ahead."""
        kept, seen = frame, self._seen
        for name, wanted in self._names.items():
            column = seen.column(name)
            if column is None:
                raise self._lacking(name)
            unknown = next((value for value in wanted if value not in seen.values[column]), None)
            if unknown is not None:
                there = _counted(seen.values[column])
                raise EscalaError(f"no job of {name} {quoted(unknown)} (--{name}); there are, with their jobs, {there}")
            kept = kept.filter(pl.col(column).is_in(wanted))
        for moment, at_least in ((self._since, True), (self._until, False)):
            if moment is not None:
                at, submitted = _on_clock(moment, seen.zero_s), pl.col("submit_s").cast(pl.Float64)
                kept = kept.filter(submitted >= at if at_least else submitted < at)
        return kept

    def close(self) -> None:
        """After the last piece: `counts` are complete. EscalaError where no record was kept."""
        seen = self._seen
        if not self._kept:
            asked = [f"of {name} {', '.join(wanted)}" for name, wanted in self._names.items()]
            asked += [f"submitted {self._period()}"] if self._period() else []
            span = " to ".join(_shown(at, seen.zero_s) for at in (seen.low_s, seen.high_s))
            raise EscalaError(
                f"no job {', '.join(asked)}: the log's {seen.records:,} were submitted from {span}; give other filters"
            )
        self.counts = {FILTERED: seen.records - self._kept} if self._kept < seen.records else {}

    def _period(self) -> str:
        """The time in words."""
        return " ".join(
            f"{word} {moment.text}"
            for word, moment in (("since", self._since), ("until", self._until))
            if moment is not None
        )

    def _lacking(self, name: str) -> EscalaError:
        """Names what there is."""
        there = {other: column for other in FIELDS if (column := self._seen.column(other)) is not None}
        told = "; ".join(f"{other}s {_counted(self._seen.values[column])}" for other, column in there.items())
        return EscalaError(
            f"the log names no {name}s (--{name}){f', but {told}' if told else ''}: leave the filter out, or, of a "
            f"table, say which column has them (--column {name}=NAME)"
        )


class _Seen:
    """What there is in a log: records, first and last submission (s), the names in each column with how many jobs have
    them."""

    def __init__(self) -> None:
        self.records, self.low_s, self.high_s = 0, math.nan, math.nan
        self.values: dict[str, dict[str, int]] = {}
        self._origin_s: float | None = None

    def note(self, frame: pl.DataFrame, origin_s: float | None, named: bool) -> None:
        """A piece of the log, and the Unix time of its clock's 0; named: with its names."""
        submit = frame["submit_s"].cast(pl.Float64)
        low, high = _number(submit.min()), _number(submit.max())
        self.records += frame.height
        self.low_s, self.high_s, self._origin_s = (
            float(np.fmin(low, self.low_s)),
            float(np.fmax(high, self.high_s)),
            origin_s,
        )
        for column in {
            column for columns in FIELDS.values() for column in columns if named and column in frame.columns
        }:
            count = self.values.setdefault(column, {})
            for name, jobs in frame[column].drop_nulls().alias("name").value_counts(name="jobs").iter_rows():
                count[name] = count.get(name, 0) + jobs

    @property
    def zero_s(self) -> float | None:
        """The Unix time of the clock's 0, None where that is not known."""
        return 0.0 if self.low_s >= ABSOLUTE_FROM_S else self._origin_s

    def column(self, name: str) -> str | None:
        """The column that holds what a filter asks for, None where the log does not say it."""
        return next((column for column in FIELDS[name] if self.values.get(column)), None)


def _names(filter_: str, given: Names) -> list[str]:
    """The names that are asked for."""
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise EscalaError(f"{filter_}={quoted(given)} (--{filter_}): give a name, or a list of names")
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
                f"{filter_}={quoted(text)} (--{filter_}) is no time: give a date (2026-01-31), a time "
                "(2026-01-31T12:00), or seconds on the log's clock"
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
        raise EscalaError(
            f"the log has no dates, so {moment.text} is nowhere in it: give seconds on the clock of its submission "
            "times"
        )
    return moment.seconds - origin_s


def _shown(at_s: float, origin_s: float | None) -> str:
    """A submission time as a filter takes it."""
    if origin_s is None or not 0 <= at_s + origin_s < YEAR_10000_S:
        return f"{at_s:.15g} s"
    return datetime.datetime.fromtimestamp(at_s + origin_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _counted(jobs: Mapping[str, int]) -> str:
    """The most frequent names, and how many jobs each has."""
    often = sorted(jobs.items(), key=lambda each: (-each[1], each[0]))
    told = ", ".join(f"{quoted(name)[1:-1]} ({count:,})" for name, count in often[:MOST_TOLD])
    return told + (f" and {len(often) - MOST_TOLD:,} more" if len(often) > MOST_TOLD else "")
