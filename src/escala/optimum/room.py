"""What the compiled loops of the search work with: jobs, an order of some of them, and profiles of what is free, as one
record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from escala.compile.pointer import PointerType, row_of
from escala.errors import EscalaError
from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.record import Record

SETTINGS = np.dtype(
    [
        ("guards", "i8"),  # of `Packed`
        ("capacity", "i8"),
        ("span_weight", "f8"),  # what the latest end costs, a tick
        ("machines", "i8"),
    ]
)

ROOM = PointerType(
    "Room",
    {
        "settings": (SETTINGS, 0),
        "release": (np.int64, 1),  # (n,), as are the next four
        "length": (np.int64, 1),
        "words": (np.int64, 1),  # demands, see `Packed`
        "ready": (np.int64, 1),
        "weight": (np.float64, 1),  # what a tick of delay costs
        "order": (np.int64, 1),  # (m,): rows of the jobs to place
        "starts": (np.int64, 1),  # (n,): written at the rows of `order`
        "machine": (np.int64, 1),
        # profiles; state s of machine k is row s * machines + k
        "times": (np.int64, 2),  # (rows, segments): first ticks of the segments
        "free": (np.int64, 2),
        "sizes": (np.int64, 1),  # (rows,): segments in use
        # of a state: the jobs in front of a position are placed
        "begun": (np.int64, 1),  # (states,): start of the last of them
        "on": (np.int64, 1),  # its machine
        "span": (np.int64, 1),  # latest end so far
        "partial": (np.float64, 1),  # cost so far
        "row": (np.int64, 1),  # (m + 1,): where the accepted order's state in front of each position is kept
        "trial": (np.int64, 1),  # (m,)
        "best": (np.int64, 1),
        "stream": (np.uint64, 1),  # (1,): of random numbers
    },
)
Room = Any  # the record inside compiled code
room: Any = row_of(ROOM)  # room(table, 0)


class Packed(NamedTuple):
    """Demands as words (n,), the word of the free capacities, the mask of guard bits."""

    words: Ints
    free: int
    guards: int


def bits(demand: Ints, capacity: Ints) -> int:
    """Bits that `pack` needs; it has 63."""
    units = (max(1, int(np.gcd.reduce(demand[:, kind]))) for kind in range(capacity.size))
    return sum((int(top) // unit).bit_length() + 1 for top, unit in zip(capacity, units, strict=True))


def pack(demand: Ints, capacity: Ints) -> Packed:
    """All resource kinds in one 64-bit word, a field per kind with a guard bit above it that is 1 in `free` and 0 in a
    demand.

    `free - demand` keeps every guard bit exactly if every kind fits, and is then the new free word: one subtraction and
    one mask whatever the number of kinds. Units are divided by their greatest common divisor first. EscalaError where
    63 bits are too few.
    """
    if (needed := bits(demand, capacity)) > 63:
        raise EscalaError(
            f"instance: capacities {capacity.tolist()} need {needed} bits, of 63: count large resources in larger units"
        )
    shift, words, free, guards = 0, np.zeros(demand.shape[0], np.int64), 0, 0
    for kind in range(capacity.size):
        unit = max(1, int(np.gcd.reduce(demand[:, kind])))
        top = int(capacity[kind]) // unit
        words += (demand[:, kind] // unit) << shift
        free |= top << shift
        shift += top.bit_length()
        guards |= 1 << shift
        shift += 1
    return Packed(words, free | guards, guards)


class Cost(NamedTuple):
    """What an order is judged by: the sum of weight (n,) * max(0, start - ready), and `span` * the latest end."""

    weight: Floats
    span: float


def room_for(
    instance: Instance, packed: Packed, cost: Cost, jobs: int, *, states: int = 0, segments: int = 1, machines: int = 1
) -> Record:
    """Memory to place `jobs` of the instance's jobs around profiles of `segments` segments, which are wholly free.

    states: that are kept; 0: two in front of every position (rows 2k and 2k + 1, the accepted order's and the trial's).
    """
    states = states or 2 * jobs + 2
    shape = (states * machines, segments + 2 * jobs + 2)

    def whole(*shape: int) -> npt.NDArray[np.int64]:
        return np.zeros(shape, np.int64)

    made = Record(
        ROOM,
        settings=np.array((packed.guards, packed.free, cost.span, machines), SETTINGS),
        release=instance.release.copy(), length=instance.length, words=packed.words, ready=instance.ready,
        weight=cost.weight, order=whole(jobs), starts=whole(instance.jobs), machine=whole(instance.jobs),
        times=whole(*shape), free=whole(*shape), sizes=whole(shape[0]), begun=whole(states), on=whole(states),
        span=whole(states), partial=np.zeros(states), row=whole(jobs + 1), trial=whole(jobs), best=whole(jobs),
        stream=np.ones(1, np.uint64),
    )  # fmt: skip
    made.free[:machines], made.sizes[:machines] = packed.free, 1
    return made
