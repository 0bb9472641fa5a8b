"""`python -m bench.large [--jobs N] [--times K] [--ids rows|gaps|texts] [--memory]`: a drawn log replayed as a stream,
and in memory.

10 000 cores at load 0.95, EASY; processor time and the most memory of `escala simulate` as a process of its own
(docs/how-to/large.md). `--times` lays the log so often behind itself, for logs that do not fit while they are drawn.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from bench.kernel import synthetic

IDS = {
    "rows": pl.col("job_id"),
    "gaps": (pl.col("job_id").cast(pl.Int64) * 3 + 7).cast(pl.String),
    "texts": pl.lit("j") + pl.col("job_id"),
}
COLUMNS = ("job_id", "submit_s", "runtime_s", "walltime_s", "cores")


def draw(path: Path, jobs: int, times: int, ids: str) -> None:
    """The log as Parquet."""
    synthetic(jobs, 10_000).jobs.select(COLUMNS).write_parquet(path.with_name("one.parquet"))
    log = pl.scan_parquet(path.with_name("one.parquet"))
    span = float(log.select(pl.col("submit_s").max()).collect().item()) + 10.0
    parts = [
        log.with_columns(
            submit_s=pl.col("submit_s") + k * span, job_id=(pl.col("job_id").cast(pl.Int64) + k * jobs).cast(pl.String)
        )
        for k in range(times)
    ]
    pl.concat(parts).with_columns(job_id=IDS[ids]).sink_parquet(path, row_group_size=500_000)


def measured(path: Path, *more: str) -> str:
    """Processor time and most memory of a replay."""
    command = [
        sys.executable,
        "-m",
        "escala",
        "simulate",
        str(path),
        "--platform",
        "1x10000",
        "--scheduler",
        "easy",
        *more,
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with status {status}")
    return f"{used.ru_utime + used.ru_stime:.1f} s of processor time, {used.ru_maxrss / 1024:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--ids", choices=IDS, default="rows")
    parser.add_argument("--memory", action="store_true", help="in memory as well")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        drawing = multiprocessing.get_context("spawn").Process(
            target=draw, args=(path, given.jobs, given.times, given.ids)
        )
        drawing.start()  # in a process of its own: what this one holds counts in the most of its children
        drawing.join()
        size = path.stat().st_size / 1e6
        print(f"{given.jobs * given.times:,} jobs, ids: {given.ids}, a file of {size:.0f} MB", flush=True)
        print("as a stream:", measured(path, "--stream", "--out", f"{folder}/out"), flush=True)
        if given.memory:
            print("in memory:", measured(path), flush=True)


if __name__ == "__main__":
    main()
