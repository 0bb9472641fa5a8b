"""What a policy is: it sees a `View` and gives `Commands`. Scheduling and power are one protocol."""

from __future__ import annotations

import math
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, one_line
from escala.foresight import plain
from escala.jobs import EndedJob, QueuedJob, RunningJob
from escala.kernel import calls, codes
from escala.kernel.clock import SECOND
from escala.sealed import Budget, Command, eyes, foresight, hands, memory

LONGEST_S = 1e12


class View:
    """What may be known at a decision. Actual runtimes are not here; see `ClairvoyantView`.

    Everything is read when asked for, so that it shows the effect of the commands given so far. Answers are values and
    fresh arrays: writing into them changes nothing, and no attribute leads to the simulation (see `escala.sealed`).
    EscalaError for more questions in one decision than any policy needs (`escala.sealed.MOST_QUESTIONS`).
    """

    __slots__ = ("__weakref__", "_see")

    def __init__(self, simulation: Any, i: int, budget: Budget | None = None) -> None:
        self._see = eyes(simulation, i, budget or Budget())

    @property
    def now_s(self) -> float:
        """The clock, s."""
        return self._see("now_s")

    @property
    def queue_length(self) -> int:
        """Number of waiting jobs."""
        return self._see("queue_length")

    @property
    def queue(self) -> list[QueuedJob]:
        """Waiting jobs in order of submission."""
        return self._see("queue")

    @property
    def waiting_work(self) -> float:
        """Sum over the waiting jobs of cores x requested time (`QueuedJob.walltime_s`), core-seconds: kept, so that it
        costs the same however long the queue is."""
        return self._see("waiting_work")

    @property
    def running(self) -> list[RunningJob]:
        """Jobs that hold cores, by planned end, with their nodes and when they started."""
        return self._see("running")

    @property
    def n_nodes(self) -> int:
        """Number of nodes, whatever their state."""
        return self._see("n_nodes")

    @property
    def node_states(self) -> list[str]:
        """Power state of each node: on, switching_on, off, switching_off; gone: down or drained, and no job's."""
        return self._see("node_states")

    @property
    def node_cores(self) -> NDArray[np.int64]:
        """Cores of each node, int64 [nodes]."""
        return self._see("node_cores")

    @property
    def free_cores(self) -> NDArray[np.int64]:
        """Cores of each node that no job holds, int64 [nodes], whatever the node's power state; 0 where a job has the
        node to itself."""
        return self._see("free_cores")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Further kinds of resource that the platform has, in the order of `QueuedJob.demand`."""
        return self._see("kinds")

    @property
    def free_kinds(self) -> NDArray[np.int64]:
        """What no job holds of them, int64 [nodes, kinds], whatever the node's power state."""
        return self._see("free_kinds")

    @property
    def node_sets(self) -> NDArray[np.bool_]:
        """Nodes on which jobs may lie that have been submitted, bool [sets, nodes], by `QueuedJob.node_set`; the first
        is of all nodes, the others in the order of their first jobs."""
        return self._see("node_sets")

    def room_for(self, job: QueuedJob) -> NDArray[np.int64]:
        """For how many parts of a waiting job each node has room, int64 [nodes], whatever the node's power state; for
        how many of its cores, where it takes cores of any nodes."""
        if job.parts == 0:
            return np.minimum(self.free_cores, job.cores)
        room = np.minimum(self.free_cores // job.part_cores, job.parts_per_node)
        for demand, left in zip(job.demand, self.free_kinds.T, strict=True):
            room = np.minimum(room, left // demand) if demand > 0 else room
        if job.exclusive:
            room = room * (self.free_cores == self.node_cores)
        return room * self.node_sets[job.node_set] if job.node_set else room

    @property
    def free_now(self) -> int:
        """Free cores of nodes that are on."""
        return self._see("free_now")

    @property
    def free_any(self) -> int:
        """Free cores that a job may be given now, of nodes on, switching on, or off (woken for it)."""
        return self._see("free_any")

    @property
    def idle_since_s(self) -> NDArray[np.float64]:
        """Since when each node has been idle, s [nodes]; NaN for a node that is not idle."""
        return self._see("idle_since_s")


class History(View):
    """What a predictor is shown, beside the View: the jobs that have ended in this simulation."""

    __slots__ = ("_recall",)

    def __init__(self, simulation: Any, i: int, budget: Budget) -> None:
        super().__init__(simulation, i, budget)
        self._recall = memory(simulation, i, budget)

    def ended(self, first: int = 0) -> list[EndedJob]:
        """The jobs that have ended, in that order, all but the first so many: a predictor counts what it has seen."""
        return self._recall(first)


class Predictor(Protocol):
    """An object for the options `estimate` and `order_estimate`. Each run works on a copy of it (`copy.deepcopy`), so
    that nothing that one run has seen is known in another. Optional: `name`, and `clairvoyant` (True: it is told the
    future elsewhere, and is marked)."""

    def estimate(self, view: History, job: QueuedJob) -> float:
        """How long the job, just submitted, will run, s, above 0; what is beyond its request (`job.walltime_s`) counts
        as that."""


class ClairvoyantView(View):
    """A View that also knows actual runtimes: for oracles and bounds, never for a policy that could run on a
    machine."""

    __slots__ = ("_foresee",)

    def __init__(self, simulation: Any, i: int, budget: Budget) -> None:
        super().__init__(simulation, i, budget)
        self._foresee = foresight(simulation, i, budget)

    def runtime_s(self, row: int) -> float:
        """How long the job will run, s."""
        return self._foresee(row)


class Commands:
    """What a policy may order. Each returns True, or False where it was refused; `refusal` then says why. Nothing
    changes by a refused command. What is no whole number (1.5, None, True) names no job and no node. EscalaError for
    more commands in one decision than any policy needs (`escala.sealed.MOST_COMMANDS`)."""

    __slots__ = ("_give", "refusal")

    def __init__(self, simulation: Any, i: int, log: list[Command] | None = None, budget: Budget | None = None) -> None:
        self._give = hands(simulation, i, budget or Budget(), log)
        self.refusal = ""

    def _order(self, kind: int, a: Any, b: Any = 0) -> bool:
        code = self._give(kind, a, b)
        self.refusal = codes.REFUSALS.get(code, "")
        return code == codes.REFUSED_NONE

    def start(self, job: QueuedJob | int) -> bool:
        """Start a waiting job on the lowest cores that it may be given, or on the lowest nodes with room for its
        parts."""
        return self._order(calls.START, job.row if isinstance(job, QueuedJob) else job)

    def start_on(self, job: QueuedJob | int, node: int | Sequence[int]) -> bool:
        """Start a waiting job that goes by nodes on this node, all of it; or any job on the nodes of a list: it takes
        all free cores of each, or as many of its parts as there is room for, in this order, until it has all of its
        own. Nodes that are not on are woken for it, where it may wake them. EscalaError for a list with a node that has
        no room or stands in it twice, with too little room, or with more nodes than are needed."""
        return self._order(calls.START_ON, job.row if isinstance(job, QueuedJob) else job, node)

    def switch_off(self, node: int) -> bool:
        """Order an idle node off."""
        return self._order(calls.SWITCH_OFF, node)

    def wake(self, node: int) -> bool:
        """Order an off node on."""
        return self._order(calls.WAKE, node)

    def reserve_off(self, nodes: int) -> bool:
        """Keep this many nodes off; see the shutdown policy off-reservation."""
        return self._order(calls.RESERVE, nodes)

    def call_at(self, time_s: float) -> bool:
        """Ask for a decision at this time (> now), s."""
        try:
            seconds = math.nan if isinstance(time_s, str | bytes | bytearray | memoryview) else float(time_s)
        except (TypeError, ValueError, OverflowError):
            seconds = math.nan
        if not -LONGEST_S < seconds < LONGEST_S:
            raise EscalaError(f"call_at({time_s!r:.50}): give a time in seconds later than now")
        return self._order(calls.TIMER, math.floor(seconds * SECOND + 0.5))


@runtime_checkable
class Policy(Protocol):
    """One method. Optional attributes: `name` (text for tables), `clairvoyant` (True: gets a ClairvoyantView, and is
    marked in every table), and for shutdown policies
    `before_scheduler` (True: decides before the scheduler), `period_s` (> 0: decides at multiples of this only, with
    `before_scheduler`), `at_events` (True: at every other decision as well) and `beneath` (name of the kernel's
    shutdown policy that works beneath this one, by default none). `role` ("scheduler" or "shutdown"): it is refused in
    the other place. They are read once, before the run. Where there are several runs (`compare`), each works on a copy
    of the object (`copy.deepcopy`)."""

    def decide(self, view: View, act: Commands) -> None:
        """Give commands for this instant; return when there are no more."""


INSIDE = (
    ("escala.envs.learnt", "LearntShutdown"),
    ("escala.envs.learnt", "LearntScheduler"),
    ("escala.envs.shield", "Shielded"),
    ("escala.envs.shutdown_shield", "ShieldedShutdown"),
    ("escala.envs.slots.policy", "SlotPolicy"),
    ("escala.envs.slots.team.policy", "TeamPolicy"),
)
"""Policies of Escala's own that decide in compiled code, on the simulation's tables: module and class. There are no
others."""
NAMED = (
    ("escala.policies.rollout", "Rollout"),
    ("escala.policies.shutdown", "Inertial"),
    ("escala.policies.shutdown", "RandomReservation"),
    ("escala.slurm.settings", "Settings"),
)
"""What stands behind names of Escala's own."""
OFFICIAL: set[str] = set()
"""First parts of the names that Escala knows (`escala.policies.compose`): an object of another class is never called
so."""

Class = TypeVar("Class", bound=type)


def insider(policy: Class) -> Class:
    """A class of `INSIDE`. A run calls `begin_run()` at its start, and `decide_inside(simulation, i, act)` in place of
    `decide`; the policy keeps no reference to the simulation. Their compiled code reads what a View shows, and no more.
    EscalaError for any other class."""
    if (policy.__module__, policy.__name__) not in INSIDE:
        raise EscalaError(
            f"{policy.__name__} is no policy of Escala's own: write decide(view, act); `clairvoyant = True` shows "
            "runtimes"
        )
    policy.decide = _refuse  # type: ignore[attr-defined]
    return policy


def is_insider(policy: Any) -> bool:
    """Is it an object of one of the classes of `INSIDE`, itself and no namesake, and its methods those of its class?"""
    return _is_of(policy, INSIDE)


def _is_of(policy: Any, classes: tuple[tuple[str, str], ...]) -> bool:
    kind = type(policy)
    if not any(getattr(sys.modules.get(module), name, None) is kind for module, name in classes):
        return False
    methods = {
        name for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, types.FunctionType)
    }
    return methods.isdisjoint(vars(policy))


def _refuse(policy: Any, view: View, act: Commands) -> None:
    raise EscalaError(
        f"{name_of(policy)} decides on the simulation's own tables: give it to simulate itself, not to a policy "
        "around it"
    )


class _Function:
    """A plain function as a policy."""

    def __init__(self, function: Callable[[View, Commands], None]) -> None:
        self.decide = function
        self.name = getattr(function, "__name__", "function")


def as_policy(policy: Any) -> Any:
    """The policy object behind what a user gave: an object with `decide`, one with `policy()` (an agent), or a
    function."""
    if hasattr(policy, "decide"):
        return policy
    if hasattr(policy, "policy"):
        return policy.policy()
    if callable(policy):
        return _Function(policy)
    raise EscalaError(
        f"{policy!r} is no policy: give a name, a function of (view, act), or an object with decide(view, act)"
    )


def name_of(policy: Any) -> str:
    """Name for tables and manifests: the text, the attribute `name`, a function's own name, or the class; in one line.
    Of an object that takes a name of Escala's own, with a word that it is one."""
    if isinstance(policy, str):
        return plain(policy)
    name = one_line(str(getattr(policy, "name", None) or getattr(policy, "__name__", None) or type(policy).__name__))
    kind, colon, _ = name.partition(":")
    # `queue_by` names its schedulers so
    own = INSIDE + NAMED + (("escala.policies.schedulers", "Scheduler"),) * bool(colon)
    taken = kind.strip() in OFFICIAL and not _is_of(policy, own)
    return f"{name} (object)" if taken else name


def counts_of(policies: Iterable[Any]) -> dict[str, int]:
    """What policies count of their decisions (`counts`), such as those that a shield overruled; of several, all
    together."""
    found = Counter[str]()
    for policy in policies:
        found.update(getattr(policy, "counts", None) or {})
    return dict(found)
