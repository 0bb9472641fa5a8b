"""Parquet files, read so that damage is an error and never the end of the process.

Where a damaged file makes polars ask for absurd memory, it ends the whole process. Content is therefore read by another
process first, within limits; that takes about half a second. No trial is needed of what this user's Escala has written
or tried before: the hashes of that stand in the cache folder, which holds code that is run, and so is trusted. What a
folder says of its own files is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.compile import cache_home
from escala.errors import EscalaError, one_line, quoted
from escala.reading import MOST_RATIO, guarded, read_all

if TYPE_CHECKING:
    import polars as pl

FREE_BYTES = 4 << 30
"""Memory that reading may take whatever the size of the file."""
DAMAGED = 3  # exit status
KEPT = "escala"
"""The key of a file's metadata under which stands, as JSON, what belongs to the whole table."""
MOST_NOTED = 4 << 20
"""Bytes of the file of hashes; the older half of a longer one goes."""

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
except Exception as error:
    sys.stdout.buffer.write(str(error).encode("utf-8", "replace"))
    sys.exit({DAMAGED})
except BaseException:
    sys.exit({DAMAGED})
"""

_noted: set[str] = set()
"""What this process knows to be whole: hashes of content, and files as they are."""


def read_table(path: Path) -> pl.DataFrame:
    """The table in a file.

    Raises:
        EscalaError: it is no Parquet file, or damaged.
    """
    import polars as pl

    with guarded(path, "a Parquet table"):
        data = read_all(path)
        refuse_damaged(data, path)
        return pl.read_parquet(io.BytesIO(data))


def note_written(*paths: Path) -> None:
    """These tables were written by this process just now: they are read without a trial, here and by later processes
    that have the same cache folder."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            found.append(hashlib.file_digest(stream, "sha256").hexdigest())
    _note(found)


def _notes() -> Path:
    return cache_home() / f"whole-tables-polars-{version('polars')}"


def _note(digests: list[str]) -> None:
    """Keep hashes of what is whole; where the cache folder takes none, for this process alone."""
    _noted.update(digests)
    path, lines = _notes(), "".join(f"{digest}\n" for digest in digests).encode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.stat().st_size > MOST_NOTED:
            aside = path.with_name(f"{path.name}.{os.getpid()}")
            try:
                aside.write_bytes(path.read_bytes()[-MOST_NOTED // 2 :] + lines)
                os.replace(aside, path)
            finally:
                aside.unlink(missing_ok=True)
            return
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            os.write(handle, lines)
        finally:
            os.close(handle)


def _is_whole(digest: str) -> bool:
    if digest in _noted:
        return True
    try:
        return digest.encode() in _notes().read_bytes()
    except OSError:
        return False


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
    """EscalaError for content that ends the process that reads it, or cannot be read. Where no other process can be
    started nothing is tried."""
    digest = hashlib.sha256(data).hexdigest()
    if not _is_whole(digest) and _try_elsewhere(path, FREE_BYTES + MOST_RATIO * len(data), data):
        _note([digest])


def refuse_damaged_file(path: Path, rows: int) -> None:
    """The same for a file that is read so many rows at a time, and need not fit into memory."""
    found = path.stat()
    known = f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {rows}"
    if known not in _noted and _try_elsewhere(path, FREE_BYTES, b"", str(rows), os.path.abspath(path)):
        _noted.add(known)


def _try_elsewhere(path: Path, most: int, data: bytes, rows: str = "0", *more: str) -> bool:
    """Was the file read whole by another process? False where none can be started."""
    command = [sys.executable, "-I", "-c", _READER, str(most), rows, *more]
    quiet = {**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
    try:
        tried = subprocess.run(command, input=data, capture_output=True, check=False, env=quiet)
    except (OSError, ValueError):
        return False
    said = tried.stdout.decode("utf-8", errors="replace").strip()
    if said and "panic" not in said.lower():
        reason = one_line(said.splitlines()[0][:200])
        raise EscalaError(f"{path}: not a readable table ({reason}): mend the file, or write it again")
    if said or tried.returncode < 0 or tried.returncode == DAMAGED:
        raise EscalaError(
            f"{path}: the Parquet file is damaged, or unfolds to more than {most >> 30} GB: fetch, copy or write it "
            "again"
        )
    return tried.returncode == 0
