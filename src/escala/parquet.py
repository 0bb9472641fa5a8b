"""Parquet files, read so that damage is an error and never the end of the process.

Where a damaged file makes polars ask for absurd memory, it ends the whole process. Content that is not known by its
hash is therefore read by another process first, within limits; that takes about half a second.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.errors import EscalaError, quoted
from escala.reading import MOST_RATIO, guarded, read_all

if TYPE_CHECKING:
    import polars as pl

FREE_BYTES = 4 << 30
"""Memory that reading may take whatever the size of the file."""
DAMAGED = 3  # exit status
KEPT = "escala"
"""The key of a file's metadata under which stands, as JSON, what belongs to the whole table."""

_READER = f"""
import io, sys
data, most, rows = sys.stdin.buffer.read(), int(sys.argv[1]), int(sys.argv[2])
import polars
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
except (ImportError, OSError, ValueError):  # no such limit on this system
    pass
try:
    if rows:
        scan = polars.scan_parquet(sys.argv[3])
        for at in range(0, scan.select(polars.len()).collect().item(), rows):
            scan.slice(at, rows).collect()
    else:
        polars.read_parquet(io.BytesIO(data))
except Exception:  # told by whoever reads it next
    pass
except BaseException:
    sys.exit({DAMAGED})
"""


def read_table(path: Path, sha256: str | None = None) -> pl.DataFrame:
    """The table in a file. sha256: of the file as it was written, where that is known.

    Raises:
        EscalaError: it is no Parquet file, or damaged.
    """
    with guarded(path, "a Parquet table"):
        data = read_all(path)
        return table_of(data, path, known=sha256 is not None and hashlib.sha256(data).hexdigest() == sha256)


def table_of(data: bytes, path: Path, known: bool = False) -> pl.DataFrame:
    """The table in the content of a file. known: that it is as it was written."""
    import polars as pl

    if not known:
        refuse_damaged(data, path)
    return pl.read_parquet(io.BytesIO(data))


def kept_beside(source: Path | io.BytesIO, path: Path) -> dict[str, Any]:
    """What stands under `KEPT` in the file of a table, or in its content; {} where nothing does. EscalaError where it
    is not readable."""
    import polars as pl

    text = pl.read_parquet_metadata(source).get(KEPT, "{}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EscalaError(f"{path}: metadata {KEPT!r} is {quoted(text)}: no JSON object; write the table again")
    return found


def refuse_damaged(data: bytes, path: Path) -> None:
    """EscalaError for content that ends the process that reads it. Where no other process can be started nothing is
    tried."""
    _try_elsewhere(path, FREE_BYTES + MOST_RATIO * len(data), data)


def refuse_damaged_file(path: Path, rows: int) -> None:
    """The same for a file that is read so many rows at a time, and need not fit into memory."""
    _try_elsewhere(path, FREE_BYTES, b"", str(rows), os.path.abspath(path))


def _try_elsewhere(path: Path, most: int, data: bytes, rows: str = "0", *more: str) -> None:
    command = [sys.executable, "-I", "-c", _READER, str(most), rows, *more]
    quiet = {**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
    try:
        tried = subprocess.run(command, input=data, capture_output=True, check=False, env=quiet)
    except (OSError, ValueError):
        return
    if tried.returncode < 0 or tried.returncode == DAMAGED:
        raise EscalaError(
            f"{path}: the Parquet file is damaged, or unfolds to more than {most >> 30} GB: fetch, copy or write it "
            "again"
        )
