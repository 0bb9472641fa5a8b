"""Carries out what a guard has let through, and nothing else; says what it will do before it does it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from escala.bridges.slurm.commands import NAME, Run, job, name
from escala.bridges.slurm.guard import FREE, LEASE, NICE, OFF_NODE, RENEW, WAKE, Allowed
from escala.bridges.slurm.journal import MODE
from escala.bridges.slurm.seen import PENDING, Reservation, Seen
from escala.bridges.slurm.snapshots import PREFIX, is_lease
from escala.errors import EscalaError, one_line, quoted
from escala.writing import write_whole

CHANGES = "changes.jsonl"
SLACK = 1000  # lines of the file that mean nothing any more, beside as many as there are others
STRAY_S = 120.0
"""By how much Slurm may date a lease before or after the moment at which it was asked for."""
Command = tuple[str, ...]


def commands(one: Allowed, user: str, lease_s: float) -> list[Command]:
    """The commands of one thing that may be done."""
    kind, what, value = one.wanted
    node, kept, end = f"nodename={what}", f"reservationname={PREFIX}{what}", f"endtime=now+{lease_s:.0f}"
    name(what) if kind != NICE else job(what)
    lease = (
        "scontrol",
        "create",
        "reservation",
        kept,
        "starttime=now",
        end,
        f"nodes={what}",
        f"user={name(user)}",
        "flags=ignore_jobs",
    )
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
    """What is changed of Slurm, written before it is done. jobs: job -> the nice that it had first, and all that we
    gave it since, of which the last may not have come to be; those that Slurm still knows. leases: name -> when we made
    it last. lost: there is no such file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CHANGES
        self.jobs: dict[str, tuple[int, set[int]]] = {}
        self.leases: dict[str, float] = {}
        self.lost = not self.path.exists()
        self._lines = 0  # of the file that count
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            told = json.loads(line)
            if "lease" in told:
                self.leases[str(told["lease"])] = float(told["t"])
                self._lines += 1
                return
            name, old, new = str(told["job"]), int(told["old"]), int(told["new"])
        except (
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ):  # a line that was not finished: its command was never given
            return
        self.jobs.setdefault(name, (old, set()))[1].add(new)
        self._lines += 1

    def keep(self, seen: Seen) -> None:
        """Forget jobs that Slurm no longer knows: none of them comes back, and nothing of theirs is to be undone. A
        look of which something was left out says of no job that it is gone. The file is written anew once most of its
        lines mean nothing any more."""
        if seen.left_out:
            return
        for gone in self.jobs.keys() - seen.jobs.keys():
            del self.jobs[gone]
        told = [
            {"job": job, "old": old, "new": new} for job, (old, given) in self.jobs.items() for new in sorted(given)
        ]
        if self._lines > 2 * (len(told) + len(self.leases)) + SLACK:
            lines = [*told, *({"lease": lease, "t": when} for lease, when in self.leases.items())]
            mode = self.path.stat().st_mode
            write_whole(self.path, "".join(f"{json.dumps(line)}\n" for line in lines), mode & 0o777)
            self.path.chmod(mode)
            self._lines = len(lines)

    def will(self, job: str, old: int, new: int) -> None:
        """Before a job is changed: on the disk when this returns."""
        self._write({"job": job, "old": old, "new": new})

    def will_lease(self, name: str, now_s: float) -> None:
        """Before a lease is made: on the disk when this returns."""
        self._write({"lease": name, "t": now_s})

    def begin(self) -> None:
        """From now on the file is there, whether anything is changed or not."""
        if self.lost:
            self.path.touch(mode=MODE)
            self.lost = False

    def owns(self, one: Reservation) -> bool:
        """Is it a lease that was made here? One of the same name that began at another time is somebody else's."""
        return is_lease(one) and abs(one.start_s - self.leases.get(one.name, -math.inf)) <= STRAY_S

    def _write(self, told: dict[str, Any]) -> None:
        line = json.dumps(told)
        with open(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE), "a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
            file.flush()
            os.fsync(file.fileno())
        self.lost = False
        self._take(line)

    def undo(self, seen: Seen) -> tuple[list[tuple[str, int]], list[str]]:
        """Jobs that still wait with a nice that we gave them, and what they had before; those whose nice somebody has
        set since."""
        others = self.set_since(seen)
        left = seen.jobs.keys() - others
        mine = [(seen.jobs[name], old) for name, (old, _) in self.jobs.items() if name in left]
        return [(job.job_id, old) for job, old in mine if job.state == PENDING and job.nice != old], others

    def set_since(self, seen: Seen) -> list[str]:
        """Waiting jobs with a nice that is neither the one that they had first nor one that we gave them."""
        mine = [(seen.jobs[name], old, given) for name, (old, given) in self.jobs.items() if name in seen.jobs]
        return [job.job_id for job, old, given in mine if job.state == PENDING and job.nice not in {old, *given}]


class Actor:
    """run: the clients. seal: of the guard whose permissions count. failed: called at each command that failed."""

    def __init__(
        self, run: Run, seal: object, user: str, lease_s: float, changes: Changes, failed: Callable[[], None]
    ) -> None:
        self._run, self._seal, self._user, self._lease_s = run, seal, user, lease_s
        self.changes, self._failed = changes, failed
        if NAME.fullmatch(user) is None:
            raise EscalaError(f"user {quoted(user)}: cannot stand in a command of Slurm: begin as another one")

    def shown(self, one: Allowed) -> list[str]:
        """Its commands as lines to be typed."""
        return [" ".join(command) for command in commands(one, self._user, self._lease_s)]

    def act(
        self, one: Allowed, seen: Seen, age_s: Callable[[], float], stale: Callable[[float], bool]
    ) -> tuple[list[list[Any]], bool]:
        """Carry it out: each command, and whether it was done; whether all were given, or what was seen has become too
        old meanwhile. A failure leaves out the commands behind it, and gives up the lease of a node that could not be
        switched off. age_s: since it was seen. EscalaError for what no guard let through."""
        if one.seal is not self._seal:
            raise EscalaError("a command that no guard let through: nothing is done (a fault of Escala)")
        out: list[list[Any]] = []
        if stale(age_s()):
            return out, False
        if one.wanted.kind == NICE:
            self.changes.will(one.wanted.name, seen.jobs[one.wanted.name].nice, one.wanted.value)
        if one.wanted.kind in (OFF_NODE, LEASE):
            self.changes.will_lease(PREFIX + one.wanted.name, seen.now_s + age_s())
        for command in commands(one, self._user, self._lease_s):
            if stale(age_s()):
                return out, False
            try:
                self._run(*command)
            except EscalaError as error:
                self._failed()
                out.append([f"{' '.join(command)}: {one_line(str(error))}", False])
                if one.wanted.kind == OFF_NODE and len(out) == 2:
                    out.append(self._given_up(one.wanted.name))
                return out, True
            out.append([" ".join(command), True])
        return out, True

    def _given_up(self, node: str) -> list[Any]:
        """The lease of a node that is on: jobs would wait for its end."""
        command = ("scontrol", "delete", f"reservationname={PREFIX}{node}")
        try:
            self._run(*command)
        except EscalaError as error:
            return [f"{' '.join(command)}: {one_line(str(error))}", False]
        return [" ".join(command), True]
