"""What a policy is: it sees a `View` and gives `Commands`. Scheduling and power are one protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.kernel import calls, codes
from escala.kernel.clock import SECOND

NODE_STATES = ("on", "switching_on", "off", "switching_off")  # by code of NODE.power


class QueuedJob(NamedTuple):
    """A waiting job, as a scheduler may know it."""

    row: int  # names the job in commands
    cores: int
    walltime_s: float
    submit_s: float
    wait_s: float
    user: int  # -1: unknown
    single_node: bool
    demand: tuple[int, ...]  # per further resource kind


class RunningJob(NamedTuple):
    """A job that holds cores: running, or waiting for its nodes to be on."""

    row: int
    cores: int
    planned_end_s: float  # by walltime; it may end earlier
    user: int
    walltime_s: float


class View:
    """What may be known at a decision. Actual runtimes are not here; see `ClairvoyantView`.

    Everything is read when asked for, so that it shows the effect of the commands given so far.
    """

    def __init__(self, simulation: Any, i: int) -> None:
        self._simulation = simulation
        self._i = i

    @property
    def _world(self) -> Any:
        return self._simulation.world

    @property
    def now_s(self) -> float:
        """The clock, s."""
        return float(self._world.s[self._i, 0]["now"]) / SECOND

    @property
    def queue_length(self) -> int:
        """Number of waiting jobs."""
        return int(self._world.s[self._i, 0]["n_queued"])

    @property
    def queue(self) -> list[QueuedJob]:
        """Waiting jobs in order of submission."""
        w, i = self._world, self._i
        now = int(w.s[i, 0]["now"])
        out = []
        row = int(w.s[i, 0]["first"])
        while row != codes.NONE:
            j = w.job[i, row]
            demand = tuple(int(d) for d in w.demand[i, row]) if w.demand.shape[1] else ()
            submit = int(j["submit"])
            out.append(
                QueuedJob(
                    row,
                    int(j["cores"]),
                    int(j["walltime"]) / SECOND,
                    submit / SECOND,
                    (now - submit) / SECOND,
                    int(j["user"]),
                    bool(j["single"]),
                    demand,
                )
            )
            row = int(w.run[i, row]["next"])
        return out

    @property
    def running(self) -> list[RunningJob]:
        """Jobs that hold cores, by planned end."""
        w, i = self._world, self._i
        n = int(w.s[i, 0]["next_job"])
        states = w.run[i, :n]["state"]
        rows = np.flatnonzero((states == codes.RUNNING) | (states == codes.GIVEN))
        job, plan = w.job[i, rows], w.run[i, rows]["plan"] / SECOND
        columns = (rows, job["cores"], plan, job["user"], job["walltime"] / SECOND)
        out = [RunningJob(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
        return sorted(out, key=lambda job: (job.planned_end_s, job.row))

    @property
    def node_states(self) -> list[str]:
        """Power state of each node: on, switching_on, off, switching_off."""
        return [NODE_STATES[p] for p in self._world.node[self._i]["power"].tolist()]

    @property
    def free_cores(self) -> NDArray[np.int64]:
        """Cores of each node that no job holds, int64 [nodes], whatever the node's power state."""
        w, i = self._world, self._i
        node = w.node[i]
        if int(w.o[i, 0]["unit"]) == 0:
            return np.asarray(node["free"], np.int64)
        words = w.bits[i, : codes.SET_OFF + 1]
        union = np.bitwise_or.reduce(words, axis=0)
        free = np.unpackbits(union.view(np.uint8), bitorder="little")[: len(node)].astype(np.int64)
        free[(node["power"] == codes.SWITCHING_OFF) | (node["held"] == 1)] = 1
        return free

    @property
    def free_now(self) -> int:
        """Free cores of nodes that are on."""
        return int(self._world.s[self._i, 0]["free_on"])

    @property
    def free_any(self) -> int:
        """Free cores that a job may be given now, of nodes on, switching on, or off (woken for it)."""
        s = self._world.s[self._i, 0]
        return int(s["free_on"] + s["free_boot"] + s["free_off"])

    @property
    def idle_since_s(self) -> NDArray[np.float64]:
        """Since when each node has been idle, s [nodes]; NaN for a node that is not idle."""
        node = self._world.node[self._i]
        idle = (node["power"] == codes.ON) & (self.free_cores == node["cores"])
        return np.where(idle, node["since"] / SECOND, np.nan)


class ClairvoyantView(View):
    """A View that also knows actual runtimes: for oracles and bounds, never for a policy that could run on a machine."""

    def runtime_s(self, row: int) -> float:
        """How long the job will run, s."""
        return float(self._world.job[self._i, row]["runtime"]) / SECOND


class Command(NamedTuple):
    """A command that was given: when (us), its kind and arguments (see `escala.kernel.calls`), and why it was refused, if it was."""

    time_us: int
    kind: int
    a: int
    b: int
    refusal: str


class Commands:
    """What a policy may order. Each returns True, or False where it was refused; `refusal` then says why. Nothing changes by a refused
    command."""

    def __init__(self, simulation: Any, i: int, log: list[Command] | None = None) -> None:
        self._simulation = simulation
        self._i = i
        self._log = log
        self.refusal = ""

    def _order(self, kind: int, a: int, b: int = 0) -> bool:
        code = self._simulation.command(self._i, kind, int(a), int(b))
        self.refusal = codes.REFUSALS.get(code, "")
        if self._log is not None:
            self._log.append(Command(int(self._simulation.world.s[self._i, 0]["now"]), kind, int(a), int(b), self.refusal))
        return bool(code == codes.REFUSED_NONE)

    def start(self, job: QueuedJob | int) -> bool:
        """Start a waiting job on the lowest cores that it may be given."""
        return self._order(calls.START, job.row if isinstance(job, QueuedJob) else job)

    def start_on(self, job: QueuedJob | int, node: int) -> bool:
        """Start a waiting single-node job on this node."""
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
        if not -1e12 < time_s < 1e12:
            raise EscalaError(f"call_at({time_s}): give a time in seconds later than now")
        return self._order(calls.TIMER, int(np.floor(time_s * SECOND + 0.5)))


@runtime_checkable
class Policy(Protocol):
    """One method. Optional attributes: `name` (text for tables), `clairvoyant` (True: gets a ClairvoyantView), and for shutdown policies
    `before_scheduler` (True: decides before the scheduler), `period_s` (> 0: decides at multiples of this only, with
    `before_scheduler`), `at_events` (True: at every other decision as well) and `beneath` (name of the kernel's shutdown policy that works
    beneath this one, by default none). `role` ("scheduler" or "shutdown"): it is refused in the other place."""

    def decide(self, view: View, act: Commands) -> None:
        """Give commands for this instant; return when there are no more."""


PolicyLike = str | Policy | Callable[[View, Commands], None]


class _Function:
    """A plain function as a policy."""

    def __init__(self, function: Callable[[View, Commands], None]) -> None:
        self.decide = function
        self.name = getattr(function, "__name__", "function")


def as_policy(policy: Any) -> Any:
    """The policy object behind what a user gave: an object with `decide`, one with `policy()` (an agent), or a function."""
    if hasattr(policy, "decide"):
        return policy
    if hasattr(policy, "policy"):
        return policy.policy()
    if callable(policy):
        return _Function(policy)
    raise EscalaError(f"{policy!r} is no policy: give a name, a function of (view, act), or an object with decide(view, act)")


def name_of(policy: Any) -> str:
    """Name for tables and manifests: the text, the attribute `name`, a function's own name, or the class."""
    if isinstance(policy, str):
        return policy
    return str(getattr(policy, "name", None) or getattr(policy, "__name__", None) or type(policy).__name__)
