"""A task of an array on Slurm: python -m MODULE ARRAY FOLDER PROGRAM, with its number in SLURM_ARRAY_TASK_ID.

It does the pieces of its file, on as many processes as it has processors, and adds what each found to another, a line
each. A task that was begun again goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from escala.engines import pool, there
from escala.engines.by_text import Read, entry_of, line_of
from escala.engines.on_slurm import ASKED, BEGUN, FOUND


def do(read: Read, array: str, folder: str, program: str) -> None:
    """Do what this task was asked. read: of its file."""
    with asked_in(array, read) as ((asked, pieces), done, tell):
        job = partial(there.there, job=asked, folder=folder, program=program)
        for piece, told in pool.each([piece for piece in pieces if asked.key(piece) not in done], processors(), job):
            tell(asked.key(piece), told)


def processors() -> int:
    """Of this task."""
    return max(1, int(os.environ.get("SLURM_CPUS_PER_TASK", "1")))


@contextmanager
def asked_in(
    array: str, read: Callable[[str], Any]
) -> Iterator[tuple[Any, set[str], Callable[[str, dict[str, Any]], None]]]:
    """What this task was asked, as it is read of its text, before it counts as begun; the keys of what it has found
    before; and what to tell what it finds, a line each."""
    place, number = Path(array), os.environ["SLURM_ARRAY_TASK_ID"]
    asked = read((place / f"{number}.{ASKED}").read_text())
    path = place / f"{number}.{FOUND}"
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    done = {entry[0] for line in whole.splitlines() if (entry := entry_of(line)) is not None}
    with path.open("ab", buffering=0) as file:
        file.truncate(len(whole))
        file.write(BEGUN)

        def tell(key: str, told: dict[str, Any]) -> None:
            file.write(line_of(key, told))

        yield asked, done, tell
