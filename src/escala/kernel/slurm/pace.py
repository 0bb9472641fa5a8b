"""How long a job runs where nodes differ in speed."""

from __future__ import annotations

import numpy as np

from escala.compile import lean
from escala.kernel.codes import LONGEST_US
from escala.kernel.slurm.tables import World

WHOLE, CUT_BEYOND, BAD_FROM, FIXED = range(4)
"""Of `Jobs.whole`: us that it runs at speed 1; who runs longer (us) is killed at a beat; who runs so long does not go
well; 1: it does not compute, and takes its time anywhere."""


@lean
def pace(w: World, j: int) -> None:
    """Job j, which has been given its nodes, runs as long as on the slowest of them."""
    jobs = w.jobs
    slowest = 1e3
    for k in range(jobs.first[j], jobs.last[j]):
        slowest = min(slowest, w.machine.speed[w.allocated.node[k]])
    lasts = jobs.whole[j, WHOLE]
    if slowest != 1.0 and jobs.whole[j, FIXED] == 0:
        lasts = np.int64(max(min(np.floor(lasts / slowest + 0.5), LONGEST_US), 1.0))
    jobs.run[j] = lasts
    jobs.cut[j] = 1 if lasts > jobs.whole[j, CUT_BEYOND] else 0


@lean
def goes_well(w: World, j: int) -> bool:
    """Has job j, which has run as long as it wanted, gone well?"""
    jobs = w.jobs
    return jobs.well[j] == 1 and (jobs.whole.shape[0] == 0 or jobs.run[j] < jobs.whole[j, BAD_FROM])
