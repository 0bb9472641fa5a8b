"""EASY as the author of R1 ran it: in a program (Batsim with batsched) where each message takes time, so that what
falls on one instant is not one decision.

Rules 1 to 3 were found from its outputs; with them every start on his seven lists comes out to the microsecond, on the
nodes that he has:

1. A submission is heard of one latency late: at time 0 three, and the last of all two, for it comes with the news that
   there are no more. An end is heard of at once.
2. The k-th start of a decision is k latencies after it, and the scheduler is ready again one latency after the last.
3. What comes while it is not ready is heard together once it is. Of what comes at one instant while it is, the first is
   heard alone.
4. The first job has a reservation on nodes, lowest first, where it could begin first; others start where they leave it
   alone. Planned ends are a second late. Without an end only new jobs are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from escala.jobs import QueuedJob
from escala.policy import Commands, View

SECOND = 1_000_000
LATENCY = 15
"""Of the author's program, in microseconds."""


@dataclass(frozen=True)
class _News:
    """Of a job that was submitted, or of the row of one that ended; at: when it comes to the scheduler, us."""

    at: int
    job: QueuedJob | None = None
    ended: int = -1


class EasyByMessages:
    """EASY on nodes of one core, for a list of so many jobs. latency: of a message, us; with 0 each instant is one
    decision."""

    name = "easy by messages"

    def __init__(self, jobs: int, latency: int = LATENCY) -> None:
        self.jobs, self.latency = jobs, latency
        self._known: set[int] = set()
        self._news: list[_News] = []
        self._queue: dict[int, QueuedJob] = {}
        self._starts: list[tuple[int, int, list[int]]] = []  # ordered: when, which job, on which nodes
        self._held: dict[int, list[int]] = {}  # nodes of each job that the scheduler counts as running
        self._until: dict[int, int] = {}  # planned end of each of these nodes
        self._begun: set[int] = set()
        self._ready = 0

    def decide(self, view: View, act: Commands) -> None:
        """Hear, order and start what is due; be called again when more is."""
        now = round(view.now_s * SECOND)
        self._listen(view, now)
        self._start(act, now)
        heard = self._heard(now) if self._ready <= now else []
        if heard:
            self._order(now, heard, view.n_nodes)
            self._start(act, now)  # without a latency
        later = [at for at, *_ in self._starts] + [max(one.at, self._ready) for one in self._news]
        if later:
            act.call_at(min(later) / SECOND)

    def _listen(self, view: View, now: int) -> None:
        """Note what was submitted, and what ended."""
        for job in view.queue:
            if job.row not in self._known:
                self._known.add(job.row)
                at = round(job.submit_s * SECOND)
                late = 3 if at == 0 else 2 if len(self._known) == self.jobs else 1
                self._news.append(_News(at + late * self.latency, job))
        running = {job.row for job in view.running}
        self._news += [_News(now, ended=row) for row in sorted(self._begun - running)]
        self._begun &= running

    def _heard(self, now: int) -> list[_News]:
        """What is heard of now, and forgotten as news."""
        due = [one for one in self._news if one.at <= now]
        if self.latency and due and min(one.at for one in due) == now:
            due = due[:1]
        self._news = [one for one in self._news if one not in due]
        return due

    def _order(self, now: int, heard: list[_News], nodes: int) -> None:
        """One decision."""
        ended, new = [one.ended for one in heard if one.job is None], [one.job for one in heard if one.job is not None]
        for row in ended:
            for node in self._held.pop(row):
                del self._until[node]
        self._queue |= {job.row: job for job in new}
        kept: tuple[int, list[int]] = (0, [])
        while self._queue and self._placed(next(iter(self._queue.values())), now, nodes, kept):
            pass
        waiting = list(self._queue.values())
        if waiting:
            kept = self._reserved(waiting[0], now, nodes)
        for job in waiting[1:]:
            if ended or job in new:
                self._placed(job, now, nodes, kept)
        self._ready = now + (len(self._starts) + 1) * self.latency

    def _reserved(self, job: QueuedJob, now: int, nodes: int) -> tuple[int, list[int]]:
        """When and where the first job could begin."""
        free = [self._until.get(node, now) for node in range(nodes)]
        at = sorted(free)[job.cores - 1]
        return at, [node for node in range(nodes) if free[node] <= at][: job.cores]

    def _placed(self, job: QueuedJob, now: int, nodes: int, kept: tuple[int, list[int]]) -> bool:
        """Order a job to start, if it fits now beside the reservation."""
        end = now + round(job.walltime_s * SECOND) + SECOND
        free = [node for node in range(nodes) if node not in self._until and (node not in kept[1] or end <= kept[0])]
        if len(free) < job.cores:
            return False
        held = free[: job.cores]
        del self._queue[job.row]
        self._held[job.row] = held
        self._until |= dict.fromkeys(held, end)
        self._starts.append((now + (len(self._starts) + 1) * self.latency, job.row, held))
        return True

    def _start(self, act: Commands, now: int) -> None:
        """Give the orders that are due."""
        for at, row, nodes in self._starts:
            if at <= now and act.start_on(row, nodes):
                self._begun.add(row)
        self._starts = [one for one in self._starts if one[0] > now]
