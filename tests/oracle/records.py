"""What the oracle's world is made of: profiles, jobs, nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.oracle.nodes import lasts

ON, OFF, SWITCHING_ON, SWITCHING_OFF = "on", "off", "switching_on", "switching_off"


Allocation = list[tuple[int, int]]  # (node number, cores on it), by number


def microseconds(seconds: float) -> int:
    """Half-up rounding of seconds x 1e6."""
    return math.floor(seconds * 1e6 + 0.5)


@dataclass
class Profile:
    """Watts of one node in each state, and how long a switch takes."""

    computing_w: float = 200.0
    idle_w: float = 100.0
    off_w: float = 10.0
    switching_off_w: float = 120.0
    switching_on_w: float = 150.0
    switch_off_s: float = 5.0
    switch_on_s: float = 20.0
    can_switch: bool = True
    gpu_idle_w: Any = 0.0  # of each GPU: a number, or a dict by kind; so is gpu_computing_w
    gpu_computing_w: Any = 0.0


@dataclass
class Job:
    row: int  # place in the log
    job_id: str
    submit_s: float
    runtime_s: float
    walltime_s: float
    cores: int
    load: Fraction = Fraction(1)
    parts: list[int] | None = None  # cores of each part, which lies on one node; None: cores of any nodes
    most: int = 1  # parts on one node
    demands: dict[str, int] = field(default_factory=dict)  # further kinds, of each part
    user: str | None = None
    allowed: frozenset[int] | None = None  # numbers of the nodes on which it may lie; None: all
    limited: bool = True  # killed at its walltime
    speeds: Sequence[float] = ()  # of all nodes
    lane: int = 0  # in which of the queues it stands
    # life
    state: str = "future"  # future, waiting, given, running, COMPLETED, KILLED, REJECTED
    held: Allocation = field(default_factory=list)
    parts_on: dict[int, int] = field(default_factory=dict)  # node -> how many of its parts it has there
    start: int | None = None
    finish: int | None = None
    planned_end: Any = None  # plan time; of given and running jobs
    plan: tuple[Any, Allocation] | None = None  # conservative: planned start and place
    seen_s: float = 0.0  # how long plans take it to run
    order_s: float = 0.0  # how long the order of the queue takes it to run
    patience_s: float = 0.0  # the length of which hold:X takes a share
    column_s: float | None = None  # an estimate that the log has
    moves: int = 0  # how often its planned end has moved
    cut: bool = False  # an outage ended it
    gone: frozenset[int] = frozenset()  # its nodes that are gone
    lost: int = 0  # what it ran in vain, us

    @property
    def single_node(self) -> bool:
        """All of it on one node."""
        return self.parts is not None and len(self.parts) == 1

    @property
    def takes(self) -> int:
        """Cores that it gets: more than it asks for, where it takes whole nodes or tasks."""
        return self.cores if self.parts is None else sum(self.parts)

    @property
    def submit(self) -> int:
        return microseconds(self.submit_s)

    @property
    def length(self) -> int:
        """What it runs: at most its walltime."""
        if self.cut:
            assert self.start is not None and self.finish is not None
            return self.finish - self.start
        whole = lasts(self, [self.speeds[number] for number, _ in self.held])
        return min(whole, microseconds(self.walltime_s)) if self.limited else whole

    @property
    def killed(self) -> bool:
        return self.cut or (self.limited and self.length == microseconds(self.walltime_s))


@dataclass
class Node:
    number: int
    cores: int
    profile: Profile
    capacity: dict[str, int]  # further kinds
    name: str | None = None
    features: tuple[str, ...] = ()
    speed: float = 1.0
    holders: list[tuple[Job, int]] = field(default_factory=list)  # jobs that run or were given cores here, and how many
    power: str = ON
    switch_end: int | None = None
    idle_since: int | None = 0  # None while it is not idle
    timer: int | None = None
    reserved: bool = False  # by off-reservation
    gone: bool = False  # down or drained
    # ledger: closed stretches (from, to, state, watts) and the open one
    stretches: list[tuple[int, int, str, Fraction]] = field(default_factory=list)
    since: int = 0
    label: str = ""
    watts: Fraction = Fraction(0)
    entries: list[tuple[int, str]] = field(default_factory=list)  # instants at which a switch began

    @property
    def barred(self) -> bool:
        """Nobody is given cores of it."""
        return self.reserved or self.gone
