"""`Snapshot`: how a machine stands at one instant, as plain columns; the same in JSON.

Times are seconds on any clock, the same for all snapshots of a machine. Nodes are numbered in the order of the
platform.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.load import JOBS, NODES, PLACED
from escala.kernel.sound import LATEST_S, POWER, STATES, survey, take_in
from escala.live.columns import Columns
from escala.live.shapes import ASKED, HELD, OF_KIND, read_held, read_shapes
from escala.reading import guarded, read_json
from escala.workload.shapes import OF_NODES
from escala.writing import write_whole

SCHEMA = 1
NAMES = {code: name for name, code in STATES.items()}
POWERS = {code: name for name, code in POWER.items()}
SECTIONS = ("jobs", "nodes", "placed", "ended")
DEMAND = "demand_"
JOB_COLUMNS = (
    "job_id",
    "submit_s",
    "walltime_s",
    "cores",
    "state",
    "start_s",
    "user",
    "partition",
    "single_node",
    *ASKED,
)
NODE_COLUMNS = ("power", "idle_since_s", "switch_end_s", "gone")
PLACED_COLUMNS = ("job", "first", "last", "cores", *HELD)
IN_ORDER = "give them in the order of time; if the last had a false clock, begin anew without the state file"
MORE = "tell the cores that it has there, or exclusive if it has whole nodes"


class Survey(NamedTuple):
    """What one pass over the records finds (`escala.kernel.sound`)."""

    sound: int  # 1: they make sense
    late: int  # jobs that were submitted before the one in front of them
    single: int  # jobs of one node
    most: int  # cores of one job
    held: int  # cores that jobs hold
    untold: int  # switches whose end nobody tells
    off: int  # nodes that are not on


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Made by `Snapshot.of`, or read from JSON. `jobs`, `nodes`, `placed` are records in microseconds
    (`escala.kernel.load`)."""

    now_us: int
    job_ids: list[str]
    users: list[str | None]
    jobs: NDArray[Any]  # JOBS
    nodes: NDArray[Any]  # NODES
    placed: NDArray[Any]  # PLACED
    demand: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    ended: list[tuple[str, int, int]] = field(default_factory=list)  # id, start, end
    partitions: list[str | None] | None = None  # of the jobs; None: nobody tells
    shapes: dict[str, list[Any]] = field(default_factory=dict)  # what jobs ask of nodes (`escala.live.shapes`)
    # on each node of `placed`: memory_mb, gpu, gpu:KIND
    held: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        now_s: float,
        jobs: Mapping[str, Any],
        nodes: Mapping[str, Any],
        placed: Mapping[str, Any] | None = None,
        ended: Mapping[str, Any] | None = None,
    ) -> Snapshot:
        """From columns, lists or arrays of equal length; EscalaError for the first that makes no sense.

        jobs: job_id, submit_s, walltime_s, cores, state (queued; given: has its cores and waits for nodes to be on;
        running), and where needed start_s (of running ones), user, partition, single_node, demand_KIND; in the order in
        which the machine's queue keeps jobs that were submitted at one instant; what they ask of nodes, as in
        `escala.workload.shapes` (one that gets whole nodes or tasks may hold more than its cores); for `SlurmDesk`
        nice, priority, account, qos. nodes: power (on, switching_on, off, switching_off), and where needed
        idle_since_s, switch_end_s, gone (may not be used: down, drained, reserved by others). placed: cores that jobs
        hold, those of a job together: job (its place in `jobs`), first and last node, cores on each, and if known
        memory_mb, gpu, gpu:KIND on each. ended: job_id, start_s, end_s of the jobs that have ended since the last
        snapshot.
        """
        now = _instant(now_s)
        columns, power, told = Columns("jobs", jobs), Columns("nodes", nodes), Columns("placed", placed or {})
        columns.known(JOB_COLUMNS, DEMAND)
        power.known(NODE_COLUMNS)
        told.known(PLACED_COLUMNS, OF_KIND)
        ids, users, held, shapes = columns.texts("job_id"), columns.users("user"), read_held(told), read_shapes(columns)
        times, whole, words = _numbers(columns, power, told)
        records, machine, places = (
            np.empty(len(ids), JOBS),
            np.empty(power.length, NODES),
            np.empty(told.length, PLACED),
        )
        found = Survey(*take_in(now, times, whole, words, records, machine, places))
        demand = _demand(columns, records)
        if not found.sound:
            _refuse(columns, power, times, records, machine, now)
            places, order = _in_order(told, places, ids, records, len(machine), _more_than_cores(shapes, len(ids)))
            held = {name: values[order] for name, values in held.items()}
            found = Survey(*survey(now, records, machine, places))
        where = columns.users("partition") if "partition" in jobs else None
        over = _ended(Columns("ended", ended)) if ended else []
        made = cls(now, ids, users, records, machine, places, demand, over, where, shapes, held)
        vars(made)["survey"] = found
        return made

    @cached_property
    def survey(self) -> Survey:
        """What its records say together."""
        return Survey(*survey(self.now_us, self.jobs, self.nodes, self.placed))

    @property
    def now_s(self) -> float:
        """When it was taken, s."""
        return self.now_us / SECOND

    def columns(self) -> dict[str, Any]:
        """As `of` takes it, in plain lists."""
        queued = self.jobs["state"] != codes.RUNNING
        jobs: dict[str, Any] = {
            "job_id": self.job_ids,
            "submit_s": _seconds(self.jobs["submit"]),
            "walltime_s": _seconds(self.jobs["walltime"]),
            "cores": self.jobs["cores"].tolist(),
            "state": [NAMES[code] for code in self.jobs["state"].tolist()],
            "start_s": _seconds(self.jobs["start"], queued),
        }
        if any(user is not None for user in self.users):
            jobs["user"] = self.users
        if self.partitions is not None:
            jobs["partition"] = self.partitions
        if self.jobs["single"].any():
            jobs["single_node"] = (self.jobs["single"] == 1).tolist()
        jobs |= {f"{DEMAND}{kind}": values.tolist() for kind, values in self.demand.items()} | self.shapes
        on, switching = self.nodes["power"] == codes.ON, self.nodes["power"] % 2 == 1
        nodes = {
            "power": [POWERS[code] for code in self.nodes["power"].tolist()],
            "idle_since_s": _seconds(self.nodes["since"], ~on),
            "switch_end_s": _seconds(self.nodes["done"], ~switching | (self.nodes["done"] < 0)),
            "gone": (self.nodes["gone"] == 1).tolist(),
        }
        names = {"job": "job", "first": "low", "last": "high", "cores": "per"}
        placed = {name: self.placed[own].tolist() for name, own in names.items()}
        ended = {"job_id": [e[0] for e in self.ended], "start_s": [e[1] / SECOND for e in self.ended]}
        return {
            "now_s": self.now_s,
            "jobs": jobs,
            "nodes": nodes,
            "placed": placed | {name: values.tolist() for name, values in self.held.items()},
            "ended": ended | {"end_s": [e[2] / SECOND for e in self.ended]},
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"schema": SCHEMA, **self.columns()}, separators=(",", ":"))

    def save(self, path: str | Path) -> None:
        """Write the JSON as a whole file."""
        write_whole(path, self.to_json() + "\n")

    @classmethod
    def from_json(cls, text: str | bytes) -> Snapshot:
        """From a text of JSON; EscalaError for what is none."""
        try:
            told = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EscalaError(f"snapshot: not valid JSON ({error}): write it again") from None
        return cls.from_plain(told)

    @classmethod
    def load(cls, path: str | Path) -> Snapshot:
        """From a file, plain or gzipped; EscalaError that names it."""
        with guarded(path, "a snapshot"):
            return cls.from_plain(read_json(Path(path)))

    @classmethod
    def from_plain(cls, told: Any) -> Snapshot:
        """From what a JSON text held; EscalaError for what is no snapshot, or one of another schema."""
        if not isinstance(told, dict) or told.get("schema") != SCHEMA or isinstance(told["schema"], bool):
            found = told.get("schema") if isinstance(told, dict) else None
            raise EscalaError(f"snapshot: schema {quoted(found)} is not {SCHEMA}: write it with this version of Escala")
        unknown = [name for name in told if name not in ("schema", "now_s", *SECTIONS)]
        if unknown:
            raise EscalaError(
                f"snapshot: {quoted(unknown[0])} is no part of it: it has schema, now_s, {', '.join(SECTIONS)}"
            )
        for name in SECTIONS:
            if not isinstance(told.get(name, {}), dict):
                raise EscalaError(f"snapshot: {name} is {quoted(told[name])}: give its columns, name -> list")
        return cls.of(told.get("now_s", math.nan), *(told.get(name, {}) for name in SECTIONS))


def _instant(now_s: Any) -> int:
    if isinstance(now_s, bool) or not isinstance(now_s, int | float | np.number) or not 0 <= now_s <= LATEST_S:
        raise EscalaError(f"snapshot: now_s is {quoted(now_s)}: give seconds from 0 to {LATEST_S:g}")
    return math.floor(float(now_s) * SECOND + 0.5)


def _seconds(us: NDArray[np.int64], none: NDArray[np.bool_] | None = None) -> list[float | None]:
    """Times in s, null where `none`."""
    seconds = (us / SECOND).tolist()
    return (
        seconds
        if none is None
        else [None if left else value for value, left in zip(seconds, none.tolist(), strict=True)]
    )


def _numbers(
    jobs: Columns, nodes: Columns, placed: Columns
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint8]]:
    """The columns as `take_in` takes them."""
    n, m, p = jobs.length, nodes.length, placed.length
    times, whole = np.empty(3 * n + 2 * m), np.empty(2 * n + m + 4 * p, np.int64)
    jobs.fill_times(times[:n], "submit_s")
    jobs.fill_times(times[n : 2 * n], "walltime_s")
    jobs.fill_times(times[2 * n : 3 * n], "start_s", may_lack=True)
    nodes.fill_times(times[3 * n : 3 * n + m], "idle_since_s", may_lack=True)
    nodes.fill_times(times[3 * n + m :], "switch_end_s", may_lack=True)
    jobs.fill_whole(whole[:n], "cores")
    jobs.fill_flags(whole[n : 2 * n], "single_node")
    at = 2 * n + m
    nodes.fill_flags(whole[2 * n : at], "gone")
    for name in PLACED_COLUMNS[:4]:
        placed.fill_whole(whole[at : at + p], name)
        at += p
    words = jobs.words("state", STATES) + nodes.words("power", POWER)
    return times, whole, np.frombuffer(words.encode("utf-8", "replace"), np.uint8)


def _demand(given: Columns, jobs: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """By kind."""
    names = [name for name in given.columns if name.startswith(DEMAND)]
    found = {name: given.whole(name) for name in names}
    for name, values in found.items():
        given.refuse(
            (values < 0) | ((values > 0) & (jobs["single"] == 0)), name, "give 0, or more for single_node jobs"
        )
    return {name.removeprefix(DEMAND): values for name, values in found.items()}


def _refuse(
    given: Columns, power: Columns, times: NDArray[np.float64], jobs: NDArray[Any], nodes: NDArray[Any], now: int
) -> None:
    """EscalaError for the first job, or node, that makes no sense at `now`."""
    n, m = len(jobs), len(nodes)
    submit, walltime, start, since, done = np.split(times, (n, 2 * n, 3 * n, 3 * n + m))
    given.refuse_words("state", STATES)
    power.refuse_words("power", POWER)
    given.refuse_times("submit_s", submit)
    given.refuse_times("walltime_s", walltime)
    given.refuse_times("start_s", start, may_lack=True)
    power.refuse_times("idle_since_s", since, may_lack=True)
    power.refuse_times("switch_end_s", done, may_lack=True)
    given.refuse_whole("cores", jobs["cores"])
    given.refuse(jobs["cores"] < 1, "cores", "give 1 or more")
    given.refuse(jobs["walltime"] < 1, "walltime_s", "give more than 0 s")
    given.refuse(jobs["submit"] > now, "submit_s", "it is later than now_s: leave out jobs that are not submitted yet")
    running = jobs["state"] == codes.RUNNING
    given.refuse(
        running & ((jobs["start"] < 0) | (jobs["start"] > now)), "start_s", "a running job has started, by now_s"
    )
    power.refuse((nodes["since"] > now) & (nodes["power"] == codes.ON), "idle_since_s", "it is later than now_s")


def _more_than_cores(shapes: Mapping[str, list[Any]], n: int) -> NDArray[np.bool_]:
    """Which jobs ask for something of nodes: they may hold more cores than they ask for."""
    found = np.zeros(n, bool)
    for name in (name for name in OF_NODES if name in shapes):
        found |= np.array([value is not None for value in shapes[name]], bool)
    return found


def _in_order(
    given: Columns,
    records: NDArray[Any],
    ids: Sequence[str],
    jobs: NDArray[Any],
    n_nodes: int,
    more: NDArray[np.bool_],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """PLACED with those of a job together, and their places before; EscalaError where not every job that holds cores
    has all of them. more: jobs that may have more."""
    for name, own in zip(PLACED_COLUMNS[:4], PLACED.names or (), strict=True):
        given.refuse_whole(name, records[own])
    given.refuse(
        (records["job"] < 0) | (records["job"] >= len(jobs)),
        "job",
        "give the place of a job in the columns of jobs, from 0",
    )
    given.refuse(
        (records["low"] < 0) | (records["high"] < records["low"]),
        "last",
        "give a last node that is not before the first",
    )
    given.refuse(records["high"] >= n_nodes, "last", f"there are {n_nodes} nodes, from 0")
    given.refuse((records["per"] < 1) | (records["per"] > 2**31), "cores", "give 1 or more")
    at = records["job"]
    given.refuse(jobs["state"][at] == codes.QUEUED, "job", "that job is queued, so it holds no cores")
    order = np.argsort(at, kind="stable")
    records = records[order]
    sums = np.bincount(records["job"], (records["high"] - records["low"] + 1) * records["per"], len(jobs)).astype(
        np.int64
    )
    holding = jobs["state"] != codes.QUEUED
    if (wrong := holding & (sums != jobs["cores"]) & ~(more & (sums > jobs["cores"]))).any():
        k = int(wrong.argmax())
        raise EscalaError(
            f"snapshot: job {quoted(ids[k])} has {jobs['cores'][k]} cores, and holds {sums[k]} in placed: "
            + ("tell where all are" if sums[k] < jobs["cores"][k] else MORE)
        )
    return records, order


def _ended(given: Columns) -> list[tuple[str, int, int]]:
    if not given.columns:
        return []
    given.known(("job_id", "start_s", "end_s"))
    ids, start, end = given.texts("job_id"), given.times("start_s"), given.times("end_s")
    given.refuse(end < start, "end_s", "it is before start_s")
    return list(zip(ids, start.tolist(), end.tolist(), strict=True))
