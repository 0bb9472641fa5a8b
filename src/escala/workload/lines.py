"""Texts read some megabytes at a time, in whole lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from escala.errors import EscalaError
from escala.reading import BOM, line_breaks, refuse_nul

CHUNK_BYTES = 1 << 23
LONGEST_LINE = 1 << 26


def line_chunks(stream: BinaryIO, path: Path, quote: bytes = b"") -> Iterator[tuple[bytes, int]]:
    """Whole lines, some megabytes at a time, each ended by a newline, with the number of the first (from 1); without a
    byte-order mark.
    quote: a sign within pairs of which a newline ends no line. EscalaError for a byte 0 and a line without an end."""
    rest, line = b"", 1
    for data in itertools.chain(
        [stream.read(CHUNK_BYTES).removeprefix(BOM)], iter(lambda: stream.read(CHUNK_BYTES), b"")
    ):
        refuse_nul(data, path, line)
        data = rest + data
        end = _last_end(data, quote)
        if end == 0:
            rest = data
            if len(rest) > LONGEST_LINE:
                raise EscalaError(
                    f"{path}, line {line}: a line of more than {LONGEST_LINE:,} bytes: this is no log of jobs"
                )
            continue
        text = line_breaks(data[:end])
        yield text, line
        line += text.count(b"\n")
        rest = data[end:]
    if rest:
        yield line_breaks(rest if rest.endswith(b"\n") else rest + b"\n"), line  # a quote may have stayed open


def _last_end(data: bytes, quote: bytes) -> int:
    """Where the last whole line ends; 0: nowhere."""
    end = data.rfind(b"\n") + 1
    open_quote = quote != b"" and data.count(quote, 0, end) % 2 == 1
    while end and open_quote:
        before = data.rfind(b"\n", 0, end - 1) + 1
        open_quote ^= data.count(quote, before, end) % 2 == 1
        end = before
    return end
