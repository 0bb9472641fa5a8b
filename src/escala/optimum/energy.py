"""How little energy must be wasted: a lower bound on idle and switching energy of a day on a cluster, for every
scheduler and shutdown policy.

Waste is R3's: idle energy + energy of switching off + energy of switching on (eq. 4.4), from the first submission to
the makespan. The model: n(t) nodes are on, D(t) of them busy, D(t) <= n(t) <= N; an idle node costs idle watts, a node
switched on or off its joules at once. Each job starts in [release, latest].
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

from escala.optimum.nodeprices import NodeDual
from escala.optimum.onoff import solve_switching
from escala.optimum.power import PowerInstance

RELAXATIONS = (
    "clairvoyant: every job is known from the start, with its actual runtime",
    "nodes switch in no time, for the same energy",
    "nodes as one pool: any job on any nodes that are on",
    "any starts from the release to the latest start, in any order",
    "switching off is free from the earliest possible makespan on",
)
ROUNDS = 10_000


@dataclass(frozen=True)
class EnergyBound:
    """A proved lower bound of the waste in joules, who proved it, its relaxations; iterations and seconds spent;
    whether cut short or interrupted.
    """

    lower_j: float
    prover: str
    relaxations: tuple[str, ...]
    iterations: int
    seconds: float
    cut: bool
    interrupted: bool


def energy_bound(
    instance: PowerInstance,
    *,
    exact: bool = False,
    limit_s: float = 60.0,
    rounds: int = ROUNDS,
    max_cells: int = 1 << 12,
) -> EnergyBound:
    """Lagrangian bound, then with `exact` a mixed-integer programme (extra `optimum`) for what is left of `limit_s`
    seconds.

    D(t) <= n(t) gets prices u(t) >= 0 per node and tick. Jobs then take their cheapest starts, and each node its
    cheapest life (a path on | off through the cells), whatever the others do. Any prices give a valid bound; they are
    improved by subgradient steps and evaluated in integers. At least as many nodes must be switched on as the widest
    job, or the jobs that must overlap, need. Without `exact` the outcome does not depend on the machine unless the
    limit cut it short. Ctrl-C keeps what was proved. If no schedule keeps all latest starts, any number is a bound, and
    this says nothing.
    """
    begin = time.monotonic()
    problem = NodeDual(instance, max_cells)
    cut = interrupted = False
    target = 1.2 * problem.eager() + 1.0
    try:
        for _ in range(5):  # on congested days the first aim may be too low
            cut = problem.improve(target, rounds, lambda: time.monotonic() - begin > limit_s)
            if cut or problem.bound < target * (1 - 1e-6):
                break
            target *= 2
    except KeyboardInterrupt:
        interrupted = True
    lower, name = max(
        (problem.proof(), "Lagrangian of the busy nodes, exact integers"),
        (problem.peak(), "nodes that must be on at once"),
    )
    value = float(lower)
    if Fraction(value) > lower:
        value = math.nextafter(value, -math.inf)
    left = begin + limit_s - time.monotonic()
    if exact and not interrupted and left > 0:
        proved, prover, done, interrupted = solve_switching(instance, left)
        if proved > value:
            value, name = proved, prover
        cut |= not done
    return EnergyBound(value, name, RELAXATIONS, problem.iterations, time.monotonic() - begin, cut, interrupted)
