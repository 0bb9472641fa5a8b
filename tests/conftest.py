"""Shared fixtures."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.bridges.slurm.lab import Lab

_TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
_SLURM = Path(__file__).parent / "unit" / "campaigns" / "stand_in.py"

# a run in the background: the processes that tests interrupt would not hear it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says how busy the machine is
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real logs and reference outputs, beside the repository; tests that need it are skipped where it is
    absent."""
    if not _TRACES.is_dir():
        pytest.skip(f"no trace folder at {_TRACES} (set ESCALA_TRACES to point to one)")
    return _TRACES


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a stand-in for Slurm, whose clients are on the PATH."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for client in ("sbatch", "squeue", "scancel"):
        path = folder / client
        path.write_text(f"#!{sys.executable}\n{_SLURM.read_text()}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_STAND_IN", str(folder))
    return folder


@pytest.fixture(scope="session")
def real_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A real Slurm of two emulated nodes of two cores each, for all tests that run their work on it."""
    from tests.bridges.slurm.lab import lab

    with lab(tmp_path_factory.mktemp("lab"), nodes=2, cpus=2) as found:
        yield found


@pytest.fixture
def on_real_slurm(real_slurm: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's clients ask the real one."""
    monkeypatch.setenv("SLURM_CONF", real_slurm.environment["SLURM_CONF"])
