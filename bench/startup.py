"""What a user waits for before anything happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from bench.measure import Case, child_seconds

_ONE_RUN = """
import escala
jobs = {"submit_s": [0.0, 1.0], "runtime_s": [10.0, 5.0], "walltime_s": [20.0, 9.0], "cores": [2, 1]}
workload = escala.Workload.from_jobs(jobs)
escala.simulate(workload, escala.read_platform("2x1:grid5000"), scheduler="easy", shutdown="timeout:300")
"""


def _python(code: str, **environment: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, env={**_usual(), **environment})


def _usual() -> dict[str, str]:
    """The environment as most have it: Python keeps its bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _cold_s() -> float:
    """By the clock: a second process compiles beside it."""
    with tempfile.TemporaryDirectory() as folder:
        begun_s = time.perf_counter()
        _python(_ONE_RUN, ESCALA_CACHE_DIR=folder)
        return time.perf_counter() - begun_s


def _help() -> None:
    subprocess.run([sys.executable, "-m", "escala", "--help"], check=True, stdout=subprocess.DEVNULL, env=_usual())


CASES = [
    Case("`import escala`", "≤ 0.3 s", lambda: (child_seconds(lambda: _python("import escala")), "s")),
    Case("`escala --help`", "≤ 0.5 s", lambda: (child_seconds(_help), "s")),
    Case(
        "a run of two jobs in a new process, compiled before",
        "≤ 0.4 s",
        lambda: (child_seconds(lambda: _python(_ONE_RUN)), "s"),
    ),
    Case("the same, nothing compiled before, by the clock", "≤ 10 s", lambda: (_cold_s(), "s")),
]
