"""The state of a batch of simulations: tables of plain numbers, nothing else.

Every array has the simulation as its leading axis; `world.one` cuts out one simulation for compiled code. Records
rather than many arrays of numbers: what belongs to one job or node lies in one cache line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

WIDTHS = 8  # limits of cores for which the search tree holds least walltimes
# What never changes in a run.
OPTIONS = np.dtype(
    [
        ("n_jobs", "i8"),
        ("n_nodes", "i8"),
        ("n_cores", "i8"),
        ("n_ranks", "i8"),  # of the search order: n_jobs, or twice that, see `queue`
        ("n_widths", "i8"),  # limits of cores, each with a row of the search tree
        ("widths", "i8", (WIDTHS,)),  # these; the last holds for all jobs
        ("n_orders", "i8"),  # found by a tournament
        ("n_kinds", "i8"),  # further kinds of resources beyond cores, without SHARERS
        ("unit", "i8"),  # 1: every node has one core, so sets of cores are sets of nodes
        ("queueing", "i8"),  # codes.STRICT ...
        ("ordering", "i8"),  # codes.BY_QUEUE ...
        ("passing", "i8"),  # order of those who pass the first, codes.BY_QUEUE: the same
        ("guard_us", "i8"),  # who has waited so long stands in front; NEVER_US: nobody
        ("head", "i8"),  # codes.LOWEST_ID | LATEST_RELEASED
        ("depth", "i8"),  # conservative: jobs with a reservation
        ("rebuild", "i8"),
        ("shutdown", "i8"),  # codes.NEVER ...
        ("timeout_us", "i8"),  # idle time before a node goes off
        ("spare", "i8"),  # idle nodes left on
        ("fraction", "f8"),  # proportional: idle per busy node; hold: share of the walltime
        ("cap_us", "i8"),  # hold: longest wait, NEVER_US: none
        ("if_busy", "i8"),  # hold: 1: only while some job runs
        ("target", "i8"),  # off-reservation: nodes to keep off
        ("exact", "i8"),  # 1: plan times carry their exact binary residue (rules "batsched")
        ("margin_us", "i8"),  # added to the walltime in plans
        ("start_us", "i8"),
        ("until_us", "i8"),  # time limit, NEVER_US: none
        ("limited", "i8"),  # 1: a time limit was given; energy counts from start to limit
        ("record", "i8"),  # 1: keep every allocation and switch for the tables
        ("max_instants", "i8"),  # guard against policies without progress
        ("pause_before", "i8"),  # 1: pause before the scheduler at every decision; 2: at periodic ones only
        ("plain", "i8"),  # 1: no job of nodes and one kind of resource: counting cores decides what fits
        ("given", "i8"),  # 1: jobs may be given nodes that are not on
        ("period_us", "i8"),  # > 0: a decision at every multiple of this
        ("estimate", "i8"),  # codes.BEFOREHAND ...: how the length becomes known by which plans are made
        ("order_estimate", "i8"),  # and the one by which the queue is ordered
        ("key", "i8"),  # codes.KEY_SJF ...: the score of the queue that becomes known at submission
        ("passing_key", "i8"),  # and of those who pass the first
        ("moves", "i8"),  # 1: the planned end of a job that runs on moves
    ]
)

# What changes all the time.
SCALARS = np.dtype(
    [
        ("now", "i8"),
        ("next_job", "i8"),  # first row not yet submitted
        ("n_ended", "i8"),
        ("n_queued", "i8"),
        ("first", "i8"),  # queue in order of submission, NONE: empty
        ("last", "i8"),
        ("lane", "i8"),  # whose turn it is, 0: that of all, see `lanes`
        ("n_ends", "i8"),  # sizes of the heaps
        ("n_starts", "i8"),
        ("n_switches", "i8"),
        ("n_timers", "i8"),
        ("n_plans", "i8"),
        ("heaped", "i8"),  # 1: the planned ends are a heap, 0: few, in order
        ("free_on", "i8"),  # cores that may be taken, by set
        ("free_boot", "i8"),
        ("free_off", "i8"),
        ("low_on", "i8"),  # no set bit below this word
        ("low_boot", "i8"),
        ("low_off", "i8"),
        ("next_chunk", "i8"),
        ("free_chunk", "i8"),  # list of recycled chunks, NONE: empty
        ("n_log", "i8"),
        ("changed", "i8"),  # 1: cores were released, or a node changed, since the last decision
        ("new_from", "i8"),  # rows submitted since the last decision: new_from .. next_job
        ("indexed", "i8"),  # rows below this are in the search tree while they are queued
        ("aged", "i8"),  # rows below this have waited the guard, or do not wait
        ("in_front", "i8"),  # size of the front of a walk in order
        ("next_plan_us", "i8"),  # conservative, agenda not kept: the next planned start, maybe no other event
        ("next_aged_us", "i8"),  # when the next waiting job will have waited the guard
        ("head", "i8"),  # job that holds the reservation, NONE: none
        ("touched", "i8"),  # first of the users of whom something changed since the last decision, NONE: none
        ("shadow_us", "i8"),  # its time
        ("shadow_fine", "i8"),
        ("extra", "i8"),  # cores free now that the reservation leaves alone
        ("extra_on", "i8"),  # those of them on nodes that are on; lowest-id only
        ("next_off_us", "i8"),  # next instant at which a timeout may fall due
        ("tick_us", "i8"),  # next periodic decision
        ("ticked", "i8"),  # 1: this decision is a periodic one
        ("busy", "i8"),  # hold if busy: 1: some job ran when this decision began
        ("woken", "i8"),  # hold: waiting jobs whose hold is over; NONE: not counted, as rules changed during the run
        ("n_planned", "i8"),  # conservative: jobs that had ended at its last decision
        ("n_slices", "i8"),
        ("n_rows", "i8"),  # rows of the agenda ever in use
        ("freer_us", "i8"),  # the agenda as it is kept: until when more may be free than the last walk through it saw
        ("own_first", "i8"),  # slices in which the job that is looked at has its reservation: from here on
        ("own_end", "i8"),  # up to before this
        ("awake_end", "i8"),  # slices before this one leave it nodes that are on alone
        ("n_runs", "i8"),  # of slices, see `escala.kernel.runs`
        ("n_lines", "i8"),  # of lows that have been in use
        ("woke", "i8"),  # less is asleep than was: 1 since the last decision, 2 since this one began
        ("below", "i8"),  # as `woke`: a cell of the agenda was below 0, so that sums over nodes say less than there is
        ("instants", "i8"),
        ("grow", "i8"),  # which table is full
        ("phase", "i8"),  # where a decision stands, see `advance`
        ("last_finish", "i8"),
        ("n_held", "i8"),  # nodes kept off by an off-reservation
        ("switch_offs", "i8"),  # begun while energy is measured, before `switched_us`
        ("switch_ons", "i8"),
        ("offs_then", "i8"),  # and then
        ("ons_then", "i8"),
        ("switched_us", "i8"),  # the last instant at which a node was switched
        ("refused", "i8"),  # code of the last refused command
        ("told", "i8"),  # rows below this have got their lengths from outside
        ("work_s", "i8"),  # of the queue, cores x requested time: whole seconds
        ("work_us", "i8"),  # and what is left of them
        ("n_hoping", "i8"),  # OR*: waiting jobs that may still be held
    ]
)

JOB = np.dtype(
    [
        ("submit", "i8"),  # us
        ("runtime", "i8"),  # us, what it will run: min(runtime, walltime); as long as it has no nodes, at speed 1
        ("walltime", "i8"),  # us, what policies see: the length by which plans are made
        ("cores", "i4"),  # that it asks for
        ("load", "f8"),  # 0..1
        ("killed", "i1"),  # 1: it will reach its walltime
        ("single", "i1"),  # 1: one node; 2: parts that lie on one node each, see SHAPE; 0: cores of any nodes
        ("user", "i4"),  # NONE: unknown
    ],
    align=True,
)

SHAPE = np.dtype(  # of a job that is made of parts
    [
        ("parts", "i4"),
        ("most", "i4"),  # parts on one node
        ("large", "i4"),  # so many of the parts, the first ones, have `share` cores, the others `less`
        ("share", "i4"),
        ("less", "i4"),
        ("allowed", "i4"),  # the row of `World.allowed` that says on which nodes it may lie
    ]
)

FORECAST = np.dtype(  # where jobs are expected to run another time than the one requested
    [
        ("limit", "i8"),  # us, the request
        ("order", "i8"),  # us, the length by which the queue is ordered
        ("moved", "i8"),  # how often the planned end has moved
    ]
)

RUN = np.dtype(
    [
        ("start", "i8"),  # us, NONE: not yet
        ("plan", "i8"),  # us, planned end (running) or planned start (conservative, queued)
        ("fine", "i8"),  # its exact residue, see `clock.fine`
        ("next", "i4"),  # in the queue
        ("prev", "i4"),
        ("chunk", "i4"),  # first chunk of its allocation
        ("place", "i4"),  # position in the heap of planned ends
        ("state", "i1"),
        ("slope", "f4"),  # growth of a score that grows with the wait, 1/us
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("since", "i8"),  # us, idle since
        ("done", "i8"),  # us, end of the switch under way
        ("noted", "i8"),  # the same of the last switch that the agenda knows of
        ("cores", "i4"),
        ("free", "i4"),  # cores not taken
        ("busy", "i4"),  # cores that compute
        ("limit", "i4"),  # cores that a job running past the head's reservation may take
        ("released", "i4"),  # scratch: cores released by the time of the reservation
        ("profile", "i4"),
        ("lane", "i4"),  # 0: there are none
        ("power", "i1"),
        ("held", "i1"),  # 1: kept off by an off-reservation
    ],
    align=True,
)

LANE = np.dtype(  # see `lanes`
    [
        ("first", "i8"),  # its queue in order of submission, NONE: empty
        ("last", "i8"),
        ("head", "i8"),  # while it is not its turn, as in SCALARS
        ("shadow_us", "i8"),
        ("shadow_fine", "i8"),
        ("blocked", "i8"),  # strict: the first in order at the last decision, if it did not fit
        ("changed", "i8"),  # as in SCALARS, of its nodes and jobs
        ("overdue", "i8"),  # 1: some idle node may be past its timeout
        ("low", "i8"),  # first and last rank of its jobs in the search order, without the ranks in front
        ("high", "i8"),
        ("room", "i8"),  # OR*: scratch: cores of nodes that are on, or on their way, that no job has
        ("given_back", "i8"),  # OR*: cores of its jobs that have ended; without lanes of all
    ]
)
# NEVER_US: idling costs nothing
PROFILE = np.dtype([("on_us", "i8"), ("off_us", "i8"), ("can_switch", "i8"), ("break_even_us", "i8")])
TERMS = np.dtype(  # what of a linear score changes
    [
        ("log_wait", "f8"),  # weights: of log1p(wait / 1 h)
        ("log_ratio", "f8"),  # of log1p(wait / estimate)
        ("age", "f8"),  # of wait / max_age, at most 1
        ("length", "f8"),  # of log(estimate / 1 h), where that becomes known at submission
        ("length_cores", "f8"),  # of its product with log(cores / cores of the machine)
        ("running", "f8"),  # of the user's share of the machine's cores
        ("queued", "f8"),  # of log1p(the user's waiting jobs)
        ("fair", "f8"),  # of the user's fair-share factor
        ("max_age_us", "i8"),
        ("decay", "f8"),  # of used core time, 1/us
        ("every_us", "i8"),  # scores are computed anew at the first decision of each such stretch, 0: at each decision
        ("doubt", "f8"),  # scores that are nearer than this may be equal
        ("by_user", "i8"),  # 1: some weight is of the user's
        ("clock_us", "i8"),  # the time for which scores are computed
        ("due_us", "i8"),  # when they are computed anew
        ("shares", "f8"),  # of all users seen so far
        ("cores", "i8"),  # that users have now
        ("used", "f8"),  # decayed core time of all users, up to `used_us`
        ("used_us", "i8"),
    ]
)
USER = np.dtype(
    [
        ("low", "i8"),  # first and last rank of the user's jobs in the search order
        ("high", "i8"),
        ("queued", "i8"),  # waiting jobs
        ("cores", "i8"),  # that the user's jobs have now
        ("next", "i8"),  # in the list of touched users, UNTOUCHED: not in it
        ("seen", "i1"),  # 1: has submitted a job
        ("bias", "f8", (2,)),  # what the user's terms add to a score, by order
        ("share", "f8", (2,)),  # of the machine, not normalised
        ("used", "f8", (2,)),
        ("used_us", "i8", (2,)),
    ],
    align=True,
)
# `per` cores on each of the nodes low..high
CHUNK = np.dtype([("low", "i4"), ("high", "i4"), ("per", "i4"), ("next", "i4")])
EVENT = np.dtype([("time", "i8"), ("id", "i8")])
FRONT = np.dtype([("score", "f8"), ("row", "i8"), ("place", "i8")])  # a job, first of a part of the search tree
LOG = np.dtype([("time", "i8"), ("node", "i4"), ("state", "i4")])  # a switch of a node
LEDGER = np.dtype(
    [
        ("node_us", "i8", (5,)),  # node-time per state; carries of 2**61 in `carry`
        ("carry", "i8", (5,)),
        ("nodes", "i8", (5,)),  # nodes per state now
        ("rate", "f8"),  # sum over computing nodes of load x busy cores / cores
        ("load_s", "f8"),  # its integral
    ]
)


class World(NamedTuple):
    """A batch of simulations; compiled code sees one of them, without the leading axis [N]."""

    o: Any  # OPTIONS [N, 1]
    s: Any  # SCALARS [N, 1]
    job: Any  # JOB [N, jobs]
    run: Any  # RUN [N, jobs]
    lane: Any  # LANE [N, 1 + lanes]: queues of their own; the first stands for all
    link: Any  # int32 [N, jobs or 0, 3]: where there are some, the lane of each job, who is before it, who behind
    shape: Any  # SHAPE [N, jobs or 0]: where some jobs are made of parts
    demand: Any  # int32 [N, jobs or 0, kinds]: demand per further resource kind, of each part
    forecast: Any  # FORECAST [N, jobs or 0]
    # int64 [N, users or 0, 2]: how long the last run of each user took, and the one before, us; NONE: there was none
    recent: Any
    steps: Any  # int64 [N, moves]: by how much a planned end moves each time, us; after that to the limit
    # int32 [N, jobs or 0]: rows of the jobs that have ended, in that order, where somebody outside is told of them
    past: Any
    node: Any  # NODE [N, nodes]
    room: Any  # int32 [N, nodes, kinds]: what is left of them
    profile: Any  # PROFILE [N, profiles]
    ledger: Any  # LEDGER [N, profiles]
    bits: Any  # uint64 [N, N_SETS, words]: sets of nodes
    # uint64 [N, LEVELS or 0, words]: where jobs go by nodes, of those with at least 1, 2, 4, ... free cores
    roomy: Any
    allowed: Any  # uint64 [N, sets or 0, words]: where some jobs may not lie on all nodes, on which; row 0: all nodes
    chunk: Any  # CHUNK [N, capacity]
    # EVENT [N, 6, capacity]: job ends, starts of given jobs, node switches, timers; two lists of OR*, see `oracle`
    heaps: Any
    plans: Any  # int32 [N, capacity]: running jobs by planned end, in order or a heap
    frontier: Any  # int64 [N, 1 + capacity]: scratch of `plans.following`
    least: Any  # int32 [N, entries of a row of the agenda, or 0]: scratch of conservative backfilling
    trial: Any  # the same
    asleep: Any  # the same: what no job has, of nodes that are not on
    own: Any  # the same: what the job has which is looked at
    barred: Any  # int64 [N, jobs or 0, 3]: of jobs with a reservation, us: see `escala.kernel.holes`
    cores: Any  # int64 [N, nodes or 0]: scratch of jobs on nodes under EASY: what is free beyond the reservation
    beyond: Any  # int64 [N, nodes or 0, kinds]: the same of further kinds
    # int64 [N, MISSES or 0, 6 + kinds]: the same: what could not pass the head in a decision, see `misses`
    missed: Any
    order: Any  # int32 [N, 2, ranks or 0]: row at each rank; rank of each row, as it is now
    # int64 [N, 2, 4, 6 or 9, capacity]: least cores, least walltimes (first job, until when; of either order) of queued
    # jobs; 16 ranks a cell, by level
    tree: Any
    group: Any  # int32 [N, groups or 0, 3 + kinds]: where some jobs go by nodes, what they ask for, see `reach`
    member: Any  # int8 [N, jobs or 0]: the group of each
    reach: Any  # int64 [N, groups or 0, 3]: for which sizes there is room
    branch: Any  # int64 [N, groups x 2 or 9, capacity]: as `tree`, of each group
    # float64 [N, 0 to 2, jobs]: by order, its number of each job, or what does not change of its linear score
    fixed: Any
    terms: Any  # TERMS [N, 0 to 2]: by order, what of its linear score changes
    user: Any  # USER [N, users or 0]: where linear scores look at them
    # FRONT [N, capacity]: a search in the order of scores that grow with the wait, or a walk in order: a heap
    front: Any
    log: Any  # LOG [N, capacity]
    slices: Any  # int64 [N, 3, capacity]: conservative agenda: time, residue, row
    spare: Any  # int32 [N, capacity]: its free cores, all nodes together
    agenda: Any  # int32 [N, capacity, entries of a row]: see `escala.kernel.agenda`; not of one pool
    runs: Any  # int64 [N, 3, half that capacity]: runs of slices, see `escala.kernel.runs`
    lows: Any  # int32 [N, half that capacity, entries of a row]
    speed: Any  # float64 [N, nodes or 0]: of each node, where they differ
    # int64 [N, jobs or 0, 2]: there, how long each job runs at speed 1, and its limit, us; NEVER_US: none
    whole: Any


HEAP_ENDS = 0
HEAP_STARTS = 1
HEAP_SWITCHES = 2
HEAP_TIMERS = 3
HOPING, ROOM = 4, 5  # lists: end of the hold and row; cores that will have been given back by then, and the job's own


FIELDS: dict[str, tuple[Any, int]] = {
    "o": (OPTIONS, 1),
    "s": (SCALARS, 1),
    "job": (JOB, 1),
    "run": (RUN, 1),
    "lane": (LANE, 1),
    "link": (np.int32, 2),
    "shape": (SHAPE, 1),
    "demand": (np.int32, 2),
    "forecast": (FORECAST, 1),
    "recent": (np.int64, 2),
    "steps": (np.int64, 1),
    "past": (np.int32, 1),
    "node": (NODE, 1),
    "room": (np.int32, 2),
    "profile": (PROFILE, 1),
    "ledger": (LEDGER, 1),
    "bits": (np.uint64, 2),
    "roomy": (np.uint64, 2),
    "allowed": (np.uint64, 2),
    "chunk": (CHUNK, 1),
    "heaps": (EVENT, 2),
    "plans": (np.int32, 1),
    "frontier": (np.int64, 1),
    "least": (np.int32, 1),
    "trial": (np.int32, 1),
    "asleep": (np.int32, 1),
    "own": (np.int32, 1),
    "barred": (np.int64, 2),
    "cores": (np.int64, 1),
    "beyond": (np.int64, 2),
    "missed": (np.int64, 2),
    "order": (np.int32, 2),
    "tree": (np.int64, 2),
    "group": (np.int32, 2),
    "member": (np.int8, 1),
    "reach": (np.int64, 2),
    "branch": (np.int64, 2),
    "fixed": (np.float64, 2),
    "terms": (TERMS, 1),
    "user": (USER, 1),
    "front": (FRONT, 1),
    "log": (LOG, 1),
    "slices": (np.int64, 2),
    "spare": (np.int32, 1),
    "agenda": (np.int32, 2),
    "runs": (np.int64, 2),
    "lows": (np.int32, 2),
    "speed": (np.float64, 1),
    "whole": (np.int64, 2),
}
"""Element type and dimensions of each array of one simulation."""


MISSES = 32
LEVELS = 16  # rows of `World.roomy`
FAN = 16  # ranks a cell, cells a cell
UNTOUCHED = -2  # `USER.next`
