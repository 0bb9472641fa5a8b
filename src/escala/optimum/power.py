"""A day of a cluster whose nodes switch off and on: what is given, and the least waste once the starts are fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from escala.errors import EscalaError
from escala.optimum.instance import MAX_TICK, Ints, whole_ticks


@dataclass(frozen=True)
class PowerInstance:
    """One day: n jobs on `total` equal nodes, whole nodes to each job unless `spread` says more.

    release, length, latest (last allowed start): (n,) ticks; nodes: (n,) >= 1. tick_s: seconds of a tick. idle_w: watts
    of an idle node.
    on_j, off_j: joules of one switching. on_at_start: nodes that are on at the first submission. spread: (n,) >= nodes;
    where jobs may share nodes, job j keeps at most spread[j] nodes from being idle, and all jobs that run at once need
    at least the sum of their `nodes` (which may then be 0); by default spread = nodes. While a job with spread > nodes
    may run, idle nodes cost nothing in the bound.
    ending: a switching off that begins fewer ticks before the end is not charged in full.
    EscalaError on bad rows.
    """

    release: Ints
    length: Ints
    nodes: Ints
    latest: Ints
    total: int
    tick_s: float
    idle_w: float
    on_j: float
    off_j: float
    on_at_start: int = 0
    spread: Ints | None = None
    ending: int = 0
    first: int = field(init=False)  # tick of the first submission
    soonest: int = field(init=False)  # no schedule ends earlier than `ending` after this tick

    def __post_init__(self) -> None:
        for name in ("release", "length", "nodes", "latest"):
            object.__setattr__(self, name, whole_ticks(getattr(self, name), name, 1))
        n = self.release.size
        if n == 0 or any(getattr(self, name).size != n for name in ("length", "nodes", "latest")):
            raise EscalaError("energy: give the release, length, nodes and latest start of each of at least one job")
        for bad, what in (
            (self.release < 0, "release below 0: shift the times"),
            (self.length < 1, "length below 1 tick: drop the job or choose a finer tick"),
            (self.nodes < (1 if self.spread is None else 0), "no nodes: drop the job"),
            (self.nodes > self.total, "more nodes than there are, so it can never run: drop the job"),
            (self.latest < self.release, "latest start before its release: give the release plus the longest wait"),
        ):
            if np.any(bad):
                raise EscalaError(f"energy: job in row {int(np.argmax(bad))}: {what}")
        if self.spread is not None:
            object.__setattr__(self, "spread", whole_ticks(self.spread, "spread", 1))
            if self.spread.size != n or np.any(self.spread < self.nodes) or self.spread.max() > self.total:
                raise EscalaError("energy: spread must be from a job's nodes to all nodes")
        watts = {"tick_s": self.tick_s, "idle_w": self.idle_w, "on_j": self.on_j, "off_j": self.off_j}
        for name, value in watts.items():
            if not 0 <= value < 2**30 or (name == "tick_s" and value == 0):
                raise EscalaError(f"energy: {name} is {value}: give a number from 0 to 2^30 (tick_s above 0)")
        if not 0 <= self.on_at_start <= self.total:
            raise EscalaError(
                f"energy: {self.on_at_start} of {self.total} nodes on at the start: give 0 to {self.total}"
            )
        if int(self.latest.max()) + int(self.length.max()) >= MAX_TICK:
            raise EscalaError("energy: latest starts reach 2^40 ticks: choose a coarser tick")
        object.__setattr__(self, "first", int(self.release.min()))
        object.__setattr__(self, "soonest", int((self.release + self.length).max()) - self.ending)

    def unsure(self) -> list[tuple[int, int]]:
        """Spans of ticks in which a job may run that may keep more nodes from being idle than it needs."""
        if self.spread is None:
            return []
        rows = np.flatnonzero(self.spread > self.nodes)
        return list(zip(self.release[rows].tolist(), (self.latest + self.length)[rows].tolist()))


def waste_of(instance: PowerInstance, starts: Ints) -> float:
    """Least waste in joules for given starts, if the nodes knew the future: what remains when only switching is left to
    choose.

    Level by level (node k is busy while at least k are): each gap idles or switches off and on, whichever is cheaper;
    after its last job a node idles to the makespan or switches off; before its first it switches on, or, if on at the
    start, idles or switches off and on.
    """
    ends = starts + instance.length
    if np.any(starts < instance.release) or np.any(starts > instance.latest):
        raise EscalaError("energy: a start lies outside [release, latest]")
    ticks = np.concatenate([starts, ends])
    change = np.concatenate([instance.nodes, -instance.nodes])
    edges, where = np.unique(ticks, return_inverse=True)
    busy = np.cumsum(np.bincount(where, change, edges.size)).astype(np.int64)[:-1]
    if busy.max() > instance.total:
        raise EscalaError(f"energy: {busy.max()} nodes busy at once, of {instance.total}")
    begin, end, cycle = instance.first, int(edges[-1]), instance.on_j + instance.off_j
    second = instance.idle_w * instance.tick_s
    costs: list[float] = []
    for level in range(1, max(int(busy.max()), instance.on_at_start) + 1):
        runs = busy >= level
        steps = np.flatnonzero(np.diff(np.concatenate([[False], runs, [False]]).astype(np.int8)))
        froms, tos = edges[steps[::2]].tolist(), edges[steps[1::2]].tolist()
        warm = level <= instance.on_at_start
        if not froms:
            costs.append(min(second * (end - begin), instance.off_j))
            continue
        costs.append(min(second * (froms[0] - begin), cycle) if warm else instance.on_j)
        costs += [min(second * (later - sooner), cycle) for sooner, later in zip(tos, froms[1:])]
        costs.append(min(second * (end - tos[-1]), instance.off_j))
    return math.fsum(costs)
