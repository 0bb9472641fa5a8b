"""Jobs by hand under the rules of Slurm, on small sites (`conftest`).

Times of unix: the clock's zero is a multiple of 30 s; slurmctld's passes come 1 s apart unless said.
"""

from __future__ import annotations

from typing import Any

import escala

QUICK = "SchedulerParameters=bf_interval=1,sched_interval=2,bf_resolution=1,batch_sched_delay=0"
ORIGIN = 1_800_000_000.0


def jobs(*rows: tuple[Any, ...], **columns: Any) -> escala.Workload:
    """Rows of (submit_s, runtime_s, walltime_s, nodes)."""
    table = {name: [row[k] for row in rows] for k, name in enumerate(("submit_s", "runtime_s", "walltime_s", "nodes"))}
    table |= {
        "runtime_s": [float(one) for one in table["runtime_s"]],
        "walltime_s": [float(one) for one in table["walltime_s"]],
    }
    return escala.Workload.from_jobs({**table, **columns}, origin_s=ORIGIN)


def starts(
    workload: escala.Workload, site: Any, scheduler: str = "slurm:started=-2.5:tick=0.4", **options: Any
) -> list[float]:
    result = escala.simulate(workload, site, scheduler=scheduler, **options)
    return [round(one, 1) if one is not None else None for one in result.jobs["start_s"]]


def nodes(workload: escala.Workload, site: Any) -> list[str]:
    return escala.simulate(workload, site, scheduler="slurm:started=-2.5:tick=0.4").jobs["nodes"].to_list()
