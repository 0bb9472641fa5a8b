"""What a slotted world knows beside the kernel's tables: a `Game`, its settings and what it remembers, as one compiled
record.

K agents share the slots, and each owns N machines; one agent with one machine is the world of R1 and R2. Time is cut
into units; row r is the unit that begins at r x unit. Each resource kind of a machine is drawn as columns, one a unit
of capacity. Agent a owns machines a N .. (a + 1) N - 1, which are nodes of the kernel; or else there is a single
machine, a *pool*: all nodes together, whose columns have names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile.pointer import PointerType, row_of

SETTINGS = np.dtype(
    [
        ("unit_us", "i8"),
        ("agents", "i8"),  # K
        ("machines", "i8"),  # N, of each agent
        ("slots", "i8"),  # M
        ("horizon", "i8"),  # rows that are seen
        ("kinds", "i8"),  # R
        ("of_kinds", "i8"),  # that a mean is over: more, where the machine has some that no job demands
        ("ring", "i8"),  # rows that are remembered, a power of two, minus 1: a mask for row numbers
        ("pool", "i8"),  # 1: one machine, whose columns are known; 0: machines are nodes
        ("named", "i8"),  # 1: columns of a pool's first kind are nodes of one core
        ("reserve", "i8"),  # 1: a choice that does not fit the pool now is reserved
        # the action that chooses the first slot: 1 where the no-op is action 0, 0 where it is the last
        ("first", "i8"),
        ("until_noop", "i8"),  # 1: an agent chooses until the no-op; 0: one choice a turn
        ("skip", "i8"),  # SKIP_...
        ("shows", "i8"),  # SHOWS_...: which waiting jobs the slots show
        ("all_seen", "i8"),  # 1: every agent sees all machines
        ("pay", "i8"),  # PAY_...
        ("all_paid", "i8"),  # 1: every agent is paid for all running jobs
        ("limit", "i8"),  # rows after which an episode is cut; 0: never
        ("overflow", "i8"),  # 1: an episode is cut when more than `backlog` jobs wait without a slot
        ("arrivals_end", "i8"),  # units after which arrivals are known to end; 0: not known
        ("arrivals_begin", "i8"),  # unit from which they are counted
        ("backlog", "i8"),  # waiting jobs without a slot that are shown in full
        ("image", "i8"),  # 1: the observation is a picture
        ("columns", "i8"),  # of the backlog in the image
        ("width", "i8"),  # columns of the image
        ("long", "i8"),  # hold-back: longer jobs are long
        ("quiet", "i8"),  # hold-back: long jobs go after so many rows without an arrival
        ("share", "i8"),  # hold-back: units that long jobs may hold before that
        ("alpha", "f8"),  # PAY_WEIGHTS: reward a unit of 1 / length of the jobs in the slots,
        ("beta", "f8"),  # of those in the backlog,
        ("gamma", "f8"),  # and of those that run
        ("discount", "f8"),  # a unit of time, of what passes within a step; 1 but for learners
    ]
)

PAY_TOTAL = 0  # reward: minus the change of the sum of slowdowns
PAY_MEAN = 1  # of that sum over the jobs submitted so far
PAY_WEIGHTS = 2  # alpha, beta, gamma; each agent its own

SHOWS_OLDEST = 0
SHOWS_SHORTEST = 1
SHOWS_ENDS = 2  # the oldest in half of the slots, rounded up, and the newest in the others

SKIP_NOTHING = 0
SKIP_EMPTY = 1  # turns with empty slots pass unasked
SKIP_FORCED = 2  # so do turns in which only the no-op is possible

HOLD_PILE = (
    1.686, -0.35, 0.001, -0.006, -0.289, -0.275, 0.682, 1.633,
    -0.533, -0.578, 0.395, -0.783, 5.706, -0.287, 3.595, 0.201,
)  # fmt: skip
"""Numbers of the rule hold-pile, see `slots.pile`: searched (CMA-ES) on R1's lists of all loads from 40 % and horizons
of 50 to 1000 steps, for a small excess over the best of greedy SJF, strict SJF and hold-back tuned for each, the six
worst counted more; by bench/fit_hold_pile.py."""
PILED = len(HOLD_PILE)

MEMORY = np.dtype(
    [
        ("row", "i8"),  # the unit up to which everything is noted
        ("agent", "i8"),  # whose turn it is
        ("entered", "i8"),  # jobs that have got a slot
        ("seen", "i8"),  # jobs whose submission is noted, of those in the tables
        ("gone", "i8"),  # others, whose rows were given up beside a machine
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
        ("waiting", "f8"),  # sum of 1 / length over the jobs in the slots
        ("behind", "f8"),  # over the jobs in the backlog
        ("recent", "f8"),  # submissions, each fading by a twentieth a unit
        ("fade", "f8"),  # discount of what passes next in this step
        # of the ended run, means over its submitted jobs, in units; a waiting job counts as if it started now
        ("slowdown", "f8"),
        ("turnaround", "f8"),
        ("wait", "f8"),
        ("longest_wait", "f8"),
        ("makespan", "f8"),
        ("submitted", "i8"),
        ("left", "i8"),  # submitted jobs that have not ended
        ("finished_slowdown", "f8"),  # means over the jobs that have ended
        ("finished_runtime", "f8"),
    ],
    align=True,
)

BOOKED = np.dtype([("row", "i8"), ("job", "i8"), ("nodes", "i8")])  # start, job, nodes of one core as bits

GAME = PointerType(
    "SlotGame",
    {
        "settings": (SETTINGS, 0),  # of all games, as are the next three
        "capacity": (np.int64, 2),  # [machines, kinds]
        "scale": (np.float64, 1),  # [kinds] largest capacity
        "points": (np.int64, 1),  # rows of the charts that the compact observation shows
        "memory": (MEMORY, 0),
        "slots": (np.int64, 1),  # [M] job rows, NONE: empty
        "starts": (np.int64, 1),  # [M] rows at which they would start on the pool; lens.NOWHERE, lens.UNKNOWN
        "used": (np.int64, 2),  # [machines x kinds, ring] columns taken in each row
        "busy": (np.int64, 2),  # the same of a pool as sets of columns; none of machines that are nodes
        "chart": (np.uint8, 3),  # [kinds, ring, columns] colours of a pool, 0: free; none without an image
        "ends": (np.float64, 2),  # [agents, ring] sum of 1 / length over an agent's jobs that end when a row begins
        "running": (np.float64, 1),  # [agents] the same sum over its jobs that run
        "booked": (BOOKED, 1),
        # [jobs] rows behind the slots, see `slots.behind`; none where the slots show the oldest only
        "behind": (np.int64, 1),
        "pile": (np.float64, 1),  # [PILED] of the rule hold-pile, of all games
    },
)
Game = Any  # `g.slots[k]`, `g.memory.row`: one game inside compiled code
game: Any = row_of(GAME)  # game(games, i)

FADING = 0.95
SHADES = 39
