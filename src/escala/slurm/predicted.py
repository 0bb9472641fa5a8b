"""How long jobs are expected to run, for an order of the queue: beforehand, or when they come, from the runs that have
ended in this replay. Plans go by limits, as Slurm's do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.estimates import WALLTIME, lengths_us, way_of
from escala.kernel import codes
from escala.kernel.slurm import tables as t
from escala.kernel.state import FORECAST, JOB, RUN, USER
from escala.prediction.folder import folder_of
from escala.prediction.inside import Say, Tables, begin
from escala.prediction.memory import nobody_came
from escala.prediction.model import read_model
from escala.workload import Workload

Ints = NDArray[np.int64]


class Lengths:
    """us [jobs], int64: of those that have come what is expected of them, 1 to the limit; of the others, what is known
    beforehand."""

    def __init__(self, run: t.World, jobs: Workload, estimate: Any) -> None:
        self._run, self._way = run, way_of(estimate or WALLTIME)
        self.us: Ints = np.array(lengths_us(estimate or WALLTIME, jobs.jobs), np.int64)
        self._tables: Tables | None = None
        self._say: Say | None = None
        if self._way == codes.BEFOREHAND:
            return
        self._tables = _tables(run, jobs, self.us)
        self._over, self._told = np.zeros((2, len(jobs)), bool)
        self._last = np.full((len(self._tables.user), 2), codes.NONE, np.int64)
        if self._way == codes.ASKED:
            self._say = begin(read_model(estimate, folder_of(estimate)), self._tables)

    def look(self, new: Ints, low: int, came: int) -> None:
        """Take in what has ended since the last look, and foresee these jobs, that come now. low, came: no row below
        waited or ran at the last one; none from there on has come."""
        if self._tables is None:
            return
        self._take_in(low, came)
        if self._say is None:
            self.us[new] = [self._last2(j) for j in new]
            return
        for rows in np.split(new, np.flatnonzero(np.diff(new) > 1) + 1) if len(new) else []:  # between: refused ones
            first, last = int(rows[0]), int(rows[-1]) + 1
            self._count(low, first, last)
            self.us[first:last] = self._say(first, last)
            self._told[first:last] = True

    def _last2(self, j: int) -> int:
        """See `escala.kernel.forecast`."""
        assert self._tables is not None
        user, limit = int(self._tables.job["user"][j]), int(self._tables.forecast["limit"][j])
        last, before = self._last[user] if user != codes.NONE else (codes.NONE, codes.NONE)
        if last == codes.NONE:
            return limit
        return min(max(int(last if before == codes.NONE else (last + before) // 2), 1), limit)

    def _take_in(self, low: int, came: int) -> None:
        """The runs that have ended, in their order."""
        assert self._tables is not None
        jobs, tables = self._run.jobs, self._tables
        lost = low + np.flatnonzero((jobs.state[low:came] == t.NEVER) & self._told[low:came])
        for user in tables.job["user"][lost]:  # as if it had not come
            tables.come["came"][user] -= user != codes.NONE
        self._told[lost] = False
        rows = low + np.flatnonzero((jobs.state[low:came] == t.ENDED) & ~self._over[low:came])
        rows = rows[np.argsort(jobs.finish[rows], kind="stable")]
        self._over[rows] = True
        tables.job["runtime"][rows] = jobs.finish[rows] - jobs.start[rows]
        tables.run["start"][rows] = jobs.start[rows]
        at = int(tables.ended[0])
        tables.past[at : at + len(rows)] = rows
        tables.ended[0] += len(rows)
        for j in rows:
            user = tables.job["user"][j]
            if user != codes.NONE:
                self._last[user] = tables.job["runtime"][j], self._last[user, 0]

    def _count(self, low: int, first: int, last: int) -> None:
        """How many jobs wait of each user who submits these."""
        assert self._tables is not None
        users, state = self._tables.job["user"], self._run.jobs.state[low:last]
        there = low + np.flatnonzero((state == t.COMING) | (state == t.HELD) | (state == t.WAITING))
        for user in np.unique(users[first:last]):
            if user != codes.NONE:
                self._tables.user["queued"][user] = int((users[there] == user).sum())


def _tables(run: t.World, jobs: Workload, limit: Ints) -> Tables:
    n = len(jobs)
    job, forecast = np.zeros(n, JOB), np.zeros(n, FORECAST)
    job["submit"], job["cores"], job["user"] = run.jobs.submit, jobs.jobs["cores"].to_numpy(), jobs.user_ranks
    forecast["limit"] = limit
    user = np.zeros(int(job["user"].max(initial=-1)) + 1, USER)
    past, ended = np.zeros(n, np.int32), np.zeros(1, np.int64)
    own = job, np.zeros(n, RUN), forecast, past, user, ended
    return Tables(jobs.jobs, *own, jobs.name, jobs.origin_s, nobody_came(len(user)))
