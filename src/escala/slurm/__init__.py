"""Slurm's rules on a site: what its settings and jobs say, brought to the compiled passes in `escala.kernel.slurm`, and
a Result from them.

`simulate(workload, site, scheduler="slurm")` runs it; `escala.slurm.ensemble` runs it under several phases of
slurmctld's clocks. Public names are loaded when they are first used: whether a scheduler is Slurm's is asked in every
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from escala.lazy import loaded_when_used

if TYPE_CHECKING:
    from escala.slurm.phases import Ensemble, ensemble
    from escala.slurm.settings import Settings, settings_of

__all__ = ["Ensemble", "Settings", "ensemble", "settings_of"]

_HOME = {
    "Ensemble": "escala.slurm.phases",
    "Settings": "escala.slurm.settings",
    "ensemble": "escala.slurm.phases",
    "settings_of": "escala.slurm.settings",
}
"""Public name -> the module that defines it."""


__getattr__ = loaded_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
