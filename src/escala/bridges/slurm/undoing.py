"""What was changed of Slurm, taken back: nices of waiting jobs that are still ours, and all leases."""

from __future__ import annotations

from escala.bridges.slurm.actor import Changes, Command
from escala.bridges.slurm.commands import Run, job, name
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import PREFIX
from escala.errors import EscalaError, one_line


def undone(run: Run, seen: Seen, changes: Changes, dry: bool = False) -> list[tuple[str, bool]]:
    """The commands, and whether each was done. A job whose nice somebody else has set since is left alone; nodes that are off stay so until
    Slurm needs them. dry: none is given."""
    wanted: list[Command] = [("scontrol", "update", f"jobid={job(which)}", f"nice={old}") for which, old in changes.undo(seen)]
    wanted += [("scontrol", "delete", f"reservationname={name(one)}") for one in seen.reservations if one.startswith(PREFIX)]
    out = []
    for command in wanted:
        line = " ".join(command)
        try:
            if not dry:
                run(*command)
            out.append((line, True))
        except EscalaError as error:
            out.append((f"{line}: {one_line(str(error))}", False))
    return out
