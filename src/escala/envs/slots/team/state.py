"""What the game of several agents knows beside the kernel's tables: its settings, and what it remembers, as one compiled record.

Machine n of the game is node n of the kernel; agent a owns machines a N .. (a + 1) N - 1. Time is cut into units, as in `slots.state`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.kernel.pointer import PointerType, row_of

SETTINGS = np.dtype(
    [
        ("unit_us", "i8"),
        ("agents", "i8"),  # K
        ("machines", "i8"),  # N, of each agent
        ("slots", "i8"),  # M
        ("horizon", "i8"),  # rows that are seen
        ("kinds", "i8"),  # R
        ("ring", "i8"),  # rows that are remembered, a power of two, minus 1: a mask for row numbers
        ("skip", "i8"),  # slots.state.SKIP_...: turns that pass unasked
        ("until_void", "i8"),  # 1: an agent chooses until the no-op; 0: one choice a turn
        ("all_seen", "i8"),  # 1: every agent sees all machines
        ("all_paid", "i8"),  # 1: every agent is paid for all running jobs
        ("limit", "i8"),  # rows after which an episode is cut; 0: never
        ("arrivals_end", "i8"),  # units after which arrivals are known to end; 0: not known
        ("arrivals_begin", "i8"),  # unit from which they are counted
        ("backlog", "i8"),  # waiting jobs without a slot that are shown
        ("overflow", "i8"),  # 1: an episode is cut when more than `backlog` jobs wait without a slot
        ("image", "i8"),
        ("width", "i8"),  # columns of the image
        ("alpha", "f8"),  # reward a unit of 1 / length of the jobs in the slots,
        ("beta", "f8"),  # of those in the backlog,
        ("gamma", "f8"),  # and of those that run
        ("discount", "f8"),  # a unit of time, of what passes within a step; 1 but for learners
    ]
)

MEMORY = np.dtype(
    [
        ("row", "i8"),  # the unit up to which everything is noted
        ("agent", "i8"),  # whose turn it is
        ("entered", "i8"),  # jobs that have got a slot
        ("seen", "i8"),  # jobs whose submission is noted
        ("last", "i8"),  # row of the last submission
        ("over", "i8"),  # 1: the run ended
        ("waiting", "f8"),  # sum of 1 / length over the jobs in the slots
        ("behind", "f8"),  # over the jobs in the backlog
        ("recent", "f8"),  # submissions, each fading by a twentieth a unit
        ("fade", "f8"),  # discount of what passes next in this step
        ("rng", "u8"),  # state of the rule random
        ("slowdown", "f8"),  # of the ended run, means over its submitted jobs; a waiting job counts as if it started now
        ("turnaround", "f8"),
        ("wait", "f8"),
        ("makespan", "f8"),
        ("submitted", "i8"),
        ("left", "i8"),  # submitted jobs that have not ended
        ("finished_slowdown", "f8"),  # means over the jobs that have ended
        ("finished_runtime", "f8"),
    ],
    align=True,
)

POINTS = (0, 1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64)
"""Rows of a machine's chart that the compact observation shows (those below the horizon): what runs only ever ends, so few say all."""

GAME = PointerType(
    "TeamGame",
    {
        "settings": (SETTINGS, 0),  # of all games, as are the next three
        "capacity": (np.int64, 2),  # [machines, kinds]
        "scale": (np.float64, 1),  # [kinds] largest capacity
        "points": (np.int64, 1),  # rows of the charts that are shown
        "memory": (MEMORY, 0),
        "slots": (np.int64, 1),  # [M] job rows, NONE: empty
        "used": (np.int64, 2),  # [machines x kinds, ring] units taken in each row
        "ends": (np.float64, 2),  # [agents, ring] sum of 1 / length over an agent's jobs that end when a row begins
        "running": (np.float64, 1),  # [agents] the same sum over its jobs that run
    },
)
Game = Any  # `g.slots[k]`, `g.memory.agent`: one game inside compiled code
game: Any = row_of(GAME)  # game(games, i)
