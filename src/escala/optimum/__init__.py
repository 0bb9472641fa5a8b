"""Clairvoyant optimum: proved lower bounds, good schedules and proofs of optimality for rigid jobs on a pool of
capacities.

`bound(Instance(release, length, demand, capacity, objective))` gives a `Bound`: a limit for every policy, clairvoyant
or not, and no target. Plain integer arrays in, so that it knows neither workloads nor platforms.
`energy_bound(PowerInstance(...))` is the like for wasted energy; `on_machines` and `pool` are for several machines,
each job wholly on one.
"""

from __future__ import annotations

from escala.optimum.bounds import RELAXATIONS, Bound, Step, unless_interrupted
from escala.optimum.energy import EnergyBound, energy_bound
from escala.optimum.instance import OBJECTIVES, Instance, check_schedule
from escala.optimum.ladder import bound
from escala.optimum.machines import on_machines, pool
from escala.optimum.power import PowerInstance, waste_of

__all__ = [
    "OBJECTIVES",
    "RELAXATIONS",
    "Bound",
    "EnergyBound",
    "Instance",
    "PowerInstance",
    "Step",
    "bound",
    "check_schedule",
    "energy_bound",
    "on_machines",
    "pool",
    "unless_interrupted",
    "waste_of",
]
