"""What the author of R1 published: seven job lists and result tables, read from a folder that the user has."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from escala.envs.slots.lists import JobLists, given_lists
from escala.errors import EscalaError
from escala.platform import Platform
from escala.reading import read_all
from escala.workload import Workload

LOADS = (10, 40, 70, 100, 130, 160, 190)
PAPER_OF = {"sjf": "SJF", "packer": "Packer", "tetris": "Tetris", "easy": "EASY", "ppo": "PPO", "random": "Random"}
"""Our names -> the author's."""

PLACES = ("ESCALA_TRACES",)


def folder_of_author(given: Path | None = None) -> Path | None:
    """The folder with `workloads.csv.gz` and `results/paper.csv`: the one given, $ESCALA_TRACES/author/r1-bench, or
    traces beside the repository; None where there is none."""
    if given is not None:
        if not (given / "workloads.csv.gz").is_file():
            raise EscalaError(
                f"{given}: holds no workloads.csv.gz of the author of R1; give the folder r1-bench, or leave it out"
            )
        return given
    roots = [Path(os.environ[name]) for name in PLACES if os.environ.get(name)]
    roots += [parent / "shared" / "traces" for parent in Path(__file__).resolve().parents]
    found = [root / "author" / "r1-bench" for root in roots]
    return next((folder for folder in found if (folder / "workloads.csv.gz").is_file()), None)


def published_lists(folder: Path) -> JobLists:
    """The seven lists, in the order of `LOADS`, on a pool of 10."""
    jobs = pl.read_csv(BytesIO(read_all(folder / "workloads.csv.gz")))
    lists = []
    for load in LOADS:
        rows = jobs.filter(pl.col("set") == load)
        columns = {
            "job_id": rows["id"].cast(pl.String),
            "submit_s": rows["subtime"].cast(pl.Float64),
            "runtime_s": rows["runtime"].cast(pl.Float64),
            "walltime_s": rows["walltime"].cast(pl.Float64),
            "cores": rows["res"],
        }
        lists.append(Workload.from_jobs(columns, name=f"load {load}"))
    return given_lists(lists, Platform.uniform(10, 1, power=None, name="pool of 10"), 1.0, "walltime")


def published_table(folder: Path) -> pl.DataFrame:
    """The author's results: one row a load and policy."""
    return pl.read_csv(folder / "results" / "paper.csv")


def first_submissions(lists: JobLists) -> np.ndarray:
    """Units before the first submission of each list: the author counts makespans from time 0."""
    return np.array([int(lists.job["submit"][row]) // 1_000_000 for row in lists.first[:-1]])
