"""The clock of the slow simulator of Slurm's rules: what happens when, and what that means to those that wait."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle import accounts as of
from tests.oracle.looks import Looks
from tests.oracle.preemption import SECOND, STARTED, TICK
from tests.oracle.priorities import Priorities
from tests.oracle.shapes import Node
from tests.oracle.site import Books, Job, Site

LOOK, CALC = TICK + 300_000, TICK + 100_000
AGAIN_S = 21
FAR = 1 << 60


class Clock(Books):
    event_pass: Callable[[], None]
    backfill_pass: Callable[[], None]

    def __init__(self, site: Site, jobs: list[Job]) -> None:
        self.site, self.jobs = site, jobs
        self.whole = site.shapes or [Node() for _ in range(site.nodes)]
        self.now = 0
        self.look_us = LOOK
        self.changed_s = self.passed_s = -10
        self.turns = sorted(
            (at, k, at == one.begin_s) for k, one in enumerate(site.outages) for at in (one.begin_s, one.end_s)
        )
        self.out = set[int]()
        cores = sum(one.cores for one in self.whole)
        self.prio = (
            Priorities(site.weights, site.accounts, site.nodes, cores, STARTED // SECOND) if site.weights else None
        )
        self.looks = Looks(site.order, site, jobs) if site.order else None

    def run(self, most_s: int) -> None:
        """All jobs to their ends, or to a moment, or until nothing can change any more for those that wait."""
        second, still, spans = 0, 0, [*self.site.reservations, *self.site.outages]
        moments = (
            [job.begin or 0 for job in self.jobs]
            + [one.end_s * SECOND for one in spans]
            + [job.submit for job in self.jobs]
        )
        still_s = (
            most_s if self.prio or self.looks else max(moments) // SECOND + AGAIN_S + 2
        )  # who stands first changes
        while second < most_s and any(job.state in ("coming", "held", "waits", "runs") for job in self.jobs):
            waits = any(
                FAR > self.due(job, *one) > self.now for job in self.jobs if job.state == "held" for one in job.minutes
            )
            still = still + 1 if second > still_s and not self.running and not waits else 0
            if still > 2:
                return
            self.at(second * SECOND + TICK, self.event_pass)
            self.at(second * SECOND + CALC, self.renew)
            second += 1
            self.at(second * SECOND + TICK, None)

    def at(self, moment: int, look: Callable[[], None] | None) -> None:
        """Backfill passes before a moment, and what comes then."""
        while self.look_us < moment:
            self.now = self.look_us
            self.settle()
            self.backfill_pass()
        if look is not None:
            self.now = moment
            self.settle()
            look()

    def settle(self) -> None:
        """Ends, reservations and outages that begin or end, submissions and begin times up to now, one after the
        other."""
        while True:
            ends = [(job.finish, 0, job.row) for job in self.running]
            comes = [(job.submit, 1, job.row) for job in self.jobs if not job.came]
            turns = [(at * SECOND, 3, k) for k, (at, _, _) in enumerate(self.turns[:1])]
            dues = [(self.due(job, *one), 2, job.row) for job in self.jobs for one in job.minutes]
            coming = min([one for one in ends + comes + turns + dues if one[0] <= self.now], default=None)
            if self.looks is not None and (at := self.looks.next()) <= (coming[0] if coming else self.now):
                self.changed_s = at // SECOND if self.looks.look(at) else self.changed_s
                continue
            if coming is None:
                break
            self.event = coming[0]
            if coming[1] == 3:
                self.turn(*self.turns.pop(0))
                continue
            if coming[1] == 2:
                job = self.jobs[coming[2]]
                job.minutes = [one for one in job.minutes if self.due(job, *one) > coming[0]]
                job.freed = coming[0]
                continue
            job = self.jobs[coming[2]]
            if job.state in ("runs", "coming"):
                self.changed_s = max(self.changed_s, coming[0] // SECOND)
            if coming[1] == 0:
                job.state, job.counts = "ended", False
                self.charge(job, job.finish // SECOND)
                self.follow(job)
            else:
                self.submit(job)
        for one in self.site.reservations:
            for at in (one.begin_s, one.end_s):
                self.changed_s = max(self.changed_s, at) if at <= self.now // SECOND else self.changed_s
        for job in self.jobs:
            if job.singleton and job.state == "held":
                job.singleton = any(self.is_ahead(other, job) for other in self.jobs)
        for job in self.jobs:
            if (
                job.state == "held"
                and (job.begin is None or job.begin <= self.now)
                and not (job.waits_for or job.minutes or job.singleton)
            ):
                job.state = "waits"
                job.ranked = {part: self.rank(job, part, 0) for part in job.parts}
        if self.looks is not None:
            for job in self.jobs:
                if job.state == "waits":
                    job.ranked = dict.fromkeys(job.parts, self.looks.places[job.row])

    def renew(self) -> None:
        """Priorities anew, once a period."""
        if self.prio is None or (self.now - STARTED) % (Priorities.PERIOD_S * SECOND) or self.now == STARTED:
            return
        self.prio.period(self.now_s, [(*self.who(job), job.cpus, job.begun // SECOND) for job in self.running])
        for job in self.jobs:
            if job.state == "waits":
                since = max(job.submit, job.begin or 0, job.freed) // SECOND
                job.ranked = {part: self.rank(job, part, self.now_s - since) for part in job.parts}
        self.changed_s = self.now_s

    def due(self, job: Job, row: int, minutes: int) -> int:
        """When so many minutes are over since another one started, in whole seconds; far away while it waits."""
        other = self.jobs[row]
        if other.state not in ("runs", "ended") or other.begun < 0:
            return FAR
        over = (other.begun // SECOND + 60 * minutes) * SECOND
        return min(over, self.forgotten(other)) if other.state == "ended" else over

    def forgotten(self, job: Job) -> int:
        """When slurmctld forgets a job that has ended: its loop comes by each second, and forgets those of the past
        MinJobAge each minute, or more often where that is less, but at most each 10 s."""
        age_s = self.site.min_age_s
        every_s = 60 if age_s >= 60 else max(age_s, 10)
        at_s = STARTED // SECOND + every_s
        while at_s < job.finish // SECOND + age_s:
            at_s += every_s
        return at_s * SECOND + TICK if age_s > 0 else FAR

    def submit(self, job: Job) -> None:
        job.came = True
        if self.site.accounts and job.state != "refused":
            there = [self.holder(one) for one in self.jobs if one.counts]
            job.counts = of.may_come(self.site.accounts, *self.who(job), there)
            if not job.counts and job.state == "coming":
                job.state, job.broken = "refused", True
                self.follow(job, at_start=True)
                self.follow(job)
        job.state = "held" if job.state == "coming" else job.state

    def turn(self, at_s: int, which: int, begins: bool) -> None:
        """An outage begins or ends."""
        one = self.site.outages[which]
        self.changed_s = max(self.changed_s, at_s)
        self.out ^= {which}
        for job in self.running:
            if begins and one.down and one.nodes & {given.node for given in job.given}:
                self.charge(job, at_s)
                job.state, job.begin, job.found = "held", (at_s + AGAIN_S) * SECOND, None
                if not one.again:
                    job.state, job.broken, job.counts, job.finish = "ended", True, False, at_s * SECOND
                    self.follow(job)

    def is_ahead(self, other: Job, job: Job) -> bool:
        """Does a singleton wait for this one: a namesake that runs, or one that came before and is not over?"""
        earlier = other.row < job.row and other.state in ("held", "waits", "never")
        return (other.user, other.name) == (job.user, job.name) and (other.state == "runs" or earlier)

    def follow(self, job: Job, at_start: bool = False) -> None:
        """What this job's start or end means to those that wait for it."""
        well = not (job.cut or job.broken or job.run >= job.limit_s * SECOND)
        for other in self.jobs:
            if at_start and job.state == "refused" and any(row == job.row for row, _ in other.minutes):
                other.minutes = [one for one in other.minutes if one[0] != job.row]
                other.freed = self.event
            mine = [kind for row, kind in other.waits_for if row == job.row and (kind == "after") == at_start]
            gone = job.state == "ended" and not at_start and other.submit > self.forgotten(job)
            if not gone and (("afterok" in mine and not well) or ("afternotok" in mine and well)):
                other.state = "never" if other.state != "refused" else "refused"
                mine = [kind for kind in mine if kind != ("afternotok" if well else "afterok")]
            for kind in mine:
                other.waits_for.remove((job.row, kind))
                other.freed = self.event
