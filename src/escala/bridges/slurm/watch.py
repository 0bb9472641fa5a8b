"""What the policy would have started, beside what Slurm started; and what both expected of waiting jobs."""

from __future__ import annotations

from typing import Any

from escala.bridges.slurm.seen import ENDED, ON_NODES, PENDING, TICK_S, Job, Seen
from escala.bridges.slurm.snapshots import Layout, waits
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot

PLAN_EVERY_S = 60.0
FIRST, MOST_WAITING = 50, 10_000
"""Jobs of a plan, and waiting jobs with which it takes too long: some 10 ms under EASY, 3 s under conservative of half
as many."""


class Watch:
    """advised: waiting job -> when the policy would first have started it. expected: waiting job -> start that the
    policy and that Slurm expected when it was first planned (None: nothing was expected)."""

    def __init__(self, at: Layout, tolerance_s: float) -> None:
        self._at, self._tolerance_s = at, tolerance_s
        self.advised: dict[str, float] = {}
        self.expected: dict[str, tuple[float | None, float | None]] = {}
        self.planned_s, self.plans = 0.0, True
        self.counted: dict[str, float] = {}  # jobs that were found to have started or ended -> when

    def told(self) -> dict[str, Any]:
        """As plain data for JSON."""
        expected = {job: list(both) for job, both in self.expected.items()}
        return {"advised": self.advised, "expected": expected, "planned_s": self.planned_s, "counted": self.counted}

    def restore(self, told: Any) -> None:
        """Go on from what `told` gave; EscalaError for anything else."""
        try:
            self.advised = {str(job): float(when) for job, when in told["advised"].items()}
            self.expected = {str(job): (both[0], both[1]) for job, both in told["expected"].items()}
            self.planned_s = float(told["planned_s"])
            self.counted = {str(job): float(when) for job, when in told["counted"].items()}
        except (TypeError, KeyError, ValueError, IndexError, AttributeError):
            raise EscalaError("what was advised is not told: begin without the state") from None

    def started(self, seen: Seen, since_s: float | None) -> list[Job]:
        """Jobs on our nodes that Slurm has started since an instant, those that have ended already included. None:
        nobody watched, so that none counts that has started by now."""
        jobs = [job for job in seen.jobs.values() if job.state in (*ON_NODES, ENDED) and job.start_s is not None]
        found = [job for job in jobs if self._new(f"start {job.job_id}", job.start_s, since_s)]
        return [job for job in found if any(host in self._at.index for host in job.hosts)]

    def ended(self, seen: Seen, since_s: float | None) -> dict[str, Job]:
        """Jobs that have ended since an instant."""
        jobs = [job for job in seen.jobs.values() if job.state == ENDED]
        return {job.job_id: job for job in jobs if self._new(f"end {job.job_id}", job.end_s, since_s)}

    def count(self, seen: Seen) -> None:
        """What has happened by now will not be found again."""
        least = seen.now_s - 3 * TICK_S
        for job in seen.jobs.values():
            start, end = (None if job.state == PENDING else job.start_s), (job.end_s if job.state == ENDED else None)
            for what, when in (("start", start), ("end", end)):
                if when is not None and when > least:
                    self.counted[f"{what} {job.job_id}"] = when
        self.counted = {name: when for name, when in self.counted.items() if when > least}

    def _new(self, name: str, when: float | None, since_s: float | None) -> bool:
        """Did it happen since an instant, and was it not counted?"""
        return when is not None and since_s is not None and when > since_s - TICK_S and self.counted.get(name) != when

    def judge(self, seen: Seen, orders: Orders, started: list[Job], asked: bool) -> list[list[Any]]:
        """Rows of the jobs that have started: job, user, submission, start, how the policy took it, when it would have
        started it, what it and Slurm expected, and None, which `expect` replaces by a time. How: same (in this look, or
        within the tolerance), earlier, later (it would not have started it yet), unasked (it has ended already, or was
        not `asked` about)."""
        now = {start.job_id for start in orders.starts}
        rows = []
        for job in started:
            advised = self.advised.pop(job.job_id, None)
            policy, slurm = self.expected.pop(job.job_id, (None, None))
            start = job.start_s or seen.now_s
            if advised is not None and advised < start - self._tolerance_s:
                how = "earlier"
            elif advised is not None or job.job_id in now:
                how = "same"
            else:
                how = "later" if asked and job.state != ENDED else "unasked"
            rows.append([job.job_id, job.user, job.submit_s, start, how, advised, policy, slurm, None])
        for job_id in now:
            if (known := seen.jobs.get(job_id)) is not None and known.state == PENDING:
                self.advised.setdefault(job_id, seen.now_s)
        for kept in (self.advised, self.expected):
            for job_id in [job_id for job_id in kept if job_id not in seen.jobs or seen.jobs[job_id].state != PENDING]:
                del kept[job_id]
        return rows

    def expect(
        self, seen: Seen, desk: Desk, snapshot: Snapshot, rows: list[list[Any]]
    ) -> dict[str, tuple[float | None, float | None]]:
        """Ask for a plan, where jobs wait of which nothing is expected yet, or where rows of `judge` are of jobs that
        the policy would start later: they are told when. What is expected of new ones from now."""
        waiting = [job for job in seen.jobs.values() if waits(job, self._at)]
        new = (
            [job for job in waiting if job.job_id not in self.expected]
            if seen.now_s >= self.planned_s + PLAN_EVERY_S
            else []
        )
        late = [row for row in rows if row[4] == "later"]
        if not self.plans or not (new or late) or len(waiting) > MOST_WAITING:
            return {}
        if new:
            self.planned_s = seen.now_s
        try:
            plan = {one.job_id: one.start_s for one in desk.plan(snapshot, first=FIRST)}
        except EscalaError:  # an object, which cannot plan
            self.plans = False
            return {}
        for row in late:
            row[8] = plan.get(row[0])
        found = {job.job_id: (plan.get(job.job_id), job.start_s) for job in new}
        self.expected |= found
        return found
