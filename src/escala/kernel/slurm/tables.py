"""The arrays that Slurm's rules work on, and the names of their columns."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.compile import pointer

Ints = NDArray[np.int64]
Words = NDArray[np.int64]
Floats = NDArray[np.float64]
Grid = Annotated[NDArray[np.int64], 2]
FloatGrid = Annotated[NDArray[np.float64], 2]

NONE = -1
SECOND = 1_000_000
BASIC, MULTIFACTOR, TOLD = range(3)  # `Rules.by_priority`
FAR = 1 << 60
BEAT_EVERY_S, PURGE_EVERY_S, PURGE_LEAST_S = 30, 60, 10
CLEANUP_US = 50_000  # from a kill on, until the nodes are clear

# Columns of `shape`: what a job asks for. NONE: not asked.
MIN_NODES, REQ_NODES, MAX_NODES, TASKS, CORES_PER_TASK, TASKS_PER_NODE, NODE_CORES, MIN_CORES = range(8)
MEMORY_CORE, MEMORY_NODE, GPUS_NODE, GPUS_TASK, GPU_KIND, EXCLUSIVE, MOST_NODES, LIMIT_S, USER = range(8, 17)
SHAPE = 17

# States of a job.
COMING, HELD, WAITING, RUNNING, ENDED, NEVER = range(6)

# Columns of the counters `s`.
(
    NOW,
    NEXT_SUBMIT,
    N_QUEUE,
    N_RUNNING,
    N_ENDED,
    TICK,
    PASS,
    CALC,
    ASKED,
    LAST_EVENT,
    LAST_FULL,
    LAST_PASS,
    LAST_UPDATE,
    PASS_ROW,
    DIRTY,
    TESTED,
    PASSES,
    EVENTS,
    BY_PASS,
    CHARGED,
    RESET,
    MOVED,
    NEXT_TURN,
    FIRST_LATER,
    N_LATER,
    WORST,
    STAMP,
    NEXT_BEGIN,
    N_FREED,
    BEAT,
    BEAT_S,
    PURGE,
    PURGE_S,
) = range(33)
COUNTERS = 33

# Columns of `rest`.
OF_SIZE, OF_PARTITION, OF_QOS, OF_TRES, NICE = range(5)

# Columns of what use is billed by; behind the last, GPUs of each kind.
BILL_CPU, BILL_MEMORY, BILL_NODE, BILL_GPU, BILL_KINDS = range(5)

# Columns of what limits count; behind the last, GPUs of each kind.
USED_JOBS, USED_SUBMITTED, USED_NODES, USED_CPUS, USED_MEMORY, USED_GPUS, USED_KINDS = range(7)


class Machine(NamedTuple):
    """Nodes as they are. Sets of nodes are bits, 64 in each int64 (in unsigned ones Numba would mix types)."""

    cpus: Ints  # [nodes]
    memory: Ints  # [nodes], MB
    gpus: Grid  # [nodes, kinds]
    weight: Ints  # [nodes]
    unit: Ints  # [nodes], CPUs that are given away together
    part: Grid  # [partitions, words]
    everywhere: Words  # [words]: all of them
    mask: Grid  # [classes, words]: nodes of a partition with what a job needs of them
    loaded: Ints  # [partitions], 1: the least loaded node first
    speed: Floats  # [nodes], or of none: all are as fast


class Free(NamedTuple):
    """What is free on each node, and how many jobs run there."""

    cpus: Ints
    memory: Ints
    gpus: Grid
    jobs: Ints


class Jobs(NamedTuple):
    """Rows in the order of submission, the ties in that of the log."""

    submit: Ints  # us
    run: Ints  # us from the start to the end
    cut: Ints  # 1: killed at the first beat after its limit
    whole: Grid  # [jobs or 0, 4], of `pace`
    shape: Grid  # [jobs, SHAPE]
    state: Ints
    start: Ints  # us, NONE before
    finish: Ints  # us, NONE before the start
    end_s: Ints  # planned end, unix s
    first: Ints  # first of its own rows in `Allocated`
    last: Ints  # behind the last that it has
    record: Ints  # [jobs + 1]: its records
    by: Ints  # 1: started by a backfill pass
    ran: Ints  # the record by which it started
    left: Ints  # how much it still waits for: other jobs, its begin time
    after: Ints  # [jobs + 1]: its followers
    # [followers, 5]: job, 0 at the start or 1 at the end, how the other must have gone (of `start`), s after it, when
    # due
    follower: Grid
    well: Ints  # 1: goes well, if it may run to its end
    eligible: Ints  # us from which its age counts
    again: Ints  # how often it lost its nodes; -1: it was over then
    lost: Ints  # us of the runs that it lost
    array: Ints  # its array, NONE
    inside: Ints  # the name of the reservation that it asks for, or runs in, NONE
    # [jobs, 2]: CPUs and GPUs of the last nodes that were found for it, 0: none yet (of exclusive jobs, and where
    # limits count)
    found: Grid


class Records(NamedTuple):
    """A job in one of the partitions that it names."""

    job: Ints
    part: Ints
    mask: Ints
    inside: Ints  # the name of its reservation, NONE
    drawn: Ints  # 1: a magnetic one, that its job does not ask for
    rank: Ints  # those of a higher one stand before it, whatever their priority
    rest: FloatGrid  # [records, 5]: what is added for size, partition, QOS and TRES, and what nice takes away
    several: Ints  # 1: one of several records of its job; 2: its priority is given
    weight: Floats  # of age
    fair: Floats  # weight of fair share
    priority: Ints


class Shares(NamedTuple):
    """Users and accounts, parents before children; row 0 is the root. Without fair share there is the root alone."""

    parent: Ints
    user: Ints  # 1: a user, 0: an account
    depth: Ints  # of the root 0
    shares: Floats
    among: Floats  # shares of all under the same parent
    usage: Floats  # CPU seconds, decayed
    level: Floats
    factor: Floats
    effective: Floats  # usage as the classic formula counts it, of accounts at the last period
    leaf: Ints  # [users]: their rows
    path: FloatGrid  # [users, depth]
    row: Grid  # [users, depth]: its accounts and itself, from the root down
    order: Ints  # [users]: as they are served
    of_job: Ints  # [jobs]
    billed: Ints  # [partitions], of `shares`: how use is charged
    # [partitions, columns]: weights of a CPU, a MB, a node, a GPU; behind them, of a GPU of each kind
    bill: FloatGrid
    usage_factor: Floats  # [jobs]: of its QOS


class Arrays(NamedTuple):
    """Arrays of jobs. Without any all of it is empty."""

    most: Ints  # [arrays]: tasks that may run at one time
    run: Ints  # [arrays]: tasks that do
    # [arrays, partitions, once for each reservation more]: the last pass in which a task found no way to start there
    failed: Grid
    planned: Ints  # [arrays]: the last pass in which a task was planned
    plans: Ints  # [arrays]: how many were in that pass


class Names(NamedTuple):
    """Jobs of one user and name are a class, if there are singletons among them. Without any all of it is empty."""

    of_job: Ints  # [jobs]: classes, NONE
    first: Ints  # [classes + 1]: members
    member: Ints  # rising
    at: Ints  # [classes]: the first member that is not over
    run: Ints  # [classes]: members that run
    over: Ints  # [jobs]: 1: has ended, or was never there
    single: Ints  # [jobs]: 1: a singleton that has not yet been without namesakes


class Limits(NamedTuple):
    """What is counted of QOS and associations, a row each (also a row for each user or account in a QOS). Jobs that
    count alike and keep to the same limits are a class, with a link to each of its rows."""

    of_record: Ints  # [records]: classes
    first: Ints  # [classes + 1]: links
    row: Ints  # [links]
    most: Grid  # [links, columns]
    each: Grid  # [classes, columns]: what one job may have
    no_reserve: Ints  # [classes]
    used: Grid  # [rows, columns]
    place: Ints  # [rows]: in on_node, NONE where no limit of nodes asks for it
    on_node: Grid  # [places, nodes]: jobs there
    wanted: Ints  # [columns]


class Closed(NamedTuple):
    """Nodes that are closed for a while."""

    moment: Grid  # [2 closures, 3]: us, closure, 1 where it ends; in order
    nodes: Grid  # [closures, words]
    kind: Ints  # of `closed`
    requeue: Ints  # 1: what is struck is queued again
    begin_s: Ints  # unix s
    end_s: Ints
    name: Ints  # of a reservation, NONE
    flex: Ints  # 1: its jobs may start before it, end behind it and have other nodes too
    gone_us: Ints  # when slurmctld takes a flexible one away
    failed: Ints  # [names]: the last event pass in which a job of it found no room
    on: Ints  # 1: an outage or a drain that lasts
    gone: Words  # [words]: nodes of all that last


class Preempting(NamedTuple):
    """Who may take nodes from whom. Jobs of one QOS in one partition are a class. Without preemption all of it is
    empty."""

    of_record: Ints  # [records]: classes
    may: Grid  # [classes, classes], of `preempt`: a job of the first from one of the second
    first: Ints  # [classes]: jobs of the lowest lose their nodes first
    mode: Ints  # [classes], of `preempt`
    grace_s: Ints  # [classes]: between the notice and the end
    exempt_s: Ints  # [classes]: so long it runs in safety
    short: Ints  # [classes]: 1: backfill takes its jobs as a minute long
    notice_s: Ints  # [jobs]: unix s of its notice, NONE
    begun_s: Ints  # [jobs]: unix s at which it last took nodes
    tried: Ints  # [jobs]: the pass in which it did
    left: Ints  # [jobs]: a stamp: has left what would be free
    listed: Ints  # [jobs + 1]: those that may lose their nodes, in order
    key: Ints  # [jobs + 1]
    order: Ints  # [records]


class Allocated(NamedTuple):
    """What is given, a row a job and node; each job has rows of its own."""

    node: Ints
    cpus: Ints
    memory: Ints
    gpus: Grid  # [rows, kinds]


class Lists(NamedTuple):
    """The queue (records in order), running jobs by their planned end, ends to come (a heap), begin times, and jobs
    queued again later."""

    queue: Ints
    running: Ints
    heap_us: Ints
    heap_job: Ints
    later_us: Ints  # a ring of jobs that may be looked at from then on
    later_job: Ints
    begin_us: Ints  # begin times behind submissions, rising
    begin_job: Ints
    freed: Ints  # jobs whose others have started in a pass: they join the queue behind it
    passes: Ints  # us of given backfill passes; empty: by the clock


class Rules(NamedTuple):
    """Settings as numbers. Times in s unless `us` is said."""

    epoch_us: int
    bf_interval: int
    bf_window: int
    bf_resolution: int
    bf_max_job_test: int
    bf_node_space_size: int
    bf_max_job_user: int
    bf_max_job_part: int
    bf_max_job_user_part: int
    bf_max_job_start: int
    bf_array_reserve: int
    bf_part_reserve: int
    bf_min_prio_reserve: int
    bf_min_age_reserve: int
    bf_window_linear: int
    bf_busy_nodes: int
    bf_test_us: int  # a backfill pass takes so long for each job that it tests
    bf_max_time: int
    bf_yield_us: int  # so long it works until it sleeps
    bf_sleep_us: int
    bf_continue: int  # 1: it goes on after that, whatever has happened
    backfill: int
    sched_interval: int
    batch_sched_delay: int
    queue_depth: int
    partition_depth: int
    sched_max_job_start: int
    serial_at_end: int
    least_loaded: int
    by_memory: int
    linear: int  # 1: select/linear
    by_priority: int  # TOLD: as MULTIFACTOR, but somebody outside says what the priorities are
    weight_size: float
    favor_small: int
    by_time: int  # 1: size counts in relation to the limit
    calc_us: int
    max_age: int
    tick_us: int
    drift_us: int
    kill_wait: int
    over_time: int
    min_job_age: int  # so long jobs that have ended are known, 0: for ever
    over_reservation: int  # -1: without end
    started_us: int
    fair: int  # 0: no fair share, 1: the fair tree, 2: classic
    decay: float  # of usage, in a second
    dampening: float
    reset_s: int  # 0: usage is never forgotten at once
    at_ends: int  # 1: usage is charged at ends too
    limited: int  # 1: some class has a link
    limit_stop: int  # 1: a job at a limit closes its partition
    again_us: int  # so long a job that lost its nodes is not looked at
    always_ages: int  # 1: age counts from the submission on, whatever the job waits for
    preempt: int  # may some jobs take nodes from others: of `preempt`, by what
    youngest: int  # 1: the last to start are the first to go
    reorder: int  # how often the order in which they go is mended
    strict: int  # 1: by bringing the last forward only
    min_exempt_priority: int  # jobs of a higher priority keep their nodes
    retry_s: int  # so long who has taken nodes takes no more


class Scratch(NamedTuple):
    """Room for one decision."""

    base: Ints  # [nodes]: CPUs that a node offers the job
    extra: Ints  # [nodes]: and GPUs
    spare: Ints  # [nodes]: its free CPUs
    busy: Ints  # [nodes]: 1 where jobs run now, for bf_busy_nodes
    cpus: Ints  # [nodes]: CPUs that are left of it while nodes are chosen
    key: Ints  # [nodes]: weight
    more: Ints  # [nodes]: CPUs and GPUs
    taken: Ints  # [nodes]: 1 where chosen
    runs: Grid  # [nodes + 2, 6]
    node: Ints  # [nodes]: the chosen, rising
    given: Ints  # [nodes]: CPUs on each
    tasks: Ints  # [nodes]
    used: Words  # [words]
    inner: Words  # [words]: nodes that stand before all others
    wanted: Words  # [words]
    there: Words  # [words]: nodes of a record that are not closed
    begin: Ints  # [records of a plan]
    end: Ints
    after: Ints
    space: Grid  # [records of a plan, words]
    running: Ints  # [jobs]
    waiting: Ints  # [records]
    users: Ints  # [users]
    parts: Grid  # [partitions, 3]
    both: Grid  # [users, partitions], or [0, 0]


class World(NamedTuple):
    """All of it: what `drive` works on."""

    machine: Machine
    free: Free
    future: Free  # what would be free, while a start is looked for
    jobs: Jobs
    records: Records
    shares: Shares
    arrays: Arrays
    names: Names
    limits: Limits
    closed: Closed
    preempting: Preempting
    allocated: Allocated
    lists: Lists
    s: Ints  # counters
    rules: Rules
    room: Scratch


WORLD = pointer.kind_of(World)
one: Any = pointer.row_of(WORLD)


def table_of(w: World) -> Grid:
    """int64 [1, words]: what compiled code takes, see `compile.pointer`. Whoever replaces an array makes it anew, and
    keeps the arrays alive meanwhile."""
    return pointer.table_of(WORLD, 1, w)
