"""An order of the queue in place of the priorities of site and jobs: as if somebody set each job's priority when it
comes, and all of them anew at regular moments (*looks*), while Slurm does all else by its own rules.

At a look the jobs that wait get the places that their scores give them, from what has happened before that moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from escala.kernel import codes
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.drive import DONE, ENDLESS, drive
from escala.kernel.slurm.standing import reorder
from escala.options import Plan, Terms
from escala.scores import KEYS
from escala.slurm.asked import Asked
from escala.slurm.predicted import Lengths
from escala.workload import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
HOUR_US = 3.6e9
FRONT = 1 << 62  # of who has waited the guard, above all others
KEYED = {code: score for score, code in KEYS.items()}


@dataclass(frozen=True)
class Order:
    """name: of the scheduler, whole. plan: from the jobs to the order as the kernel knows it (its ordering, keys,
    terms, guard and estimate). every_s: between two looks, None: as the score says, or PriorityCalcPeriod. files: as
    `escala.policies.files.policy_files`."""

    name: str
    plan: Callable[[Workload], Plan]
    every_s: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def every_us(self, plan: Plan, calc_us: int) -> int:
        """Between two looks, us. calc_us: PriorityCalcPeriod."""
        terms = plan.terms[0]
        of_score = terms.every_s if terms is not None else 0.0
        return round((self.every_s or of_score) * t.SECOND) or calc_us


def told_in_order(run: t.World) -> t.World:
    """The tables of a run whose jobs are told their priorities, which are no numbers that settings could mean."""
    told = t.TOLD if run.rules.by_priority != t.BASIC else t.BASIC
    return run._replace(rules=run.rules._replace(by_priority=told, min_exempt_priority=2**63 - 1))


def as_asked(workload: Workload, asked: Asked) -> Workload:
    """The workload with the limits and the cores that its jobs have on the site."""
    limit, cores = asked.shape[:, t.LIMIT_S].astype(float), asked.shape[:, t.MIN_CORES]
    return workload.with_jobs(workload.jobs.with_columns(walltime_s=limit, cores=cores))


class Looks:
    """The priorities of one replay. jobs: of `as_asked`."""

    def __init__(self, run: t.World, jobs: Workload, plan: Plan, every_us: int) -> None:
        self._run, self._plan, self._every_us = run, plan, every_us
        self._table = t.table_of(run)
        self._cores = jobs.jobs["cores"].to_numpy()
        self._users = jobs.user_ranks
        self._lengths = Lengths(run, jobs, plan.order_estimate or plan.estimate)
        self._score = np.zeros(len(jobs))
        self._told = np.zeros(len(jobs), np.int64)
        self._low = self._came = self._waiting = 0
        self._now, self._due = -t.FAR, t.FAR
        self._terms = plan.terms[0]
        self._fixed = None if self._terms is None else self._terms.fixed(int(run.machine.cpus.sum()))
        self._guard_us = round(plan.guard_s * t.SECOND) if plan.guard_s < math.inf else t.FAR
        self._changes = plan.ordering in (codes.BY_WFP3, codes.BY_UNICEP, codes.BY_XFACTOR, codes.BY_LINEAR)
        self._returns = run.rules.preempt > 0 or len(run.closed.kind) > 0

    def drive(self, until_us: int) -> int:
        """As `kernel.slurm.drive`, with a look wherever one is due."""
        while True:
            at = self._next_us()
            found = int(drive(self._table, min(at - 1, until_us)))
            if found in (DONE, ENDLESS) or at > until_us:
                return found
            self._look(at)

    def _next_us(self) -> int:
        """When the next look is due: a job comes, one has waited the guard, or so much time has gone by."""
        s, submit = self._run.s, self._run.jobs.submit
        found = min(int(submit[self._came]) if self._came < submit.size else t.FAR, self._due)
        waits = self._waiting + s[t.N_QUEUE] + s[t.N_LATER] > 0 or s[t.NEXT_BEGIN] < self._run.lists.begin_us.size
        if not waits and not (self._returns and s[t.N_RUNNING] > 0):
            return found
        if self._guard_us < t.FAR and self._came > 0:
            # who joins the queue from now on has not waited the guard before then
            found = min(found, self._now + max(self._guard_us, t.SECOND))
        return min(found, self._beat_behind(self._now)) if self._changes else found

    def _beat_behind(self, now: int) -> int:
        started, every = self._run.rules.started_us, self._every_us
        return started + (max(now - started, 0) // every + 1) * every

    def _look(self, now: int) -> None:
        jobs = self._run.jobs
        came = int(np.searchsorted(jobs.submit, now, side="right"))
        new = np.arange(self._came, came)
        new = new[jobs.state[new] == t.COMING]
        self._came, beat = came, self._changes and now == self._beat_behind(now - 1)
        self._lengths.look(new, self._low, came)
        rows = self._waiting_rows()
        again = rows if beat else new
        self._score[again] = self._scores(again, rows, now)
        self._now, self._waiting = now, len(rows)
        places, since = _places(self._score[rows]), self._since(rows)
        if self._guard_us < t.FAR:
            old = now - since >= self._guard_us
            places = np.where(old, FRONT + (FRONT >> 1) - since, places)
            young = since[~old & (jobs.state[rows] != t.HELD)]
            self._due = int(young.min()) + self._guard_us if len(young) else t.FAR
        self._tell(rows, places, now)

    def _since(self, rows: Ints) -> Ints:
        """From when on these jobs wait for nothing but room, us; a job that is held has not begun to."""
        jobs = self._run.jobs
        if self._run.rules.always_ages > 0:
            return jobs.submit[rows]
        return np.where(jobs.state[rows] == t.HELD, t.FAR, jobs.eligible[rows])

    def _waiting_rows(self) -> Ints:
        """Jobs that have come, do not run and are not over."""
        state = self._run.jobs.state
        while self._low < self._came and state[self._low] in (t.ENDED, t.NEVER):
            self._low += 1
        there = state[self._low : self._came]
        return self._low + np.flatnonzero((there == t.COMING) | (there == t.HELD) | (there == t.WAITING))

    def _tell(self, rows: Ints, places: Ints, now: int) -> None:
        """The priorities of these jobs, where they are others than before."""
        other = places != self._told[rows]
        rows, places = rows[other], places[other]
        self._told[rows] = places
        first, records = self._run.jobs.record, self._run.records
        counts = first[rows + 1] - first[rows]
        at = np.repeat(first[rows] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        records.priority[at] = np.repeat(places, counts)
        if (self._run.jobs.state[rows] == t.WAITING).any():
            reorder(self._table, now)

    def _scores(self, rows: Ints, waiting: Ints, now: int) -> Floats:
        """The scores of these jobs, the smallest first. waiting: all that wait, these too."""
        plan, submit, cores = self._plan, self._run.jobs.submit[rows], self._cores[rows]
        if plan.ordering == codes.BY_RANK:
            assert plan.keys is not None
            return np.asarray(plan.keys[rows], np.float64)
        length = np.maximum(self._lengths.us[rows], 1)
        if plan.ordering == codes.BY_PLACE:
            return np.asarray(KEYED[plan.key[0]](submit, length.astype(float), cores), np.float64)
        wait = np.maximum(now - self._since(rows), 0)
        ratio = wait / length
        if plan.ordering == codes.BY_LINEAR:
            assert self._terms is not None
            return self._linear(self._terms, rows, waiting, wait, ratio)
        if plan.ordering == codes.BY_WFP3:
            return np.asarray(-(ratio**3) * cores)
        return np.asarray(-ratio if plan.ordering == codes.BY_XFACTOR else -ratio / np.log2(np.maximum(cores, 2)))

    def _linear(self, terms: Terms, rows: Ints, waiting: Ints, wait: Ints, ratio: Floats) -> Floats:
        assert self._fixed is not None
        score = np.array(self._fixed[rows], np.float64)
        machine = self._run.machine.cpus.sum()
        if terms.length != 0.0 or terms.length_cores != 0.0:
            length = np.log(np.maximum(self._lengths.us[rows], 1) / HOUR_US)
            score += terms.length * length + terms.length_cores * (length * np.log(self._cores[rows] / machine))
        score += terms.log_wait * np.log1p(wait / HOUR_US) + terms.log_ratio * np.log1p(ratio)
        score += terms.age * np.minimum(wait / (terms.max_age_s * t.SECOND), 1.0)
        if terms.by_user:
            of = self._users[rows]
            many = int(self._users.max(initial=-1)) + 2  # the last is nobody
            running = self._run.lists.running[: self._run.s[t.N_RUNNING]]
            has = np.bincount(self._users[running] % many, self._cores[running], many) / machine
            queued = np.bincount(self._users[waiting] % many, minlength=many)
            score += np.where(of >= 0, terms.running * has[of] + terms.queued * np.log1p(queued[of]), 0.0)
        return score


def _places(scores: Floats) -> Ints:
    """Whole numbers within 2^62 in the order of these, the largest for the smallest: scores that differ in their last
    bit alone may tie."""
    bits = (scores + 0.0).view(np.int64)
    return -(np.where(bits >= 0, bits, bits ^ np.int64(2**63 - 1)) >> 1)
