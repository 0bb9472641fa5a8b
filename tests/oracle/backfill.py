"""Slurm's event and backfill passes by sets and lists: slow, obvious, and with no code of the package in it.

An event pass comes each second and a backfill pass 0.3 s behind it, if something has changed. Partitions that overlap, with tiers;
features; priorities; limits of running jobs, of CPUs and of GPUs; dependencies; begin times; arrays; reservations with jobs of their own;
outages and drains; nodes that jobs share (`shapes`). The rules are those of https://slurm.schedmd.com/sched_config.html,
resource_limits.html, job_array.html and reservations.html, and of the backfill plugin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.preemption import BEAT, SECOND, STARTED, TICK
from tests.oracle.shapes import NO_END, Ask, Given, Node, choose, remaining, take

LOOK = TICK + 300_000
GROUP_S, KILL_WAIT_S, AGAIN_S = 30, 30, 21


@dataclass
class Job:
    row: int
    submit: int
    run: int
    nodes: int
    limit_s: int
    parts: list[str]
    priority: int
    user: str
    feature: str | None = None
    begin: int | None = None
    array: str | None = None
    inside: str | None = None
    waits_for: list[tuple[int, str]] = field(default_factory=list)
    name: str = ""
    singleton: bool = False
    ask: Ask | None = None
    state: str = "coming"
    came: bool = False
    begun: int = -1
    finish: int = -1
    end_s: int = 0
    given: list[Given] = field(default_factory=list)
    cut: bool = False
    broken: bool = False

    @property
    def shape(self) -> Ask:
        return self.ask or Ask(self.nodes, self.nodes)

    @property
    def cpus(self) -> int:
        return sum(one.cpus for one in self.given)

    @property
    def gpus(self) -> int:
        return sum(sum(one.gpus) for one in self.given)


@dataclass
class Reservation:
    name: str
    nodes: set[int]
    begin_s: int
    end_s: int


@dataclass
class Outage:
    """Not foreseen. down: what runs there ends, and is queued again or is over; else it runs on."""

    nodes: set[int]
    begin_s: int
    end_s: int
    down: bool
    again: bool


@dataclass
class Site:
    nodes: int
    parts: dict[str, tuple[set[int], int]]
    features: dict[str, set[int]]
    reservations: list[Reservation]
    most_jobs: int
    most_cpus: int
    array_limit: dict[str, int]
    array_plans: int
    backfills: bool
    shapes: list[Node] = field(default_factory=list)
    by_memory: bool = False
    most_gpus: int = NO_END
    outages: list[Outage] = field(default_factory=list)


class Replay:
    def __init__(self, site: Site, jobs: list[Job]) -> None:
        self.site, self.jobs = site, jobs
        self.whole = site.shapes or [Node() for _ in range(site.nodes)]
        self.now = 0
        self.used = {job.inside for job in jobs if job.inside is not None}
        self.changed_s = self.passed_s = -10
        self.turns = sorted((at, k, at == one.begin_s) for k, one in enumerate(site.outages) for at in (one.begin_s, one.end_s))
        self.out = set[int]()

    def run(self, most_s: int) -> None:
        """All jobs to their ends, or to a moment, or until nothing can change any more for those that wait."""
        second, still, spans = 0, 0, [*self.site.reservations, *self.site.outages]
        moments = [job.begin or 0 for job in self.jobs] + [one.end_s * SECOND for one in spans] + [job.submit for job in self.jobs]
        still_s = max(moments) // SECOND + AGAIN_S + 2
        while second < most_s and any(job.state in ("coming", "held", "waits", "runs") for job in self.jobs):
            still = still + 1 if second > still_s and not self.running else 0
            if still > 2:
                return
            for at, look in ((TICK, self.event_pass), (LOOK, self.backfill_pass)):
                self.now = second * SECOND + at
                self.settle()
                look()
            second += 1

    @property
    def now_s(self) -> int:
        return self.now // SECOND

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.state == "runs"]

    @property
    def left(self) -> list[Node]:
        return remaining(self.whole, [one for job in self.running for one in job.given])

    def pick(self, job: Job, left: list[Node], wanted: set[int]) -> list[Given]:
        return choose(job.shape, self.whole, left, wanted, self.site.by_memory)

    def settle(self) -> None:
        """Ends, reservations and outages that begin or end, submissions and begin times up to now, one after the other."""
        while True:
            ends = [(job.finish, 0, job.row) for job in self.running]
            comes = [(job.submit, 1, job.row) for job in self.jobs if not job.came]
            turns = [(at * SECOND, 2, k) for k, (at, _, _) in enumerate(self.turns[:1])]
            coming = min([one for one in ends + comes + turns if one[0] <= self.now], default=None)
            if coming is None:
                break
            if coming[1] == 2:
                self.turn(*self.turns.pop(0))
                continue
            job = self.jobs[coming[2]]
            if job.state in ("runs", "coming"):
                self.changed_s = max(self.changed_s, coming[0] // SECOND)
            if coming[1] == 0:
                job.state = "ended"
                self.follow(job)
            else:
                job.came = True
                job.state = "held" if job.state == "coming" else job.state
        for one in self.site.reservations:
            for at in (one.begin_s, one.end_s):
                self.changed_s = max(self.changed_s, at) if at <= self.now // SECOND else self.changed_s
        for job in self.jobs:
            if job.singleton and job.state == "held":
                job.singleton = any(self.is_ahead(other, job) for other in self.jobs)
        for job in self.jobs:
            if job.state == "held" and (job.begin is None or job.begin <= self.now) and not (job.waits_for or job.singleton):
                job.state = "waits"

    def turn(self, at_s: int, which: int, begins: bool) -> None:
        """An outage begins or ends."""
        one = self.site.outages[which]
        self.changed_s = max(self.changed_s, at_s)
        self.out ^= {which}
        for job in self.running:
            if begins and one.down and one.nodes & {given.node for given in job.given}:
                job.state, job.begin = "held", (at_s + AGAIN_S) * SECOND
                if not one.again:
                    job.state, job.broken, job.finish = "ended", True, at_s * SECOND
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

    def in_order(self) -> list[tuple[Job, str]]:
        """Those that wait, each in each of its partitions."""
        both = [(job, part) for job in self.jobs if job.state == "waits" for part in job.parts]
        return sorted(both, key=lambda one: (-self.site.parts[one[1]][1], -one[0].priority, one[0].row, one[0].parts.index(one[1])))

    def at_most_jobs(self, job: Job) -> bool:
        return sum(other.user == job.user for other in self.running) >= self.site.most_jobs

    def at_most_tres(self, job: Job, given: list[Given], planned: bool = False) -> bool:
        """CPUs and GPUs. An exclusive job has all GPUs of its nodes, but in a plan those that it asks for count."""
        ask, gpus = job.shape, sum(sum(one.gpus) for one in given)
        if planned and ask.exclusive:
            gpus = ask.gpus_node * len(given)
        cpus = sum(other.cpus for other in self.running) + sum(one.cpus for one in given)
        return cpus > self.site.most_cpus or (gpus > 0 and sum(other.gpus for other in self.running) + gpus > self.site.most_gpus)

    def at_most_tasks(self, job: Job) -> bool:
        tasks = sum(other.array == job.array for other in self.running)
        return job.array is not None and tasks >= self.site.array_limit[job.array]

    def own(self, job: Job, at_s: int) -> Reservation | None:
        return next((r for r in self.site.reservations if r.name == job.inside and r.begin_s <= at_s < r.end_s), None)

    def foreign(self, job: Job, from_s: int, to_s: int) -> list[Reservation]:
        return [r for r in self.site.reservations if r.name != job.inside and r.begin_s <= to_s and r.end_s > from_s]

    def suited(self, job: Job, part: str) -> set[int]:
        nodes = self.site.parts[part][0] & self.site.features.get(job.feature or "", set(range(self.site.nodes)))
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
        self.changed_s = self.now_s
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
            given = self.pick(job, self.left, left)
            if given:
                if not self.at_most_tres(job, given):
                    self.start(job, given)
                    failed.discard((job.array or "", part))
            elif job.inside is not None:
                full.add(job.inside)
            else:
                closed.add(part)
                barred |= self.site.parts[part][0]

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
            begin_s, given = self.first_start(job, wanted) if len(wanted) >= job.nodes else (0, [])
            if not given:
                if later:
                    continue
                return ""
            begin_s = max(begin_s, asked)
            if self.at_most_tres(job, given, begin_s > self.now_s):
                return ""
            if begin_s <= self.now_s:
                self.start(job, given)
                return "started"
            if later and begin_s > later:
                continue
            end_s, nodes = begin_s + job.limit_s, {one.node for one in given}
            into = any(nodes & r.nodes for r in self.foreign(job, begin_s, end_s) if r.name in self.used)
            if into or any(low < end_s and high > begin_s and nodes - space for low, high, space in self.plan):
                later = begin_s
                continue
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

    def first_start(self, job: Job, wanted: set[int]) -> tuple[int, list[Given]]:
        """By the ends that are expected of what runs, of one end the first job's first, in groups: up to 30 s behind the next half minute,
        then twice as far, and so on."""
        given = self.pick(job, self.left, wanted)
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
            given = self.pick(job, future, wanted)
            if given:
                return (last if last > self.now_s else max(last + KILL_WAIT_S, self.now_s + 1)), given
        return 0, []
