"""Every named scheduler with every shutdown policy on small worlds: schedules and joules. And policies of a user's
own."""

from __future__ import annotations

import functools
import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np

import escala
from tests.digests.digest import Digest

WORLDS = 40
SHORT = 8
"""Characters of a digest in these tables."""
SHUTDOWNS = (
    "never",
    "timeout:0",
    "timeout:2",
    "timeout:1+1",
    "proportional:0.5",
    "off-reservation:1",
    "hold:0.25",
    "hold:0.5:if-busy",
    "hold:1:2",
    "hold:0.5:if-busy:3",
    "arrivals-known",
    "oracle",
    "inertial",
    "random",
)
ROLLOUT = "rollout:4"


@functools.cache
def drawn() -> list[dict[str, Any]]:
    """Small worlds, drawn once and kept, so that no change of the fuzz test's worlds moves a digest."""
    return list(json.loads(Path(__file__).with_name("worlds.json").read_text()))


@functools.cache
def world(number: int) -> tuple[escala.Workload, escala.Platform, dict[str, Any]]:
    """Jobs, platform and options; every third world has jobs for single nodes. Any job can run beside a reserved
    node."""
    machine = drawn()[number]["platform"]
    profiles = tuple(escala.PowerProfile(name=f"p{k}", **profile) for k, profile in enumerate(machine["profiles"]))
    platform = escala.Platform(
        "world", machine["cores"], profiles, machine["profile_of"], resources=machine.get("resources", {})
    )
    return escala.Workload.from_jobs(drawn()[number]["jobs"]), platform, drawn()[number]["options"]


def scheduled(scheduler: Any, each: int = 2, shutdowns: tuple[str, ...] = SHUTDOWNS) -> dict[str, str]:
    """Shutdown policy -> digest of its runs with this scheduler, on `each` of the worlds, others for each pair."""
    out = {}
    for number, shutdown in enumerate(shutdowns):
        digest = Digest()
        first = 7 * number + sum(map(ord, str(scheduler)))
        for k in range(each):
            digest.take(ran(scheduler, shutdown, (first + 11 * k) % WORLDS))
        out[shutdown] = digest.text()[:SHORT]
    return out


def ran(scheduler: Any, shutdown: str, number: int) -> str:
    """One run; a refusal is what came out, too."""
    digest = Digest()
    workload, platform, how = world(number)
    try:
        digest.take_result(escala.simulate(workload, platform, scheduler=scheduler, shutdown=shutdown, **how))
    except escala.EscalaError:
        digest.take("refused")
    return digest.text()


RunningJob = namedtuple("RunningJob", ("row", "cores", "planned_end_s", "user", "walltime_s"))
QueuedJob = namedtuple(
    "QueuedJob", ("row", "cores", "walltime_s", "submit_s", "wait_s", "user", "single_node", "demand")
)
"""What the digests have of `escala.sealed.RunningJob` and `QueuedJob`."""


class Seeing:
    """A policy of a user's own that keeps a digest of all that a view shows, and tries every command."""

    def __init__(self, digest: Digest, role: str) -> None:
        self.digest, self.role, self.before_scheduler = digest, role, role == "shutdown"

    def decide(self, view: Any, act: Any) -> None:
        queue = view.queue
        self.digest.take(
            view.now_s,
            view.queue_length,
            repr([QueuedJob(*job[:8]) for job in queue]),
            repr([RunningJob(*job[:5]) for job in view.running]),
            view.node_states,
            view.node_cores,
        )
        self.digest.take(view.free_cores, view.free_now, view.free_any, view.idle_since_s)
        if self.role == "scheduler":
            done = [act.start(job) for job in sorted(queue, key=lambda job: (job.cores, job.row))]
            done += [act.start_on(job, 0) for job in view.queue if job.single_node]
            if view.queue:
                done.append(act.call_at(view.now_s + 7.0))
        else:
            idle = np.flatnonzero(~np.isnan(view.idle_since_s))
            done = [
                act.switch_off(int(idle[-1])) if len(idle) > 1 else act.wake(0),
                act.reserve_off(int(view.now_s) % 2),
            ]
            if view.queue_length and not view.running:
                done += [act.wake(node) for node, state in enumerate(view.node_states) if state == "off"]
        self.digest.take(np.array(done, bool))


def seen(role: str) -> str:
    """What a policy of one's own is shown, what its commands do, and the run's tables."""
    digest = Digest()
    for number in range(WORLDS):
        workload, platform, how = world(number)
        own = {role: Seeing(digest, role)}
        try:
            result = escala.simulate(
                workload, platform, **{"scheduler": "first-fit", "shutdown": "never"} | own, **how, decisions=True
            )
        except escala.EscalaError:
            digest.take("refused")
            continue
        digest.take_result(result)
        digest.take_table(result.decisions)
    return digest.text()
