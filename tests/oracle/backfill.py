"""Slurm's event and backfill passes by sets and lists: slow, obvious, and with no code of the package in it.

An event pass comes each second and a backfill pass 0.3 s behind it, if something has changed. Partitions that overlap, with tiers;
features; priorities, given or multifactor (`priorities`); limits of running jobs, of CPUs, of GPUs and of accounts (`accounts`);
dependencies; begin times; arrays; reservations with jobs of their own; outages and drains; nodes that jobs share (`shapes`). The rules are
those of https://slurm.schedmd.com/sched_config.html, resource_limits.html, job_array.html and reservations.html, of slurmctld's
job_scheduler.c and node_scheduler.c, and of the backfill plugin.
"""

from __future__ import annotations

from tests.oracle import accounts as of
from tests.oracle.preemption import BEAT, SECOND, STARTED, TICK
from tests.oracle.priorities import Priorities
from tests.oracle.shapes import Given, Node, take
from tests.oracle.site import Books, Job, Reservation, Site

LOOK, CALC = TICK + 300_000, TICK + 100_000
GROUP_S, KILL_WAIT_S, AGAIN_S = 30, 30, 21


class Replay(Books):
    def __init__(self, site: Site, jobs: list[Job]) -> None:
        self.site, self.jobs = site, jobs
        self.whole = site.shapes or [Node() for _ in range(site.nodes)]
        self.now = 0
        self.used = {job.inside for job in jobs if job.inside is not None}
        self.changed_s = self.passed_s = -10
        self.turns = sorted((at, k, at == one.begin_s) for k, one in enumerate(site.outages) for at in (one.begin_s, one.end_s))
        self.out = set[int]()
        cores = sum(one.cores for one in self.whole)
        self.prio = Priorities(site.weights, site.accounts, site.nodes, cores, STARTED // SECOND) if site.weights else None

    def run(self, most_s: int) -> None:
        """All jobs to their ends, or to a moment, or until nothing can change any more for those that wait."""
        second, still, spans = 0, 0, [*self.site.reservations, *self.site.outages]
        moments = [job.begin or 0 for job in self.jobs] + [one.end_s * SECOND for one in spans] + [job.submit for job in self.jobs]
        still_s = most_s if self.prio else max(moments) // SECOND + AGAIN_S + 2  # age and use change who stands first
        while second < most_s and any(job.state in ("coming", "held", "waits", "runs") for job in self.jobs):
            still = still + 1 if second > still_s and not self.running else 0
            if still > 2:
                return
            for at, look in ((TICK, self.event_pass), (CALC, self.renew), (LOOK, self.backfill_pass)):
                self.now = second * SECOND + at
                self.settle()
                look()
            second += 1

    def settle(self) -> None:
        """Ends, reservations and outages that begin or end, submissions and begin times up to now, one after the other."""
        while True:
            ends = [(job.finish, 0, job.row) for job in self.running]
            comes = [(job.submit, 1, job.row) for job in self.jobs if not job.came]
            turns = [(at * SECOND, 2, k) for k, (at, _, _) in enumerate(self.turns[:1])]
            coming = min([one for one in ends + comes + turns if one[0] <= self.now], default=None)
            if coming is None:
                break
            self.event = coming[0]
            if coming[1] == 2:
                self.turn(*self.turns.pop(0))
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
            if job.state == "held" and (job.begin is None or job.begin <= self.now) and not (job.waits_for or job.singleton):
                job.state = "waits"
                job.ranked = {part: self.rank(job, part, 0) for part in job.parts}

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
        well = not (job.cut or job.broken)
        for other in self.jobs:
            mine = [kind for row, kind in other.waits_for if row == job.row and (kind == "after") == at_start]
            if ("afterok" in mine and not well) or ("afternotok" in mine and well):
                other.state = "never" if other.state != "refused" else "refused"
                mine = [kind for kind in mine if kind != ("afternotok" if well else "afterok")]
            for kind in mine:
                other.waits_for.remove((job.row, kind))
                other.freed = self.event

    def in_order(self) -> list[tuple[Job, str]]:
        """Those that wait, each in each of its partitions."""
        both = [(job, part) for job in self.jobs if job.state == "waits" for part in job.parts]
        return sorted(both, key=lambda one: (-self.site.parts[one[1]][1], -one[0].ranked[one[1]], one[0].row, one[0].parts.index(one[1])))

    def own(self, job: Job, at_s: int) -> Reservation | None:
        return next((r for r in self.site.reservations if r.name == job.inside and r.begin_s <= at_s < r.end_s), None)

    def foreign(self, job: Job, from_s: int, to_s: int) -> list[Reservation]:
        return [r for r in self.site.reservations if r.name != job.inside and r.begin_s <= to_s and r.end_s > from_s]

    def suited(self, job: Job, part: str, now: bool = True) -> set[int]:
        nodes = self.site.parts[part][0] & self.site.features.get(job.feature or "", set(range(self.site.nodes)))
        if now:
            nodes -= {n for which in self.out for n in self.site.outages[which].nodes}
        return nodes & {n for r in self.site.reservations if r.name == job.inside for n in r.nodes} if job.inside else nodes

    def start(self, job: Job, given: list[Given]) -> None:
        job.state, job.given, job.begun, job.finish = "runs", given, self.now, self.now + job.run
        job.end_s = self.now_s + job.limit_s
        own = self.own(job, self.now_s)
        if own is not None:
            beat = STARTED - ((STARTED - (own.end_s + 1) * SECOND) // BEAT) * BEAT
            job.finish = min(job.finish, max(beat, self.now + 1))
            job.cut = job.finish < job.begun + job.run
        self.changed_s, self.event = self.now_s, self.now
        self.follow(job, at_start=True)

    def event_pass(self) -> None:
        closed, barred = set[str](), set[int]()
        failed = set[tuple[str, str]]()
        full = set[str]()
        for job, part in self.in_order():
            if job.state != "waits":
                continue
            if closed == set(self.site.parts):
                return
            if job.array is not None and self.is_behind_one_that_failed(job, part, failed):
                continue
            if part in closed if job.inside is None else job.inside in full:
                continue
            if self.at_most_jobs(job):
                continue
            wanted = self.suited(job, part) - barred
            if job.inside is not None:
                own = self.own(job, self.now_s)
                if own is None:
                    continue
                wanted &= own.nodes
            left = wanted - {n for r in self.foreign(job, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
            if len(left) < job.nodes <= len(wanted):
                continue
            given = self.pick(job, part, self.left, left)
            if given:
                if not self.at_most_tres(job, part, given):
                    self.start(job, given)
                    failed.discard((job.array or "", part))
            elif self.asks_too_much(job, part, left) or self.lacks_nodes(job, part, left, barred):
                continue
            elif job.inside is not None:
                full.add(job.inside)
            else:
                closed.add(part)
                barred |= self.site.parts[part][0]

    def lacks_nodes(self, job: Job, part: str, wanted: set[int], barred: set[int]) -> bool:
        """Are nodes not available, or reserved, in place of busy (ESLURM_NODE_NOT_AVAIL, ESLURM_RESERVATION_BUSY in node_scheduler.c)? Then
        the pass goes on with the next job of the partition, unless that has too few nodes left at all (job_scheduler.c). Not where all
        that suit the job are left."""
        gone = {n for which in self.out for n in self.site.outages[which].nodes}
        if len(self.site.parts[part][0] - barred - gone) < (job.shape.nodes or 1) or wanted >= self.suited(job, part, now=False):
            return False
        if self.pick(job, part, self.whole, wanted):
            return False
        foreign = {n for r in self.foreign(job, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
        if not self.pick(job, part, self.whole, self.suited(job, part, now=False) - foreign):
            return True
        alone = [other for other in self.running if job.shape.exclusive or other.shape.exclusive]
        return not wanted & {one.node for other in alone for one in other.given}

    def asks_too_much(self, job: Job, part: str, wanted: set[int]) -> bool:
        """Is a job that finds no nodes over a limit by what it asks for ("Replacing scheduling error code", node_scheduler.c)?

        How many nodes it would get is seen by those of `wanted`, as if they were idle, if enough of them can be shared now, or else by all
        of its partition. CPUs and GPUs count as those of the last nodes that were found for it."""
        ask = job.shape
        shared = {n for n in wanted if not any(n in {one.node for one in other.given} for other in self.running if other.shape.exclusive)}
        idle = {n for n in wanted if not any(n in {one.node for one in other.given} for other in self.running)}
        given = []
        if len(idle if ask.exclusive else shared) >= (ask.nodes or 1):
            given = self.pick(job, part, self.whole, wanted)
        if not given:
            every = self.suited(job, part, now=False)
            every -= {n for r in self.foreign(job, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
            given = self.pick(job, part, self.whole, every)

        nodes = [one.node for one in given] or [0] * (ask.nodes or 1)
        cpus, gpus = job.found or (ask.cpus, ask.gpus_node * (ask.nodes or 1) + ask.gpus_task * ask.tasks)
        if ask.exclusive and given:
            gpus = sum(sum(self.whole[n].gpus) for n in nodes)
        memory = of.asked_memory(ask, cpus, len(nodes), self.whole, self.site.parts[part][0])
        wants = {"cpu": cpus, "mem": memory, "gpu": gpus, "node": len(nodes)}
        return self.over(job, wants, None)

    def is_behind_one_that_failed(self, job: Job, part: str, failed: set[tuple[str, str]]) -> bool:
        """May a task of an array not be tried in this pass? One that is counts as failed until it starts, or is planned."""
        if (job.array, part) in failed:
            return True
        failed.add((job.array or "", part))
        return self.at_most_tasks(job)

    def backfill_pass(self) -> None:
        if not self.site.backfills or self.changed_s < self.passed_s:
            return
        self.passed_s = self.now_s
        self.plan = [(self.now_s, 1 << 40, set(range(self.site.nodes)))]
        for r in self.site.reservations:
            if r.name not in self.used and r.end_s > self.now_s:
                self.hold(max(r.begin_s, self.now_s), r.end_s, r.nodes)
        failed, plans = set[tuple[str, str]](), dict[str, int]()
        for job, part in self.in_order():
            if job.state != "waits" or self.at_most_jobs(job):
                continue
            if job.array is not None and self.is_behind_one_that_failed(job, part, failed):
                continue
            found = self.look_ahead(job, part)
            if found == "planned" and job.array is not None:
                plans[job.array] = plans.get(job.array, 0) + 1
            if job.array is not None and (found == "started" or (found == "planned" and plans[job.array] < self.site.array_plans)):
                failed.discard((job.array, part))

    def look_ahead(self, job: Job, part: str) -> str:
        """Start it, or plan its start."""
        later: int = self.now_s
        while True:
            asked = later
            wanted, later = self.usable(job, part, asked, asked + job.limit_s)
            begin_s, given = self.first_start(job, part, wanted) if len(wanted) >= job.nodes else (0, [])
            if not given:
                if later:
                    continue
                return ""
            begin_s = max(begin_s, asked)
            over = self.at_most_tres(job, part, given, begin_s > self.now_s)
            if begin_s <= self.now_s:
                if over:
                    return ""
                self.start(job, given)
                return "started"
            if later and begin_s > later:
                continue
            end_s, nodes = begin_s + job.limit_s, {one.node for one in given}
            into = any(nodes & r.nodes for r in self.foreign(job, begin_s, end_s) if r.name in self.used)
            if into or any(low < end_s and high > begin_s and nodes - space for low, high, space in self.plan):
                later = begin_s
                continue
            if over:
                return ""
            self.hold(begin_s, end_s, nodes)
            return "planned"

    def hold(self, begin_s: int, end_s: int, nodes: set[int]) -> None:
        """Stretches of the plan, each with the nodes that are left; of neighbours that have become equal the first two are joined."""
        plan = self.plan
        k = next(k for k, (_, high, _) in enumerate(plan) if high >= begin_s)
        first = max(k - 1, 0)
        low, high, space = plan[k]
        if high > begin_s:
            plan[k : k + 1] = [(low, begin_s, space), (begin_s, high, space)]
        k += 1
        while k < len(plan) and plan[k][0] < end_s:
            low, high, space = plan[k]
            plan[k : k + 1] = [(low, min(high, end_s), space - nodes)] + [(end_s, high, space)] * (high > end_s)
            k += 1
        twins = [at for at in range(first, min(k, len(plan) - 1)) if plan[at][2] == plan[at + 1][2]]
        if twins:
            at = twins[0]
            plan[at : at + 2] = [(plan[at][0], plan[at + 1][1], plan[at][2])]

    def usable(self, job: Job, part: str, from_s: int, to_s: int) -> tuple[set[int], int]:
        """Nodes that nothing planned has in the meantime, and the next moment at which there may be others, or 0."""
        nodes = self.suited(job, part)
        if job.inside is not None:
            own = self.own(job, from_s)
            nodes &= own.nodes if own is not None else set()
        wanted, later = set(nodes), 0
        for k, (low, high, space) in enumerate(self.plan):
            if high <= from_s:
                continue
            if not later and k + 1 < len(self.plan) and (nodes & self.plan[k + 1][2]) - (wanted & space):
                later = high
            if low > to_s:
                break
            wanted &= space
        for r in self.foreign(job, from_s, to_s):
            if r.name in self.used and wanted & r.nodes:
                later = min(later, r.end_s) if later else r.end_s
                wanted -= r.nodes
        return wanted, later

    def first_start(self, job: Job, part: str, wanted: set[int]) -> tuple[int, list[Given]]:
        """By the ends that are expected of what runs, of one end the first job's first, in groups: up to 30 s behind the next half minute,
        then twice as far, and so on."""
        given = self.pick(job, part, self.left, wanted)
        if given:
            return self.now_s, given
        ahead = sorted(self.running, key=lambda other: (other.end_s, other.row))
        future, window, anchor, at = self.left, GROUP_S, 0, 0
        while at < len(ahead):
            last, following = None, None
            while at < len(ahead):
                other = ahead[at]
                at += 1
                if not wanted & {one.node for one in other.given}:
                    continue
                for one in other.given:
                    take(future[one.node], one, -1)
                last = other.end_s
                anchor = anchor or last + GROUP_S - last % GROUP_S
                following = ahead[at].end_s if at < len(ahead) else None
                if following is None or following > anchor + window:
                    break
            if last is None:
                break
            window *= 2
            while following is not None and following > anchor + window:
                window *= 2
            given = self.pick(job, part, future, wanted)
            if given:
                return (last if last > self.now_s else max(last + KILL_WAIT_S, self.now_s + 1)), given
        return 0, []
