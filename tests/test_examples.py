"""Every example runs and prints what stands beside it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import escala

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_print_what_stands_beside_them(path: Path) -> None:
    outcome = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=240)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert outcome.stdout == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_the_example_policy_is_the_greedy_policy_of_the_same_score() -> None:
    small_first = runpy.run_path(str(EXAMPLES[0].with_name("own_policy.py")))["small_first"]
    workload, platform = (
        escala.workload.generate.grid5000(cluster="orion", days=7, seed=3),
        escala.read_platform("orion"),
    )
    own, built_in = (
        escala.simulate(workload, platform, scheduler, "timeout:300").jobs for scheduler in (small_first, "saf-fit")
    )
    assert own.select("job_id", "start_s", "nodes").equals(built_in.select("job_id", "start_s", "nodes"))
