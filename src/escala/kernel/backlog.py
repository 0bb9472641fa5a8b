"""The work that waits: over the queue, the sum of cores x requested time."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined
from escala.kernel.clock import SECOND
from escala.kernel.state import World


@inlined
def weigh(w: World, j: int, sign: int) -> None:
    """Job `j` joins the sum (1), or leaves it (-1): whole seconds and what is left of them apart, so that neither
    overflows."""
    s = w.s[0]
    cores = sign * np.int64(w.job[j].cores)
    s.work_s += cores * (w.job[j].walltime // SECOND)
    s.work_us += cores * (w.job[j].walltime % SECOND)
