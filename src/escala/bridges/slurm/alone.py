"""One process acts on a partition: it holds a lock by the names of cluster and partition, and nobody else has leases there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from escala.bridges.slurm.commands import Run, name
from escala.bridges.slurm.seen import Reservation, Seen
from escala.bridges.slurm.snapshots import Layout, is_lease
from escala.errors import EscalaError
from escala.writing import locks

_CLUSTER = re.compile(r"^ClusterName\s*=\s*(\S+)\s*$", re.MULTILINE)


def cluster_of(run: Run) -> str:
    """The name of the cluster; EscalaError where Slurm names none."""
    found = _CLUSTER.search(run("scontrol", "show", "config"))
    if found is None:
        raise EscalaError("scontrol show config: it names no ClusterName, by which one process at a time acts: nothing is begun")
    return name(found[1])


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
        raise EscalaError(f"{path}: the lock of those who act cannot be written ({why}): set XDG_STATE_HOME to a folder that can") from None
    handle = locks.take(path)
    if handle is None:
        whose = path.read_text(encoding="utf-8", errors="replace").strip()
        raise EscalaError(f"cluster {cluster}, partition {partition}: another process acts on it (--folder {whose}): end it first")
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
            f"partition {at.partition}: {found[0].name} of {whose} is a lease that this folder did not make: end the process that made it, "
            f"or begin when its leases have ended (in {max(last - seen.now_s, 0):.0f} s)"
        )
