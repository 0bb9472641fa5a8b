"""The kernel's tables for a machine: one simulation, with room for so many jobs, that is loaded anew at each
decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel import bits
from escala.kernel.load import FRONT, GIVEN, JOBS, NOW, TICK, load_carried
from escala.kernel.state import SHAPE
from escala.kernel.world import table_of
from escala.parts import Parts
from escala.platform import Platform
from escala.shown import Shown
from escala.simulation import Simulation
from escala.workload import Workload
from escala.workload.shapes import EXCLUSIVE

LEAST_ROOM = 256  # jobs


def stand_ins(rows: int, platform: Platform, single: int, sharers: bool = False) -> Workload:
    """So many jobs that stand for those to come, each of a user of its own. single: as in JOB; if above 0, of one node,
    with demands of all kinds. sharers: one has its node to itself."""
    ones = np.ones(rows)
    columns: dict[str, Any] = {
        "submit_s": np.zeros(rows),
        "runtime_s": ones,
        "walltime_s": ones,
        "cores": ones.astype(np.int64),
    }
    columns["user"] = [f"{k:08d}" for k in range(rows)]
    if single > 0:
        columns["single_node"] = np.ones(rows, bool)
        columns |= {f"demand_{kind}": np.zeros(rows, np.int64) for kind in platform.resources}
        columns |= {EXCLUSIVE: np.arange(rows) == 0} if sharers else {}
    return Workload.from_jobs(columns, name="snapshot")


class Tables:
    """The simulation, made anew when there are more jobs, or the first that go by nodes; it stays the same object.
    single: the largest of jobs so far, as in JOB; sets: of nodes on which they may lie, there is room for; sharers: is
    it counted who has a node of any size to itself?"""

    def __init__(self, platform: Platform, make: Callable[[Workload], Simulation], single: bool, front: bool) -> None:
        self._platform, self._make = platform, make
        self._carried = np.zeros(4, np.int64)
        self._carried[FRONT] = front
        self.rows, self.single, self.sets, self.sharers = 0, 0, 1, False
        self.simulation: Simulation = None  # type: ignore[assignment]
        self.make_room(LEAST_ROOM, int(single))

    def make_room(self, rows: int, single: int, sets: int = 1, sharers: bool = False) -> None:
        """Room for so many rows, for jobs of one node (1) or of parts (2), for so many sets of nodes, and for jobs that
        have nodes of several sizes to themselves."""
        if rows <= self.rows and single <= self.single and sets <= self.sets and sharers <= self.sharers:
            return
        while self.rows < rows:
            self.rows = max(LEAST_ROOM, 2 * self.rows)
        while self.sets < sets:
            self.sets *= 2
        self.single, self.sharers = max(self.single, single), self.sharers or sharers
        made = self._make(stand_ins(self.rows, self._platform, self.single, self.sharers))
        made.views[0] = Shown(self._platform, made.kinds)  # nobody is to come
        if self.single > 1:
            words = made.world.bits.shape[2]
            made.world = made.world._replace(
                shape=np.zeros((1, self.rows), SHAPE), allowed=np.full((1, self.sets, words), bits.FULL)
            )
            made.table = table_of(made.world)
        if self.simulation is None:
            self.simulation = made
        else:
            vars(self.simulation).update(vars(made))  # policies know this object
        self.room = made.world.room[0].copy()
        self._given = bool(made.world.o[0, 0]["given"])

    def lay_out(self, parts: Parts | None, rows: NDArray[np.int64]) -> None:
        """What the jobs of these rows are made of."""
        world = self.simulation.world
        if self.single > 1 and parts is not None:
            parts.lay_out(world, 0, rows, np.arange(len(rows)))
        elif self.single > 1:
            world.shape["allowed"][0, rows] = 0

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
