"""What jobs say that neither SWF nor Batsim's JSON has a place for: refused, or named where no other replay uses it."""

from __future__ import annotations

import warnings

from escala.errors import EscalaError, EscalaWarning, quoted
from escala.workload.shapes import OF_NODES, first_late
from escala.workload.table import Workload

UNWRITTEN = ("dependency", "reservation", "array_limit", "nice", "priority")
"""What Slurm's rules alone look at."""


def refuse_unsayable(workload: Workload, form: str, or_: str = "instead") -> None:
    """`EscalaError` for what a replay would miss in this form. or_: what else to do where jobs ask for nodes."""
    jobs = workload.jobs
    demands = [name for name in jobs.columns if name.startswith("demand_")]
    demands += [name for name in OF_NODES if name in jobs.columns and jobs[name].null_count() < len(jobs)]
    if demands or jobs["single_node"].any():
        what = demands[0] if demands else "single_node jobs"
        raise EscalaError(
            f"workload {workload.name!r}: {form} cannot hold {what}: write Parquet (workload.jobs.write_parquet) {or_}"
        )
    if (late := first_late(jobs)) is not None:
        raise EscalaError(
            f"workload {workload.name!r}: job {quoted(late)} may begin after its submission (begin_s), which {form} "
            "cannot hold: drop that column, or make it the submission"
        )
    if form == "SWF" and workload.needs_speed():
        raise EscalaError(
            f"workload {workload.name!r}: runtimes are flops: give the flop/s of a core first, workload.at_speed(1e9) "
            "(--speed 1e9)"
        )


def warn_unwritten(workload: Workload, form: str) -> None:
    """An `EscalaWarning` that names what jobs say and the form has no place for."""
    jobs = workload.jobs
    lost = [name for name in UNWRITTEN if name in jobs.columns and jobs[name].null_count() < len(jobs)]
    if lost:
        warnings.warn(
            f"{form} cannot hold {', '.join(lost)}: not written (the scheduler slurm alone looks at it)",
            EscalaWarning,
            stacklevel=3,
        )
