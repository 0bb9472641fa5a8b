"""How a figure is measured: median of several runs, in processor time, after one run that compiles and warms up."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One row of docs/performance.md: what is measured, what it must reach, and the measurement (value, unit)."""

    what: str
    must: str
    measure: Callable[[], tuple[float, str]]


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median processor time of `work` (all threads), s."""
    work()
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def child_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median processor time of the processes that `work` starts and waits for, s."""
    taken = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        work()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def machine() -> str:
    """The machine by cores and processor only."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        name = names[0] if names else name
    return f"{os.cpu_count()} cores, {name}, Python {platform.python_version()}"
