"""By which numbers a View names further kinds of resources, users and sets of nodes, so that none tells of jobs to
come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.platform import Platform
from escala.platform.sharers import SHARERS, sharers_of

Ints = NDArray[np.int64]


class Shown:
    """kinds: all further ones that the platform has, whatever jobs demand; the tables count `counted`, some of them,
    and SHARERS at last where some job has nodes of several sizes to itself: of this is only told who does, and that
    others find no free core there.

    Users and sets of nodes have the numbers of the tables. After `in_order` they have those of the order in which jobs
    of them come, and only sets of jobs that have come are shown; the first is of all nodes."""

    def __init__(self, platform: Platform, counted: Sequence[str]) -> None:
        self.kinds = tuple(platform.resources)
        self._all = np.zeros((platform.n_nodes, len(self.kinds)), np.int64)
        for k, kind in enumerate(self.kinds):
            self._all[:, k] = platform.resources[kind]
        self._counted = [self.kinds.index(kind) for kind in counted if kind != SHARERS]
        self._sharers = sharers_of(platform) if SHARERS in counted else 0
        self._users: Ints | None = None
        self._sets: Ints | None = None
        self._known = self._first = np.zeros(0, np.int64)

    def in_order(self, world: Any, i: int) -> Shown:
        """By the jobs of simulation i, whose rows are in the order in which they come."""
        n = world.o["n_jobs"].item(i)
        user = world.job["user"][i, :n]
        known, _ = _by_first(user[user >= 0])
        self._users = np.full(known.max(initial=-1) + 2, -1)  # the last is that of nobody, -1
        self._users[known] = np.arange(len(known))
        if len(world.allowed[i]):
            which = world.shape["allowed"][i, :n]
            at = np.flatnonzero(which)
            known, first = _by_first(which[at])
            self._sets = np.zeros(len(world.allowed[i]), np.int64)
            self._sets[known] = np.arange(1, len(known) + 1)
            self._known, self._first = np.append(0, known), np.append(-1, at[first])
        return self

    def users(self, user: NDArray[Any]) -> NDArray[Any]:
        """The numbers of these users of the tables; -1 for -1."""
        return user if self._users is None else self._users[user]

    def sets(self, which: NDArray[Any]) -> NDArray[Any]:
        """The numbers of these sets of the tables."""
        return which if self._sets is None else self._sets[which]

    def demands(self, world: Any, i: int, rows: Ints) -> list[tuple[int, ...]]:
        """What a part of each of these jobs demands of each kind."""
        if not self.kinds:
            return [()] * len(rows)
        found = np.zeros((len(rows), len(self.kinds)), np.int64)
        if self._counted:  # else the table has no rows
            found[:, self._counted] = world.demand[i, rows, : len(self._counted)]
        return list(map(tuple, found.tolist()))

    def alone(self, world: Any, i: int, rows: Ints) -> list[bool]:
        """Which of these jobs have nodes of any size to themselves."""
        if not self._sharers:
            return [False] * len(rows)
        found: list[bool] = (world.demand[i, rows, -1] == self._sharers).tolist()
        return found

    def open(self, world: Any, i: int) -> NDArray[np.bool_] | None:
        """On which nodes no job is that has them to itself, bool [nodes]; None: there is no such job."""
        return world.room[i, :, -1] > 0 if self._sharers else None

    def free(self, world: Any, i: int) -> Ints:
        """What no job holds of each kind, int64 [nodes, kinds]."""
        found = self._all.copy()
        found[:, self._counted] = world.room[i, :, : len(self._counted)]
        return found

    def node_sets(self, world: Any, i: int) -> NDArray[np.bool_]:
        """bool [sets, nodes], by number."""
        sets, nodes = world.allowed[i], world.node.shape[1]
        if self._sets is not None:
            sets = sets[self._known[: np.searchsorted(self._first, world.s["next_job"].item(i))]]
        if len(sets) == 0:
            return np.ones((1, nodes), bool)
        return np.unpackbits(sets.view(np.uint8), axis=1, count=nodes, bitorder="little").astype(bool)


def _by_first(codes: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """(the different ones in the order in which they first stand there, where each does)."""
    known, first = np.unique(codes, return_index=True)
    order = np.argsort(first)
    return known[order], first[order]
