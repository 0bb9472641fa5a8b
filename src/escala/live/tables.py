"""The kernel's tables for a machine: one simulation, with room for so many jobs, that is loaded anew at each
decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel.load import FRONT, GIVEN, JOBS, NOW, TICK, load_carried
from escala.platform import Platform
from escala.simulation import Simulation
from escala.workload import Workload

LEAST_ROOM = 256  # jobs


def stand_ins(rows: int, platform: Platform, single: bool) -> Workload:
    """So many jobs that stand for those to come, each of a user of its own. single: of one node, with demands of all
    kinds."""
    ones = np.ones(rows)
    columns: dict[str, Any] = {
        "submit_s": np.zeros(rows),
        "runtime_s": ones,
        "walltime_s": ones,
        "cores": ones.astype(np.int64),
    }
    columns["user"] = [f"{k:08d}" for k in range(rows)]
    if single:
        columns["single_node"] = np.ones(rows, bool)
        columns |= {f"demand_{kind}": np.zeros(rows, np.int64) for kind in platform.resources}
    return Workload.from_jobs(columns, name="snapshot")


class Tables:
    """The simulation, made anew when there are more jobs, or the first that need one node; it stays the same object."""

    def __init__(self, platform: Platform, make: Callable[[Workload], Simulation], single: bool, front: bool) -> None:
        self._platform, self._make = platform, make
        self._carried = np.zeros(4, np.int64)
        self._carried[FRONT] = front
        self.rows, self.single = 0, False
        self.simulation: Simulation = None  # type: ignore[assignment]
        self.make_room(LEAST_ROOM, single)

    def make_room(self, rows: int, single: bool) -> None:
        """Room for so many rows, and for jobs of one node."""
        if rows <= self.rows and (self.single or not single):
            return
        while self.rows < rows:
            self.rows = max(LEAST_ROOM, 2 * self.rows)
        self.single = self.single or single
        made = self._make(stand_ins(self.rows, self._platform, self.single))
        if self.simulation is None:
            self.simulation = made
        else:
            vars(self.simulation).update(vars(made))  # policies know this object
        self.room = made.world.room[0].copy()
        self._given = bool(made.world.o[0, 0]["given"])

    def run_on(self) -> None:
        """What is loaded will be run beyond this decision: nodes may switch."""
        self.simulation.world.o[0, 0]["given"] = self._given

    def load(
        self, now: int, tick: int, told: NDArray[Any], n_rows: int, nodes: Any, placed: Any, demand: Any, off: int
    ) -> int:
        """Load the state at `now` (us). tick: when the next periodic decision is due (us), as carried. off: nodes that
        are not on; where all are none can be given that is not, and conservative backfilling then plans by counts, in a
        twentieth of the time. How many nodes are used that cannot be, see the kernel's `load`."""
        simulation, world = self.simulation, self.simulation.world
        assert told.dtype == JOBS
        where = np.empty(n_rows, np.int64)
        # to which loading adds what a job's length makes of them
        numbers = world.fixed[0].copy() if world.fixed.size else None
        carried = self._carried
        carried[NOW], carried[TICK], carried[GIVEN] = now, tick, self._given and off > 0
        while True:
            if self.room.size:
                simulation.world.room[0] = self.room
            grow, wrong = load_carried(simulation.table, 0, carried, told, nodes, placed, demand, where)
            if not grow:
                return int(wrong)
            simulation.grow(0)
            if numbers is not None:
                simulation.world.fixed[0] = numbers
