"""What the slow simulator of Slurm's rules knows of a site and of its jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle import accounts as of
from tests.oracle.preemption import SECOND, next_beat
from tests.oracle.priorities import Asked, Priorities, Weights
from tests.oracle.shapes import NO_END, Ask, Given, Node, choose, remaining

NO_LIMIT = 99


@dataclass
class Job:
    row: int
    submit: int
    run: int
    nodes: int
    limit_s: int
    parts: list[str]
    priority: int | None
    user: str
    feature: str | None = None
    begin: int | None = None
    array: str | None = None
    inside: str | None = None
    waits_for: list[tuple[int, str]] = field(default_factory=list)
    minutes: list[tuple[int, int]] = field(default_factory=list)
    name: str = ""
    singleton: bool = False
    ask: Ask | None = None
    account: str | None = None
    qos: str = "normal"
    nice: int = 0
    state: str = "coming"
    came: bool = False
    begun: int = -1
    finish: int = -1
    end_s: int = 0
    given: list[Given] = field(default_factory=list)
    cut: bool = False
    broken: bool = False
    counts: bool = False
    found: tuple[int, int] | None = None
    freed: int = 0
    ranked: dict[str, int] = field(default_factory=dict)
    whole: int = 0  # us that it runs at speed 1, where nodes differ in speed

    @property
    def shape(self) -> Ask:
        return self.ask or Ask(self.nodes, self.nodes)

    @property
    def cpus(self) -> int:
        return sum(one.cpus for one in self.given)

    @property
    def gpus(self) -> int:
        return sum(sum(one.gpus) for one in self.given)


Record = tuple[Job, str, str | None]
"""A job in one of its partitions, in a reservation or outside of all."""


@dataclass
class Reservation:
    name: str
    nodes: set[int]
    begin_s: int
    end_s: int
    flex: bool = False
    draws: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Yields:
    """How long a test of a backfill pass takes, us; it works so long, sleeps so long, and goes on at most so long; even
    if something happens?"""

    test: int = 0
    work: int = 2_000_000
    sleep: int = 500_000
    most: int = 1_000_000
    goes_on: bool = False


@dataclass
class Outage:
    """Not foreseen. down: what runs there ends, and is queued again or is over; else it runs on."""

    nodes: set[int]
    begin_s: int
    end_s: int
    down: bool
    again: bool


@dataclass
class Order:
    """An order of the queue in place of priorities. score: sjf, xfactor, wfp3, unicep or linear, by `weights`. guard_s:
    None: none. last2: lengths are the mean of the user's last two runs, else the limits."""

    score: str
    every_s: int
    guard_s: int | None = None
    last2: bool = False
    weights: dict[str, float] = field(default_factory=dict)


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
    loaded: set[str] = field(default_factory=set)
    accounts: of.Accounts = field(default_factory=dict)
    weights: Weights | None = None
    yields: Yields = field(default_factory=Yields)
    min_age_s: int = 300
    speeds: list[float] = field(default_factory=list)
    order: Order | None = None


class Books:
    """Who runs, what is left and what counts, at a moment."""

    site: Site
    jobs: list[Job]
    whole: list[Node]
    now: int
    prio: Priorities | None

    @property
    def now_s(self) -> int:
        return self.now // SECOND

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.state == "runs"]

    @property
    def left(self) -> list[Node]:
        return remaining(self.whole, [one for job in self.running for one in job.given])

    def pick(self, one: Record, left: list[Node], wanted: set[int]) -> list[Given]:
        job, part, _ = one
        most = of.most_nodes(self.site.accounts, *self.who(job)) if self.site.accounts else NO_END
        own = self.own(one, self.now_s)
        inner = own.nodes if own is not None and own.flex else None
        return choose(job.shape, self.whole, left, wanted, self.site.by_memory, part in self.site.loaded, most, inner)

    def insides(self, job: Job) -> list[str | None]:
        """The reservation that it asks for; or outside of all, and in those that draw its user, by their begin."""
        if job.inside is not None:
            return [job.inside]
        drawing = sorted((r for r in self.site.reservations if job.user in r.draws), key=lambda r: r.begin_s)
        return [None, *(r.name for r in drawing)]

    def coming(self, one: Record, at_s: int) -> Reservation | None:
        """The first reservation of its name that is not over; slurmctld takes flexible ones away at the beat behind
        their end."""
        there = [
            r
            for r in self.site.reservations
            if (self.now < next_beat((r.end_s + 1) * SECOND, 0) if r.flex else at_s <= r.end_s)
        ]
        left = [r for r in there if r.name == one[2]]
        return min(left, key=lambda r: r.begin_s, default=None)

    def own(self, one: Record, at_s: int) -> Reservation | None:
        """The one that its jobs may use then: a flexible one before it has begun, too."""
        found = self.coming(one, at_s)
        return found if found is not None and (found.flex or found.begin_s <= at_s) else None

    def who(self, job: Job) -> tuple[str, str]:
        return job.user, of.home(self.site.accounts, job.user, job.account)

    @property
    def hidden(self) -> set[str]:
        """TRES of which the QOS has a limit: those of associations do not count."""
        most = {"cpu": self.site.most_cpus < NO_LIMIT, "gpu": self.site.most_gpus < NO_END}
        return {tres for tres, limited in most.items() if limited}

    def never(self, job: Job) -> bool:
        return bool(self.site.accounts) and of.never(
            self.site.accounts, *self.who(job), job.shape, job.limit_s, self.hidden
        )

    @property
    def holders(self) -> list[of.Holder]:
        return [self.holder(job) for job in self.running]

    def holder(self, job: Job) -> of.Holder:
        return of.Holder(*self.who(job), job.given)

    def at_most_jobs(self, job: Job) -> bool:
        by_qos = self.site.most_jobs < NO_LIMIT
        if self.site.accounts and of.at_most_jobs(self.site.accounts, *self.who(job), self.holders, by_qos):
            return True
        return sum(other.user == job.user for other in self.running) >= self.site.most_jobs

    def at_most_tres(self, job: Job, part: str, given: list[Given], planned: bool = False) -> bool:
        """An exclusive job has all GPUs of its nodes, but in a plan those that it asks for count, as of memory; and in
        a plan nodes count that its group has already, too (acct_policy.c looks at a list of nodes that a planned job
        has not)."""
        ask, cpus = job.shape, sum(one.cpus for one in given)
        asked = ask.gpus_node * len(given) + ask.gpus_task * ask.tasks
        job.found = cpus, asked
        gpus = asked if planned else sum(sum(one.gpus) for one in given)
        memory = sum(one.memory for one in given)
        if planned:
            memory = of.asked_memory(ask, cpus, len(given), self.whole, self.site.parts[part][0])
        wants = {"cpu": cpus, "mem": memory, "gpu": gpus, "node": len(given)}
        return self.over(job, wants, None if planned else {one.node for one in given})

    def over(self, job: Job, wants: of.Tres, nodes: set[int] | None) -> bool:
        """Would a limit be passed? nodes: those that are known, None: so many new ones."""
        if self.site.accounts and of.over(self.site.accounts, *self.who(job), wants, nodes, self.holders, self.hidden):
            return True
        used = {"cpu": sum(other.cpus for other in self.running), "gpu": sum(other.gpus for other in self.running)}
        most = {"cpu": self.site.most_cpus, "gpu": self.site.most_gpus}
        return any(wants[tres] > 0 and used[tres] + wants[tres] > most[tres] for tres in most)

    def at_most_tasks(self, job: Job) -> bool:
        tasks = sum(other.array == job.array for other in self.running)
        return job.array is not None and tasks >= self.site.array_limit[job.array]

    def rank(self, job: Job, part: str, waited_s: int) -> int:
        if self.prio is None or job.priority is not None:
            return job.priority or 0
        cpus = job.found[0] if job.found else job.shape.cpus
        asked = Asked(*self.who(job), job.qos, job.nice, job.shape.nodes or 1, cpus, job.limit_s, len(job.parts) > 1)
        return self.prio.of(asked, part, waited_s)

    def charge(self, job: Job, until_s: int) -> None:
        if self.prio is not None:
            self.prio.charge(*self.who(job), job.cpus, job.begun // SECOND, until_s)
