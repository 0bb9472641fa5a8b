"""Empty tables for a batch of simulations: how large each is, and which are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.kernel import bits, codes
from escala.kernel.state import (
    CHUNK,
    EVENT,
    FAN,
    FORECAST,
    FRONT,
    JOB,
    LANE,
    LEDGER,
    LEVELS,
    LOG,
    MISSES,
    NODE,
    OPTIONS,
    PROFILE,
    RUN,
    SCALARS,
    SHAPE,
    TERMS,
    USER,
    WIDTHS,
    World,
)

MOST_CORES = 2**31 - 1  # of all nodes, in an agenda


def tree_size(jobs: int) -> int:
    """Cells of the search tree over `jobs` ranks, all levels together."""
    total, level = 0, jobs
    while level > 1:
        level = -(-level // FAN)
        total += level
    return max(total, 1)


class Sizes(NamedTuple):
    """What the tables must hold, and which of them are needed."""

    jobs: int
    nodes: int
    cores: int
    kinds: int  # of resources beyond cores
    profiles: int
    ranks: int = 0  # of a given order of the jobs, 0: none is given
    searched: bool = False  # the queue may be long and is searched by a tree
    passed: bool = False  # for jobs that end in time, too
    planned: bool = False  # planned ends are kept
    agenda: bool = False  # conservative backfilling
    walked: bool = False  # in another order than that of submission
    multi: bool = False  # some job has demands beyond cores
    groups: int = 0  # of such jobs, where the queue is searched
    shaped: bool = False  # some job is made of parts
    lanes: int = 0  # queues of their own, 0: one of all
    allowed: int = 0  # sets of nodes on which jobs may lie, 0: all jobs on all nodes
    chunks: int = 0  # recorded chunks to expect
    orders: int = 0  # that are found by a tournament, 0 to 2
    numbered: bool = False  # one of them has a number a job
    linear: bool = False  # one is a linear score
    counted: int = 0  # users at whom it looks
    forecast: bool = False  # as the tables of `World`, from here on
    users: int = 0
    steps: int = 0
    past: bool = False
    paced: bool = False  # nodes differ in speed


def allocate(n: int, sizes: Sizes) -> World:
    """Empty tables for `n` simulations; `simulation.py` fills them in. EscalaError: an agenda of too many cores."""
    if sizes.agenda and sizes.cores > MOST_CORES:
        raise EscalaError(
            f"conservative backfilling counts up to {MOST_CORES} cores in all, not {sizes.cores}: use easy"
        )
    jobs, nodes, cores, kinds = sizes.jobs, sizes.nodes, sizes.cores, sizes.kinds
    ranks, orders = sizes.ranks, sizes.orders
    rows = max(1 + (WIDTHS if sizes.passed else 1), 2 + 2 * orders)
    words = (nodes + 63) // 64
    cells = tree_size(max(jobs, ranks)) if sizes.searched else 0
    live = min(jobs, cores) + 1
    heap = max(live, nodes, 1) + 64

    def zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return np.zeros((n, *shape), dtype)

    return World(
        o=zeros((1,), OPTIONS),
        s=zeros((1,), SCALARS),
        job=zeros((jobs,), JOB),
        run=zeros((jobs,), RUN),
        lane=zeros((1 + sizes.lanes,), LANE),
        link=zeros((jobs if sizes.lanes else 0, 3), np.int32),
        shape=zeros((jobs if sizes.shaped else 0,), SHAPE),
        demand=zeros((jobs if sizes.multi else 0, kinds), np.int32),
        forecast=zeros((jobs if sizes.forecast else 0,), FORECAST),
        recent=zeros((sizes.users, 2), np.int64),
        steps=zeros((sizes.steps,), np.int64),
        past=zeros((jobs if sizes.past else 0,), np.int32),
        node=zeros((nodes,), NODE),
        room=zeros((nodes, kinds), np.int32),
        profile=zeros((sizes.profiles,), PROFILE),
        ledger=zeros((sizes.profiles,), LEDGER),
        bits=zeros((codes.N_SETS, words), np.uint64),
        roomy=zeros((LEVELS if sizes.multi else 0, words), np.uint64),
        allowed=np.full((n, sizes.allowed, words), bits.FULL),
        chunk=zeros((2 * cores + 64 + sizes.chunks,), CHUNK),
        heaps=zeros((6, heap), EVENT),
        plans=zeros((live if sizes.planned else 0,), np.int32),
        frontier=zeros((1 + live if sizes.planned else 1,), np.int64),
        cores=zeros((nodes if sizes.multi else 0,), np.int64),
        beyond=zeros((nodes if sizes.multi else 0, kinds), np.int64),
        missed=zeros((MISSES if sizes.multi else 0, 6 + kinds), np.int64),
        order=zeros((2, ranks), np.int32),
        tree=zeros((rows, cells), np.int64),
        group=zeros((sizes.groups, 3 + kinds), np.int32),
        member=zeros((jobs if sizes.groups else 0,), np.int8),
        reach=zeros((sizes.groups, 3), np.int64),
        branch=zeros((sizes.groups * (1 + (WIDTHS if sizes.passed and orders == 0 else 1)), cells), np.int64),
        fixed=zeros((orders if sizes.numbered else 0, jobs), np.float64),
        terms=zeros((orders if sizes.linear else 0,), TERMS),
        user=zeros((sizes.counted,), USER),
        front=zeros((jobs + tree_size(jobs) if orders else jobs if sizes.walked else 0,), FRONT),
        log=zeros((4 * nodes + 64,), LOG),
        speed=zeros((nodes if sizes.paced else 0,), np.float64),
        whole=zeros((jobs if sizes.paced else 0, 2), np.int64),
        **_agenda(zeros, sizes),
    )


def _agenda(zeros: Callable[[tuple[int, ...], Any], NDArray[Any]], sizes: Sizes) -> dict[str, NDArray[Any]]:
    """The tables of conservative backfilling, empty where it does not plan."""
    slices = 64 if sizes.agenda else 0
    entries = sizes.nodes * (1 + sizes.kinds) if sizes.agenda else 0
    scratch = {name: zeros((entries,), np.int32) for name in ("least", "trial", "asleep", "own")}
    return scratch | {
        "barred": zeros((sizes.jobs if sizes.agenda else 0, 3), np.int64),
        "slices": zeros((3, slices), np.int64),
        "spare": zeros((slices,), np.int32),
        "agenda": zeros((slices, entries), np.int32),
        "runs": zeros((3, slices // 2), np.int64),
        "lows": zeros((slices // 2, entries), np.int32),
    }
