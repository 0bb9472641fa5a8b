"""What a desk orders is what the run inside the kernel does: starts, nodes, states of nodes and joules, through JSON
and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from escala.policies.schedulers import SCHEDULERS
from tests.live import fuzz
from tests.live.machine import Crowded
from tests.live.twin import ASKED, KINDS, case_of, differences

SHUTDOWNS = (
    "never",
    "timeout:0",
    "timeout:3",
    "timeout:1+2",
    "proportional:0.5",
    "off-reservation:1",
    "hold:0.5",
    "hold:0.5:if-busy",
    "hold:1:2",
    "inertial",
)
NAMES = tuple(name for name in SCHEDULERS if name != "random")
QUICK_JOBS, JOBS = 60, 300


def test_random_worlds() -> None:
    asked, found = fuzz.check(seed=1, first=0, worlds=60)
    assert not found and asked > 45


def test_tables_that_grow_while_a_snapshot_is_loaded() -> None:
    """A linear score counts what a job's length adds to it once."""
    assert fuzz.check(seed=5, first=72, worlds=1) == (1, [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scheduler", ["fcfs", "easy", "easy-fast", "saf", "unicep-fit", "easy++", "conservative", "easy:queue=wfp3:guard=9"]
)
def test_named_schedulers(scheduler: str, kind: str) -> None:
    assert differences(case_of(scheduler, "timeout:3", kind, QUICK_JOBS)) == []


@pytest.mark.parametrize("shutdown", SHUTDOWNS)
def test_shutdown_policies(shutdown: str) -> None:
    assert differences(case_of("easy", shutdown, "multi-core", QUICK_JOBS)) == []


@pytest.mark.parametrize("scheduler", ["fcfs", "easy-fast", "easy++", "conservative", "wfp3-fit"])
def test_jobs_that_fit_nowhere_are_as_if_they_were_not_there(scheduler: str) -> None:
    assert differences(case_of(scheduler, "timeout:3", "multi-core", QUICK_JOBS), kind=Crowded) == []


def test_jobs_that_fit_nowhere_in_random_worlds() -> None:
    asked, found = fuzz.check(seed=2, first=0, worlds=40, kind=Crowded)
    assert not found and asked > 30


def test_random_draws_go_on_after_a_restart() -> None:
    case = case_of("easy", "random", "one-core", QUICK_JOBS, seed=3)
    case.jobs[:] = [{**job, "cores": 1} for job in case.jobs]
    assert differences(case, restart_every=3) == []


def test_tuned_policies(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('format = 1\nformula = "easy:queue=saf:backfill=sjf"\nguard = "20s"\n')
    assert differences(case_of(f"policy:{tmp_path}", "hold:0.5", "multi-core", QUICK_JOBS)) == []


class Remembering:
    """Starts what fits, but no job twice in a row for one user; it remembers rows and users."""

    name = "remembering"

    def __init__(self) -> None:
        self.last = -2
        self.seen: list[int] = []

    def decide(self, view: Any, act: Any) -> None:
        for job in view.queue:
            if job.row in self.seen[-5:] or (job.user == self.last and job.wait_s < 3.0):
                continue
            if act.start(job):
                self.last = job.user
                self.seen.append(job.row)
        if view.queue:
            act.call_at(view.now_s + 1.5)

    def state(self) -> Any:
        return [self.last, self.seen]

    def restore(self, state: Any) -> None:
        self.last, self.seen = state


class Naming:
    """Starts jobs on the last nodes that are free, and none on a node that a job of its user holds."""

    name = "naming"

    def decide(self, view: Any, act: Any) -> None:
        for job in view.queue:
            theirs = [one.nodes for one in view.running if one.user == job.user and one.start_s is not None]
            taken = (
                {n for nodes in theirs for low, high, _ in nodes for n in range(low, high + 1)}
                if view.now_s % 2
                else set()
            )
            free, found = view.free_cores, []
            on = [n for n, state in enumerate(view.node_states) if state == "on" and free[n] > 0 and n not in taken]
            while on and free[found].sum() < job.cores:
                found.append(on.pop())
            if free[found].sum() >= job.cores:
                assert act.start_on(job, found)
        if view.queue:
            act.call_at(view.now_s + 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_name_nodes(kind: str) -> None:
    case = case_of("easy", "never", kind, QUICK_JOBS)
    case.options["scheduler"] = Naming()
    assert differences(case, scheduler=Naming) == []


@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_remember(kind: str) -> None:
    case = case_of("easy", "timeout:2", kind, QUICK_JOBS)
    for k, job in enumerate(case.jobs):
        job["user"] = "ab"[k % 2] if k > 1 else "ab"[k]
    case.options["scheduler"] = Remembering()
    assert differences(case, scheduler=Remembering) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "formula",
    ["easy:queue=saf:backfill=sjf", "easy:queue=wfp3", "conservative:queue=sjf", "easy:queue=f1:estimate=last2"],
)
def test_long_runs_of_tuned_policies(formula: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(f'format = 1\nformula = "{formula}"\nguard = "20s"\n')
    options = {"rebuild": True} if formula.startswith("conservative") else {}
    for shutdown in ("never", "timeout:3", "hold:0.5"):
        assert differences(case_of(f"policy:{tmp_path}", shutdown, kind, JOBS, **options)) == [], shutdown


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheduler", [*NAMES, *(name for name in ASKED if name not in NAMES)])
def test_every_pair(scheduler: str, kind: str) -> None:
    for shutdown in SHUTDOWNS:
        assert differences(case_of(scheduler, shutdown, kind, JOBS)) == [], shutdown
