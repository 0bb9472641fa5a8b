"""Preemption in the event pass by sets and lists, on nodes of one core: slow, obvious, and with no code of the package
in it.

A pass comes each second. Of the rules of https://slurm.schedmd.com/preempt.html: who may preempt whom, by QOS or by
tier of partition; in which order jobs go; what becomes of them; grace and exempt time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

STARTED, TICK, BEAT_S, SECOND = -2_500_000, 400_000, 30, 1_000_000
PATIENCE_S = 40
CLEANUP = 50_000  # us until the nodes of a job that is killed are clear


def next_beat(due: int, now: int) -> int:
    """slurmctld kills in the ticks of its loop in which 30 whole seconds have gone by since it last did, before the
    event pass there."""
    last_s, tick = STARTED // SECOND, (STARTED // SECOND) * SECOND + TICK
    while True:
        tick += SECOND
        if tick // SECOND - last_s < BEAT_S:
            continue
        last_s = tick // SECOND
        if tick >= due and tick > now:
            return tick


class Endless(Exception):
    """Jobs take nodes from each other for ever."""


@dataclass
class Job:
    row: int
    submit: int
    run: int
    nodes: int
    part: str
    qos: str
    state: str = "coming"
    begun: int = -1
    finish: int = -1
    where: list[int] = field(default_factory=list)
    back: int = -1
    notice: int | None = None
    killed: bool = False
    end_s: int = 0
    took_s: int | None = None
    lost: int = 0


@dataclass
class Site:
    nodes: int
    parts: dict[str, tuple[set[int], int]]
    by_qos: bool
    preempts: dict[str, set[str]]
    rank: dict[str, int]
    mode: dict[str, str]
    words: dict[str, set[str]]
    grace_s: dict[str, int]
    exempt_s: dict[str, int]
    delay_s: int = 120
    youngest: bool = False
    strict: bool = False
    reorder: int = 1

    def of(self, job: Job) -> str:
        return job.qos if self.by_qos else job.part

    def may(self, a: Job, b: Job) -> bool:
        """May a take nodes from b?"""
        words = self.words[self.of(a)]
        if not self.by_qos:
            return self.parts[a.part][1] > self.parts[b.part][1] and ("priority" not in words or a.row <= b.row)
        if a.qos == b.qos:
            return "within" in words and a.row < b.row
        return b.qos in self.preempts[a.qos] and ("priority" not in words or a.row < b.row)

    def before(self, a: Job, b: Job) -> bool:
        if self.by_qos and self.may(a, b):
            return True
        if self.by_qos and self.may(b, a):
            return False
        return (-self.parts[a.part][1], a.row) < (-self.parts[b.part][1], b.row)

    def in_order(self, jobs: list[Job]) -> list[Job]:
        if len(jobs) < 2:
            return jobs
        left, right = self.in_order(jobs[: len(jobs) // 2]), self.in_order(jobs[len(jobs) // 2 :])
        found = []
        while left and right:
            found.append((right if self.before(right[0], left[0]) else left).pop(0))
        return found + left + right


def runs(free: set[int]) -> list[list[int]]:
    """Neighbours among free nodes."""

    def grown(found: list[list[int]], n: int) -> list[list[int]]:
        return [*found[:-1], [*found[-1], n]] if found and found[-1][-1] == n - 1 else [*found, [n]]

    return reduce(grown, sorted(free), [])


def pick(free: set[int], need: int) -> list[int]:
    """The smallest run that suffices; where none does, the largest, and again."""
    if len(free) < need:
        return []
    found: list[int] = []
    while len(found) < need:
        left, wide = need - len(found), runs(free - set(found))
        enough = [one for one in wide if len(one) >= left]
        found += (min(enough, key=len) if enough else max(wide, key=len))[:left]
    return found


def victims(site: Site, taker: Job, running: list[Job], free: set[int], wanted: set[int], now: int) -> list[Job]:
    """Who has to go so that the taker has room; nobody where it is of no use."""
    there = site.parts[taker.part][0]
    able = [
        r
        for r in running
        if site.may(taker, r)
        and site.mode[site.of(r)] != "off"
        and r.finish > now + CLEANUP * r.killed
        and now // SECOND >= r.begun // SECOND + site.exempt_s[site.of(r)]
        and there & set(r.where)
    ]
    able.sort(key=lambda r: (-(r.begun // SECOND) if site.youngest else (site.rank[site.of(r)], len(r.where)), r.row))
    rounds = 0
    while True:
        future, gone, chosen = set(free), 0, []
        while gone < len(able) and not chosen:
            future |= set(able[gone].where)
            gone += 1
            chosen = pick(future & wanted, taker.nodes)
        if not chosen:
            return []
        if rounds > site.reorder or len(able) <= rounds + 1:
            return [r for r in able[:gone] if set(chosen) & set(r.where)]
        rounds += 1
        last = able[gone - 1]
        if site.strict:
            able.insert(0, able.pop(gone - 1))
        else:
            on = {r.row: len(set(chosen) & set(r.where)) for r in able[: gone - 1]} | {last.row: 10**6}
            able.sort(key=lambda r: -on.get(r.row, 0))


def give_notice(site: Site, r: Job, now: int) -> None:
    now_s, grace_s = now // SECOND, site.grace_s[site.of(r)]
    if r.notice is None and grace_s > 0:
        r.end_s = min(r.end_s, now_s + grace_s)
        kill(r, next_beat(r.end_s * SECOND, now))
    elif r.notice is None or now_s >= r.end_s:
        r.end_s = now_s + 1
        kill(r, now)
    r.notice = now_s if r.notice is None else r.notice


def kill(r: Job, at: int) -> None:
    if r.finish > at:
        r.killed, r.finish = True, at + CLEANUP


def settle(site: Site, jobs: list[Job], now: int) -> None:
    """Ends, submissions and returns up to now."""
    for job in jobs:
        if job.state == "running" and job.finish <= now:
            if not job.killed:
                job.state = "done"  # perhaps whole within its grace
                continue
            job.notice, job.killed = None, False
            job.lost += job.finish - job.begun
            job.state = "later" if site.mode[site.of(job)] == "requeue" else "cancelled"
            job.back = (job.finish // SECOND + site.delay_s + 1) * SECOND
        elif (job.state == "coming" and job.submit <= now) or (job.state == "later" and job.back <= now):
            job.state = "waits"


def replay(site: Site, jobs: list[Job], limit_s: dict[int, int], most_s: int = 200_000) -> None:
    """All jobs to their ends."""
    now = TICK
    while any(job.state not in ("done", "cancelled") for job in jobs):
        if now >= most_s * SECOND:
            raise Endless
        settle(site, jobs, now)
        running = [job for job in jobs if job.state == "running"]
        free = set(range(site.nodes)) - {n for r in running for n in r.where}
        closed: set[str] = set()
        barred: set[int] = set()
        for job in site.in_order([one for one in jobs if one.state == "waits"]):
            if job.part in closed:
                continue
            wanted = site.parts[job.part][0] - barred
            where = pick(free & wanted, job.nodes)
            if where:
                job.state, job.where, job.begun, job.finish = "running", where, now, now + job.run
                job.end_s = now // SECOND + limit_s[job.row]
                running.append(job)
                free -= set(where)
                continue
            found = victims(site, job, running, free, wanted, now)
            if found and (job.took_s is None or job.took_s <= now // SECOND - PATIENCE_S):
                job.took_s = now // SECOND
                for r in found:
                    give_notice(site, r, now)
            closed.add(job.part)
            barred |= site.parts[job.part][0]
        settle(site, jobs, now)
        now += SECOND
