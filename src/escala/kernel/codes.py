"""Integer names used by the kernel: one place, so that tables and tests can translate them."""

from __future__ import annotations

# Job states.
PENDING = 0  # not yet submitted
QUEUED = 1
GIVEN = 2  # has its nodes and waits until all of them are on
RUNNING = 3
COMPLETED = 4
KILLED = 5  # reached its walltime

# Power states of a node.
ON = 0
SWITCHING_ON = 1
OFF = 2
SWITCHING_OFF = 3

# States in the ledger and in tables: an ON node is computing or idle.
COMPUTING = 0
IDLE = 1
IS_OFF = 2
IS_SWITCHING_OFF = 3
IS_SWITCHING_ON = 4
LEDGER_STATES = ("computing", "idle", "off", "switching_off", "switching_on")

# Sets of free cores (rows of `World.bits`), in the order in which cores are taken.
SET_ON = 0
SET_BOOT = 1  # on nodes that are switching on
SET_OFF = 2
SET_RESERVED = 3  # nodes with cores of the head's reservation
SET_RELEASED = 4  # scratch: nodes released by the time of the reservation
N_SETS = 5

# How a scheduler walks the queue.
EXTERNAL = 0  # the kernel pauses; somebody outside decides
STRICT = 1  # the first that does not fit blocks the rest
GREEDY = 2  # whatever fits starts
EASY = 3  # the oldest job holds the reservation
EASY_FAST = 4
CONSERVATIVE = 5
EASY_PRIORITY = 6  # the first in order holds it
PASSING = frozenset({EASY, EASY_FAST, EASY_PRIORITY})  # search the queue for jobs that end in time
BY_LANE = PASSING | {STRICT}  # decide for one lane after the other

# In which order.
BY_QUEUE = 0  # order of submission
BY_RANK = 1  # a fixed order of all jobs, prepared outside (`World.order`)
BY_WFP3 = 2  # recomputed at each decision
BY_UNICEP = 3
BY_PACKER = 4
BY_TETRIS = 5
BY_XFACTOR = 6
# a fixed order too, by a number a job (`World.fixed`): where there are two, or where it becomes known at submission
BY_PLACE = 7
BY_LINEAR = 8  # a sum of weights x features: what is fixed (`World.fixed`), and what is not (`World.terms`)
PACKING = frozenset({BY_PACKER, BY_TETRIS})
# found by a tournament (`urgency`), most grow with the wait
CHANGING = (BY_WFP3, BY_UNICEP, BY_XFACTOR, BY_PLACE, BY_LINEAR)

# Which score becomes known at submission, NONE: none.
KEY_SJF = 0
KEY_LJF = 1
KEY_SAF = 2
KEY_SQRT_AREA = 3
KEY_F1 = 4
KEY_F2 = 5
KEY_F3 = 6
KEY_F4 = 7

# How the length that is expected of a job becomes known.
BEFOREHAND = 0  # it is in the tables
LAST2 = 1  # at submission: the mean of the last two runs of the same user
ASKED = 2  # at submission: somebody outside says it

# Which cores EASY's head reserves.
LOWEST_ID = 0
LATEST_RELEASED = 1

# Shutdown policies.
NEVER = 0
TIMEOUT = 1
PROPORTIONAL = 2
OFF_RESERVATION = 3
HOLD = 4
POWER_EXTERNAL = 5
ORACLE = 6
ARRIVALS = 7

# What OR* means to do for a waiting job.
WOKEN_FOR = 0  # nodes may be woken for it
HELD = 1  # it will start in time on nodes that are on

# Why `advance` returned.
DONE = 0  # every job has ended, or the time limit is reached
DECISION = 1  # somebody outside may decide
GROW = 2  # a table is full; enlarge it and call again
GUARD = 3  # more instants than any real run needs: a policy makes no progress
BEFORE = 4  # somebody outside may decide, before the scheduler
AFTER = 6  # somebody outside may decide, after the scheduler
IDLE_FOREVER = 5  # jobs wait, but no event is left
ESTIMATE = 7  # jobs were submitted whose lengths somebody outside has to say

# Which table is full.
GROW_CHUNKS = 1
GROW_LOG = 2
GROW_TIMERS = 3
GROW_AGENDA = 4

# Why a command was refused (0: it was not).
REFUSED_NONE = 0
REFUSED_NOT_QUEUED = 1
REFUSED_NO_ROOM = 2
REFUSED_NOT_IDLE = 3
REFUSED_NOT_OFF = 4
REFUSED_NO_SUCH = 5
REFUSED_CANNOT_SWITCH = 6
REFUSED_PAST = 7
REFUSED_NO_NUMBER = 8
REFUSED_NO_NODE, REFUSED_TOO_FEW, REFUSED_TOO_MANY = 9, 10, 11  # of nodes that are named
REFUSALS = {
    REFUSED_NOT_QUEUED: "the job is not in the queue",
    REFUSED_NO_ROOM: "the job does not fit now",
    REFUSED_NOT_IDLE: "the node is not idle",
    REFUSED_NOT_OFF: "the node is not off",
    REFUSED_NO_SUCH: "there is no such job or node",
    REFUSED_CANNOT_SWITCH: "the node has no sleep state",
    REFUSED_PAST: "the time is not later than now",
    REFUSED_NO_NUMBER: "that is no whole number, so no job and no node",
}

# A time that never comes, in microseconds: far beyond any run, far from overflow.
NEVER_US = 1 << 61
LONGEST_US = 10**17  # of a job
ALL_CORES = 1 << 61  # no limit of cores
NONE = -1  # no job, no node, no chunk
MANY = (1 << 31) - 1  # cores: more than a node has
