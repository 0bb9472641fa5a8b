"""A day beside a Slurm that is none: it prints, in the words of its clients, what a schedule says; looks are read,
decided on, and written.

`python -m bench.beside [--jobs N] [--nodes N] [--hours H] [--period S] [--scheduler S] [--shutdown P]`: processor time
of a look, with reading, deciding and writing, and memory at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import escala
from bench.live import POWER
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, Beside, Setting
from escala.bridges.slurm.metrics import Metrics
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.snapshots import layout
from escala.live import Desk
from escala.platform.site import nodes_of_intervals

EPOCH = 1_800_000_000
KEPT_S = 300  # ended jobs are listed for so long


def log(jobs: int, nodes: int, hours: float, load: float = 0.9) -> escala.Workload:
    """So many jobs in so many hours, of whole nodes, with limits of one to three times what they take."""
    draw = np.random.default_rng([jobs, nodes])
    cores = draw.integers(1, max(nodes // 40, 2), jobs)
    length = draw.lognormal(0.0, 1.0, jobs)
    length *= load * nodes * hours * 3600 / float((cores * length).sum())
    length = np.clip(np.round(length), 10, 3600 * hours)
    limit = np.ceil(length * draw.uniform(1, 3, jobs) / 60) * 60
    submit = np.sort(np.floor(draw.uniform(0, hours * 3600, jobs)))
    users = [f"user{k}" for k in draw.integers(0, 50, jobs)]
    columns = {"submit_s": submit, "runtime_s": length, "walltime_s": limit, "cores": cores, "user": users}
    return escala.Workload.from_jobs(columns, name="a day")


@dataclass
class _Job:
    submit: int
    start: int
    end: int
    hosts: tuple[int, ...]
    waiting: str  # what squeue prints of it
    running: str
    over: str


class Replayed:
    """A Slurm that does what a schedule says. Called with the words of a command, as `Clients` are; `now` goes on by
    `advance`."""

    def __init__(self, workload: escala.Workload, nodes: int) -> None:
        result = escala.simulate(workload, escala.read_platform(f"{nodes}x1"), "easy")
        columns = ("job_id", "submit_s", "start_s", "finish_s", "cores", "walltime_s", "nodes")
        users = workload.jobs["user"].to_list() if "user" in workload.jobs.columns else ["ann"] * len(workload)
        rows = zip(*(result.jobs[name].to_list() for name in columns), users, strict=True)
        self._coming = sorted((self._job(*row) for row in rows), key=lambda job: job.submit)
        self.now = EPOCH
        self.nodes = [_Node(f"n{k}") for k in range(nodes)]
        self._next, self.started = 0, 0
        self._events = list[tuple[int, int, int]]()  # when, 0: ends, 1: starts, which
        self.listed = dict[int, str]()

    @staticmethod
    def _job(
        name: str, submit: float, start: float, finish: float, cores: int, limit: float, nodes: str, user: str
    ) -> _Job:
        at = [EPOCH + round(when) for when in (submit, start, finish)]
        days = f"{int(limit) // 86400}-{int(limit) // 3600 % 24:02}:{int(limit) // 60 % 60:02}:{int(limit) % 60:02}"
        size, who = f"{days}|{cores}|{cores}|1000|0|EXCLUSIVE|{user}|batch", f"{int(name) + 1}"
        hosts = f"n[{nodes.replace(' ', ',')}]"
        return _Job(
            *(at[0], at[1], at[2]),
            nodes_of_intervals(nodes),
            f"{who}|PENDING|{at[0]}|N/A|N/A|{size}||Resources\n",
            f"{who}|RUNNING|{at[0]}|{at[1]}|{at[1] + int(limit)}|{size}|{hosts}|None\n",
            f"{who}|COMPLETED|{at[0]}|{at[1]}|{at[2]}|{size}|{hosts}|None\n",
        )

    def clock(self) -> float:
        """Now, unix time."""
        return float(self.now)

    def advance(self, seconds: int) -> None:
        """Time goes on: jobs come, start and end as in the schedule."""
        self.now += seconds
        while self._next < len(self._coming) and self._coming[self._next].submit <= self.now:
            self.listed[self._next] = self._coming[self._next].waiting
            heapq.heappush(self._events, (self._coming[self._next].start, 1, self._next))
            self._next += 1
        while self._events and self._events[0][0] <= self.now:
            when, kind, which = heapq.heappop(self._events)
            job = self._coming[which]
            if kind == 2:
                del self.listed[which]
                continue
            self.started += kind
            for host in job.hosts:
                self.nodes[host].taken(kind == 1, when)
            self.listed[which] = job.running if kind else job.over
            heapq.heappush(self._events, (job.end, 0, which) if kind else (job.end + KEPT_S, 2, which))

    def __call__(self, client: str, *words: str) -> str:
        if "--version" in words:
            return "slurm-wlm 22.05.8\n"
        if client == "squeue":
            return "".join(self.listed.values())
        if words[-1] == "nodes":
            return "".join(node.line for node in self.nodes)
        assert words[-1] == "reservations", (client, words)
        return "No reservations in the system\n"


@dataclass
class _Node:
    name: str
    line: str = field(default="")

    def __post_init__(self) -> None:
        self.taken(False, EPOCH)

    def taken(self, busy: bool, when: int) -> None:
        """A job has come, or has gone."""
        state = "ALLOCATED" if busy else "IDLE"
        self.line = (
            f"NodeName={self.name} CPUAlloc={int(busy)} CPUTot=1 State={state} Partitions=batch  LastBusyTime={when}\n"
        )


@dataclass
class Day:
    """look_s: processor time of each look. queue: jobs listed at each. mebibytes: of the process, at each."""

    look_s: list[float] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    mebibytes: list[float] = field(default_factory=list)
    misses: int = 0
    starts: list[str] = field(default_factory=list)  # jobs whose start was seen
    journal_bytes: int = 0


def resident_mb() -> float:
    """Memory of this process, MiB."""
    told = Path("/proc/self/status").read_text()
    return int(told.split("VmRSS:")[1].split()[0]) / 1024


def day(
    slurm: Replayed, folder: Path, seconds: int, period: int, scheduler: str = "easy", shutdown: str = "timeout:300"
) -> Day:
    """Look at it every `period` seconds for so long."""
    out = Day()
    for beside in _beside(slurm, folder, period, scheduler, shutdown):
        metrics = Metrics(beside)
        beside.cycle()  # what has started before the first look is nobody's
        for _ in range(seconds // period):
            slurm.advance(period)
            begun = time.process_time()
            beside.cycle()
            metrics.add()
            out.look_s.append(time.process_time() - begun)
            out.queue.append(len(slurm.listed))
            out.mebibytes.append(resident_mb())
        out.misses = beside.misses
    path = folder / JOURNAL
    out.starts = [row[0] for one in records(path) for row in one.get("started", ())]
    out.journal_bytes = path.stat().st_size
    return out


def _beside(slurm: Replayed, folder: Path, period: int, scheduler: str, shutdown: str) -> Iterator[Beside]:
    reader = Reader(slurm, clock=slurm.clock)
    at = layout(reader.read(), "batch", POWER)
    desk = Desk(at.platform, scheduler, shutdown)
    desk.warm()
    beside = Beside(reader, desk, at, folder, Setting("shadow", period, {"slurm": "22.05"}))
    beside.begin(slurm.clock())
    yield beside
    beside.journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, usual in (
        ("jobs", int, 20_000),
        ("nodes", int, 1_000),
        ("hours", float, 24.0),
        ("period", int, 10),
    ):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--shutdown", default="timeout:300")
    given = parser.parse_args()
    slurm = Replayed(log(given.jobs, given.nodes, given.hours), given.nodes)
    with tempfile.TemporaryDirectory() as folder:
        found = day(slurm, Path(folder), int(given.hours * 3600), given.period, given.scheduler, given.shutdown)
    ms = sorted(1000 * look for look in found.look_s)
    print(
        f"{len(ms)} looks at {given.nodes} nodes, {found.misses} missed; jobs listed: mean "
        f"{statistics.mean(found.queue):.0f}",
        end="",
    )
    print(f", most {max(found.queue)}; {slurm.started} jobs started, {len(set(found.starts))} starts seen")
    print(
        f"a look, processor time: median {np.percentile(ms, 50):.1f} ms, p99 {np.percentile(ms, 99):.1f} ms, longest "
        f"{ms[-1]:.1f} ms"
    )
    hours = [found.mebibytes[int(k * (len(ms) - 1) / 8)] for k in range(9)]
    print(
        f"memory, MiB, at each eighth: {', '.join(f'{value:.0f}' for value in hours)}; journal "
        f"{found.journal_bytes / 2**20:.1f} MiB"
    )


if __name__ == "__main__":
    main()
