"""A finished simulation held against its workload: policies from outside could have changed its tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.admit import paced, times_of
from escala.errors import EscalaError
from escala.kernel import codes
from escala.tables import chunks_of, slowest_of


def check_unchanged(simulation: Any, i: int) -> None:
    """EscalaError unless the kernel's jobs in simulation i are still those of the workload, each ran as long as its
    nodes let it, and none started before its submission."""
    admitted, jobs, told = simulation.admitted[i], simulation.workloads[i].jobs, simulation.told[i]
    n, cut = len(admitted.rows), np.zeros(0, bool)
    if simulation.closing is not None:
        cut = simulation.closing.settle()
    job, run = simulation.world.job[i, :n], simulation.world.run[i, :n]
    times = times_of(jobs, admitted.rows, told, simulation.platform.slowest)
    same = dict(zip(("submit", "runtime", "walltime", "killed"), times, strict=True))
    same["cores"] = jobs["cores"].to_numpy()[admitted.rows]
    if simulation.platform.node_speed is not None:
        same |= _paced(simulation, i)
    if told.ways[0] != codes.BEFOREHAND:  # found at submission; at most the request
        same["walltime"] = np.clip(job["walltime"], 1, same["walltime"])
    for name, values in same.items():
        wrong = np.flatnonzero(job[name] != values)
        if len(cut) and name in ("runtime", "killed"):
            wrong = wrong[~cut[wrong]]
        elif len(cut) and name == "cores":  # a running job has fewer while nodes are gone
            wrong = np.flatnonzero(simulation.closing.asked[name] != values)
        if len(wrong):
            raise _falsified(simulation, i, int(wrong[0]), f"has another {name} than in the workload")
    early = np.flatnonzero((run["start"] >= 0) & (run["start"] < job["submit"]))
    if len(early):
        raise _falsified(simulation, i, int(early[0]), "started before it was submitted")


def _paced(simulation: Any, i: int) -> dict[str, Any]:
    """What jobs ran, and whether to their limits, on the nodes that they had; where nobody kept which those were, as
    long as on some nodes."""
    jobs, rows, speed = simulation.workloads[i].jobs, simulation.admitted[i].rows, simulation.platform.node_speed
    if simulation.options.record:
        held = chunks_of(simulation.table, i) if simulation.closing is None else simulation.closing.placed(False)
        slowest = slowest_of(held, len(rows), speed)
        return dict(zip(("runtime", "killed"), paced(jobs, rows, slowest), strict=True))
    job = simulation.world.job[i, : len(rows)]
    ends = np.sort([paced(jobs, rows, one)[0] for one in (1.0, speed.min().item(), speed.max().item())], axis=0)
    return {"runtime": np.clip(job["runtime"], ends[0], ends[2]), "killed": job["killed"]}


def _falsified(simulation: Any, i: int, row: int, what: str) -> EscalaError:
    log = simulation.workloads[i]
    ident = log.jobs["job_id"][int(simulation.admitted[i].rows[row])]
    return EscalaError(f"workload {log.name!r}: job {ident!r} {what}: a policy has changed the simulation; no result")
