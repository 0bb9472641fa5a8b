"""What a policy may see and do, as two functions from which nothing leads back to the simulation.

A `View` and `Commands` hold one *sealed* function each. It answers a closed list of questions, with copies, and takes a
closed list of commands. No attribute of a sealed function (`__closure__`, `__self__`, `__wrapped__`, `__dict__`, ...)
leads to what it works on: C code holds that, and shows it to the garbage collector alone.

What this is not: a jail. Code in the same process may read the stack (`sys._getframe`, the frames of a traceback), ask
the garbage collector, or read memory (`ctypes`), and Python has no means against that. Every result is therefore
checked against its workload too.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, number_of
from escala.jobs import EndedJob, QueuedJob, RunningJob
from escala.kernel import calls, codes
from escala.kernel.clock import SECOND
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, JOB
from escala.naming import UNNAMED

NODE_STATES = ("on", "switching_on", "off", "switching_off")  # by code of NODE.power
GONE = "gone"
MOST_COMMANDS, TRIES = 1_000_000, 10
"""In one decision: so many commands, and so many tries of each waiting job on each node on top."""
MOST_QUESTIONS, LOOKS = 1_000_000, 100
"""In one decision, and again after each job that it starts: so many questions, and so many about each waiting job on
each node on top."""


_job = functools.partial(tuple.__new__, QueuedJob)  # of values in the order of the fields
NO_PARTS = (0, 0, 0, 0)
NOW = {"free_on": codes.ON}
ANY = {**NOW, "free_boot": codes.SWITCHING_ON, "free_off": codes.OFF}


class Command(NamedTuple):
    """A command that was given: when (us), its kind and arguments (see `escala.kernel.calls`), and why it was refused,
    if it was."""

    time_us: int
    kind: int
    a: int
    b: int
    refusal: str


def sealed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function behind C code that shows nothing of it: a cache that keeps nothing."""
    shut = functools.lru_cache(maxsize=0)(function)
    shut.__dict__.clear()  # __wrapped__ leads to the function
    return shut


# What may be asked. Each takes the tables, or the simulation, and its number, and gives values or fresh arrays.


def _queue(simulation: Any, i: int) -> list[QueuedJob]:
    w, rows = simulation.world, []
    row, after = w.s["first"].item(i), w.run["next"][i]
    while row != codes.NONE:
        rows.append(row)
        row = after.item(row)
    return _queued(simulation, i, rows) if rows else []


def _queued(simulation: Any, i: int, rows: list[int]) -> list[QueuedJob]:
    w, named, shown = simulation.world, simulation.named(i), simulation.shown(i)
    at = np.array(rows)
    job = w.job[i, at]
    times = job["walltime"], job["submit"], w.s["now"].item(i) - job["submit"]
    users, demands = shown.users(job["user"]).tolist(), shown.demands(w, i, at)
    columns = rows, job["cores"].tolist(), *((us / SECOND).tolist() for us in times), users
    parts = map(repeat, NO_PARTS) if w.o["plain"].item(i) else zip(*_parts(simulation, i, at), strict=True)
    names = map(repeat, UNNAMED) if named is None else zip(*(named[row] for row in rows), strict=True)
    alone = shown.alone(w, i, at)
    return list(map(_job, zip(*columns, (job["single"] == 1).tolist(), demands, *parts, *names, alone)))


def _parts(simulation: Any, i: int, rows: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """What each of these jobs is made of: parts, cores that a node needs for one, how many a node may hold, and the set
    of nodes on which they may lie."""
    w = simulation.world
    if w.o["plain"].item(i):
        return [NO_PARTS] * len(rows)
    job = w.job[i][rows]
    one = (job["single"] > 0).astype(np.int64)
    found = np.stack([one, one * job["cores"], one, 0 * one], axis=1)
    if w.shape.shape[1] > 0:
        many = job["single"] == 2
        shape = w.shape[i][rows[many]]
        sets = simulation.shown(i).sets(shape["allowed"])
        found[many] = np.stack([shape["parts"], shape["share"], shape["most"], sets], axis=1)
        found[np.flatnonzero(many)[shape["most"] > shape["parts"]]] = NO_PARTS  # see `Parts.anywhere`
    return list(map(tuple, found.tolist()))


def _running(simulation: Any, i: int) -> list[RunningJob]:
    w = simulation.world
    ends, starts = w.s["n_ends"].item(i), w.s["n_starts"].item(i)
    rows = w.heaps["id"][i, HEAP_ENDS, :ends].tolist() + w.heaps["id"][i, HEAP_STARTS, :starts].tolist()
    if not rows:
        return []
    at = np.array(rows)
    job, run = w.job[i, at], w.run[i, at]
    users, held = simulation.shown(i).users(job["user"]).tolist(), _held(simulation.table, i, at)
    if simulation.closing is not None:  # on nodes that are gone a job has its cores still
        simulation.closing.make_whole(rows, job, held)
    columns = job.tolist(), users, run["plan"].tolist(), run["start"].tolist(), held
    found = [
        RunningJob(
            row,
            cores,
            plan / SECOND,
            user,
            walltime / SECOND,
            None if start == codes.NONE else start / SECOND,
            tuple(nodes),
        )
        for row, (_, _, walltime, cores, _, _, _, _), user, plan, start, nodes in zip(rows, *columns, strict=True)
    ]
    return sorted(found, key=lambda job: (job.planned_end_s, job.row))


def held_by(table: Any, i: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """What these jobs hold: place among the rows, low node, high node, cores on each, int64 [4, *]."""
    room = 4 * len(rows)
    while True:
        out = np.empty((4, room), np.int64)
        parts = calls.held(table, i, rows, out)
        if parts <= room:
            return out[:, :parts]
        room = parts


def _held(table: Any, i: int, rows: NDArray[np.int64]) -> list[list[tuple[int, int, int]]]:
    """What each of these jobs holds."""
    found: list[list[tuple[int, int, int]]] = [[] for _ in rows]
    for k, low, high, per in held_by(table, i, rows).T.tolist():
        found[k].append((low, high, per))
    return found


def _free_cores(w: Any, i: int) -> NDArray[np.int64]:
    node = w.node[i]
    if w.o["unit"].item(i) == 0:
        return node["free"].astype(np.int64)
    words = w.bits[i, : codes.SET_OFF + 1]
    union = np.bitwise_or.reduce(words, axis=0)
    free = np.unpackbits(union.view(np.uint8), bitorder="little")[: len(node)].astype(np.int64)
    free[(node["power"] == codes.SWITCHING_OFF) | (node["held"] == 1)] = 1
    return free


def _open_cores(simulation: Any, i: int) -> NDArray[np.int64]:
    """Cores of each node that a job may be given: none where one has the node to itself, or the node is gone."""
    free, open_ = _free_cores(simulation.world, i), simulation.shown(i).open(simulation.world, i)
    free[_gone(simulation.world, i)] = 0
    return free if open_ is None else free * open_


def _gone(w: Any, i: int) -> NDArray[np.bool_]:
    """Which nodes are not there: the kernel has them switching off without an end (`escala.kernel.load`)."""
    node = w.node[i]
    found: NDArray[np.bool_] = (node["power"] == codes.SWITCHING_OFF) & (node["done"] >= codes.NEVER_US)
    return found


def _node_states(w: Any, i: int) -> list[str]:
    states = [NODE_STATES[power] for power in w.node["power"][i].tolist()]
    for n in np.flatnonzero(_gone(w, i)):
        states[n] = GONE
    return states


def _idle_since(w: Any, i: int) -> NDArray[np.float64]:
    node = w.node[i]
    idle = (node["power"] == codes.ON) & (_free_cores(w, i) == node["cores"])
    return np.where(idle, node["since"] / SECOND, np.nan)


def _free_in(simulation: Any, i: int, powers: dict[str, int]) -> int:
    """Free cores of nodes in these power states, by their counters, but for those that a job has to itself."""
    w, open_ = simulation.world, simulation.shown(i).open(simulation.world, i)
    every = sum(w.s[name].item(i) for name in powers)
    if open_ is None:
        return every
    return every - int(_free_cores(w, i)[~open_ & np.isin(w.node["power"][i], list(powers.values()))].sum())


def _waiting_work(w: Any, i: int) -> float:
    return int(w.s["work_s"].item(i) * SECOND + w.s["work_us"].item(i)) / SECOND


QUESTIONS: dict[str, Callable[[Any, int], Any]] = {
    "now_s": lambda w, i: w.s["now"].item(i) / SECOND,
    "queue_length": lambda w, i: w.s["n_queued"].item(i),
    "waiting_work": _waiting_work,
    "n_nodes": lambda w, i: w.o["n_nodes"].item(i),
    "node_states": _node_states,
    "node_cores": lambda w, i: w.node["cores"][i].astype(np.int64),
    "idle_since_s": _idle_since,
}
OF_JOBS: dict[str, Callable[[Any, int], Any]] = {
    "queue": _queue,
    "running": _running,
    "kinds": lambda simulation, i: simulation.shown(i).kinds,
    "free_cores": _open_cores,
    "free_now": lambda simulation, i: _free_in(simulation, i, NOW),
    "free_any": lambda simulation, i: _free_in(simulation, i, ANY),
    "free_kinds": lambda simulation, i: simulation.shown(i).free(simulation.world, i),
    "node_sets": lambda simulation, i: simulation.shown(i).node_sets(simulation.world, i),
}
"""What is told by numbers that must not tell of jobs to come, or of which a job may have a node to itself
(`escala.shown`)."""
FIELDS = ("submit", "runtime", "walltime", "cores", "load", "killed", "single", "user")  # of a job, as unpacked above
assert JOB.names == FIELDS


class Budget:
    """Commands given in this decision, questions asked in it since the last start, and how many there may be."""

    def __init__(self) -> None:
        self.given, self.limit = 0, MOST_COMMANDS
        self.asked, self.most = 0, MOST_QUESTIONS

    def renew(self, simulation: Any, i: int) -> None:
        """A new decision begins."""
        places = simulation.world.s["n_queued"].item(i) * (simulation.platform.n_nodes + 1)
        self.given, self.limit = 0, MOST_COMMANDS + TRIES * places
        self.asked, self.most = 0, MOST_QUESTIONS + LOOKS * places

    def ask(self, simulation: Any, i: int) -> None:
        """One question more; EscalaError beyond the budget."""
        self.asked += 1
        if self.asked > self.most:
            raise EscalaError(
                f"the policy asks more than {self.most:,} questions in one decision and starts no job, at "
                f"{simulation.world.s['now'].item(i) / SECOND} s: return when there is nothing more to look at"
            )


def eyes(simulation: Any, i: int, budget: Budget) -> Callable[[str], Any]:
    """The sealed function behind a View: answers QUESTIONS, and those of OF_JOBS."""

    def answer(what: str) -> Any:
        budget.ask(simulation, i)
        if what in QUESTIONS:
            return QUESTIONS[what](simulation.world, i)
        found = OF_JOBS[what](simulation, i)
        if simulation.numbers is None or what not in ("queue", "running"):
            return found
        return [job._replace(row=simulation.numbers.item(job.row)) for job in found]

    return sealed(answer)


def memory(simulation: Any, i: int, budget: Budget) -> Callable[[int], list[EndedJob]]:
    """The sealed function behind a History: the jobs that have ended, in that order, all but the first so many."""

    def ended(first: int) -> list[EndedJob]:
        budget.ask(simulation, i)
        return _ended(simulation, i, first)

    return sealed(ended)


def _ended(simulation: Any, i: int, first: int) -> list[EndedJob]:
    w = simulation.world
    at = w.past[i, max(int(first), 0) : w.s["n_ended"].item(i)]
    job, start = w.job[i, at], w.run["start"][i, at]
    limit = w.forecast["limit"][i, at]
    numbers = (
        at,
        job["cores"],
        simulation.shown(i).users(job["user"]),
        job["submit"] / SECOND,
        start / SECOND,
        job["runtime"] / SECOND,
        limit / SECOND,
    )
    return [
        EndedJob(*row)
        for row in zip(*(column.tolist() for column in numbers), (job["killed"] == 1).tolist(), strict=True)
    ]


def submitted(simulation: Any, i: int, row: int) -> QueuedJob:
    """The job of a row that waits, whose length nobody has told yet."""
    return _queued(simulation, i, [row])[0]


def foresight(simulation: Any, i: int, budget: Budget) -> Callable[[int], float]:
    """The sealed function behind a ClairvoyantView: how long the job of a row will run, s."""

    def runtime_s(row: int) -> float:
        budget.ask(simulation, i)
        return simulation.world.job[i, row]["runtime"].item() / SECOND

    return sealed(runtime_s)


def hands(simulation: Any, i: int, budget: Budget, log: list[Command] | None) -> Callable[[int, Any, Any], int]:
    """The sealed function behind Commands: (kind, a, b) -> refusal code. EscalaError beyond the budget of a
    decision."""

    def order(kind: int, a: Any, b: Any) -> int:
        budget.given += 1
        if budget.given > budget.limit:
            raise EscalaError(
                f"the policy gives more than {budget.limit:,} commands in one decision, at "
                f"{simulation.world.s['now'].item(i) / SECOND} s: return from decide when there is nothing more to do"
            )
        several = kind == calls.START_ON and isinstance(b, list | tuple | np.ndarray) and len(b) > 0
        one, other = _whole(a), _whole(b[0] if several else b)
        told = one
        if simulation.numbers is not None and one is not None and kind in (calls.START, calls.START_ON):
            one = _row_of(simulation.numbers, one)
        if several and one is not None:
            code = _start_at(simulation, i, one, [_whole(node) for node in b])
        else:
            code = codes.REFUSED_NO_NUMBER if one is None or other is None else simulation.command(i, kind, one, other)
        if code == codes.REFUSED_NONE and kind in (calls.START, calls.START_ON):
            budget.asked = 0
        if log is not None:
            x, y = (codes.NONE if value is None else value for value in (told, other))
            log.append(Command(simulation.world.s["now"].item(i), kind, x, y, codes.REFUSALS.get(code, "")))
        return int(code)

    return sealed(order)


def _row_of(numbers: NDArray[np.int64], number: int) -> int:
    """The row in the tables of a job that is known by this number; NONE where there is none."""
    row = int(np.searchsorted(numbers, number))
    return row if row < len(numbers) and numbers.item(row) == number else codes.NONE


def _start_at(simulation: Any, i: int, row: int, nodes: list[int | None]) -> int:
    """Start a job on these nodes. Refusal code; EscalaError where they cannot be what was meant."""
    if None in nodes:
        return codes.REFUSED_NO_NUMBER
    known: list[int] = nodes  # type: ignore[assignment]
    if wrong := [node for node in known if not 0 <= node < simulation.platform.n_nodes]:
        raise EscalaError(f"start_on: there is no node {wrong[0]}: the last one is {simulation.platform.n_nodes - 1}")
    if len(set(known)) < len(known):
        twice = next(node for node, count in Counter(known).items() if count > 1)
        raise EscalaError(f"start_on: node {twice} is named twice: name each node once")
    code, found = calls.start_at(simulation.table, i, row, np.array(known, np.int64))
    if code not in (codes.REFUSED_NO_NODE, codes.REFUSED_TOO_FEW, codes.REFUSED_TOO_MANY):
        return int(code)
    parts, cores = _parts(simulation, i, np.array([row]))[0][0], simulation.world.job["cores"].item(i, row)
    count, noun = (parts, "part") if parts else (cores, "core")
    if code == codes.REFUSED_NO_NODE:
        lacks, which = ("room", "room (View.room_for)") if parts else ("cores", "free cores (View.free_cores)")
        raise EscalaError(f"start_on: node {found} has no {lacks} for job {row} now: name nodes with {which}")
    if code == codes.REFUSED_TOO_FEW:
        had = f"room for {number_of(found, 'part')}" if parts else number_of(found, "free core")
        needs = number_of(count, noun) if parts else str(count)
        raise EscalaError(f"start_on: the nodes named have {had}, and job {row} needs {needs}: name more")
    own = f"its one {noun}" if count == 1 else f"all of its {number_of(count, noun)}"
    first = "first" if found == 1 else f"first {found}"
    raise EscalaError(f"start_on: job {row} has {own} from the {first} of the nodes named: name no more")


def _whole(value: Any) -> int | None:
    """A whole number that fits 64 bits; None for anything else (True and 1.0 included)."""
    if type(value) is not int:
        if isinstance(value, bool | np.bool_):
            return None
        try:
            value = operator.index(value)
        except TypeError:
            return None
    return value if -(1 << 62) < value < 1 << 62 else None
