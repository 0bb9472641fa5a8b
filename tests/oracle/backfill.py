"""Slurm's event and backfill passes by sets and lists: slow, obvious, and with no code of the package in it.

An event pass comes each second and a backfill pass 0.3 s behind it, if something has changed, or later where passes
take time (`clock`). Partitions that overlap, with tiers; features; priorities, given or multifactor (`priorities`);
limits of running jobs, of CPUs, of GPUs and of accounts (`accounts`); dependencies; begin times; arrays; reservations
with jobs of their own, flexible and magnetic ones; outages and drains; nodes that jobs share (`shapes`). The rules are
those of https://slurm.schedmd.com/sched_config.html, resource_limits.html, job_array.html and reservations.html, of
slurmctld's job_scheduler.c and node_scheduler.c, and of the backfill plugin.
"""

from __future__ import annotations

import math

from tests.oracle import accounts as of
from tests.oracle.clock import AGAIN_S, FAR, Clock
from tests.oracle.preemption import CLEANUP, SECOND, STARTED, next_beat
from tests.oracle.priorities import Priorities
from tests.oracle.shapes import Given, take
from tests.oracle.site import Record, Reservation

__all__ = ["AGAIN_S", "Replay"]

GROUP_S, KILL_WAIT_S = 30, 30
LATE_S = 60  # so late a kill may be recorded; who would run longer is killed anew


class Replay(Clock):
    def in_order(self) -> list[Record]:
        """Those that wait, each in each of its partitions, and there in each of its reservations. Those in reservations
        stand before all others: "1. Jobs that can preempt 2. Jobs with an advanced reservation 3. Partition Priority
        Tier 4. Job priority ..." (https://slurm.schedmd.com/priority_multifactor.html)"""
        every = [
            (job, part, inside)
            for job in self.jobs
            if job.state == "waits"
            for inside in self.insides(job)
            for part in job.parts
        ]

        def place(one: Record) -> tuple[int, ...]:
            return one[2] is None, -self.site.parts[one[1]][1], -one[0].ranked[one[1]], one[0].row

        return sorted(every, key=place)

    def is_awaited(self, one: Record) -> bool:
        """A job whose own reservation has not begun, or is over, is in no queue (job_independent in job_mgr.c)."""
        return one[0].inside is not None and self.own(one, self.now_s) is None

    def foreign(self, one: Record, from_s: int, to_s: int) -> list[Reservation]:
        return [r for r in self.site.reservations if r.name != one[2] and r.begin_s < to_s and r.end_s > from_s]

    def suited(self, one: Record, now: bool = True) -> set[int]:
        job, part, inside = one
        nodes = self.site.parts[part][0] & self.site.features.get(job.feature or "", set(range(self.site.nodes)))
        if now:
            nodes -= {n for which in self.out for n in self.site.outages[which].nodes}
        mine = [r for r in self.site.reservations if r.name == inside]
        return nodes & {n for r in mine for n in r.nodes} if mine and not mine[0].flex else nodes

    def start(self, one: Record, given: list[Given]) -> None:
        job = one[0]
        if self.site.speeds:
            job.run = math.floor(job.whole / min(self.site.speeds[some.node] for some in given) + 0.5)
        job.state, job.given, job.begun, job.finish = "runs", given, self.now, self.now + job.run
        job.end_s, job.cut = self.now_s + job.limit_s, False
        if job.run > (job.limit_s + LATE_S) * SECOND:
            job.cut, job.finish = True, next_beat(job.end_s * SECOND, self.now) + CLEANUP
        own = self.own(one, self.now_s)
        if own is not None and not own.flex:
            beat = next_beat((own.end_s + 1) * SECOND, self.now)
            if job.finish > beat:
                job.cut, job.finish = True, beat + CLEANUP
        self.changed_s, self.event = self.now_s, self.now
        self.follow(job, at_start=True)

    def event_pass(self) -> None:
        closed, barred = set[str](), set[int]()
        failed = set[tuple[str, str, str | None]]()
        full = set[str]()
        for one in self.in_order():
            job, part, inside = one
            if job.state != "waits":
                continue
            if closed == set(self.site.parts):
                return
            if self.is_awaited(one) or self.is_too_large(one):
                continue
            if job.array is not None and self.is_behind_one_that_failed(one, failed):
                continue
            if part in closed if inside is None else inside in full:
                continue
            if self.at_most_jobs(job):
                continue
            if inside is not None and self.few_left(one, barred):
                closed.add(part)
                barred |= self.site.parts[part][0]
                continue
            own, wanted = self.own(one, self.now_s), self.suited(one) - barred
            # one that draws jobs is to come: others keep off its nodes (job_scheduler.c)
            if inside is not None and own is None:
                ahead = self.coming(one, self.now_s)
                barred |= ahead.nodes if ahead is not None else set()
                continue
            if own is not None and not own.flex:
                wanted &= own.nodes
            left = wanted - {n for r in self.foreign(one, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
            if len(left) < job.nodes <= len(wanted):
                continue
            given = self.pick(one, self.left, left)
            if given:
                if not self.at_most_tres(job, part, given):
                    self.start(one, given)
                    failed.discard((job.array or "", part, inside))
            elif self.asks_too_much(one, left) or self.lacks_nodes(one, left, barred):
                continue
            elif inside is not None:
                full.add(inside)
            else:
                closed.add(part)
                barred |= self.site.parts[part][0]

    def few_left(self, one: Record, barred: set[int]) -> bool:
        gone = {n for which in self.out for n in self.site.outages[which].nodes}
        return len(self.site.parts[one[1]][0] - barred - gone) < (one[0].shape.nodes or 1)

    def is_too_large(self, one: Record) -> bool:
        """More nodes than the reservation has in the partition: not in an event pass (_job_runnable_test3 in
        job_scheduler.c)."""
        ahead = self.coming(one, self.now_s) if one[2] is not None else None
        return ahead is not None and len(ahead.nodes & self.site.parts[one[1]][0]) < (one[0].shape.nodes or 1)

    def lacks_nodes(self, one: Record, wanted: set[int], barred: set[int]) -> bool:
        """Are nodes not available, or reserved, in place of busy (ESLURM_NODE_NOT_AVAIL, ESLURM_RESERVATION_BUSY in
        node_scheduler.c)? Then the pass goes on with the next job of the partition, unless that has too few nodes left
        at all (job_scheduler.c). Not where all that suit the job are left."""
        job = one[0]
        if self.few_left(one, barred) or wanted >= self.suited(one, now=False):
            return False
        if self.pick(one, self.whole, wanted):
            return False
        foreign = {n for r in self.foreign(one, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
        if not self.pick(one, self.whole, self.suited(one, now=False) - foreign):
            return True
        alone = [other for other in self.running if job.shape.exclusive or other.shape.exclusive]
        return not wanted & {given.node for other in alone for given in other.given}

    def asks_too_much(self, one: Record, wanted: set[int]) -> bool:
        """Is a job that finds no nodes over a limit by what it asks for ("Replacing scheduling error code",
        node_scheduler.c)?

        How many nodes it would get is seen by those of `wanted`, as if they were idle, if enough of them can be shared
        now, or else by all of its partition. CPUs and GPUs count as those of the last nodes that were found for it."""
        job, part, _ = one
        ask = job.shape
        shared = {
            n
            for n in wanted
            if not any(n in {some.node for some in other.given} for other in self.running if other.shape.exclusive)
        }
        idle = {n for n in wanted if not any(n in {some.node for some in other.given} for other in self.running)}
        given = []
        if len(idle if ask.exclusive else shared) >= (ask.nodes or 1):
            given = self.pick(one, self.whole, wanted)
        if not given:
            every = self.suited(one, now=False)
            every -= {n for r in self.foreign(one, self.now_s, self.now_s + job.limit_s) for n in r.nodes}
            given = self.pick(one, self.whole, every)

        nodes = [some.node for some in given] or [0] * (ask.nodes or 1)
        cpus, gpus = job.found or (ask.cpus, ask.gpus_node * (ask.nodes or 1) + ask.gpus_task * ask.tasks)
        if ask.exclusive and given:
            gpus = sum(sum(self.whole[n].gpus) for n in nodes)
        memory = of.asked_memory(ask, cpus, len(nodes), self.whole, self.site.parts[part][0])
        wants = {"cpu": cpus, "mem": memory, "gpu": gpus, "node": len(nodes)}
        return self.over(job, wants, None)

    def is_behind_one_that_failed(self, one: Record, failed: set[tuple[str, str, str | None]]) -> bool:
        """May a task of an array not be tried in this pass? One that is counts as failed until it starts, or is
        planned."""
        job, part, inside = one
        if (job.array, part, inside) in failed:
            return True
        failed.add((job.array or "", part, inside))
        return self.at_most_tasks(job)

    def most_tests(self) -> int:
        """How many jobs this pass may test until it has gone on too long, or has slept while something happened."""
        told, elapsed, worked, tests = self.site.yields, 0, 0, 0
        if told.test == 0:
            return FAR
        moments = [job.finish for job in self.running] + [job.submit for job in self.jobs if not job.came]
        moments += [at * SECOND for at, _, _ in self.turns]
        moments += [
            at * SECOND for r in self.site.reservations for at in (r.begin_s, r.end_s) if at * SECOND > self.now
        ]
        if self.prio is not None:
            period = Priorities.PERIOD_S * SECOND
            moments.append(self.now + period - (self.now - STARTED) % period)
        while elapsed < told.most:
            if worked >= told.work:
                elapsed, worked = elapsed + told.sleep, 0
                if elapsed >= told.most or (not told.goes_on and min(moments, default=FAR) <= self.now + elapsed):
                    break
            elapsed, worked, tests = elapsed + told.test, worked + told.test, tests + 1
        return tests

    def backfill_pass(self) -> None:
        self.look_us += SECOND
        if not self.site.backfills or self.changed_s < self.passed_s:
            return
        self.passed_s = self.now_s
        most, self.tested = self.most_tests(), 0
        self.plan_all(most)
        told = self.site.yields
        if told.test and self.tested:
            self.look_us += self.tested * told.test + (self.tested - 1) // -(-told.work // told.test) * told.sleep

    def plan_all(self, most: int) -> None:
        self.plan = [(self.now_s, 1 << 40, set(range(self.site.nodes)))]
        failed, plans = set[tuple[str, str, str | None]](), dict[str, int]()
        for one in self.in_order():
            job, part, inside = one
            if self.tested >= most:
                return
            if job.state != "waits" or self.is_awaited(one) or self.at_most_jobs(job):
                continue
            if job.array is not None and self.is_behind_one_that_failed(one, failed):
                continue
            if inside is not None and self.own(one, self.now_s) is None:
                continue
            found = self.look_ahead(one)
            if found == "planned" and job.array is not None:
                plans[job.array] = plans.get(job.array, 0) + 1
            if job.array is not None and (
                found == "started" or (found == "planned" and plans[job.array] < self.site.array_plans)
            ):
                failed.discard((job.array, part, inside))

    def look_ahead(self, one: Record) -> str:
        """Start it, or plan its start. What a reservation draws is not counted, and keeps no place in the plan."""
        job, part, inside = one
        drawn = inside is not None and job.inside is None
        later: int = self.now_s
        counted = drawn
        while True:
            asked = later
            wanted, later = self.usable(one, asked, asked + job.limit_s)
            self.tested += len(wanted) >= job.nodes and not counted
            counted = counted or len(wanted) >= job.nodes
            begin_s, given = self.first_start(one, wanted) if len(wanted) >= job.nodes else (0, [])
            if not given:
                if later:
                    continue
                return ""
            begin_s = max(begin_s, asked)
            over = self.at_most_tres(job, part, given, begin_s > self.now_s)
            if begin_s <= self.now_s:
                if over:
                    return ""
                self.start(one, given)
                return "started"
            if later and begin_s > later:
                continue
            end_s, nodes = begin_s + job.limit_s, {some.node for some in given}
            if any(low < end_s and high > begin_s and nodes - space for low, high, space in self.plan):
                later = begin_s
                continue
            if over:
                return ""
            if not drawn:
                self.hold(begin_s, end_s, nodes)
            return "planned"

    def hold(self, begin_s: int, end_s: int, nodes: set[int]) -> None:
        """Stretches of the plan, each with the nodes that are left; of neighbours that have become equal the first two
        are joined."""
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

    def usable(self, one: Record, from_s: int, to_s: int) -> tuple[set[int], int]:
        """Nodes that nothing planned has in the meantime, and the next moment at which there may be others, or 0."""
        nodes, mine = self.suited(one), self.own(one, self.now_s)
        if one[2] is not None and not (mine is not None and mine.flex):
            own = self.own(one, from_s)
            nodes &= own.nodes if own is not None else set()
            asked = own.nodes if own is not None else set()
        else:
            asked = self.site.parts[one[1]][0] if one[2] is None else set(range(self.site.nodes))
        others = {n for r in self.foreign(one, from_s, to_s) for n in r.nodes}
        nodes -= others
        wanted, later = set(nodes), 0
        for k, (low, high, space) in enumerate(self.plan):
            if high <= from_s:
                continue
            if not later and k + 1 < len(self.plan) and (nodes & self.plan[k + 1][2]) - (wanted & space):
                later = high
            if low > to_s:
                break
            wanted &= space
        # it looks again a second behind the first end of any reservation (find_resv_end in reservation.c)
        if asked & others:
            ends = [r.end_s + 1 for r in self.site.reservations if r.end_s >= from_s]
            later = min([*ends, later] if later else ends)
        return wanted, later

    def first_start(self, record: Record, wanted: set[int]) -> tuple[int, list[Given]]:
        """By the ends that are expected of what runs, of one end the first job's first, in groups: up to 30 s behind
        the next half minute, then twice as far, and so on."""
        given = self.pick(record, self.left, wanted)
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
            given = self.pick(record, future, wanted)
            if given:
                return (last if last > self.now_s else max(last + KILL_WAIT_S, self.now_s + 1)), given
        return 0, []
