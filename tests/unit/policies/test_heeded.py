"""Options that change nothing: a run with one is the run without it, on small random worlds."""

from __future__ import annotations

from typing import Any

import pytest

import escala
from escala.options import Options
from escala.policies import SCHEDULERS
from escala.policies.heeded import SOME, heeded, unheeded
from tests.digests.schedules import SHUTDOWNS, WORLDS, drawn, world

QUEUES = (
    "easy:queue=saf:backfill=sjf:guard=5",
    "easy:queue=wfp3",
    "easy:queue=escala",
    "conservative:queue=sjf",
    "sjf:guard=5",
    "sjf-fit:estimate=last2",
    "saf:order_estimate=runtime",
    "fcfs:estimate=last2",
)
OTHERS: dict[str, tuple[Any, ...]] = {
    "head": ("latest-released",),
    "depth": (1,),
    "rebuild": (True,),
    "plan_margin_s": (4.0,),
    "estimate": ("runtime", "last2"),
    "order_estimate": ("runtime", "last2"),
    "corrections_s": ((1.0,),),
}
"""Another value than the default of each option that may change nothing."""


def _tables(scheduler: str, shutdown: str, number: int, **options: Any) -> list[Any]:
    """What comes out of a run; a refusal, too."""
    _, machine, how = world(number)
    told = drawn()[number]["jobs"]
    users = [("ada", "ben")[k % 2] for k in range(len(told["cores"]))]
    jobs = escala.Workload.from_jobs({**told, "user": users})
    try:
        found = escala.simulate(jobs, machine, scheduler, shutdown, **{**how, **options})
    except escala.EscalaError:
        return ["refused"]
    seen = [
        name for name in found.jobs.columns if name.startswith("estimate")
    ]  # what was expected, beside the schedule
    return [found.jobs.drop(seen).rows(), found.nodes.rows()]


SLOW = pytest.mark.slow
ROLLOUTS = ("rollout:2", pytest.param("rollout:2:base=hold-back:1+easy", marks=SLOW))


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, *QUEUES, *ROLLOUTS])
def test_what_changes_nothing_changes_nothing(scheduler: str) -> None:
    """On three worlds where nodes stay on, and with two shutdown policies, others for each scheduler. With two
    estimates, since corrections count beside some of them only."""
    assert set(OTHERS) == SOME
    first = sum(map(ord, scheduler))
    numbers = [(first + 11 * k) % WORLDS for k in range(5)]
    others = [SHUTDOWNS[1 + (first + 5 * k) % (len(SHUTDOWNS) - 1)] for k in range(2)]
    tried = set()
    for shutdown, number in zip(["never"] * 3 + others, numbers, strict=True):
        for estimate in ("walltime", "last2"):
            plain = _tables(scheduler, shutdown, number, estimate=estimate)
            for name in unheeded(scheduler, shutdown, Options(estimate=estimate)):
                for value in OTHERS[name]:
                    given = {"estimate": estimate, name: value}
                    assert _tables(scheduler, shutdown, number, **given) == plain, (shutdown, given, number)
                    tried.add(name)
    assert tried


@pytest.mark.parametrize(
    ("scheduler", "shutdown", "name"),
    [
        ("easy", "never", "head"),
        ("conservative", "never", "depth"),
        ("conservative", "never", "rebuild"),
        ("conservative", "never", "plan_margin_s"),
        ("fcfs", "hold:0.5", "estimate"),
        ("sjf", "never", "order_estimate"),
        ("conservative:estimate=last2", "never", "corrections_s"),
    ],
)
def test_what_is_heeded_changes_a_run(scheduler: str, shutdown: str, name: str) -> None:
    assert name in heeded(scheduler, shutdown)
    assert any(
        _tables(scheduler, shutdown, number) != _tables(scheduler, shutdown, number, **{name: value})
        for number in range(WORLDS)
        for value in OTHERS[name]
    )


@pytest.mark.parametrize("name", ["agent:x", "shield:0.5:agent:x", "policy:x", "plugin:x"])
def test_what_lies_in_folders_and_packages_keeps_every_option(name: str) -> None:
    assert unheeded(name, "never", Options()) == unheeded("fcfs", name, Options()) == frozenset()


def test_slurms_rules_heed_none_of_them() -> None:
    assert unheeded("slurm:bf_interval=60", "never", Options()) == SOME
