"""A policy sees what a scheduler may know, in copies; what it orders is checked; what never ends is told; results are
those of the log."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import escala
from escala import sealed
from escala.errors import EscalaError
from escala.platform import Platform, Site
from escala.policies import run
from escala.policy import insider
from escala.simulation import Simulation
from escala.workload import Workload
from tests.attacks import coming, future, pretending


@pytest.mark.parametrize("kind", future.KINDS)
def test_no_attribute_leads_to_the_simulation(kind: str) -> None:
    (found,) = future.walks(5, (kind,))
    assert found["ways"] == [] and 300 < found["objects"] < future.MOST


@pytest.mark.parametrize(
    "lead",
    [
        lambda simulation: simulation,
        lambda simulation: functools.lru_cache(maxsize=0)(lambda: simulation),
        lambda simulation: simulation.world.run["start"][0],
        lambda simulation: simulation.command,
        lambda simulation: {"jobs": [simulation.workloads[0].jobs]},
        lambda simulation: 2029.233,
    ],
)
def test_the_walk_finds_what_leads_there(lead: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view with a hole: the attack must be able to fail."""

    class Leaky(escala.View):
        def __init__(self, simulation: Simulation, i: int, budget: sealed.Budget) -> None:
            super().__init__(simulation, i, budget)
            self.extra = lead(simulation)

    monkeypatch.setattr(run, "View", Leaky)
    assert future.walks(5, ("scheduler",))[0]["ways"]


def test_sealed_functions_show_nothing_and_work() -> None:
    secret = [1, 2, 3]
    shut = sealed.sealed(lambda k: secret[k])
    assert shut(1) == 2 and vars(shut) == {}
    assert not any(getattr(shut, name, None) is secret for name in dir(shut))


@pytest.mark.parametrize(
    "attack",
    [
        future.writes,
        future.commands,
        future.endless,
        future.falsified,
        pretending.masks,
        pretending.names,
        pretending.namesakes,
        pretending.borrowed,
        pretending.memories,
        coming.coming,
    ],
)
def test_what_was_found_once_holds(attack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "MOST_COMMANDS", 20_000)  # quicker
    monkeypatch.setattr(sealed, "MOST_QUESTIONS", 20_000)
    monkeypatch.setattr(run, "PATIENCE", 2_000)
    assert [entry for entry in attack() if entry["ways"]] == []


def test_odd_arguments_are_refused_with_the_reason() -> None:
    told: list[tuple[bool, str]] = []

    def odd(view: escala.View, act: escala.Commands) -> None:
        if not told:
            told.extend((act.start(value), act.refusal) for value in (1.5, None, True, 2**70, 99))  # type: ignore[arg-type]
            for value in (None, "soon", "1e3", b"5", [], 1e13):
                with pytest.raises(EscalaError, match=r"^call_at\(.*give a time in seconds"):
                    act.call_at(value)  # type: ignore[arg-type]
            assert act.start(np.int32(0))  # a row by another whole type
        pretending.first_come(view, act)

    table = future.play("timers and a log of commands", odd).decisions
    assert [done for done, _ in told] == [False] * 5
    assert [why for _, why in told] == ["that is no whole number, so no job and no node"] * 4 + [
        "there is no such job or node"
    ]
    assert table is not None and table["refusal"].to_list()[:5] == [why for _, why in told]


def test_honest_policies_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waiting job tried on each node, ten times over, after a look at all that a view shows; all of the queue
    again after each start; a decision each second through a long silence."""
    monkeypatch.setattr(sealed, "MOST_COMMANDS", 4)
    monkeypatch.setattr(sealed, "MOST_QUESTIONS", 20)
    questions = [name for name in dir(escala.View) if isinstance(getattr(escala.View, name), property)]
    assert len(questions) == 15
    monkeypatch.setattr(run, "PATIENCE", 100)
    monkeypatch.setattr(run, "SHORTEST_S", 1.0)  # as with the true limits: every 10 ms

    def thorough(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            for _ in range(10):
                for node in range(2):
                    act.start_on(job, node)
        for job in view.queue:
            for _ in range(2):
                assert [getattr(view, name) for _ in range(2) for name in questions]
                assert len(view.room_for(job)) == 2
            if act.start(job):
                for other in view.queue:
                    assert [getattr(view, name) for _ in range(2) for name in questions] and other.row > job.row
        if view.running or view.queue_length:
            act.call_at(view.now_s + 3.0)  # a thousand times and more in a row

    assert future.play("scheduler", thorough).jobs["state"].to_list() == ["COMPLETED"] * 4


def test_numbers_grow_as_jobs_come() -> None:
    """Sets of nodes and users by their first jobs, kinds by the platform."""
    plain = Platform.uniform(3, 4, power=None, resources={"memory": 100})
    site = Site(
        "three", plain.cores, plain.profiles, plain.profile_of, names=("n0", "n1", "n2"),
        features=(("x",), ("x", "y"), ()), resources=plain.resources,
    )  # fmt: skip
    wanted = {"features": ["y", "x", None, "y"], "memory_mb_per_node": [None, 10, None, None]}
    jobs = Workload.from_jobs(
        {"submit_s": [0.0, 10.0, 20.0, 20.0], "runtime_s": [60.0] * 4, "cores": [1] * 4, "user": ["d", "b", "d", "a"]}
        | wanted
    )
    seen = []

    def look(view: escala.View, act: escala.Commands) -> None:
        if view.queue:
            told = [(job.user, job.node_set, job.demand) for job in view.queue]
            seen.append((view.node_sets.sum(axis=1).tolist(), told, view.kinds, view.free_kinds.tolist()))
        pretending.first_come(view, act)

    escala.simulate(jobs, site, look)
    full = [[100]] * 3
    assert seen == [
        ([3, 1], [(0, 1, (0,))], ("memory",), full),
        ([3, 1, 2], [(1, 2, (10,))], ("memory",), full),
        ([3, 1, 2], [(0, 0, (0,)), (2, 1, (0,))], ("memory",), [[90], [100], [100]]),
    ]


def test_policies_from_elsewhere_are_no_insiders() -> None:
    with pytest.raises(EscalaError, match="no policy of Escala's own"):
        insider(type("Mine", (), {"__module__": "mine"}))


def test_insiders_decide_in_simulate_alone() -> None:
    from escala.envs.slots.policy import SlotPolicy

    inner = SlotPolicy("sjf")
    with pytest.raises(EscalaError, match="give it to simulate itself"):
        escala.simulate(
            Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [2]}),
            "1x4",
            lambda v, a: inner.decide(v, a),
        )


@pytest.mark.parametrize("period", [float("nan"), float("inf"), -1.0, 1e-9, "10", True, 1e300])
def test_a_period_that_is_no_time_is_refused(period: Any) -> None:
    class Power:
        before_scheduler = True
        period_s = period

        def decide(self, view: escala.View, act: escala.Commands) -> None: ...

    with pytest.raises(EscalaError, match="period_s is"):
        escala.simulate(pretending.JOBS, "2x2:grid5000", "easy", Power())
