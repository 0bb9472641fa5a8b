"""Partition, account, QOS, priority and nice value of waiting jobs, as a policy sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala import Workload
from escala.live import Desk, SiteDesk, Snapshot
from escala.naming import NAMES, UNNAMED
from escala.platform.site import Partition, Site

TIMES = {"submit_s": [0.0, 0.0, 0.0, 5.0], "runtime_s": [10.0] * 4, "walltime_s": [20.0] * 4}
NAMED: dict[str, list[Any]] = {
    "partition": ["gpu", None, "cpu", "gpu"],
    "queue": ["q", "slow", None, None],
    "account": ["physics", "bio", None, "art"],
    "qos": ["high", None, "low", "rare"],
    "priority": [None, 7, None, 9],
    "nice": [5, None, None, None],
}
CORES = [99, 1, 2, 3]  # by which a job is known below; the first can never run


class Looks:
    """First come, first served, which writes down the names that it sees, by the cores of the job."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, dict[int, tuple[Any, ...]]]] = []

    def decide(self, view: escala.View, act: escala.Commands) -> None:
        names = {job.cores: tuple(getattr(job, name) for name in NAMES) for job in view.queue}
        self.seen.append((view.now_s, names))
        for job in view.queue:
            if not act.start(job):
                return


def looked(platform: Any = "1x3", **columns: list[Any]) -> list[tuple[float, dict[int, tuple[Any, ...]]]]:
    policy = Looks()
    log = Workload.from_jobs({**TIMES, "cores": CORES, **columns})
    escala.simulate(log, platform, policy, oversized="drop")
    return policy.seen


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_a_policy_sees_what_the_log_says_of_waiting_jobs() -> None:
    """Rows of the kernel are others than those of the log: a job is left out, and one begins later."""
    found = looked(**NAMED, begin_s=[None, 3.0, None, None])
    assert found[0] == (0.0, {2: ("cpu", None, "low", None, 0)})
    late = next(names for now, names in found if now == 3.0)
    assert late[1] == ("slow", "bio", None, 7, 0)
    assert next(names for now, names in found if now == 5.0)[3] == ("gpu", "art", "rare", 9, 0)


def test_what_no_log_says_is_unknown() -> None:
    assert UNNAMED == (None, None, None, None, 0)
    assert all(one == UNNAMED for _, names in looked() for one in names.values())
    assert looked(queue=["a", "b", "c", None])[0][1][2] == ("c", None, None, None, 0)


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_jobs_that_ask_for_nodes_have_names_too() -> None:
    found = looked("2x3", **NAMED, nodes=[None, 1, 2, 1])
    assert found[0][1][2] == ("cpu", None, "low", None, 0) and found[0][1][1] == ("slow", "bio", None, 7, 0)


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_nothing_tells_the_names_of_those_who_are_to_come() -> None:
    """Until they are there, all is as in a log that names them otherwise, or not at all."""
    before = [one for one in looked(**NAMED) if one[0] < 5.0]
    for other in ("aaa", "zzz", None):
        changed = {name: [*values[:3], other if isinstance(values[3], str) else None] for name, values in NAMED.items()}
        assert [one for one in looked(**changed) if one[0] < 5.0] == before


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_a_predictor_sees_them() -> None:
    asked = list[tuple[int, str | None]]()

    class Half:
        def estimate(self, view: Any, job: Any) -> float:
            asked.append((job.cores, job.account))
            return float(job.walltime_s) / 2

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    log = Workload.from_jobs({**TIMES, "cores": CORES, **NAMED})
    escala.simulate(log, "1x3", "easy", oversized="drop", estimate=Half())
    assert asked == [(1, "bio"), (2, None), (3, "art")]


def _snapshot(now_s: float, **more: list[Any]) -> Snapshot:
    jobs = {"job_id": ["1", "2"], "submit_s": [0.0, 1.0], "walltime_s": [9.0, 9.0], "cores": [1, 2]}
    nodes: dict[str, list[Any]] = {"power": ["on", "on"], "idle_since_s": [0.0, 0.0]}
    return Snapshot.from_json(Snapshot.of(now_s, {**jobs, "state": ["queued"] * 2, **more}, nodes).to_json())


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_a_desk_shows_what_the_snapshot_says() -> None:
    policy = Looks()
    desk = Desk("2x1", policy)
    desk.decide(_snapshot(2.0))
    assert policy.seen.pop()[1] == {1: UNNAMED, 2: UNNAMED}
    desk.decide(_snapshot(3.0, account=["art", None], qos=[None, "low"], priority=[3, None], nice=[None, 4]))
    assert policy.seen.pop()[1] == {1: (None, "art", None, 3, 0), 2: (None, None, "low", None, 4)}


def test_a_desk_of_a_partition_shows_its_name() -> None:
    """Each partition has a copy of the policy; all write into one list."""
    found = list[tuple[int, str | None]]()

    class Notes:
        def decide(self, view: escala.View, act: escala.Commands) -> None:
            found.extend((job.cores, job.partition) for job in view.queue)

    parts = (Partition("a", (0,), default=True), Partition("b", (1,)))
    SiteDesk(Site("two", *_cells(), partitions=parts), Notes()).decide(_snapshot(2.0, partition=["b", None]))
    assert sorted(found) == [(1, "b"), (2, "a")]


@pytest.mark.filterwarnings("ignore:what jobs ask for by")
def test_jobs_that_hold_other_shares_of_their_nodes_take_nobodys_name() -> None:
    """Such a job counts as one for each node, behind the others."""
    policy = Looks()
    jobs = {
        "job_id": ["1", "2"], "submit_s": [0.0, 1.0], "walltime_s": [9.0, 9.0], "cores": [3, 1],
        "state": ["running", "queued"], "start_s": [1.0, None], "nodes": [2, None], "account": ["art", "bio"],
    }  # fmt: skip
    nodes = {"power": ["on", "on"], "idle_since_s": [None, None]}
    placed = {"job": [0, 0], "first": [0, 1], "last": [0, 1], "cores": [2, 1], "memory_mb": [10, 9]}
    site = Site("two", *_cells(), resources={"memory": np.array([20, 20])})
    Desk(site, policy).decide(Snapshot.of(2.0, jobs, nodes, placed))
    assert policy.seen[-1][1] == {1: (None, "bio", None, None, 0)}


def _cells() -> tuple[Any, ...]:
    plain = escala.read_platform("2x2")
    return plain.cores, plain.profiles, plain.profile_of
