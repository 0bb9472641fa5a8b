"""Bytes from and to files: plain or gzipped, with the errors of the operating system turned into one clear line."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from escala.errors import EscalaError

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """The content of `path` as a stream of bytes, unpacked if it is gzipped (found by content, not by name)."""
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise EscalaError(f"{path}: no such file: check the path") from None
    except IsADirectoryError:
        raise EscalaError(f"{path}: is a folder: give one file in it") from None
    except PermissionError:
        raise EscalaError(f"{path}: may not be read: check its permissions") from None
    except (OSError, ValueError) as error:
        raise EscalaError(f"{path}: cannot be opened ({error}): check the path") from None
    with raw:
        try:
            packed = raw.peek(2)[:2] == GZIP_MAGIC
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
        except EOFError:
            raise EscalaError(f"{path}: the gzip file ends too early: fetch or copy it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise EscalaError(f"{path}: the gzip file is damaged ({error}): fetch or copy it again") from None
        except OSError as error:
            raise EscalaError(f"{path}: cannot be read ({error.strerror or error}): check the disk and the path") from None


def read_head(path: Path, size: int = 1 << 18) -> bytes:
    """The first `size` bytes (unpacked)."""
    with reading(path) as stream:
        return stream.read(size)


def read_all(path: Path) -> bytes:
    """The whole content (unpacked)."""
    with reading(path) as stream:
        return stream.read()


def line_breaks(data: bytes) -> bytes:
    """The same lines, where a carriage return alone ends some of them (old Macintosh files); unchanged where none does."""
    if data.count(b"\r") == data.count(b"\r\n"):
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def read_text(path: Path) -> str:
    """The whole content as text; a byte-order mark goes, bytes that are not UTF-8 become replacement characters (names in old logs)."""
    return read_all(path).decode("utf-8-sig", errors="replace")


def write_atomic(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write `path` as a whole or not at all (temporary file beside it, then rename); gzipped if the name ends in `.gz`."""
    target = Path(path)
    try:
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise EscalaError(f"{target}: cannot be written ({error.strerror}): check that the folder exists and is writable") from None
    try:
        with os.fdopen(handle, "wb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
                    stream.writelines(pieces)
            else:
                raw.writelines(pieces)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(scratch, 0o666 & ~mask)
        os.replace(scratch, target)
    except OSError as error:
        raise EscalaError(f"{target}: cannot be written ({error.strerror}): check the disk and the path") from None
    finally:
        Path(scratch).unlink(missing_ok=True)
