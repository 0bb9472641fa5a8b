"""Clients of Slurm, run one at a time: no shell, a time limit, a small environment, and names that can be nothing but
names."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import stat
import subprocess
import time
from collections.abc import Callable

from escala.errors import EscalaError, one_line, quoted

Run = Callable[..., str]
"""Called with the words of a command; gives what it printed. EscalaError for one that fails."""

CLIENTS = ("squeue", "scontrol", "sinfo")
KEPT = ("PATH", "HOME", "SLURM_CONF", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR")
MOST_BYTES, PIECE_BYTES = 1 << 28, 1 << 20
NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}")
NOT_LET = re.compile(r"Invalid user id|Access/permission denied")
RIGHTS = (
    "Slurm does not let this user do that (order needs AdminLevel=Operator, switching nodes AdminLevel=Administrator)"
)
JOB = re.compile(r"[1-9]\d{0,9}(_\d{1,9})?")


def name(text: str) -> str:
    """The same, if it can stand in a command as the name of a node, partition, user or reservation."""
    if NAME.fullmatch(text) is None:
        raise EscalaError(
            f"name {quoted(text)}: letters, digits, and _ . - inside are allowed: nothing is done with it"
        )
    return text


def job(text: str) -> str:
    """The same, if it can stand in a command as the number of a job."""
    if JOB.fullmatch(text) is None:
        raise EscalaError(
            f"job {quoted(text)}: a number, or an array's and its task's as 12_3, is allowed: nothing is done with it"
        )
    return text


class Failed(EscalaError):
    """A client that failed, did not end in time, or printed too much."""


class Clients:
    """The clients on the PATH. limit_s: what each may take.

    Raises:
        EscalaError: one is missing, or others than its owner may write it.
    """

    def __init__(self, limit_s: float = 10.0) -> None:
        self._limit_s = limit_s
        self._paths = {client: _found(client) for client in CLIENTS}
        self._environment = {key: os.environ[key] for key in KEPT if key in os.environ}
        self._environment |= {"LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}

    def __call__(self, client: str, *words: str) -> str:
        command = [self._paths[client], *words]
        shown = " ".join([client, *words[:3]])
        try:
            status, out, err = self._run(command, shown)
        except subprocess.TimeoutExpired:
            raise Failed(
                f"{shown}: no answer within {self._limit_s:g} s: see whether slurmctld is well, or give --limit"
            ) from None
        except OSError as error:
            raise Failed(f"{shown}: cannot be run ({(error.strerror or str(error)).lower()})") from None
        if status != 0:
            why = one_line((err or out).decode(errors="replace").strip()[:300]) or "it says nothing"
            raise Failed(f"{shown}: status {status}: {why}{f': {RIGHTS}' if NOT_LET.search(why) else ''}")
        return out.decode(errors="replace")

    def _run(self, command: list[str], shown: str) -> tuple[int, bytearray, bytearray]:
        """Status, output and errors of a command, which is ended when it takes too long or prints too much."""
        end = time.monotonic() + self._limit_s
        pipe = subprocess.PIPE
        with (
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=self._environment
            ) as process,
            selectors.DefaultSelector() as ready,
        ):
            out, err = bytearray(), bytearray()
            try:
                for stream, heard in ((process.stdout, out), (process.stderr, err)):
                    assert stream is not None  # it is a pipe
                    ready.register(stream, selectors.EVENT_READ, heard)
                while ready.get_map():
                    for key, _ in ready.select(_left(end, command)):
                        piece = os.read(key.fd, PIECE_BYTES)
                        key.data.extend(piece)
                        if not piece:
                            ready.unregister(key.fileobj)
                        if len(key.data) > MOST_BYTES:
                            raise Failed(f"{shown}: printed more than {MOST_BYTES >> 20} MiB")
                status = process.wait(_left(end, command))
            except BaseException:
                process.kill()
                raise
        return status, out, err


def _left(end: float, command: list[str]) -> float:
    """Seconds until then; TimeoutExpired where there are none."""
    left = end - time.monotonic()
    if left <= 0:
        raise subprocess.TimeoutExpired(command, 0)
    return left


def _found(client: str) -> str:
    path = shutil.which(client)
    if path is None:
        raise EscalaError(
            f"{client}: no such program on the PATH: run on a node with Slurm's clients (Debian: slurm-client)"
        )
    path = os.path.realpath(path)
    if os.stat(path).st_mode & stat.S_IWOTH:
        raise EscalaError(f"{path}: everybody may write this program: mend its permissions")
    return path


def version(run: Run) -> tuple[int, int]:
    """Of the clients, as (22, 5)."""
    printed = run("squeue", "--version")
    found = re.search(r"\b(\d{2})\.(\d{2})\.\d+", printed)
    if found is None:
        raise EscalaError(f"squeue --version: {quoted(printed.strip())} names no version such as 22.05.8")
    return int(found[1]), int(found[2])
