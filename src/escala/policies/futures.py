"""What may come: jobs that a look-ahead policy expects, from what it has seen or from a given law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from escala.admit import arrivals_us
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.options import microseconds
from escala.policy import View
from escala.workload import Workload

Numbers = NDArray[np.int64]
LISTED = ("submit_us", "walltime_us", "cores", "shares")
LATEST = 2000  # ended and submitted jobs that are remembered


class Coming(NamedTuple):
    """Jobs that come in each of K futures, int64 [K, A], in order of arrival."""

    at: Numbers  # us from now, > 0; NEVER_US: no job
    cores: Numbers
    walltime: Numbers  # us
    runtime: Numbers  # us


@dataclass
class Memory:
    """What a scheduler could have written down: submissions, and what share of its walltime each ended job took."""

    submit_us: list[int] = field(default_factory=list)
    walltime_us: list[int] = field(default_factory=list)
    cores: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    running: dict[int, tuple[float, float]] = field(default_factory=dict)  # row -> (start s, walltime s)
    last_row: int = -1

    def see(self, view: View) -> None:
        """Take note of what has happened since the last look."""
        now, running = view.now_s, view.running
        rows = {job.row for job in running}
        for row in [row for row in self.running if row not in rows]:
            start, walltime = self.running.pop(row)
            self.shares.append(min(max((now - start) / walltime, 1e-6), 1.0))
        for job in running:
            self.running.setdefault(job.row, (job.planned_end_s - job.walltime_s, job.walltime_s))
        for waiting in view.queue:
            if waiting.row > self.last_row:
                self.submit_us.append(round(waiting.submit_s * SECOND))
                self.walltime_us.append(round(waiting.walltime_s * SECOND))
                self.cores.append(waiting.cores)
                self.last_row = waiting.row
        self._forget()

    def note(self, submitted: NDArray[Any], ended: NDArray[Any]) -> None:
        """The same where the kernel's tables say it: the jobs (`JOB`) that have come since, and those that have ended.
        walltime: their requests."""
        for name, values in (("submit", self.submit_us), ("walltime", self.walltime_us), ("cores", self.cores)):
            values += submitted[name].tolist()
        self.shares += np.clip(ended["runtime"] / ended["walltime"], 1e-6, 1.0).tolist()
        self._forget()

    def _forget(self) -> None:
        for values in (self.submit_us, self.walltime_us, self.cores, self.shares):
            del values[:-LATEST]

    def state(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {name: getattr(self, name) for name in LISTED} | {
            "running": [[row, *known] for row, known in self.running.items()],
            "last_row": self.last_row,
        }

    @classmethod
    def of_state(cls, state: Any) -> Memory:
        """From what `state` gave. KeyError, TypeError or ValueError where it is something else."""
        submit, walltime, cores = ([int(one) for one in state[name]] for name in LISTED[:3])
        if not len(submit) == len(walltime) == len(cores):
            raise ValueError("lists of one length")
        running = {int(row): (float(start), float(length)) for row, start, length in state["running"]}
        return cls(
            submit, walltime, cores, [float(share) for share in state["shares"]], running, int(state["last_row"])
        )

    def runtimes(self, walltime: Numbers, elapsed: Numbers, k: int, draw: np.random.Generator) -> Numbers:
        """K draws of how long jobs run in all, us [K, jobs], longer than they have run so far."""
        known = np.sort(np.array(self.shares or [1.0]))
        first = np.searchsorted(known, elapsed / np.maximum(walltime, 1), side="right")
        chosen = first + np.floor(draw.random((k, len(walltime))) * np.maximum(len(known) - first, 0)).astype(np.int64)
        share = np.where(first < len(known), known[np.minimum(chosen, len(known) - 1)], 1.0)
        return np.maximum(np.floor(share * walltime + 0.5).astype(np.int64), elapsed + 1)


class Arrivals(Protocol):
    """A law of arrivals."""

    def draw(self, memory: Memory, now_us: int, k: int, most: int, draw: np.random.Generator) -> Coming:
        """K futures of at most `most` jobs."""


class AsBefore:
    """Gaps between submissions, and jobs, drawn anew from those seen. A silence that grows longer than the gaps seen
    makes later ones longer: arrivals may have ended."""

    def draw(self, memory: Memory, now_us: int, k: int, most: int, draw: np.random.Generator) -> Coming:
        submit = np.array(memory.submit_us, np.int64)
        gaps = np.diff(submit) if len(submit) > 1 else np.array(memory.walltime_us[:1], np.int64)
        silence = now_us - int(submit[-1])
        longer = np.sort(gaps[gaps > silence])
        first = draw.choice(longer, (k, 1)) - silence if len(longer) else np.full((k, 1), max(silence, 1))
        others = draw.choice(gaps, (k, most - 1)) if most > 1 else np.empty((k, 0), np.int64)
        which = draw.integers(0, len(submit), (k, most))
        walltime = np.array(memory.walltime_us, np.int64)[which]
        at = np.maximum(np.cumsum(np.concatenate([first, others], axis=1), axis=1), 1)
        ran = memory.runtimes(walltime.ravel(), np.zeros(walltime.size, np.int64), 1, draw).reshape(walltime.shape)
        return Coming(at.astype(np.int64), np.array(memory.cores, np.int64)[which], walltime, ran)


class Lists:
    """Futures are what other workloads hold after this time of theirs: days of the same log, or lists of a known
    generator."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        lists = []
        for workload in workloads:
            arrival = arrivals_us(workload.jobs)
            order = np.argsort(arrival, kind="stable")
            times = (microseconds(workload.jobs[name].to_numpy())[order] for name in ("walltime_s", "runtime_s"))
            lists.append((arrival[order], *times, workload.jobs["cores"].to_numpy()[order]))
        self._lay_out(lists)

    @classmethod
    def of_arrays(cls, lists: Sequence[tuple[Numbers, Numbers, Numbers, Numbers]]) -> Lists:
        """The same from int64 arrays of each list: submit (in order), walltime and runtime in us, cores."""
        made = cls.__new__(cls)
        made._lay_out(lists)
        return made

    def _lay_out(self, lists: Sequence[tuple[Numbers, Numbers, Numbers, Numbers]]) -> None:
        sizes = [len(submit) for submit, *_ in lists]
        if not any(sizes):
            raise EscalaError("rollout: arrivals needs at least one workload with jobs")
        shape = len(lists), max(sizes) + 1
        self.at = np.full(shape, codes.NEVER_US, np.int64)
        self.cores, self.walltime, self.runtime = (
            np.ones(shape, np.int64),
            np.ones(shape, np.int64),
            np.ones(shape, np.int64),
        )
        for i, columns in enumerate(lists):
            for target, column in zip((self.at, self.walltime, self.runtime, self.cores), columns, strict=True):
                target[i, : sizes[i]] = column

    def draw(self, memory: Memory, now_us: int, k: int, most: int, draw: np.random.Generator) -> Coming:
        which = draw.integers(0, len(self.at), k)
        at = self.at[which]
        first = (at <= now_us).sum(axis=1)
        column = np.minimum(first[:, None] + np.arange(min(most, at.shape[1])), at.shape[1] - 1)
        picked = np.take_along_axis(at, column, axis=1)
        some = (picked < codes.NEVER_US).any(axis=0)
        column = column[:, some]
        rows = which[:, None]
        came = picked[:, some]
        return Coming(
            np.where(came < codes.NEVER_US, came - now_us, came),
            self.cores[rows, column],
            np.maximum(self.walltime[rows, column], 1),
            np.maximum(self.runtime[rows, column], 1),
        )
