"""What the slotted environment knows beside the kernel's tables: a `Game`, its settings and what it remembers, as one compiled record.

Time is cut into units; row r is the unit that begins at r x unit. Each resource kind is drawn as columns, one a unit of capacity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.kernel.pointer import PointerType, row_of

SETTINGS = np.dtype(
    [
        ("unit_us", "i8"),
        ("slots", "i8"),  # M
        ("horizon", "i8"),  # rows that are seen
        ("kinds", "i8"),
        ("ring", "i8"),  # rows that are remembered, a power of two, minus 1: a mask for row numbers
        ("reserve", "i8"),  # 1: a choice that does not fit now is reserved
        ("named", "i8"),  # 1: columns of the first kind are nodes of one core
        ("skip", "i8"),  # SKIP_...
        ("shortest", "i8"),  # 1: the slots show the shortest waiting jobs, not the oldest
        ("per_job", "i8"),  # 1: reward is the change of the mean slowdown so far
        ("image", "i8"),  # 1: the cluster's chart is kept with its colours
        ("limit", "i8"),  # rows after which an episode is cut; 0: never
        ("arrivals_end", "i8"),  # units after which arrivals are known to end; 0: not known
        ("arrivals_begin", "i8"),  # unit from which they are counted
        ("backlog", "i8"),  # columns of the backlog in the image
        ("width", "i8"),  # columns of the image
        ("long", "i8"),  # hold-back: longer jobs are long
        ("quiet", "i8"),  # hold-back: long jobs go after so many rows without an arrival
        ("share", "i8"),  # hold-back: units that long jobs may hold before that
    ]
)

HOLD_PILE = (1.686, -0.35, 0.001, -0.006, -0.289, -0.275, 0.682, 1.633, -0.533, -0.578, 0.395, -0.783, 5.706, -0.287, 3.595, 0.201)
"""Numbers of the rule hold-pile, see `slots.pile`: searched (CMA-ES) on R1's lists of all loads from 40 % and horizons of 50 to
1000 steps, for a small excess over the best of greedy SJF, strict SJF and hold-back tuned for each, the six worst counted more; by
bench/fit_hold_pile.py."""
PILED = len(HOLD_PILE)

SKIP_NOTHING = 0
SKIP_EMPTY = 1  # units with empty slots pass unasked
SKIP_FORCED = 2  # so do units in which only the no-op is possible

MEMORY = np.dtype(
    [
        ("row", "i8"),  # the unit up to which everything is noted
        ("entered", "i8"),  # jobs that have got a slot
        ("seen", "i8"),  # jobs whose submission is noted
        ("last", "i8"),  # row of the last submission
        ("booked", "i8"),  # reservations for later
        ("looked", "i8"),  # row of the last look for places
        ("taken_from", "i8"),  # rows taken since, up to before the next
        ("taken_to", "i8"),
        ("over", "i8"),  # 1: the run ended
        ("shade", "i8"),  # first colour of the episode
        ("rng", "u8"),  # state of the rule random
        ("inverse", "f8"),  # sum of 1 / length over the jobs in the system
        ("total", "f8"),  # its integral so far: the slowdowns so far
        ("shown", "f8"),  # what of it has been given as reward
        ("recent", "f8"),  # submissions, each fading by a twentieth a unit
        ("slowdown", "f8"),  # of the finished run, means over its jobs; lengths and waits in units
        ("turnaround", "f8"),
        ("wait", "f8"),
        ("longest_wait", "f8"),
        ("makespan", "f8"),
    ],
    align=True,
)

BOOKED = np.dtype([("row", "i8"), ("job", "i8"), ("nodes", "i8")])  # start, job, nodes of one core as bits

GAME = PointerType(
    "SlotGame",
    {
        "settings": (SETTINGS, 0),  # of all games
        "capacity": (np.int64, 1),  # [kinds], of all games
        "memory": (MEMORY, 0),
        "slots": (np.int64, 1),  # [M] job rows, NONE: empty
        "starts": (np.int64, 1),  # [M] rows at which they would start; lens.NOWHERE, lens.UNKNOWN
        "used": (np.int64, 2),  # [kinds, ring] columns taken in each row
        "busy": (np.int64, 2),  # the same as sets of columns
        "chart": (np.uint8, 3),  # [kinds, ring, columns] colours, 0: free; no columns without an image
        "ends": (np.float64, 1),  # [ring] sum of 1 / length over the jobs that end when a row begins
        "booked": (BOOKED, 1),
        "behind": (np.int64, 1),  # [jobs] rows behind the slots, see `slots.behind`; none where the slots show the oldest
        "pile": (np.float64, 1),  # [PILED] of the rule hold-pile, of all games
    },
)
Game = Any  # `g.slots[k]`, `g.memory.row`: one game inside compiled code
game: Any = row_of(GAME)  # game(games, i)

FADING = 0.95
SHADES = 39
