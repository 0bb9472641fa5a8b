"""Jobs on hosts that become unavailable: Batsim lets them run on; here they may be killed, and registered anew as
dynamic jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from escala.bridges.batsim.machine import Job
from escala.bridges.batsim.messages import Event
from escala.errors import EscalaError, quoted

STAY, KILL, REQUEUE = WAYS = ("stay", "kill", "requeue")
KILLED = "COMPLETED_KILLED"
ATTEMPT, WORKLOAD = "#", "!"
Reply = list[tuple[str, dict[str, Any]]]


class Lost:
    """way: of `WAYS`. killed: jobs that were. requeued: those of them that were registered anew. done: what share of
    each was done when it was killed, where Batsim says it."""

    def __init__(self, way: str = STAY) -> None:
        self.way = way
        self.killed = self.requeued = 0
        self.done: list[float] = []
        self._asked: set[str] = set()  # kills that Batsim has not told of
        self._coming: set[str] = set()  # registered, and not yet acknowledged
        self._told: dict[str, dict[str, Any]] = {}  # jobs as they were submitted, and their profiles
        self._profiles: dict[str, Any] = {}
        self._open = self._acknowledged = False

    def begin(self, event: Event, config: dict[str, Any], reply: Reply) -> None:
        """The simulation begins: say at once that no job will be registered, unless some may."""
        enabled = bool(config.get("dynamic-jobs-enabled"))
        if self.way == REQUEUE and not enabled:
            raise EscalaError("Batsim: --lost requeue registers jobs: start Batsim with --enable-dynamic-jobs")
        self._open, self._acknowledged = self.way == REQUEUE, bool(config.get("dynamic-jobs-acknowledged"))
        found = event.data.get("profiles")
        self._profiles = (
            {name: one for name, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}
        )
        if enabled and not self._open:
            reply.append(("NOTIFY", {"type": "registration_finished"}))

    def submitted(self, event: Event) -> None:
        """A job has come: what has to be known to register it anew."""
        name = event.has("job_id", str)
        self._coming.discard(name)
        if self._open:
            self._told[name] = {"job": event.data["job"], "profile": event.data.get("profile")}

    def hit(self, jobs: Iterable[Job], nodes: set[int], reply: Reply) -> None:
        """Nodes have become unavailable: the jobs that run there are to be killed."""
        names = [
            job.name
            for job in jobs
            if job.state == "running" and job.name not in self._asked and nodes & set(job.nodes)
        ]
        if self.way != STAY and names:
            self._asked.update(names)
            reply.append(("KILL_JOB", {"job_ids": names}))

    def ended(self, name: str, state: Any, reply: Reply) -> Event | None:
        """A job has ended: one that was to be killed, and was, is registered anew. Its submission, where Batsim will
        not tell of it."""
        told = self._told.pop(name, None)
        if name not in self._asked:
            return None
        self._asked.discard(name)
        if state != KILLED:  # it had ended before
            return None
        self.killed += 1
        return None if told is None else self._again(name, told, reply)

    def progress(self, event: Event) -> None:
        """Of jobs that were killed."""
        told = event.data.get("job_progress")
        found = (_done(one) for one in told.values()) if isinstance(told, dict) else ()
        self.done += [share for share in found if share is not None]

    def finish(self, alive: bool, reply: Reply) -> None:
        """No further job comes from elsewhere, and some are alive or none: then the simulation may end."""
        if self._open and not alive and not self._coming:
            self._open = False
            reply.append(("NOTIFY", {"type": "registration_finished"}))

    def _again(self, name: str, told: dict[str, Any], reply: Reply) -> Event | None:
        """Attempt n of job w0!a is job w0!a#n, with a copy of the profile, as Batsim gives up those that no job has any
        more."""
        first, _, attempt = name.partition(ATTEMPT)
        number = int(attempt) + 1 if attempt.isdecimal() else 1
        workload, job = first.partition(WORKLOAD)[0], told["job"]
        profile = told["profile"] or self._profiles.get(workload, {}).get(job.get("profile"))
        if not isinstance(profile, dict):
            raise EscalaError(
                f"Batsim: profile {quoted(job.get('profile'))} of job {quoted(name)} is not known, so that it cannot "
                "be registered anew: start Batsim with --forward-profiles-on-submission"
            )
        new, copy = (
            f"{first}{ATTEMPT}{number}",
            f"{str(job.get('profile')).partition(ATTEMPT)[0]}{ATTEMPT}{first}{ATTEMPT}{number}",
        )
        copy = copy.replace(WORKLOAD, "-")
        described = {key: value for key, value in job.items() if key != "subtime"} | {"id": new, "profile": copy}
        reply.append(("REGISTER_PROFILE", {"workload_name": workload, "profile_name": copy, "profile": profile}))
        reply.append(("REGISTER_JOB", {"job_id": new, "job": described}))
        self._profiles.setdefault(workload, {})[copy] = profile
        self.requeued += 1
        if self._acknowledged:
            self._coming.add(new)
            return None
        return Event(0.0, "JOB_SUBMITTED", {"job_id": new, "job": described, "profile": profile})


def _done(told: Any) -> float | None:
    """The share of a task that was done; None where Batsim tells of a sequence, whose length is not told with it."""
    share = told.get("progress") if isinstance(told, dict) else None
    return min(max(float(share), 0.0), 1.0) if isinstance(share, int | float) and not isinstance(share, bool) else None
