"""Looks at a Slurm: jobs first, then nodes, then reservations; where the CPUs of a job lie only if nothing else tells
it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from escala.bridges.slurm import json_output, text
from escala.bridges.slurm.commands import Run, version
from escala.bridges.slurm.seen import BOOTING, RUNNING, Seen
from escala.errors import EscalaError

FORMS = ("text", "json")
KNOWN = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11))
"""The versions of which recorded outputs are tested, and real daemons were acted on; others are read, and never acted
on."""


def tried() -> str:
    """These versions as text."""
    return ", ".join(map(shown, KNOWN))


def shown(version: tuple[int, int]) -> str:
    """A version as Slurm writes it."""
    return "{}.{:02d}".format(*version)


def is_known(version: tuple[int, int]) -> bool:
    """Is it one of the versions of which recorded outputs are tested?"""
    return version in KNOWN


class Reader:
    """run: the clients. form: text, the faster one, or json. clock: unix time, s."""

    def __init__(self, run: Run, form: str = "text", clock: Callable[[], float] = time.time) -> None:
        if form not in FORMS:
            raise EscalaError(f"--read {form}: give text, json, or rest:SOCKET")
        self.run, self._form, self._clock = run, form, clock
        self.version = version(run)

    @property
    def known(self) -> bool:
        """Is the version one of `KNOWN`?"""
        return is_known(self.version)

    def read(self) -> Seen:
        """One look; EscalaError where a client fails, or says what is not understood."""
        begun = time.monotonic()
        seen = self._text() if self._form == "text" else self._json()
        if not seen.nodes:
            raise EscalaError("scontrol show nodes: it names no node")
        return replace(seen, now_s=self._clock(), took_s=time.monotonic() - begun)

    def _text(self) -> Seen:
        left: list[str] = []
        jobs = text.jobs(self.run(*text.SQUEUE), left)
        nodes = text.nodes(self.run(*text.NODES), left)
        kept = text.reservations(self.run(*text.RESERVATIONS), left)
        seen = Seen(0.0, jobs, nodes, kept, left_out=tuple(left))
        return replace(seen, parts=text.parts(self.run(*text.DETAILS), jobs)) if uneven(seen) else seen

    def _json(self) -> Seen:
        left: list[str] = []
        jobs, parts = json_output.jobs(self.run("squeue", "--json"), left=left)
        old = self.version < (23, 2)
        nodes = json_output.nodes(
            self.run("sinfo", "--json") if old else self.run("scontrol", "show", "nodes", "--json"), left=left
        )
        kept = text.reservations(self.run(*text.RESERVATIONS), left)
        return Seen(0.0, jobs, nodes, kept, parts=parts, left_out=tuple(left))


def uneven(seen: Seen) -> bool:
    """Do the jobs' CPUs, laid evenly on their hosts, differ from what the nodes say is in use?"""
    counted = dict.fromkeys(seen.nodes, 0)
    for job in seen.jobs.values():
        if job.state not in (RUNNING, BOOTING) or not job.hosts:
            continue
        if job.cpus % len(job.hosts):
            return True
        each = job.cpus // len(job.hosts)
        for host in job.hosts:
            if host in counted:
                counted[host] += each
    return any(counted[name] != node.allocated and "COMPLETING" not in node.state for name, node in seen.nodes.items())
