"""A real Slurm for a test: emulated nodes on this machine, started and ended by the script of the examples; what acts
on it, and dies.

ESCALA_SLURM=need in the environment: a Slurm that is missing, or does not start, fails the tests in place of skipping
them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.bridges.slurm.shape import LOOK

SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "slurm" / "lab.sh"
PROGRAMS = ("slurmctld", "slurmd", "munged", "squeue", "scontrol")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
LIMIT_S, WATCHED_S = 20, 60
WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=3,switch_on_s=5"
MOVING = r"(RunTime|SchedNodeList|CPULoad|FreeMem|LastSchedEval|Scheduler|StartTime|EndTime|Reason)=\S*|\+PLANNED"


class Lab:
    """folder: of the Slurm. Commands are run with a time limit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "SLURM_TIME_FORMAT": "%s"}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, env=self.environment, cwd=self.folder, check=True
        )
        return done.stdout

    def submit(self, *options: str, seconds: float = 5) -> str:
        """A job that sleeps; its number."""
        return self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap=sleep {seconds}").strip()

    def state(self) -> str:
        """All that the controller keeps of jobs, nodes, reservations and partitions, without what changes by itself."""
        kinds = ("jobs", "nodes", "reservations", "partitions")
        return "".join(
            re.sub(MOVING, "", self.run("scontrol", "--oneliner", "--details", "show", kind)) for kind in kinds
        )

    def jobs(self) -> dict[str, tuple[str, int]]:
        """Job -> state and start, those that have ended included."""
        lines = self.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%S").splitlines()
        return {
            number: (state, int(start))
            for number, state, start in (line.split("|") for line in lines)
            if start.isdigit()
        }

    def began(self, job: str) -> bool:
        return self.jobs().get(job, ("",))[0] in ("RUNNING", "COMPLETING", "COMPLETED")

    def nodes(self) -> dict[str, str]:
        """Node -> its state, as sinfo writes it short."""
        return dict(line.split("|") for line in self.run("sinfo", "-h", "-N", "-o", "%N|%t").splitlines())

    def leases(self) -> dict[str, str]:
        """Node -> when its lease began."""
        told = self.run("scontrol", "--oneliner", "show", "reservations")
        return dict(re.findall(r"ReservationName=escala_(n\d+) StartTime=(\d+)", told))

    def _controller(self) -> int:
        return int((self.folder / "run" / "slurmctld.pid").read_text())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The controller is ended, and begun again with its state."""
        number = self._controller()
        os.kill(number, signal.SIGTERM)
        assert until(lambda: not Path(f"/proc/{number}").exists(), LIMIT_S)
        yield
        self.run(shutil.which("slurmctld", path=PATH) or "slurmctld")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The controller answers nobody."""
        number = self._controller()
        os.kill(number, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(number, signal.SIGCONT)


def until(what: Callable[[], object], limit_s: float) -> bool:
    """Has it come true within so many seconds?"""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.3)
    return False


class Acting:
    """`escala beside slurm` as processes of their own, one at a time, that can be killed within a command. folder: its
    own. given: the commands that Slurm has carried out."""

    def __init__(self, real: Lab, folder: Path, home: Path, *options: str) -> None:
        self.real, self.folder = real, folder / "beside"
        self._clients, self._said = folder / "bin", folder / "said"
        self._clients.mkdir(parents=True)
        self._given, self._when = folder / "given", folder / "when"
        scontrol = shutil.which("scontrol")
        script = self._clients / "scontrol"
        script.write_text(SCONTROL.format(given=self._given, when=self._when, scontrol=scontrol))
        script.chmod(0o755)
        path = f"{self._clients}:{os.environ['PATH']}"
        self._environment = os.environ | {
            "SLURM_CONF": real.environment["SLURM_CONF"],
            "PATH": path,
            "XDG_STATE_HOME": str(home),
        }
        self._words = [
            sys.executable,
            "-m",
            "escala",
            "beside",
            "slurm",
            "--power",
            WATTS,
            "--folder",
            str(self.folder),
            "--i-am-root",
        ]
        self._words += ["--period", "1", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, *options: str, when: str = "") -> None:
        """when: "before PATTERN" or "after PATTERN" of a command at which it is killed."""
        self._when.write_text(f"{when}\n" if when else "")
        with open(self._said, "ab") as said:
            self._process = subprocess.Popen([*self._words, *options], stdout=said, stderr=said, env=self._environment)

    def died(self, limit_s: float = 60) -> bool:
        """Has it been killed, by the command that it was to die of?"""
        assert self._process is not None
        try:
            return self._process.wait(limit_s) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def end(self, how: int = signal.SIGKILL) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(LIMIT_S)

    @property
    def given(self) -> list[str]:
        return self._given.read_text().splitlines() if self._given.exists() else []

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def records(self) -> list[dict[str, Any]]:
        """Of its journal, the last only once it is whole."""
        path = self.folder / JOURNAL
        return [*records(path)] if path.exists() and path.stat().st_size else []

    @property
    def looks(self) -> list[dict[str, Any]]:
        return [one for one in self.records if one["kind"] == LOOK]


@contextmanager
def acting(real: Lab, folder: Path, home: Path, *options: str) -> Iterator[Acting]:
    """What acts, killed at the end if it still lives."""
    found = Acting(real, folder, home, *options)
    try:
        yield found
    finally:
        found.end()


SCONTROL = """#!/bin/bash
case $1 in update | create | delete) ;; *) exec {scontrol} "$@" ;; esac
read -r moment pattern < {when}
if [ -n "$pattern" ] && [[ "$*" == *$pattern* ]]; then
    : > {when}
    [ "$moment" = after ] && {scontrol} "$@" && echo "$*" >> {given}
    kill -9 $PPID
    exit 1
fi
{scontrol} "$@" && echo "$*" >> {given}
"""
"""Stands before the real one: notes what was carried out, and kills who called it at a moment that was named."""


@contextmanager
def lab(
    folder: Path, nodes: int = 8, cpus: int = 1, extra: str = "", partitions: str = "", resume_s: int = 20
) -> Iterator[Lab]:
    """Up, and down at the end. extra, partitions: more lines of slurm.conf. resume_s: how long Slurm waits for a node
    that boots. Without Slurm the test is skipped, with the reason."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    if missing:
        _without(
            f"no Slurm here: {missing[0]} is missing (Debian: slurmctld slurmd slurm-client munge "
            "slurm-wlm-basic-plugins)"
        )
    environment = os.environ | {
        "LAB_PORT": str(free_ports(nodes + 1)),
        "LAB_BOOT_S": "1",
        "LAB_EXTRA": extra,
        "LAB_PARTITIONS": partitions,
    }
    environment["LAB_RESUME_S"] = str(resume_s)
    try:
        with kept([str(folder), str(nodes), str(cpus)], environment):
            yield Lab(folder)
    except NoSlurm as error:
        _without(str(error))


class NoSlurm(Exception):
    """It did not start."""


@contextmanager
def kept(words: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Up, by what the script of labs is told (words, environment), and down when this process leaves, however it ends:
    the daemons belong to nobody, so `KEEPER` waits for the end of a pipe that this process alone holds. NoSlurm where
    it does not start."""
    with subprocess.Popen(
        ["bash", "-c", KEEPER, str(SCRIPT), *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    ) as keeper:  # fmt: skip
        assert keeper.stdin is not None and keeper.stdout is not None
        said = list[str]()
        for line in keeper.stdout:
            said.append(line)
            if line.startswith(STATUS):
                break
        try:
            if said[-1:] != [f"{STATUS} 0\n"]:
                raise NoSlurm(f"no Slurm can be started here: {''.join(said).strip()[-300:]}")
            yield
        finally:
            keeper.stdin.close()
            keeper.wait(60)


STATUS = "status"
KEEPER = f"""
"$0" up "$@" 2>&1 < /dev/null
status=$?
trap "" PIPE
echo "{STATUS} $status"
exec > /dev/null 2>&1
read -r
"$0" down "$1"
"""
"""Begins a lab, says its status, and ends it when its own input ends."""


def _without(why: str) -> None:
    if os.environ.get("ESCALA_SLURM") == "need":
        pytest.fail(why)
    pytest.skip(why)


def free_ports(count: int) -> int:
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
def once_watched(folder: Path, act: Callable[[], object], looks: int = 2, limit_s: float = WATCHED_S) -> Iterator[None]:
    """Do something in a thread when a journal has so many looks; AssertionError, and nothing is done, where it never
    gets them."""
    path, acted = folder / JOURNAL, list[bool]()
    ended = threading.Event()

    def watched() -> bool:
        return path.exists() and path.read_text().count('"look"') >= looks

    def wait() -> None:
        if until(lambda: watched() or ended.is_set(), limit_s) and watched():
            act()
            acted.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LIMIT_S + 5)
    assert acted, f"{path}: fewer than {looks} looks within {limit_s:g} s: nothing was done"
