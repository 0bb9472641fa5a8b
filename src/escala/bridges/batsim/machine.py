"""How Batsim's machine stands: jobs that wait, hold nodes or run, and nodes that are on, off or between; told by
snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from escala.bridges.batsim.hosts import Hosts
from escala.bridges.batsim.messages import LATEST_S, Event, numbers
from escala.errors import EscalaError, quoted
from escala.live import Orders, Snapshot
from escala.platform import Platform

NONE_S = math.nan
"""No time."""

NO_WALLTIME_S = 365 * 86400.0
"""What is planned for a job that names no walltime: Batsim never kills it."""


@dataclass
class Job:
    """state: queued, given (it has its nodes, which are not all on) or running."""

    name: str
    submit_s: float
    walltime_s: float
    cores: int
    user: str | None
    state: str = "queued"
    start_s: float | None = None
    parts: list[tuple[int, int]] = field(default_factory=list)  # first and last node

    @property
    def nodes(self) -> list[int]:
        """All that it has."""
        return [node for first, last in self.parts for node in range(first, last + 1)]


class Machine:
    """The nodes are numbered as those of the platform."""

    def __init__(self, hosts: Hosts, platform: Platform) -> None:
        self.hosts, self.platform = hosts, platform
        self.place = {number: node for node, number in enumerate(hosts.ids)}
        n = len(hosts.ids)
        self.jobs: dict[str, Job] = {}
        self.ended: list[tuple[str, float, float]] = []
        self.power = ["off" if asleep else "on" for asleep in hosts.asleep]
        self.idle_since = np.where(hosts.asleep, NONE_S, 0.0)
        self.switch_end = np.full(n, NONE_S)
        self.gone = np.zeros(n, bool)

    def submitted(self, event: Event) -> Job:
        """A job has come; it may ask for more than there is, and then it is not taken in."""
        name, told = event.has("job_id", str), event.has("job", dict)
        cores, walltime, user = told.get("res"), told.get("walltime"), told.get("user", told.get("user_id"))
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            raise EscalaError(f"Batsim: job {quoted(name)} has res {quoted(cores)}: give it 1 host or more")
        if walltime is not None and (isinstance(walltime, bool) or not isinstance(walltime, int | float)):
            raise EscalaError(
                f"Batsim: job {quoted(name)} has walltime {quoted(walltime)}: give seconds, or leave it out"
            )
        if name in self.jobs:
            raise EscalaError(
                f"Batsim: job {quoted(name)} is submitted, and waits or runs already: give each job a name of its own"
            )
        asked = float(min(walltime, LATEST_S)) if walltime is not None and walltime > 0 else NO_WALLTIME_S
        job = Job(name, event.timestamp_s, asked, cores, None if user is None else str(user))
        if cores <= self.platform.n_nodes:
            self.jobs[name] = job
        return job

    def completed(self, name: str, at_s: float) -> None:
        """A job has ended, however it did."""
        job = self.jobs.get(name)
        if job is None or job.state != "running":
            raise EscalaError(
                f"Batsim: job {quoted(name)} has ended, and was not running: this process was not there from the "
                "beginning"
            )
        del self.jobs[name]
        for first, last in job.parts:
            self.idle_since[first : last + 1] = at_s
        self.ended.append((name, job.start_s or 0.0, at_s))

    def killed(self, names: Iterable[Any], at_s: float) -> list[str]:
        """Jobs were killed; those that Batsim did not tell of before, which are given, have ended by that."""
        found = [str(name) for name in names if str(name) in self.jobs]
        for name in found:
            self.completed(name, at_s)
        return found

    def switched(self, event: Event, at_s: float) -> None:
        """Nodes have reached a state."""
        state = str(event.has("state", str, int))
        for node in self._nodes(event):
            known = self.hosts.states[node]
            on = state in known.computing if known.computing is not None else state == known.on
            if not on and state != known.off:
                raise EscalaError(
                    f"Batsim: host {quoted(self.hosts.names[node])} has no state {quoted(state)}: give the platform "
                    "that was given"
                )
            if self.power[node] != "on" or not on:
                self.idle_since[node] = at_s if on else NONE_S
            self.power[node], self.switch_end[node] = "on" if on else "off", NONE_S

    def available(self, event: Event, *, here: bool) -> set[int]:
        """Nodes that may not be used, or may again."""
        nodes = self._nodes(event)
        self.gone[nodes] = not here
        return set(nodes)

    def _nodes(self, event: Event) -> list[int]:
        found = numbers(event.has("resources", str))
        unknown = [number for number in found if number not in self.place]
        if unknown:
            raise EscalaError(f"Batsim: {event.kind} names resource {unknown[0]}, which is no host that computes")
        return [self.place[number] for number in found]

    @property
    def stuck(self) -> bool:
        """Do jobs wait where nothing runs, no node switches, and all are there?"""
        waits = bool(self.jobs) and all(job.state == "queued" for job in self.jobs.values())
        return waits and not self.gone.any() and all(power in ("on", "off") for power in self.power)

    def ready(self, now_s: float) -> list[Job]:
        """Jobs all of whose nodes are on by now: they run from here on."""
        found = [
            job
            for job in self.jobs.values()
            if job.state == "given" and all(self.power[node] == "on" for node in job.nodes)
        ]
        for job in found:
            job.state, job.start_s = "running", now_s
        return found

    def carry_out(self, orders: Orders, now_s: float) -> list[Job]:
        """Take in what was ordered; the jobs that run from now on."""
        begun = []
        for start in orders.starts:
            job = self.jobs[start.job_id]
            job.parts = [(first, last) for first, last, _ in start.nodes]
            job.state = "given" if start.waits else "running"
            for first, last in job.parts:
                self.idle_since[first : last + 1] = NONE_S
            if not start.waits:
                job.start_s = now_s
                begun.append(job)
        for nodes, power in ((orders.wakes, "switching_on"), (orders.offs, "switching_off")):
            for node in nodes:
                profile = self.platform.profiles[self.platform.profile_of[node]]
                self.power[node], self.idle_since[node] = power, NONE_S
                self.switch_end[node] = now_s + (
                    profile.switch_on_s if power == "switching_on" else profile.switch_off_s
                )
        return begun

    def snapshot(self, now_s: float) -> Snapshot:
        """How it stands; jobs that have ended are told once."""
        alive = list(self.jobs.values())
        jobs = {
            "job_id": [job.name for job in alive],
            "submit_s": [job.submit_s for job in alive],
            "walltime_s": [job.walltime_s for job in alive],
            "cores": [job.cores for job in alive],
            "state": [job.state for job in alive],
            "start_s": [job.start_s for job in alive],
            "user": [job.user for job in alive],
        }
        nodes = {
            "power": self.power,
            "idle_since_s": self.idle_since,
            "switch_end_s": self.switch_end,
            "gone": self.gone,
        }
        held = [(place, first, last) for place, job in enumerate(alive) for first, last in job.parts]
        placed = dict(zip(("job", "first", "last"), map(list, zip(*held)))) | {"cores": [1] * len(held)} if held else {}
        over, self.ended = self.ended, []
        ended = {
            "job_id": [one[0] for one in over],
            "start_s": [one[1] for one in over],
            "end_s": [one[2] for one in over],
        }
        return Snapshot.of(now_s, jobs, nodes, placed, ended)
