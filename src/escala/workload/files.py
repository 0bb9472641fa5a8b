"""Logs written to disk whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from escala.errors import EscalaError


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
