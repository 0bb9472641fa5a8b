"""Carries out what a guard has let through, and nothing else; says what it will do before it does it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from escala.bridges.slurm.commands import NAME, Run, job, name
from escala.bridges.slurm.guard import FREE, LEASE, NICE, OFF_NODE, RENEW, WAKE, Allowed
from escala.bridges.slurm.seen import PENDING, Seen
from escala.bridges.slurm.snapshots import PREFIX
from escala.errors import EscalaError, one_line, quoted

CHANGES = "changes.jsonl"
Command = tuple[str, ...]


def commands(one: Allowed, user: str, lease_s: float) -> list[Command]:
    """The commands of one thing that may be done."""
    kind, what, value = one.wanted
    node, kept, end = f"nodename={what}", f"reservationname={PREFIX}{what}", f"endtime=now+{lease_s:.0f}"
    name(what) if kind != NICE else job(what)
    lease = ("scontrol", "create", "reservation", kept, "starttime=now", end, f"nodes={what}", f"user={name(user)}", "flags=ignore_jobs")
    known: dict[str, list[Command]] = {
        NICE: [("scontrol", "update", f"jobid={what}", f"nice={value}")],
        OFF_NODE: [lease, ("scontrol", "update", node, "state=power_down")],
        LEASE: [lease],
        RENEW: [("scontrol", "update", kept, end)],
        WAKE: [("scontrol", "update", node, "state=power_up")],
        FREE: [("scontrol", "delete", kept)],
    }
    return known[kind]


class Changes:
    """What was changed of jobs, written before it is done: job -> the nice that it had first, the nice that we gave it last."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CHANGES
        self.jobs: dict[str, tuple[int, int]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            told = json.loads(line)
            name, old, new = str(told["job"]), int(told["old"]), int(told["new"])
        except (ValueError, TypeError, KeyError, RecursionError):  # a line that was not finished: its command was never given
            return
        self.jobs[name] = (self.jobs.get(name, (old, new))[0], new)

    def will(self, job: str, old: int, new: int) -> None:
        """Before a job is changed: on the disk when this returns."""
        line = json.dumps({"job": job, "old": old, "new": new})
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(line)

    def undo(self, seen: Seen) -> list[tuple[str, int]]:
        """Jobs that still wait with the nice that we gave them, and what they had before."""
        mine = [(seen.jobs[name], old, new) for name, (old, new) in self.jobs.items() if name in seen.jobs and old != new]
        return [(job.job_id, old) for job, old, new in mine if job.state == PENDING and job.nice == new]


class Actor:
    """run: the clients. seal: of the guard whose permissions count. failed: called at each command that failed."""

    def __init__(self, run: Run, seal: object, user: str, lease_s: float, changes: Changes, failed: Callable[[], None]) -> None:
        self._run, self._seal, self._user, self._lease_s = run, seal, user, lease_s
        self._changes, self._failed = changes, failed
        if NAME.fullmatch(user) is None:
            raise EscalaError(f"user {quoted(user)}: cannot stand in a command of Slurm: begin as another one")

    def shown(self, one: Allowed) -> list[str]:
        """Its commands as lines to be typed."""
        return [" ".join(command) for command in commands(one, self._user, self._lease_s)]

    def act(self, one: Allowed, seen: Seen) -> list[list[Any]]:
        """Carry it out: each command, and whether it was done. A failure leaves out the commands behind it. EscalaError for what no guard
        let through."""
        if one.seal is not self._seal:
            raise EscalaError("a command that no guard let through: nothing is done (a fault of Escala)")
        out: list[list[Any]] = []
        if one.wanted.kind == NICE:
            self._changes.will(one.wanted.name, seen.jobs[one.wanted.name].nice, one.wanted.value)
        for command in commands(one, self._user, self._lease_s):
            try:
                self._run(*command)
            except EscalaError as error:
                self._failed()
                return [*out, [f"{' '.join(command)}: {one_line(str(error))}", False]]
            out.append([" ".join(command), True])
        return out
