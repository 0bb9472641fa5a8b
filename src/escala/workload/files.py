"""Logs written to disk whole or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

from escala.writing import unwritable, whole_file
from escala.writing.places import ASIDE


def write_atomic(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write `path` as a whole or not at all (temporary file beside it, then rename); gzipped if the name ends in
    `.gz`."""
    target = Path(path)
    try:
        with whole_file(target) as aside, aside.open("wb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
                    stream.writelines(pieces)
            else:
                raw.writelines(pieces)
    except OSError as error:
        if target.name.startswith(ASIDE):  # of `output_file`, which names its target
            raise
        raise unwritable(target, error) from None
