"""Tables of jobs: CSV and Parquet, with a mapping of columns given or known by the names of the columns.

A mapping says which column of the file is which field: `columns={"submit_s": "subtime", "cores": "res", ...}`. Fields
are the columns of `Workload`, and `start_s`, `end_s` (runtime = end - start, wait = start - submit). Numbers are
seconds unless `units` or `unit` say otherwise; text such as `2019-01-01 08:55:55` is read as UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from escala.errors import EscalaError, nearest, quoted
from escala.reading import guarded, read_head
from escala.workload.clean import CleaningRules, clean
from escala.workload.columns import ESTIMATE, OPTIONAL, SCHEMA
from escala.workload.filters import ABSOLUTE_FROM_S, Keep, every
from escala.workload.found import Found
from escala.workload.ignored import COLUMNS, column_of
from escala.workload.layouts import ALIBABA, ALIBABA_NEEDS, LAYOUTS, PACK, TIMES, UNITS, WORDS, Layout, alibaba_jobs
from escala.workload.table import Workload
from escala.workload.table_files import Kept, csv_pieces, kept_of, load_table, loaded, parquet_pieces

ROW = " row"  # of the file, from 0
TRUTHS = {**dict.fromkeys(("true", "1", "1.0", "yes"), True), **dict.fromkeys(("false", "0", "0.0", "no"), False)}


class TabularLog(NamedTuple):
    """Records for `clean`, notes, whether the first submission becomes time 0, the first record of each note, what is
    kept beside, and how many rows of the file were read until now."""

    frame: pl.DataFrame
    counts: dict[str, int]
    shift: bool
    layout: str
    firsts: Mapping[str, str] = {}
    kept: Kept = Kept()
    rows: int = 0


def found_of(log: TabularLog) -> Found:
    """A table with what its file says of it."""
    kept = log.kept
    about = log.frame, log.counts, log.shift, log.layout
    return Found(*about, lambda first_s: kept.origin_s, kept.max_cores, log.firsts, kept.ignored, log.rows)


def read_table(
    path: Path,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, float | str] | None = None,
    unit: str | None = None,
    select: Mapping[str, Any] | None = None,
    keep: Keep = every,
) -> TabularLog:
    """Jobs of a CSV (`,` `;` or tab) or Parquet file.

    `columns`: field -> column, in place of a known layout, or on top of one where they do not say all of a job.
    `unit`: of all time columns that are numbers (ms, s, step, min, h, d);
    `units`: column -> unit or seconds, for single ones. `select`: column -> value, to take part of the rows. `keep`:
    takes part of the jobs; partition and account are columns of such a name, or those that `columns` says.
    """
    table, kept = loaded(path)
    reader = _Reader(path, columns, units or {}, unit, select or {}, table.columns, kept)
    found = reader.part(table, keep)
    reader.close()
    return found


def table_pieces(
    path: Path,
    columns: Mapping[str, str] | None,
    units: Mapping[str, float | str] | None,
    unit: str | None,
    select: Mapping[str, Any] | None,
    keep: Keep,
    rows: int,
) -> Iterator[TabularLog]:
    """The same, some `rows` of Parquet or some megabytes of CSV at a time, in the order of the file."""
    reader: _Reader | None = None
    in_parquet = read_head(path, 4) == b"PAR1"
    for table in parquet_pieces(path, rows) if in_parquet else csv_pieces(path):
        kept = kept_of(path, path) if in_parquet and reader is None else Kept()
        reader = reader or _Reader(path, columns, units or {}, unit, select or {}, table.columns, kept)
        yield reader.part(table, keep)
    if reader is not None:
        reader.close()


class _Reader:
    """Rows of one file as records, however many at a time; what they mean is known by the names of the columns."""

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, str] | None,
        units: Mapping[str, float | str],
        unit: str | None,
        select: Mapping[str, Any],
        names: Sequence[str],
        kept: Kept,
    ) -> None:
        self._path, self._units, self._unit, self._select, self._kept = path, units, unit, select, kept
        for name in select:
            if name not in names:
                raise EscalaError(f"{path}: no column {name!r} to select by: columns are {_few(names)}")
        self._layout = _layout(names, columns, path)
        self._rows = self._selected = 0
        self._keys: pl.DataFrame | None = None  # by which workloads are told apart

    def part(self, table: pl.DataFrame, keep: Keep) -> TabularLog:
        """The next rows as records for `clean`."""
        first, layout, path = self._rows, self._layout, self._path
        self._rows += table.height
        table = table.with_columns(pl.int_range(first, first + table.height).alias(ROW))
        for name, value in self._select.items():
            kept = table.filter(pl.col(name).cast(pl.String) == str(value))
            if kept.is_empty() and first == 0 and table.height:
                self._there = name, value, table[name].cast(pl.String).unique().sort().to_list()
            table = kept
        rows, at, table = table[ROW], self._selected, table.drop(ROW)
        self._selected += table.height
        self._refuse_others(table)
        if "partitions" in self._kept.ignored and "queue" in table.columns and "partition" not in table.columns:
            table = table.with_columns(partition="queue")  # the log had both, alike, and one was written
        if layout.name == ALIBABA:
            frame, counts, firsts = alibaba_jobs(table, keep)
            return TabularLog(frame, counts, True, ALIBABA, firsts)
        origin_s = self._kept.origin_s
        frame = keep(
            records(table, layout, self._units, self._unit, path, rows, at),
            origin_s if origin_s >= ABSOLUTE_FROM_S else None,
        )
        return TabularLog(frame, {}, layout.shift, layout.name, kept=self._kept, rows=self._rows)

    def _refuse_others(self, table: pl.DataFrame) -> None:
        """A file of several workloads needs a choice."""
        names = [name for name in self._layout.split if name in table.columns]
        self._keys = pl.concat([self._keys, table.select(names)] if self._keys is not None else [table.select(names)])
        self._keys = self._keys.unique(maintain_order=True)
        if self._keys.height > 1:
            first = self._keys.row(0, named=True)
            example = ", ".join(f"{name!r}: {value!r}" for name, value in first.items())
            flags = " ".join(f"--select {name}={value}" for name, value in first.items())
            other = ", or read all with read_pack" if self._layout.name == PACK.name else ""
            held = f"holds {self._keys.height} workloads"
            raise EscalaError(f"{self._path}: {held}: choose one with select={{{example}}} ({flags}){other}")

    def close(self) -> None:
        """After the last rows. EscalaError where none was selected."""
        if self._select and not self._selected and self._rows:
            name, value, there = self._there
            raise EscalaError(f"{self._path}: no row has {name} = {value!r}: values are {_few(there)}")


def read_pack(path: str | Path, unit: str, rules: CleaningRules | None = None) -> dict[tuple[str, str], Workload]:
    """All workloads of a pack of days, by (set, file), in the order of the file.

    A pack has the columns set, file, id, subtime, res, walltime, runtime, user, type. `unit`: of its times (the file
    does not say): `"min"` or `"step"` (1 s). Times count from the start of each file and are kept as they are.
    """
    where = Path(path)
    with guarded(where, "a pack of days"):
        return _packs(where, unit, rules or CleaningRules())


def _packs(where: Path, unit: str, rules: CleaningRules) -> dict[tuple[str, str], Workload]:
    """The workloads of a pack."""
    table = load_table(where)
    if not PACK.fits(set(table.columns)):
        raise EscalaError(
            f"{where}: not a pack of days (set, file, id, subtime, res, walltime, runtime, ...): use read_workload"
        )
    frame = records(table, PACK, {}, unit, where).with_columns(table["set", "file"].cast(pl.String))
    packs = {}
    for key, part in frame.partition_by("set", "file", maintain_order=True, as_dict=True).items():
        kept, counts, firsts = clean(
            part.drop("set", "file", *(name for name in COLUMNS if name in part.columns)), rules
        )
        name = f"{key[0]}/{key[1]}"
        about = {"name": name, "source": f"{where.name} {name}", "cleaning": counts, "first_cleaned": firsts}
        packs[str(key[0]), str(key[1])] = Workload.from_jobs(kept, **about)
    return packs


def _layout(names: Sequence[str], columns: Mapping[str, str] | None, path: Path) -> Layout:
    """The layout given, or the known one that fits, with what is given in place of a part or on top."""
    if columns is None:
        if set(names) >= ALIBABA_NEEDS:
            return Layout(ALIBABA, {})
        found = next((layout for layout in LAYOUTS if layout.fits(set(names))), None)
        if found is None:
            hint = "name them, columns={'submit_s': 'NAME', ...} (--column submit_s=NAME ...)"
            raise EscalaError(f"{path}: no known table of jobs (columns {_few(names)}): {hint}")
        return found.of(names)
    allowed = (*SCHEMA, *OPTIONAL, "start_s", "end_s", "partition", "account")
    for name, column in columns.items():
        if name not in allowed and not name.startswith((ESTIMATE, "demand_")):
            raise EscalaError(
                f"{path}: columns= (--column) names the unknown field {name!r}: fields are {', '.join(allowed)}, "
                f"{ESTIMATE}<name>, demand_<kind>"
            )
        if column not in names:
            raise EscalaError(f"{path}: no column {column!r} (for {name}): columns are {_few(names)}")
    if not {"submit_s", "cores"} <= set(columns) or not (
        {"runtime_s", "flops"} & set(columns) or {"start_s", "end_s"} <= set(columns)
    ):
        known = next((known for known in LAYOUTS if known.fits(set(names))), None)
        if known is not None:
            known = known.of(names)
            return replace(known, columns=known.columns | dict(columns))
        raise EscalaError(
            f"{path}: columns= (--column FIELD=NAME) must name submit_s, cores, and runtime_s, flops, or start_s and "
            "end_s"
        )
    return Layout("given columns", dict(columns))


def records(
    table: pl.DataFrame,
    layout: Layout,
    units: Mapping[str, float | str],
    unit: str | None,
    path: Path,
    rows: pl.Series | None = None,
    first: int = 0,
) -> pl.DataFrame:
    """The fields of the layout, in SI units and the types of the schema. rows: numbers (from 0) of the rows in the
    file; first: how many jobs come before them."""
    rows = pl.int_range(table.height, eager=True) if rows is None else rows
    if layout.unit_needed and unit is None and not units:
        raise EscalaError(
            f"{path}: the file does not say the unit of its times: say unit='min', 's', ... (--unit min); see the "
            "notes of its source"
        )
    for column in units:
        if column not in layout.columns.values():
            raise EscalaError(
                f"{path}: units= names {column!r}, which is no column in use: those are "
                f"{_few(list(layout.columns.values()))}"
            )
    fields: dict[str, pl.Series] = {}
    for name, column in layout.columns.items():
        values = table[column]
        if name in TIMES or name.startswith(ESTIMATE):
            factor = _factor(units.get(column, layout.units.get(column, unit or "s")), path)
            fields[name] = _times(values, factor, name, path, rows)
        elif (SCHEMA | OPTIONAL).get(name) == pl.String():
            fields[name] = _text(values)
        elif (SCHEMA | OPTIONAL).get(name) == pl.Boolean():
            fields[name] = _truths(values, name, path, rows)
        else:
            fields[name] = _numbers(values, name, path, rows)
    for column in table.columns:
        further = column_of(column)
        taken = column in layout.columns.values() and further != "partition"  # which may be the queue as well
        if further is not None and further not in fields and not taken:
            fields[further] = _text(table[column])
    return _completed(pl.DataFrame(fields), first)


def _text(values: pl.Series) -> pl.Series:
    """The column as text, null where it is empty or holds no single values."""
    if values.dtype.is_nested() or values.dtype in (pl.Object(), pl.Binary()):
        return pl.Series(values.name, [None] * len(values), dtype=pl.String)
    return values.cast(pl.String).replace("", None)


def _completed(frame: pl.DataFrame, first: int) -> pl.DataFrame:
    """Ids where there are none; runtime and wait from start and end; words for the status."""
    have = set(frame.columns)
    if "job_id" not in have:
        frame = frame.with_columns(job_id=pl.int_range(first + 1, first + pl.len() + 1).cast(pl.String))
    if "runtime_s" not in have:
        frame = frame.with_columns(
            runtime_s=pl.col("end_s") - pl.col("start_s")
            if {"start_s", "end_s"} <= have
            else pl.lit(None, dtype=pl.Float64)
        )
    if "wait_s" not in have and "start_s" in have:
        frame = frame.with_columns(wait_s=pl.col("start_s") - pl.col("submit_s"))
    if "walltime_s" not in have:
        frame = frame.with_columns(walltime_s=pl.lit(None, dtype=pl.Float64))
    if "status" in have:
        word = pl.col("status").str.strip_chars().str.to_uppercase().str.split(" ").list.first()
        frame = frame.with_columns(status=word.replace_strict(WORDS, default=None, return_dtype=pl.String))
    return frame.drop([name for name in ("start_s", "end_s") if name in have])


def _factor(unit: float | str, path: Path) -> float:
    """Seconds of a unit."""
    if isinstance(unit, str):
        if unit not in UNITS:
            raise EscalaError(
                f"{path}: unit {quoted(unit)} is not known: {nearest(unit, UNITS)}give one of {', '.join(UNITS)}, or a "
                "number of seconds"
            )
        return UNITS[unit]
    if not unit > 0:
        raise EscalaError(f"{path}: a unit of {unit} s: give a positive number")
    return float(unit)


def _times(values: pl.Series, factor: float, name: str, path: Path, rows: pl.Series) -> pl.Series:
    """Seconds: numbers x factor, or dates and times (as UTC) since 1970."""
    if values.dtype.is_temporal():
        if values.dtype == pl.Duration():
            return values.dt.total_microseconds().cast(pl.Float64) * 1e-6
        return values.cast(pl.Datetime("us")).dt.timestamp("us").cast(pl.Float64) * 1e-6
    if values.dtype == pl.String():
        first = next((value for value in values if value not in (None, "")), "")
        if first[:4].isdigit() and first[4:5] in "-/" and len(first) >= 10:
            text = values.str.replace("T", " ").str.replace_all("/", "-").str.replace(r"(Z|\+00:?00)$", "")
            stamps = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
            _refuse_lost(values, stamps, rows, name, path, "a time like 2019-01-31 12:00:00")
            return stamps.dt.timestamp("us").cast(pl.Float64) * 1e-6
    return _numbers(values, name, path, rows) * factor


def _numbers(values: pl.Series, name: str, path: Path, rows: pl.Series) -> pl.Series:
    """The column as floats; null where empty; text is an error with its row."""
    if values.dtype.is_numeric() or values.dtype == pl.Null():
        return values.cast(pl.Float64)
    if values.dtype != pl.String():
        raise EscalaError(f"{path}: column {values.name!r} (for {name}) is {values.dtype}: numbers are needed")
    numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse_lost(values, numbers, rows, name, path, "a number")
    return numbers


def _truths(values: pl.Series, name: str, path: Path, rows: pl.Series) -> pl.Series:
    """The column as truth values; null where empty; what is none of `TRUTHS` is an error with its row."""
    if values.dtype == pl.Boolean():
        return values
    if values.dtype != pl.String() and not values.dtype.is_numeric() and values.dtype != pl.Null():
        raise EscalaError(f"{path}: column {values.name!r} (for {name}) is {values.dtype}: true or false are needed")
    text = values.cast(pl.String)
    words = text.str.strip_chars().str.to_lowercase()
    read = words.replace_strict(TRUTHS, default=None, return_dtype=pl.Boolean())
    _refuse_lost(text, read, rows, name, path, "true or false (or 1/0, yes/no)")
    return read


def _refuse_lost(values: pl.Series, read: pl.Series, rows: pl.Series, name: str, path: Path, need: str) -> None:
    """`EscalaError` with the first row that could not be read."""
    lost = read.is_null() & values.is_not_null() & (values.str.strip_chars() != "")
    if lost.any():
        row = int(lost.arg_true()[0])
        raise EscalaError(
            f"{path}, line {rows[row] + 2}: column {values.name!r} (for {name}) is {quoted(values[row])}: {need} is "
            "needed"
        )


def _few(names: Sequence[str]) -> str:
    """The first names of a list, each in one line."""
    return ", ".join(" ".join(str(name).split())[:40] for name in names[:8]) + (", ..." if len(names) > 8 else "")
