"""What asking from outside does not cost: memory, and libraries that are not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import escala

ROOT = Path(__file__).resolve().parents[2]

MEMORY = """
import sys
from bench.live import POWER, columns
import escala
from escala.live import Desk, Snapshot
desk = Desk(escala.read_platform("1000x1", POWER), *sys.argv[1:3], rebuild=sys.argv[1] == "conservative")
desk.warm()
now, *rest = columns(1000, 1000)
for k in range(50):
    desk.decide(Snapshot.of(now + k, *rest))
told = open("/proc/self/status").read()
loaded = [m for m in ("numba", "scipy", "torch", "matplotlib") if m in sys.modules]
print(int(told.split("VmRSS:")[1].split()[0]) // 1024, loaded)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("scheduler", "shutdown", "most"), [("easy", "timeout:300", 165), ("conservative", "never", 200)]
)
def test_what_a_desk_of_a_thousand_nodes_and_jobs_holds(scheduler: str, shutdown: str, most: int) -> None:
    """In a process that compiles nothing, so that Numba stays out of it, MiB: 143 and 181 as measured."""
    # checked code is Numba's own
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    call = [sys.executable, "-c", MEMORY, scheduler, shutdown]
    for _ in range(2):  # the first one may compile
        outcome = subprocess.run(call, capture_output=True, text=True, timeout=300, cwd=ROOT, env=env)
    mebibytes, _, modules = outcome.stdout.strip().partition(" ")
    assert int(mebibytes) < most and modules == "[]", outcome


def test_asking_needs_no_torch() -> None:
    code = (
        "import sys, escala.live; escala.live.Desk('4x1'); print([m for m in ('torch', 'gymnasium', 'matplotlib') "
        "if m in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert outcome.stdout == "[]\n", outcome.stderr[-2000:]


WITHOUT_TORCH = """
import sys
import escala
from escala.live import Desk, Snapshot
agent = escala.load_agent(sys.argv[1])
desk = Desk("10x1:grid5000", **{sys.argv[2]: agent})
jobs = {"job_id": ["a"], "submit_s": [0.0], "walltime_s": [5.0], "cores": [1], "state": ["queued"]}
orders = desk.decide(Snapshot.of(0.0, jobs, {"power": ["on"] * 10}))
print([start.job_id for start in orders.starts], "torch" in sys.modules)
"""
EXPORTED = (
    "grid2019/agents/published-100-0",
    "deepscheduler2020/agents/orion-0.95-0",
    "deepshutdown2020/agents/orion-1-0",
)


@pytest.mark.parametrize("folder", EXPORTED)
def test_an_exported_agent_needs_no_torch(folder: str, tmp_path: Path) -> None:
    escala.load_agent(ROOT / "docs" / "studies" / folder).export(tmp_path / "agent")
    call = [
        sys.executable,
        "-c",
        WITHOUT_TORCH,
        str(tmp_path / "agent"),
        "shutdown" if "shutdown" in folder else "scheduler",
    ]
    outcome = subprocess.run(call, capture_output=True, text=True, timeout=300)
    assert outcome.stdout == "['a'] False\n", outcome.stderr[-2000:]
