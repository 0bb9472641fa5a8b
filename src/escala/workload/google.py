"""Google's cluster traces: events of tasks -> jobs, one for each time that a task ran.

2011: `task_events`, 13 columns without a header. 2019: `instance_events` as JSON, an event a line (`google_json`), or
as CSV with a header: `time`, `type`, `collection_id`, `instance_index` and `cpus` (or `resource_request.cpus`), and if
there are any `memory` and `TEXTS`. Among them may stand `collection_events`, events without an instance and a request,
which tell of all tasks of a collection. Times are microseconds; 0 is before the trace, 2^63 - 1 after it.

The reduction: an attempt lasts from one end of a task to the next. It is submitted with its first SUBMIT, or where its
last attempt ended; it runs from its first SCHEDULE to its end (EVICT, FAIL, FINISH, KILL, LOST), and asks what its
first event asks that says so. Requests are shares of the largest machine: cores and memory here are thousandths of it,
at least one core, rounded up. Updates of requests are not looked at, nor are alloc sets, in which jobs run that have
events of their own. Of what events say of a task, or of its collection, the first counts that says something; of both,
the task's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from escala.errors import EscalaError, quoted
from escala.reading import read_head
from escala.workload.filters import Keep, every
from escala.workload.found import Found
from escala.workload.google_json import event_pieces, is_google_json
from escala.workload.ordering import AT, cut, sorted_on_disk
from escala.workload.table import MOST_CORES
from escala.workload.table_files import csv_pieces, parquet_pieces

COLUMNS_2011: tuple[str, ...] = ("time", "missing", "collection_id", "instance_index", "machine_id", "type", "user")
COLUMNS_2011 += ("scheduling_class", "priority", "cpus", "memory", "disk", "different_machines")
TYPES_2011 = ("SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING")
TYPES_2019 = ("SUBMIT", "QUEUE", "ENABLE", *TYPES_2011[1:])
TEXTS: tuple[str, ...] = ("user", "scheduling_class", "priority", "collection_type", "alloc_collection_id")
TEXTS += ("collection_name", "collection_logical_name", "parent_collection_id")
"""What is told of a task, or of all of its collection."""
FIRST = ("first_us", "first_place")
"""When an attempt's first event was, and where it stands."""
ROWS = 100_000  # of Parquet that are read at once
UNKNOWN = "note: unknown collection"
NEEDS_2019 = ("time", "type", "collection_id", "instance_index")
STATUS = {"FINISH": "COMPLETED", "FAIL": "FAILED", "KILL": "CANCELLED", "EVICT": "CANCELLED", "LOST": None}
"""How an attempt ends -> the status of its job."""
ALLOC = ("1", "ALLOC_SET")
AFTER_US = 2**63 - 1
PARTS = 1000.0
"""Of the largest machine's cores, and of its memory."""
EVENT = re.compile(r"\d+,\d*,\d+,\d+,\d*,[0-8],[^,\s]*,\d?,\d*(,[^,\s]*){3},[01]?\s*")
"""An event of 2011."""


class GoogleLog(NamedTuple):
    """Records for `clean`, counts of what was left out here or needs a word, and the first of each."""

    frame: pl.DataFrame
    counts: dict[str, int]
    firsts: dict[str, str]


def found_of(log: GoogleLog) -> Found:
    """What a reader gives."""
    return Found(log.frame, log.counts, True, "Google's events, cores in thousandths", firsts=log.firsts)


def is_google(line: str) -> bool:
    """Is the first line of a file one of 2011's events, or one of 2019's, or their header?"""
    return (
        _is_2011(line)
        or is_google_json(line)
        or set(NEEDS_2019) <= {name.strip().strip('"') for name in line.split(",")}
    )


def _is_2011(line: str) -> bool:
    return EVENT.fullmatch(line.replace('"', "")) is not None


def read_google(path: Path, keep: Keep = every) -> GoogleLog:
    """Attempts of tasks as jobs. keep: takes part of them."""
    events = pl.concat(_events(path), how="diagonal")
    return _log(_jobs(events).sort(FIRST), keep, not events.filter(_OF_COLLECTION).is_empty())


def google_pieces(path: Path, keep: Keep, rows: int, scratch: Path | None = None) -> Iterator[GoogleLog]:
    """The same, some `rows` at a time, by way of temporary files in `scratch`, where events are sorted: those of a
    collection come together, and then jobs stand as their first events do."""
    of_collections = False

    def keyed() -> Iterator[pl.DataFrame]:
        nonlocal of_collections
        for events in _events(path):
            of_collections |= not events.filter(_OF_COLLECTION).is_empty()
            yield events.with_columns((pl.col("collection_id").hash(seed=0) // 2**11).cast(pl.Float64).alias(AT))

    with TemporaryDirectory(prefix="escala-events-", dir=scratch) as folder:
        made = Path(folder) / "events", Path(folder) / "jobs"
        for one in made:
            one.mkdir()
        events = cut(sorted_on_disk(keyed(), made[0], rows), rows)
        jobs = (_jobs(some.drop(AT)).with_columns(pl.col(FIRST[0]).cast(pl.Float64).alias(AT)) for some in events)
        for some in sorted_on_disk(jobs, made[1], rows, (AT, *FIRST)):
            yield _log(some.drop(AT), keep, of_collections)


def _log(frame: pl.DataFrame, keep: Keep, of_collections: bool) -> GoogleLog:
    """Jobs in the order of their first events as records for `clean`. of_collections: has the file events of these?"""
    frame = keep(frame)
    tests = {
        "alloc instance": pl.col("collection_type").str.to_uppercase().is_in(ALLOC),
        "never started": pl.col("started_us").is_null(),
        "still running": pl.col("ended_us").is_null() | (pl.col("ended_us") == AFTER_US),
        "absurd demand": pl.col("demand_memory").is_null(),
    }
    found: dict[str, pl.Series] = {}
    for rule, test in tests.items():
        which = test.fill_null(False)
        found[rule], frame = frame.filter(which)["job_id"], frame.filter(~which)
    found["note: began before the trace"] = frame.filter(pl.col("submit_s") == 0.0)["job_id"]
    if of_collections:
        found[UNKNOWN] = frame.filter(pl.col("known").is_null() & pl.col("collection_id").is_not_null())["job_id"]
    found = {rule: ids for rule, ids in found.items() if len(ids)}
    counts, firsts = (
        {rule: len(ids) for rule, ids in found.items()},
        {rule: f"job {ids[0]!r}" for rule, ids in found.items()},
    )
    return GoogleLog(
        frame.drop("started_us", "ended_us", "collection_type", "collection_id", "known", *FIRST), counts, firsts
    )


def _events(path: Path) -> Iterator[pl.DataFrame]:
    """Events as they stand in the file, some megabytes at a time: `task`, `us`, `kind` (a word of `TYPES_...`),
    `cores`, `demand_memory`, texts, and which it is of all (`place`)."""
    first = read_head(path).decode("utf-8-sig", errors="replace").lstrip().split("\n", 1)[0]
    year_2011, count = _is_2011(first), 0
    if first.startswith("{"):
        tables = event_pieces(path, NEEDS_2019, TEXTS)
    else:
        tables = _texts(path, ",".join(COLUMNS_2011) if year_2011 else None)
    kinds = TYPES_2011 if year_2011 else TYPES_2019
    words = {str(code): word for code, word in enumerate(kinds)} | {word: word for word in kinds}
    for table in tables:
        read = table.with_columns(
            task=pl.format("{}-{}", pl.col("collection_id").fill_null("?"), pl.col("instance_index").fill_null("?")),
            us=pl.col("time").str.strip_chars().cast(pl.Int64, strict=False),
            kind=pl.col("type")
            .str.strip_chars()
            .str.to_uppercase()
            .replace_strict(words, default=None, return_dtype=pl.String),
            cores=_share("cpus").clip(1.0),
            demand_memory=_share("memory").fill_null(0.0) if "memory" in table.columns else pl.lit(0.0),
            place=pl.int_range(count, count + table.height),
        )
        _refuse(table, "time", ~(read["us"] >= 0).fill_null(False), "whole microseconds, 0 or more", path)
        _refuse(table, "type", read["kind"].is_null(), f"one of {', '.join(kinds)}", path)
        count += table.height
        yield read.drop("time", "type", "cpus", "line")


def _texts(path: Path, names: str | None) -> Iterator[pl.DataFrame]:
    """The columns of a table that are read, as texts, and `line`. names: of a file that has no header."""
    count = 2 if names is None else 1
    in_parquet = read_head(path, 4) == b"PAR1"
    for table in parquet_pieces(path, ROWS) if in_parquet else csv_pieces(path, names):
        chosen = _chosen(table, path)
        texts = (pl.col(name).cast(pl.String).alias(name.removeprefix("resource_request.")) for name in chosen)
        yield table.select(texts).with_row_index("line", count)
        count += table.height


def _chosen(table: pl.DataFrame, path: Path) -> list[str]:
    """The columns that are read; EscalaError where one is missing, or two stand for one."""
    known = (*NEEDS_2019, "cpus", "memory", *TEXTS)
    found = [name for name in table.columns if name.removeprefix("resource_request.") in known]
    plain = [name.removeprefix("resource_request.") for name in found]
    for name in known:
        if plain.count(name) > 1 or (name in (*NEEDS_2019, "cpus") and name not in plain):
            raise EscalaError(
                f"{path}: Google's events of instances need one column {name}, and have {plain.count(name)}: export "
                "it once"
            )
    return found


def _refuse(table: pl.DataFrame, name: str, wrong: pl.Series, need: str, path: Path) -> None:
    """EscalaError for the first value of a column that is wrong."""
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise EscalaError(
            f"{path}, line {table['line'][row]}: {name} is {quoted(table[name][row] or '')}: {need} is needed"
        )


def _share(name: str) -> pl.Expr:
    """Thousandths of the largest machine; null where nothing is asked; NaN for what no machine has."""
    parts = (pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) * PARTS).round(6)
    given = pl.col(name).is_not_null() & (pl.col(name).str.strip_chars() != "")
    return pl.when(parts.is_between(0.0, MOST_CORES)).then(parts).when(given).then(math.nan)


_OF_COLLECTION = pl.col("instance_index").is_null() & pl.col("cores").is_null()
"""Is the event one of a whole collection?"""


def _told(events: pl.DataFrame) -> list[pl.Expr]:
    """`TEXTS`: what the first events say that say something; "" and numbers that stand for nothing say nothing."""
    none = {"alloc_collection_id": ["", "0"], "parent_collection_id": ["", "0"]}
    said = {
        name: pl.col(name).filter(pl.col(name).is_in(none.get(name, [""])).not_()).drop_nulls().first()
        for name in TEXTS
    }
    return [said[name] if name in events.columns else pl.lit(None, pl.String).alias(name) for name in TEXTS]


def _collections(events: pl.DataFrame) -> pl.DataFrame:
    """A row for each collection: its `TEXTS`."""
    return events.group_by("collection_id", maintain_order=True).agg(_told(events)).with_columns(known=True)


def _attempts(events: pl.DataFrame) -> pl.DataFrame:
    """A row for each attempt of each task: what it asked, `TEXTS`, when it started and ended, and its `FIRST` event."""
    ends = pl.col("kind").is_in(list(STATUS))
    return (
        events.with_columns(before=(ends.cast(pl.Int64).cum_sum() - ends.cast(pl.Int64)).over("task"))
        .group_by("task", "before", maintain_order=True)
        .agg(
            pl.col("us").first().alias(FIRST[0]),
            pl.col("place").first().alias(FIRST[1]),
            pl.col("us").filter(pl.col("kind") == "SUBMIT").first().alias("asked_us"),
            pl.col("us").filter(pl.col("kind") == "SCHEDULE").first().alias("started_us"),
            pl.col("us").filter(ends).first().alias("ended_us"),
            pl.col("kind").filter(ends).first().alias("status"),
            *(pl.col(name).drop_nulls().first() for name in ("cores", "demand_memory", "collection_id")),
            *_told(events),
        )
        .with_columns(asked_us=pl.coalesce("asked_us", pl.col("ended_us").shift(1).over("task")))
    )


def _jobs(events: pl.DataFrame) -> pl.DataFrame:
    """The columns of a job for each attempt, with what is known of its collection, in any order."""
    events = events.sort("us", "place")
    attempts, known = _attempts(events.filter(~_OF_COLLECTION)), _collections(events.filter(_OF_COLLECTION))
    whole = pl.col("demand_memory").ceil()
    table = attempts.join(known, on="collection_id", how="left", suffix=" of all", maintain_order="left")
    told = {name: pl.coalesce(name, f"{name} of all") for name in TEXTS}
    return table.select(
        pl.col("task").alias("job_id"),
        submit_s=_seconds("asked_us"),
        runtime_s=_seconds("ended_us") - _seconds("started_us"),
        walltime_s=pl.lit(None, pl.Float64),
        cores="cores",
        wait_s=pl.when(pl.col("asked_us") > 0).then(_seconds("started_us") - _seconds("asked_us")),
        single_node=pl.lit(True),
        demand_memory=pl.when(whole.is_between(0.0, MOST_CORES)).then(whole).cast(pl.Int64),
        user=told["user"],
        group=told["parent_collection_id"],
        queue=told["scheduling_class"],
        rank=told["priority"],
        job_name=pl.coalesce(told["collection_name"], "collection_id"),
        executable=told["collection_logical_name"],
        reserved=told["alloc_collection_id"],
        status=pl.col("status").replace_strict(STATUS, default=None, return_dtype=pl.String),
        started_us="started_us",
        ended_us="ended_us",
        collection_type=told["collection_type"],
        collection_id="collection_id",
        known="known",
        **dict(zip(FIRST, FIRST, strict=True)),
    )


def _seconds(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64) * 1e-6
