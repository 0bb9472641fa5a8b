"""A task of an array on Slurm: python -m escala.campaigns.task ARRAY FOLDER PROGRAM, with its number in SLURM_ARRAY_TASK_ID.

It makes the runs of its file, on as many processes as it has processors, and adds what each found to another, a line each. A task that was
begun again goes on.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from escala.campaigns import pool
from escala.campaigns.as_text import read
from escala.campaigns.journal import entry_of, line_of
from escala.campaigns.on_slurm import ASKED, BEGUN, FOUND
from escala.campaigns.work import there, work


def main(array: str, folder: str, program: str) -> None:
    """Do what this task was asked."""
    place, number = Path(array), os.environ["SLURM_ARRAY_TASK_ID"]
    runs = read((place / f"{number}.{ASKED}").read_text())
    path = place / f"{number}.{FOUND}"
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    done = {entry[0] for line in whole.splitlines() if (entry := entry_of(line)) is not None}
    with path.open("ab", buffering=0) as file:
        file.truncate(len(whole))
        file.write(BEGUN)
        job = partial(there, job=work, folder=folder, program=program)
        n = max(1, int(os.environ.get("SLURM_CPUS_PER_TASK", "1")))
        for run, told in pool.each([run for run in runs if run.key not in done], n, job):
            file.write(line_of(run.key, told))


if __name__ == "__main__":
    main(*sys.argv[1:])
