"""Studies that are ended from outside."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


def _there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc whether a process runs")
def test_a_study_that_is_killed_leaves_no_process_at_work(tmp_path: Path) -> None:
    study = subprocess.Popen([sys.executable, str(Path(__file__).with_name("study_killed.py")), str(tmp_path)])
    end = time.monotonic() + 50
    while not (tmp_path / "working").exists() or not (tmp_path / "working").read_text():
        assert time.monotonic() < end and study.poll() is None
        time.sleep(0.1)
    worker = int((tmp_path / "working").read_text())
    assert _there(worker)
    study.kill()
    study.wait()
    while _there(worker):
        assert time.monotonic() < end, "the worker of a killed study works on"
        time.sleep(0.1)
