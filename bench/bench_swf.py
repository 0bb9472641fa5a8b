"""The SWF reader on one million lines, plain and gzipped, with numbers and with text ids: `python bench/bench_swf.py
[LINES]`.

Processor time of all threads, median of three runs after one that compiles.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from escala.workload import Workload, read_workload, write_swf


def generated(lines: int) -> Workload:
    """A log of whole numbers, as the archive's are."""
    random = np.random.default_rng(1)
    return Workload.from_jobs(
        {
            "submit_s": np.cumsum(random.integers(0, 60, lines)),
            "wait_s": random.integers(0, 10_000, lines),
            "runtime_s": random.integers(1, 86_400, lines),
            "walltime_s": random.integers(1, 172_800, lines),
            "cores": random.integers(1, 512, lines),
            "user": random.integers(1, 500, lines).astype(str),
            "queue": random.integers(1, 9, lines).astype(str),
        }
    )


def lines_per_s(path: Path, lines: int) -> float:
    """Lines read per second of processor time."""
    read_workload(path)
    taken = []
    for _ in range(3):
        begin = time.process_time()
        workload = read_workload(path)
        taken.append(time.process_time() - begin)
        assert len(workload) == lines
    return lines / statistics.median(taken)


def main(lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain, packed, named = (Path(folder) / name for name in ("a.swf", "b.swf.gz", "c.swf"))
        workload = generated(lines)
        begin = time.process_time()
        write_swf(workload, plain)
        print(f"write plain: {lines / (time.process_time() - begin):,.0f} lines/s")
        write_swf(workload, packed)
        named.write_text(
            "".join(f"job_{line}\n" for line in plain.read_text().splitlines() if not line.startswith(";"))
        )
        for what, path in (("plain", plain), ("gzipped", packed), ("plain, text ids", named)):
            print(f"read {what}: {lines_per_s(path, lines):,.0f} lines/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
