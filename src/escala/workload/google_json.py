"""`instance_events` of Google's trace of 2019 as the archive has them: JSON, an event a line, packed or not -> a table
of texts. Events of `collection_events` may stand before or behind them: they have no `instance_index`.

`resource_request` is an object of `cpus` and `memory`; whole numbers may stand as texts; what has no value is left out.
"""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import EscalaError, one_line, quoted
from escala.reading import reading
from escala.workload.lines import line_chunks

REQUEST, SHARES = "resource_request", ("cpus", "memory")
INDEX = "instance_index"
FIRST_EVENTS = 1000
"""Of each kind, by which it is known whether a field is a number or a text."""
FIRST_OF = (b"{", b'"instance_index"', b'"collection_name"')
"""What stands in the first event of the file, and of each kind."""
AGAIN = "give instance_events, an event a line"
Kinds = Mapping[str, type[pl.DataType]]


def is_google_json(head: str) -> bool:
    """Is the first line of a file an event of 2019?"""
    return re.match(r'\{[^\n]*"collection_id"\s*:', head) is not None


def event_pieces(path: Path, needs: Sequence[str], more: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The events as texts, some megabytes of them at a time: the columns `needs`, those of `more` that there are,
    `cpus` and `memory`, and `line`. EscalaError, with its line, for what is no event, and for a file of collections
    alone."""
    kinds, tasks = dict[str, type[pl.DataType]](), 0
    with reading(path) as stream:
        for data, line in line_chunks(stream, path):
            names = [*needs, *(name for name in more if f'"{name}"'.encode() in data)]
            table = _table(data, path, line, names, kinds)
            tasks += table.height - table[INDEX].null_count()
            yield table
    if not tasks:
        raise EscalaError(
            f"{path}: no event names its {INDEX}: of the trace's tables give instance_events, with collection_events "
            "behind them if you like, which alone have no requests"
        )


def _table(
    data: bytes, path: Path, line: int, names: Sequence[str], known: dict[str, type[pl.DataType]]
) -> pl.DataFrame:
    """The events of a part of the file. line: the number of its first; known: what fields are, which is added to."""
    kinds = _kinds(data, path, line, (*names, *SHARES), known)
    schema: dict[str, Any] = {name: kinds[name] for name in names}
    schema |= {REQUEST: pl.Struct({name: kinds[name] for name in SHARES})}
    try:
        table = pl.read_ndjson(io.BytesIO(data), schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _no_event(data, path, line, kinds, str(error)) from None
    return table.unnest(REQUEST).cast(pl.String).with_columns(line=_lines(data, table.height) + (line - 1))


def _lines(data: bytes, events: int) -> pl.Expr:
    """The number of the line of each event; a trace of one event a line has no others."""
    if data.count(b"\n") == events:
        return pl.int_range(1, events + 1)
    return pl.lit(
        pl.Series([number for number, line in enumerate(data.split(b"\n"), 1) if line.strip()], dtype=pl.Int64)
    )


def _events(data: bytes, path: Path, first: int, begin: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each event one by one, from the byte `begin` on, and where it stands; its request is among its fields. first: the
    number of the first line. EscalaError for a line that is none."""
    stream = io.BytesIO(data)
    stream.seek(begin)
    for number, line in enumerate(stream, data.count(b"\n", 0, begin) + first):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EscalaError(
                f"{where}: not valid JSON ({getattr(error, 'msg', 'numbers or nesting without end')}): {AGAIN}"
            ) from None
        if not isinstance(event, dict):
            raise EscalaError(f"{where}: is no JSON object: {AGAIN}")
        request = event.get(REQUEST) or {}
        if not isinstance(request, dict):
            raise EscalaError(f"{where}: {REQUEST} is no object of cpus and memory: {AGAIN}")
        yield where, {**event, **{name: request.get(name) for name in SHARES}}


def _kinds(data: bytes, path: Path, line: int, names: Sequence[str], found: dict[str, type[pl.DataType]]) -> Kinds:
    """What the fields are, by the first event that has them: a text, or a number. found: by earlier ones."""
    firsts = {data.rfind(b"\n", 0, max(data.find(mark), 0)) + 1 for mark in FIRST_OF} if set(names) - set(found) else ()
    for begin in sorted(firsts):
        for _, event in itertools.islice(_events(data, path, line, begin), FIRST_EVENTS):
            for name in names:
                if isinstance(value := event.get(name), str | int | float):
                    number = pl.Float64 if name in SHARES else pl.Int64
                    found.setdefault(name, pl.String if isinstance(value, str) else number)
    return {name: found.get(name, pl.String) for name in names}


def _no_event(data: bytes, path: Path, line: int, kinds: Kinds, why: str) -> EscalaError:
    """What is wrong with the first line that is no event like those before it."""
    wanted: dict[Any, Any] = {pl.String: str, pl.Int64: int, pl.Float64: (int, float)}
    try:
        for where, event in _events(data, path, line):
            for name, kind in kinds.items():
                value = event.get(name)
                if value is not None and not isinstance(value, wanted[kind]):
                    need = "a text" if kind == pl.String else "a number" if name in SHARES else "a whole number"
                    return EscalaError(f"{where}: {name} is {quoted(value)}, and {need} elsewhere: {AGAIN}")
    except EscalaError as error:
        return error
    return EscalaError(f"{path}: no readable events ({one_line(why)[:200]}): {AGAIN}")
