"""The verb workload from-slurm: what to ask a Slurm cluster for."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import typer

from escala.cli import options as opt
from escala.cli.terminal import emit
from escala.errors import EscalaError

FIELDS = (
    *(
        "JobID",
        "JobIDRaw",
        "User",
        "Partition",
        "State",
        "Submit",
        "Eligible",
        "Start",
        "End",
        "ElapsedRaw",
        "TimelimitRaw",
    ),
    *(
        "ReqCPUS",
        "AllocCPUS",
        "ReqTRES",
        "AllocTRES",
        "NodeList",
        "Account",
        "QOS",
        "Priority",
        "Reservation",
        "Constraints",
        "ReqMem",
        "ConsumedEnergyRaw",
    ),
)
"""What the reader uses, without names of jobs or command lines."""

FILE = "jobs.txt"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def from_slurm(
    start: Annotated[str, typer.Option("--start", metavar="DAY", help="first day, as 2026-01-01")] = "2026-01-01",
    end: Annotated[str, typer.Option("--end", metavar="DAY", help="the day after the last")] = "2026-07-01",
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="only these jobs", show_default=False)
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """The sacct command that exports what Escala reads, to run on the cluster."""
    for option, day in (("--start", start), ("--end", end)):
        if DAY.fullmatch(day) is None:
            raise EscalaError(f"{option} {day}: write a day as 2026-01-01")
    if start >= end:
        raise EscalaError(f"--start {start} --end {end}: the end must be after the start")
    command = sacct(start, end, partition)
    following = f"escala workload describe {FILE} --platform NODESxCORES"
    shown = ("On a node with sacct, as a user who may see everybody's jobs:", f"\n{command}\n", f"Then: {following}")
    emit(as_json, {"command": command, "then": following, "fields": list(FIELDS)}, *shown)


def sacct(start: str, end: str, partition: str | None = None) -> str:
    """One line for a shell."""
    words = [
        "sacct",
        "--allusers",
        "--allocations",
        "--duplicates",
        "--parsable2",
        f"--starttime={start}",
        f"--endtime={end}",
    ]
    words += [] if partition is None else [f"--partition={shlex.quote(partition)}"]
    return " ".join(["TZ=UTC", *words, f"--format={','.join(FIELDS)}", ">", FILE])
