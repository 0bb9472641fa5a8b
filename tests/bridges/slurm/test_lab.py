"""What the tests beside a real Slurm rely on; nearly none of it needs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from escala.bridges.slurm.loop import JOURNAL
from tests.bridges.slurm.lab import PROGRAMS, lab, once_watched, until


def test_nothing_is_done_where_nobody_watches_in_time(tmp_path: Path) -> None:
    done: list[int] = []
    refused = pytest.raises(AssertionError, match=r"fewer than 2 looks within 0\.5 s: nothing was done")
    with refused, once_watched(tmp_path, lambda: done.append(1), limit_s=0.5):
        (tmp_path / JOURNAL).write_text('{"kind":"look"}\n')
    assert done == []
    with once_watched(tmp_path, lambda: done.append(1), looks=1, limit_s=5):
        pass
    assert done == [1]


def test_what_is_tried_beside_a_real_slurm_is_compiled_before() -> None:
    """On a cold cache that takes longer than the jobs of those tests last."""
    for path in Path(__file__).parent.glob("test_real*.py"):
        assert 'pytest.mark.usefixtures("compiled")' in path.read_text(encoding="utf-8"), path.name


BEGUN = """
import sys, time
from pathlib import Path
from tests.bridges.slurm.lab import lab
with lab(Path(sys.argv[1]), nodes=2) as real:
    real.submit(seconds=60)
    print("up", flush=True)
    time.sleep(300)
"""
RECORDED = """
import sys, time
from pathlib import Path
from tests.bridges.slurm.lab import free_ports
from tests.golden.slurm.record import Slurm
run = {"nodes": [{"cpus": 1, "memory_mb": 4000}] * 2, "config": []}
slurm = Slurm(Path(sys.argv[1]), run, free_ports(3))
with slurm.up():
    slurm.submit("--wrap=sleep 60")
    print("up", flush=True)
    time.sleep(300)
"""
"""The same by who records what a Slurm does."""


def _daemons(folder: Path) -> list[str]:
    """What of a lab lives: its daemons, and what runs its jobs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "comm").read_text().strip())
        except OSError:  # has ended, or is another's
            continue
    return [name for name in found if name in (*PROGRAMS, "slurmstepd", "sleep")]


@pytest.mark.slurm
@pytest.mark.parametrize("begun", [BEGUN, RECORDED])
def test_a_lab_ends_with_who_began_it(begun: str, tmp_path: Path) -> None:
    """Killed, it once left the daemons for ever."""
    with lab(tmp_path / "looked", nodes=1):  # skipped where there is no Slurm
        assert {"slurmctld", "slurmd", "munged"} <= set(_daemons(tmp_path / "looked"))
    assert _daemons(tmp_path / "looked") == []
    killed = tmp_path / "killed"
    killed.mkdir()
    with subprocess.Popen([sys.executable, "-c", begun, killed], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            assert owner.stdout.readline() == "up\n" and len(_daemons(killed)) >= 4
        finally:
            owner.kill()
    assert until(lambda: not _daemons(killed), 15), _daemons(killed)
