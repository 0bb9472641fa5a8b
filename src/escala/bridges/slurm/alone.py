"""One process acts on a partition: a lock keeps out those of its user and machine, a mark in Slurm everybody else."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from escala.bridges.slurm.actor import STRAY_S, Changes
from escala.bridges.slurm.commands import Run, name
from escala.bridges.slurm.seen import Reservation, Seen
from escala.bridges.slurm.snapshots import MARK, Layout, is_lease
from escala.errors import EscalaError
from escala.writing import locks

AHEAD_S, SPREAD_S = 2 * 366 * 86400, 30 * 86400
"""How far ahead a mark lies: farther than any job may last. By how much more at random, so that those of two processes
differ."""
_CLUSTER = re.compile(r"^ClusterName\s*=\s*(\S+)\s*$", re.MULTILINE)


def cluster_of(run: Run) -> str:
    """The name of the cluster; EscalaError where Slurm names none."""
    found = _CLUSTER.search(run("scontrol", "show", "config"))
    if found is None:
        raise EscalaError(
            "scontrol show config: it names no ClusterName, by which one process at a time acts: nothing is begun"
        )
    return name(found[1])


def cluster_if_named(run: Run) -> str:
    """The same; "" where Slurm names none, or does not say."""
    try:
        return cluster_of(run)
    except EscalaError:
        return ""


@contextmanager
def alone(cluster: str, partition: str, folder: Path) -> Iterator[None]:
    """No other process of this user on this machine acts on the partition meanwhile. folder: said to those who try.

    Raises:
        EscalaError: another one does, or the lock cannot be written.
    """
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "escala" / "acting"
    path = home / f"{cluster}.{name(partition)}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise EscalaError(
            f"{path}: the lock of those who act cannot be written ({why}): set XDG_STATE_HOME to a folder that can"
        ) from None
    handle = locks.take(path)
    if handle is None:
        whose = path.read_text(encoding="utf-8", errors="replace").strip()
        raise EscalaError(
            f"cluster {cluster}, partition {partition}: another process acts on it (--folder {whose}): end it first"
        )
    try:
        path.write_text(f"{folder.absolute()}\n", encoding="utf-8")
        yield
    finally:
        os.close(handle)


def others(seen: Seen, at: Layout, owns: Callable[[Reservation], bool]) -> list[Reservation]:
    """Leases on nodes of the layout that were not made here."""
    return [one for one in seen.reservations.values() if is_lease(one) and one.hosts[0] in at.index and not owns(one)]


def refuse_others(seen: Seen, at: Layout, owns: Callable[[Reservation], bool]) -> None:
    """EscalaError where somebody else has leases."""
    found = others(seen, at, owns)
    if found:
        whose, last = ",".join(found[0].users) or "nobody", max(one.end_s for one in found)
        raise EscalaError(
            f"partition {at.partition}: {found[0].name} of {whose} is a lease that this folder did not make: end the "
            f"process that made it, or begin when its leases have ended (in {max(last - seen.now_s, 0):.0f} s)"
        )


class Presence:
    """Says in Slurm itself, also to other users and machines, that somebody acts on a partition: a reservation some
    years ahead, which holds back no job, of a name that there can be once. It counts until its end less how far it lies
    ahead, and is renewed as leases are.
    """

    def __init__(self, run: Run, at: Layout, user: str, lease_s: float, changes: Changes) -> None:
        self._run, self._at, self._user, self._lease_s, self._changes = run, at, name(user), lease_s, changes
        self._name, self._held = MARK + name(at.partition), False

    def keep(self, seen: Seen) -> bool:
        """Take it, or renew it when a third of its time has gone; False while somebody else's counts. EscalaError where
        a command fails."""
        found, self._held = seen.reservations.get(self._name), False
        end = f"endtime=now+{AHEAD_S + SPREAD_S + self._lease_s:.0f}"
        left_s = 0.0 if found is None else counts_s(found, seen)
        if found is not None and is_own(found, self._changes):
            if left_s < self._lease_s * 2 / 3:
                self._run("scontrol", "update", f"reservationname={self._name}", end)
            self._held = True
            return True
        if left_s > 0:
            return False
        if found is not None:
            self._run("scontrol", "delete", f"reservationname={self._name}")
        ahead = AHEAD_S + random.SystemRandom().randrange(SPREAD_S)
        self._changes.will_lease(self._name, seen.now_s + ahead)
        told = (
            f"reservationname={self._name}",
            f"starttime=now+{ahead}",
            end,
            f"nodes={name(self._at.names[0])}",
            f"user={self._user}",
        )
        self._run("scontrol", "create", "reservation", *told, "flags=ignore_jobs,overlap")
        self._held = True
        return True

    def take(self, seen: Seen) -> None:
        """Before anything is done; EscalaError where somebody else acts."""
        if not self.keep(seen):
            found = seen.reservations[self._name]
            raise EscalaError(
                f"partition {self._at.partition}: a process of {','.join(found.users) or 'nobody'} acts on it, as "
                f"reservation {self._name} says: end it, or begin when that counts no more (in "
                f"{counts_s(found, seen):.0f} s)"
            )

    def leave(self) -> None:
        """Nobody acts any more; where that cannot be said, it counts no more after a lease."""
        if self._held:
            with suppress(EscalaError):
                self._run("scontrol", "delete", f"reservationname={self._name}")


def is_own(one: Reservation, changes: Changes) -> bool:
    """Is it the mark of a process of this folder?"""
    return one.name.startswith(MARK) and abs(one.start_s - changes.leases.get(one.name, 0.0)) <= STRAY_S


def counts_s(one: Reservation, seen: Seen) -> float:
    """How long a mark counts yet."""
    return one.end_s - AHEAD_S - SPREAD_S - seen.now_s
