"""What was changed of Slurm, taken back: nices of waiting jobs that are still ours, and the leases that were made
here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from escala.bridges.slurm.actor import CHANGES, Changes, Command
from escala.bridges.slurm.alone import cluster_of, is_own
from escala.bridges.slurm.commands import Run, job, name
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.seen import Reservation, Seen
from escala.bridges.slurm.shape import BEGIN
from escala.bridges.slurm.snapshots import MARK, PREFIX, is_lease
from escala.errors import EscalaError, one_line, quoted

SWITCHING = ("power", "full")


def leased_by(changes: Changes, journal: Path, user: str) -> Callable[[Reservation], bool]:
    """Says which leases a folder's process made. Where its record of them is lost: those of its user on nodes that its
    journal names, if it has ever switched any."""
    if not changes.lost:
        return changes.owns
    begun = [record for record in records(journal) if record["kind"] == BEGIN and record.get("mode") in SWITCHING]
    nodes: Collection[str] = {name for record in begun for name in record.get("names", ())}
    return lambda one: is_lease(one) and one.hosts[0] in nodes and one.users == (user,)


def check_cluster(run: Run, journal: Path) -> None:
    """EscalaError where the journal is of another cluster than the one that would be changed."""
    named = {record["cluster"] for record in records(journal) if record["kind"] == BEGIN and record.get("cluster")}
    if named and (here := cluster_of(run)) not in named:
        raise EscalaError(
            f"{journal}: of cluster {', '.join(sorted(map(quoted, named)))}, and Slurm here is {here}: nothing is "
            "undone"
        )


def undone(
    run: Run, seen: Seen, changes: Changes, owns: Callable[[Reservation], bool], dry: bool = False
) -> tuple[list[tuple[str, bool]], list[str]]:
    """The commands, and whether each was done; what was left alone, and why. A job whose nice somebody else has set
    since is left alone, and so is a lease that was not made here; nodes that are off stay so until Slurm needs them.
    dry: no command is given."""
    nices, set_since = changes.undo(seen)
    wanted: list[Command] = [("scontrol", "update", f"jobid={job(which)}", f"nice={old}") for which, old in nices]
    kept = [one for one in seen.reservations.values() if owns(one) or is_own(one, changes)]
    wanted += [("scontrol", "delete", f"reservationname={name(one.name)}") for one in kept]
    left = [f"job {which}: its nice was set by somebody else since" for which in set_since]
    others = [one for one in seen.reservations.values() if one.name.startswith(PREFIX) and one not in kept]
    left += [f"reservation {one.name} of {','.join(one.users) or 'nobody'}: {_why(changes, one)}" for one in others]
    out = []
    for command in wanted:
        line = " ".join(command)
        try:
            if not dry:
                run(*command)
            out.append((line, True))
        except EscalaError as error:
            out.append((f"{line}: {one_line(str(error))}", False))
    return out, left


def _why(changes: Changes, one: Reservation) -> str:
    if one.name.startswith(MARK):
        return "it says that another process acts on a partition"
    if not is_lease(one):
        return "no lease of Escala"
    return f"there is no {CHANGES} here that names it" if changes.lost else f"not among those that {CHANGES} names"
