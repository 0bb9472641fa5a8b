"""A real Slurm for a test: emulated nodes on this machine, started and ended by the script of the examples."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from escala.bridges.slurm.loop import JOURNAL

SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "slurm" / "lab.sh"
PROGRAMS = ("slurmctld", "slurmd", "munged", "squeue", "scontrol")
LIMIT_S = 20


class Lab:
    """folder: of the Slurm. Commands are run with a time limit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "SLURM_TIME_FORMAT": "%s"}

    def run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=self.environment, cwd=self.folder, check=True)
        return done.stdout

    def submit(self, *options: str, seconds: float = 5) -> str:
        """A job that sleeps; its number."""
        return self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap=sleep {seconds}").strip()


@contextmanager
def lab(folder: Path, nodes: int = 8, cpus: int = 1, extra: str = "", partitions: str = "") -> Iterator[Lab]:
    """Up, and down at the end. extra, partitions: more lines of slurm.conf. Without Slurm the test is skipped, with the reason."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        pytest.skip(f"no Slurm here: {missing[0]} is missing (Debian: slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins)")
    environment = os.environ | {"LAB_PORT": str(_ports(nodes + 1)), "LAB_BOOT_S": "1", "LAB_EXTRA": extra, "LAB_PARTITIONS": partitions}
    command = [str(SCRIPT), "up", str(folder), str(nodes), str(cpus)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
        if done.returncode:
            pytest.skip(f"no Slurm can be started here: {done.stderr.strip()[-300:]}")
        yield Lab(folder)
    finally:
        subprocess.run([str(SCRIPT), "down", str(folder)], capture_output=True, timeout=60, check=False)


def _ports(count: int) -> int:
    """The first of so many ports in a row that are free now."""
    for _ in range(50):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first = int(probe.getsockname()[1])
        if first + count < 65535 and all(_free(first + k) for k in range(count)):
            return first
    pytest.skip("no free ports in a row")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def once_watched(folder: Path, act: Callable[[], object], looks: int = 2) -> Iterator[None]:
    """Do something in a thread when a journal has so many looks."""

    def wait() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and not (path.exists() and path.read_text().count('"look"') >= looks):
            time.sleep(0.1)
        act()

    path = folder / JOURNAL
    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join(90)
