"""Slurm's rules on a site: what its settings and jobs say, brought to the compiled passes in `escala.kernel.slurm`, and a Result from them.

`simulate(workload, site, scheduler="slurm")` runs it; `escala.slurm.ensemble` runs it under several phases of slurmctld's clocks.
"""

from escala.slurm.ensemble import Ensemble, ensemble
from escala.slurm.settings import Settings, settings_of

__all__ = ["Ensemble", "Settings", "ensemble", "settings_of"]
