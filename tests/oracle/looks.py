"""An order of the queue in place of priorities, looked at again and again: slow, with no code of the package in it.

A look comes at each submission, at each beat, when one has waited the guard, and where there was none for the time of a
guard. It knows what happened before its moment. Scores are of the moment, of new jobs at a submission and of all at a
beat; the smallest is first.
"""

from __future__ import annotations

import math

from tests.oracle.preemption import SECOND, STARTED
from tests.oracle.site import Job, Order, Site

FAR = 1 << 60
HOUR = 3600 * SECOND
FRONT = 10**18


class Looks:
    def __init__(self, order: Order, site: Site, jobs: list[Job]) -> None:
        self.order, self.jobs = order, jobs
        self.cores = sum(one.cores for one in site.shapes) if site.shapes else site.nodes
        self.seen = set[int]()
        self.scores: dict[int, float] = {}
        self.lengths: dict[int, int] = {}
        self.places: dict[int, float] = {}
        self.last = -FAR
        self.due = FAR

    def next(self) -> int:
        """When the next one comes."""
        comes = [job.submit for job in self.jobs if job.row not in self.seen]
        every = self.order.every_s * SECOND
        beat = STARTED + (max(self.last - STARTED, 0) // every + 1) * every
        guard_s = self.order.guard_s
        again = FAR if guard_s is None or not self.seen else self.last + max(guard_s, 1) * SECOND
        return min([beat if self.order.score != "sjf" else FAR, self.due, again, *comes])

    def ready(self, job: Job, at: int) -> bool:
        """Has nothing but room held it up?"""
        free = (job.begin is None or job.begin < at) and not (job.waits_for or job.minutes or job.singleton)
        return job.state == "waits" or (job.state == "held" and free and job.submit < at)

    def since(self, job: Job) -> int:
        return max(job.submit, job.begin or 0, job.freed)

    def look(self, at: int) -> bool:
        """Has a job that waits another place?"""
        beat = (at - STARTED) % (self.order.every_s * SECOND) == 0 and at > STARTED
        new = [job for job in self.jobs if job.row not in self.seen and job.submit <= at]
        self.seen |= {job.row for job in new}
        there = [job for job in self.jobs if job.row in self.seen and job.state in ("coming", "held", "waits")]
        for job in new:
            self.lengths[job.row] = self.length(job, at)
        for job in there if beat and self.order.score != "sjf" else new:
            self.scores[job.row] = self.score(job, there, at)
        moved = False
        self.last, self.due = at, FAR
        for job in there:
            waits, place = self.ready(job, at), -self.scores[job.row]
            if self.order.guard_s is not None and (waits or job in new):
                since = self.since(job) if waits else job.submit
                if at - since >= self.order.guard_s * SECOND:
                    place = FRONT - since
                else:
                    self.due = min(self.due, since + self.order.guard_s * SECOND)
            moved = moved or (waits and self.places.get(job.row) != place)
            self.places[job.row] = place
        return moved

    def length(self, job: Job, at: int) -> int:
        limit = job.limit_s * SECOND
        over = [one for one in self.jobs if one.user == job.user and one.state == "ended" and one.begun >= 0]
        over = sorted((one for one in over if one.finish < at), key=lambda one: (one.finish, one.row))
        if not self.order.last2 or not over:
            return limit
        runs = [one.finish - one.begun for one in over[-2:]]
        return min(max(sum(runs) // len(runs), 1), limit)

    def score(self, job: Job, there: list[Job], at: int) -> float:
        length, cores = self.lengths[job.row], job.shape.cpus
        wait = max(at - self.since(job), 0) if self.ready(job, at) else 0
        ratio = wait / length
        if self.order.score == "linear":
            return self.linear(job, there, wait)
        of_name = {
            "sjf": float(length),
            "xfactor": -ratio,
            "wfp3": -(ratio**3) * cores,
            "unicep": -ratio / math.log2(max(cores, 2)),
        }
        return of_name[self.order.score]

    def linear(self, job: Job, there: list[Job], wait: int) -> float:
        length, share = self.lengths[job.row], math.log(job.shape.cpus / self.cores)
        mine = [one for one in self.jobs if one.user == job.user]
        features = {
            "log_estimate": math.log(length / HOUR),
            "log_cores": share,
            "log_estimate_x_log_cores": math.log(length / HOUR) * share,
            "log_wait": math.log1p(wait / HOUR),
            "log_wait_over_estimate": math.log1p(wait / length),
            "user_share": sum(one.shape.cpus for one in mine if one.state == "runs") / self.cores,
            "log_user_waiting": math.log1p(sum(one in there for one in mine)),
            "log_request": math.log(job.limit_s / 3600),
        }
        return sum(weight * features[name] for name, weight in self.order.weights.items())
