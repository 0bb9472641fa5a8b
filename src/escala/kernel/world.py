"""A simulation of a batch as one pointer, see `compile.pointer`: `w = one(table, i)` inside compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import pointer
from escala.kernel import state

WORLD = pointer.PointerType("World", state.FIELDS)
one: Any = pointer.row_of(WORLD)


def table_of(world: state.World) -> NDArray[np.int64]:
    """int64 [N, words]: where the arrays of each simulation lie. `Simulation` keeps them alive, and makes the table
    anew when it enlarges one."""
    return pointer.table_of(WORLD, len(world.o), world._asdict())
