"""Whoever waits for compilation is told; code from the cache is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from escala.cli import warm
from escala.compiling import LINE
from escala.policies import SCHEDULERS
from tests.cli.program import Escala

DRAWN = """
import sys
import numpy as np
import escala.envs.core.batch
from escala.cli.terminal import progress
with progress() as begin:
    begin("drawing")
    for _ in range(2):
        escala.envs.core.batch.draw(np.zeros(2, np.uint64), np.zeros(2, np.int64))
"""


def test_compilation_is_one_line_and_what_is_cached_is_silent(tmp_path: Path) -> None:
    """One small function in an empty cache, without a terminal; then the same again."""
    for expected in (f"{LINE}\n", ""):
        environment = {**os.environ, "ESCALA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", DRAWN], capture_output=True, text=True, timeout=240, env=environment
        )
        assert done.returncode == 0 and done.stderr == expected, done.stderr


@pytest.mark.slow
def test_the_doctor_warms_the_usual_paths(escala_: Escala) -> None:
    outcome = escala_("doctor", "--warm", "--json")
    assert outcome.status == 0
    desks = [f"desk of {scheduler} + {shutdown}" for scheduler, shutdown in warm.ASKED]
    bounds = [f"bound of the {objective}" for objective in warm.BOUNDED]
    names = ["easy + timeout:300", "slurm", "escala/Slots-v0", *desks, *bounds]
    assert [name for name in names if f'"{name}"' not in outcome.out] == []


ONCE_WARM = """
import sys
import escala
from escala.live import Desk
desk = Desk(escala.read_platform("16x4:grid5000"), "easy", "timeout:300")
desk.warm()
jobs = {"submit_s": [60.0 * k for k in range(40)], "runtime_s": [600.0] * 40, "walltime_s": [900.0] * 40}
log = escala.Workload.from_jobs(jobs | {"cores": [1 + 7 * k % 13 for k in range(40)]})
for objective in ("bounded-slowdown", "waste"):
    found = escala.bound(log, "4x4:grid5000", objective, limit_s=1.0)
    assert found.lower > 0
print("numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_desk_and_a_bound_compile_nothing_once_the_doctor_has_warmed(escala_: Escala) -> None:
    """What must be translated imports Numba; jobs and a machine other than those that were warmed."""
    assert escala_("doctor", "--warm").status == 0
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    done = subprocess.run([sys.executable, "-c", ONCE_WARM], capture_output=True, text=True, timeout=300, env=env)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_what_is_warmed_exists() -> None:
    assert set(warm.SCHEDULERS) <= set(SCHEDULERS)


def test_an_unknown_scheduler_gets_the_near_names_alone(escala_: Escala, log: Path) -> None:
    outcome = escala_("simulate", log, "--platform", "4x1:none", "--scheduler", "eazy")
    assert outcome.status == 2 and "did you mean easy" in outcome.err and "escala policies" in outcome.err
    assert len(outcome.err) < 200
