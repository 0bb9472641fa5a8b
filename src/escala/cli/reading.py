"""Logs as the verbs read them: with the platform's speed where they need one, and with a word on what was cleaned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.cli.terminal import remark
from escala.errors import EscalaError, number_of

if TYPE_CHECKING:
    from escala.platform import Platform
    from escala.workload import Workload
    from escala.workload.to_parquet import Converted


def read_log(
    path: Path, read: dict[str, Any], machine: Platform | None = None, *, needs_times: bool = True
) -> Workload:
    """The log, with a remark for each rule of cleaning that touched a job, and one for what it has and no replay looks
    at.

    read: options of `read_workload`. machine: its speed turns work in flops into times, where `read` gives no other
    speed; on a site, jobs ask for nodes, memory and GPUs as they did. needs_times: refuse a log that still gives work
    in flops.
    """
    import escala
    from escala.platform.site import Site
    from escala.workload.read import detect

    how = read | {"shapes": True} if isinstance(machine, Site) else dict(read)
    if "speed" not in how and machine is not None and machine.speed is not None:
        kind = how.get("format") or detect(path, how.get("columns"))
        how |= {"speed": machine.speed} if kind == "batsim" else {}
    log = escala.read_workload(path, **how)
    tell_read(path, log, how, machine)
    if needs_times and log.needs_speed():
        where = "" if machine is None else f" (platform {machine.name!r} has no speed)"
        raise EscalaError(
            f"{path}: gives work in flops and no run times{where}: give the flop/s of a core, such as --speed 1e9"
        )
    return log


def tell_read(path: Path, log: Workload | Converted, read: dict[str, Any], machine: Platform | None = None) -> None:
    """A remark for each rule of cleaning that touched a job, and one for what the log has and no replay looks at, but
    for partitions and queues where the machine describes some."""
    from escala.partitions import described
    from escala.workload.clean import remarks
    from escala.workload.ignored import told

    for line in remarks(log.cleaning, log.first_cleaned, read.get("rules")):
        remark(f"{path}: {line}")
    jobs: Any = getattr(log, "jobs", None)  # of a log that was converted, their number
    own = jobs["priority"].count() if "priority" in getattr(jobs, "columns", ()) else 0
    if own and read.get("shapes"):
        said = "the scheduler slurm takes it in place of what the site would compute"
        remark(f"{path}: {number_of(own, 'job')} with a priority in the column `priority`: {said}")
    text = told(log.ignored, bool(read.get("shapes")), machine is not None and described(machine))
    if text:
        remark(f"{path}: {text}")


def with_shapes(read: dict[str, Any], schedulers: Iterable[str]) -> dict[str, Any]:
    """The options of reading; where Slurm's rules are among the schedulers, so that jobs ask for nodes, memory and GPUs
    as they did."""
    from escala.slurm.named import is_slurm

    return {**read, "shapes": True} if any(is_slurm(name) for name in schedulers) else read


def read_of(log: Workload | Converted) -> dict[str, Any]:
    """What JSON says of a log that was read."""
    return {"cleaning": log.cleaning, "ignored": log.ignored}
