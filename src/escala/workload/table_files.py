"""Tables as they lie in files, CSV and Parquet: whole or some rows at a time, with what is kept beside them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from escala.errors import EscalaError, quoted
from escala.parquet import kept_beside, refuse_damaged, refuse_damaged_file
from escala.reading import BOM, first_twin, line_breaks, read_all, reading, refuse_nul
from escala.workload.lines import line_chunks
from escala.workload.shapes import MOST_S

MOST_COLUMNS = 5000
FREE_ROWS = 10_000_000


class Kept(NamedTuple):
    """What a file says of the whole table."""

    origin_s: float = 0.0  # Unix time of its clock's 0, where that is known
    max_cores: int | None = None
    # what no replay looks at, as `Workload.ignored`: the table has not all of its columns
    ignored: Mapping[str, dict[str, int]] = {}


def load_table(path: Path, names: str | None = None) -> pl.DataFrame:
    """The file as a data frame; CSV columns as text. names: the first line of a CSV file that has none."""
    return loaded(path, names)[0]


def loaded(path: Path, names: str | None = None) -> tuple[pl.DataFrame, Kept]:
    """The same with what is kept beside it."""
    data = read_all(path)
    if data[:4] == b"PAR1":
        return _parquet(data, path), kept_of(io.BytesIO(data), path)
    refuse_nul(data, path)
    line = 1 if names is None else 0
    data = data if names is None else f"{names}\n".encode() + data
    return _csv(data if b"\n" in data else line_breaks(data), path, line), Kept()


def kept_of(source: Path | io.BytesIO, path: Path) -> Kept:
    """What a Parquet file says of the whole table. EscalaError where that cannot be."""
    try:
        told = kept_beside(source, path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable(path, error) from None
    origin_s, cores, ignored = told.get("origin_s", 0.0), told.get("max_cores"), told.get("ignored", {})
    for name, value, fine in (
        ("origin_s", origin_s, isinstance(origin_s, int | float) and abs(origin_s) <= 2 * MOST_S),
        ("max_cores", cores, cores is None or (isinstance(cores, int) and cores >= 1)),
        ("ignored", ignored, isinstance(ignored, dict) and all(map(_is_count, ignored.values()))),
    ):
        if not fine or isinstance(value, bool):
            raise EscalaError(
                f"{path}: its metadata says {name} = {quoted(value)}, which cannot be: write the table again"
            )
    return Kept(float(origin_s), cores, ignored)


def _is_count(about: Any) -> bool:
    """Is this how many jobs have something, and how many values there are?"""
    return (
        isinstance(about, dict)
        and "jobs" in about
        and all(isinstance(count, int) and 0 <= count <= 2**53 for count in about.values())
    )


def csv_pieces(path: Path, names: str | None = None) -> Iterator[pl.DataFrame]:
    """A CSV file some megabytes at a time. names: the first line of one that has none."""
    header = b"" if names is None else f"{names}\n".encode()
    with reading(path) as stream:
        for text, line in line_chunks(stream, path, quote=b'"'):
            if not header:
                header = text[: text.index(b"\n") + 1]
                yield _csv(text, path, line)
            else:
                yield _csv(header + text, path, line - 1)


def parquet_pieces(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """A Parquet file so many rows at a time."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise EscalaError(f"{path}: is packed Parquet: unpack it first, or read it whole")
    refuse_damaged_file(path, rows)
    try:
        scan = pl.scan_parquet(path)
        height = int(scan.select(pl.len()).collect().item())
        for at in range(0, max(height, 1), rows):
            yield scan.slice(at, rows).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable(path, error) from None


def rows_in(path: Path, rows: int) -> int | None:
    """Rows of a Parquet file, which it says itself; None for another file, and for one that cannot be read so many
    `rows` at a time."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return None
        refuse_damaged_file(path, rows)
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except (EscalaError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def _csv(data: bytes, path: Path, line: int) -> pl.DataFrame:
    """The table of a text, all columns as text. line: the number of its first line."""
    try:
        header = data.removeprefix(BOM).split(b"\n", 1)[0]
        separator = _separator(header)
        if header.count(separator) >= MOST_COLUMNS:
            raise EscalaError(f"{path}: a header of more than {MOST_COLUMNS} columns: no table of jobs")
        named = [
            name.strip()
            for name in next(csv.reader([header.decode("utf-8", errors="replace")], delimiter=separator.decode()), [])
        ]
        if (twin := first_twin([name for name in named if name])) is not None:
            raise EscalaError(f"{path}: two columns are called {quoted(twin)}: name each once, or leave one out")
        table = pl.read_csv(io.BytesIO(data), separator=separator.decode(), infer_schema=False, encoding="utf8-lossy")
        return table.rename({name: name.strip() for name in table.columns})
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, csv.Error) as error:
        raise _unreadable(path, error, _odd_line(data, line)) from None


def _unreadable(path: Path, error: BaseException, where: str = "") -> EscalaError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return EscalaError(f"{path}{where}: not a readable table ({reason[:200]}): mend the file")


def _parquet(data: bytes, path: Path) -> pl.DataFrame:
    """The table of a Parquet file. A few bytes can stand for any number of equal rows, so the rows are counted
    first."""
    refuse_damaged(data, path)
    try:
        rows = int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
        if rows > max(FREE_ROWS, len(data)):
            raise EscalaError(f"{path}: {rows:,} rows in {len(data):,} bytes: no table of real jobs")
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable(path, error) from None


def _separator(header: bytes) -> bytes:
    """What separates the columns: the most frequent of comma, semicolon, tab and bar."""
    return max((b",", b";", b"\t", b"|"), key=header.count)


def _odd_line(data: bytes, first: int) -> str:
    """Where a line first has another number of separators than the header, for a message. first: number of that
    line."""
    lines = data.splitlines() or [b""]
    separator = _separator(lines[0])
    odd = next((k for k, line in enumerate(lines) if line.count(separator) != lines[0].count(separator)), None)
    return "" if odd is None else f", line {odd + first}"
