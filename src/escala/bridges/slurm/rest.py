"""Looks at a Slurm through slurmrestd: JSON over HTTP at a unix socket, in the newest of the versions that both sides
know."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from escala.bridges.slurm import json_output
from escala.bridges.slurm.commands import MOST_BYTES, Failed, Run
from escala.bridges.slurm.reader import is_known
from escala.bridges.slurm.seen import Seen
from escala.errors import EscalaError, one_line, quoted

VERSIONS = tuple(f"v0.0.{k}" for k in range(44, 37, -1))
"""Of its interface, newest first: Slurm 22.05 answers up to v0.0.38, 24.11 up to v0.0.42."""

PIECE_BYTES = 1 << 20


class Rest:
    """path: of the socket. limit_s: what each answer may take."""

    def __init__(self, path: Path, limit_s: float = 10.0) -> None:
        self.path, self._limit_s = path, limit_s

    def get(self, what: str) -> tuple[int, str]:
        """Status and text of an answer; EscalaError where there is none in time."""
        end = time.monotonic() + self._limit_s
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
                there.settimeout(self._limit_s)
                there.connect(str(self.path))
                asked = http.client.HTTPConnection("localhost", timeout=self._limit_s)
                asked.sock = there
                asked.request("GET", what, headers={"Connection": "close"})
                answer = asked.getresponse()
                return answer.status, self._body(answer, there, end).decode(errors="replace")
        except TimeoutError:
            raise Failed(
                f"slurmrestd: {what}: no answer within {self._limit_s:g} s: see whether slurmctld is well, or give "
                "--limit"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            why = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
            raise Failed(
                f"slurmrestd: {self.path}: {one_line(why)}: see whether it runs and lets this user ask"
            ) from None

    @staticmethod
    def _body(answer: http.client.HTTPResponse, there: socket.socket, end: float) -> bytes:
        heard = bytearray()
        while piece := answer.read1(PIECE_BYTES):
            heard += piece
            if len(heard) > MOST_BYTES:
                raise Failed(f"slurmrestd: an answer of more than {MOST_BYTES >> 20} MiB")
            if answer.isclosed():  # Python 3.13 and later close the socket with the last piece
                break
            there.settimeout(max(end - time.monotonic(), 1e-3))
        if answer.length:
            raise Failed("slurmrestd: half an answer: it is not used")
        return bytes(heard)


class RestReader:
    """run: Slurm's clients, where something is to be done too. version: of Slurm, as the server tells it; api: that of
    its interface."""

    def __init__(self, rest: Rest, run: Run | None = None, clock: Callable[[], float] = time.time) -> None:
        self._rest, self.run, self._clock = rest, run, clock
        self.api, self.version = self._found()

    @property
    def known(self) -> bool:
        """Is the version one of `KNOWN`?"""
        return is_known(self.version)

    def _found(self) -> tuple[str, tuple[int, int]]:
        why = ""
        for api in VERSIONS:
            status, text = self._rest.get(f"/slurm/{api}/ping")
            if status == 200:
                return api, _version(text)
            why = f"{status} {one_line(text.strip()[:100])}"
        raise EscalaError(
            f"slurmrestd: {self._rest.path}: it answers to none of {VERSIONS[-1]} to {VERSIONS[0]} ({why}): use "
            "--read text"
        )

    def read(self) -> Seen:
        """One look; EscalaError where the server fails, or says what is not understood."""
        begun = time.monotonic()
        left: list[str] = []
        jobs, parts = json_output.jobs(self._told("jobs"), f"slurmrestd {self.api} jobs", left)
        nodes = json_output.nodes(self._told("nodes"), f"slurmrestd {self.api} nodes", left)
        kept = json_output.reservations(self._told("reservations"), f"slurmrestd {self.api} reservations")
        if not nodes:
            raise EscalaError("slurmrestd: it names no node")
        return Seen(self._clock(), jobs, nodes, kept, time.monotonic() - begun, parts, tuple(left))

    def _told(self, what: str) -> str:
        status, text = self._rest.get(f"/slurm/{self.api}/{what}")
        if status != 200:
            raise Failed(f"slurmrestd: {what}: status {status}: {_why(text)}")
        return text


def _why(text: str) -> str:
    """The first error that an answer names, or how it begins."""
    try:
        named = json_output.first_error(json.loads(text))
    except (ValueError, RecursionError):
        named = ""
    return named or one_line(text.strip()[:100]) or "it says nothing"


def _version(text: str) -> tuple[int, int]:
    """Of Slurm, from the answer to a ping: (22, 5)."""
    try:
        meta: Any = json.loads(text)["meta"]
        release = str((meta.get("slurm") or meta["Slurm"])["release"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        release = ""
    found = re.match(r"(\d{2})\.(\d{2})\b", release)
    if found is None:
        raise EscalaError(
            f"slurmrestd: its answer to a ping names no release of Slurm ({quoted(text[:60])}): name the socket of "
            "slurmrestd"
        )
    return int(found[1]), int(found[2])
