"""Kills at file operations lose nothing. 200 of them: python -m tests.attacks.kills."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FEW = "simulate,convert,save,workload fetch"
MANY = "simulate,compare,generate,convert,save,report,site import,workload fetch"


@pytest.mark.slow
@pytest.mark.parametrize(("quick", "kills"), [(FEW, 8), pytest.param(MANY, 16, marks=pytest.mark.long)])
def test_a_kill_at_any_change_of_a_file_loses_nothing(quick: str, kills: int) -> None:
    """In a process of its own: children of a process with threads may hang."""
    asked = [sys.executable, "-m", "tests.attacks.kills", "--kills", str(kills), "--seed", "1", "--verbs", quick]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["held"] == kills and len(told["tried"]) == kills
