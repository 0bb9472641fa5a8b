"""Jobs as a `View` and a `History` tell of them."""

from __future__ import annotations

from typing import NamedTuple


class QueuedJob(NamedTuple):
    """A waiting job, as a scheduler may know it."""

    row: int  # names the job in commands
    cores: int
    walltime_s: float
    submit_s: float
    wait_s: float
    user: int  # -1: unknown
    single_node: bool
    demand: tuple[int, ...]  # per further resource kind (`View.kinds`), of each part
    parts: int = 0  # each lies on one node; 0: it takes cores of any nodes
    part_cores: int = 0  # free cores that a node needs to have room for a part
    parts_per_node: int = 0  # at most
    node_set: int = 0  # of `View.node_sets`, the nodes on which they may lie
    partition: str | None = None  # as the log has it, or its queue; None, here and below: it says nothing
    account: str | None = None
    qos: str | None = None
    priority: int | None = None  # that the job brings, not what a site would compute
    nice: int = 0
    exclusive: bool = False  # a part needs a node on which nobody holds anything, of any size


class EndedJob(NamedTuple):
    """A job that has ended in this simulation."""

    row: int
    cores: int
    user: int  # -1: unknown
    submit_s: float
    start_s: float
    runtime_s: float  # how long it ran
    walltime_s: float  # its request
    killed: bool


class RunningJob(NamedTuple):
    """A job that holds cores: running, or waiting for its nodes to be on."""

    row: int
    cores: int
    planned_end_s: float  # by walltime; it may end earlier
    user: int
    walltime_s: float
    start_s: float | None  # None: it waits for its nodes to be on
    # (first node, last node, cores on each), in the order in which they were taken
    nodes: tuple[tuple[int, int, int], ...]
