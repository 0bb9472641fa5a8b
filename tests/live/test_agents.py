"""Trained agents asked from outside: the kept agents of the studies order what they do in a run inside, through JSON
and restarts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.agents import load_team
from escala.envs import multi
from escala.envs.shield import shielded
from escala.envs.slots import options as slots
from escala.envs.slots.policy import SlotPolicy
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot, rows
from escala.live.rows import Rows
from escala.live.state_file import write_state
from escala.policies import Rollout
from tests.live.machine import Wilful
from tests.live.twin import KINDS, case_of, differences, platform_of
from tests.oracle.worlds import Case, draw_platform

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
GRID_S = 40.0  # agents look at the clock once a minute
QUICK_JOBS, JOBS = 60, 300


def kept(study: str) -> list[str]:
    return sorted(str(path.relative_to(STUDIES)) for path in (STUDIES / study / "agents").iterdir())


def _twin(role: str, make: Callable[[], Any], beside: str, kind: str, jobs: int, restart_every: int = 10) -> list[str]:
    """Differences of a run with a policy in a role, and the other one beside it."""
    pair = {"scheduler": "easy", "shutdown": "timeout:0"} | {"shutdown" if role == "scheduler" else "scheduler": beside}
    case = case_of(pair["scheduler"], pair["shutdown"], kind, jobs, GRID_S)
    case.options[role] = make()
    return differences(case, restart_every, **{role: make})


@pytest.mark.parametrize("kind", ["one-core", "multi-core"])
def test_a_learnt_scheduler(kind: str) -> None:
    agent = escala.load_agent(STUDIES / "deepscheduler2020" / "agents" / "orion-0.95-0")
    assert _twin("scheduler", agent.policy, "timeout:90", kind, QUICK_JOBS) == []


@pytest.mark.parametrize(("kind", "name"), [("one-core", "graphite-1-0"), ("multi-core", "g5k-1-4")])
def test_a_learnt_shutdown_policy(kind: str, name: str) -> None:
    agent = escala.load_agent(STUDIES / "deepshutdown2020" / "agents" / name)
    assert _twin("shutdown", agent.policy, "saf", kind, QUICK_JOBS) == []


@pytest.mark.parametrize("kind", ["one-core", "multi-core"])
def test_rollout(kind: str) -> None:
    case = case_of("easy", "timeout:90", kind, 40, GRID_S)
    for k, job in enumerate(case.jobs):
        job["user"] = f"u{k % 3}"
    case.options["scheduler"] = Rollout(8)
    assert differences(case, scheduler=lambda: Rollout(8)) == []


def _shielded() -> Any:
    return shielded(escala.load_agent(STUDIES / "deepscheduler2020" / "agents" / "orion-0.95-0"), futures=16, seed=2)


@pytest.mark.parametrize("kind", ["one-core", "multi-core"])
def test_an_agent_behind_a_shield(kind: str) -> None:
    assert _twin("scheduler", _shielded, "timeout:90", kind, QUICK_JOBS) == []


def _moving(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Rows are given anew as often as can be; of each decision, whether they were after it."""
    moved = list[bool]()
    tidy = Rows.tidy

    def counted_tidy(self: Rows) -> None:
        before = self._carried.dropped
        tidy(self)
        moved.append(self._carried.dropped > before)

    monkeypatch.setattr(rows, "SLACK", 0)
    monkeypatch.setattr(Rows, "tidy", counted_tidy)
    return moved


def test_rows_may_be_given_anew_at_any_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as half of the rows are of jobs that are gone, the others move together: nothing else is decided."""
    moved = _moving(monkeypatch)
    case = case_of("easy", "timeout:90", "one-core", 40, GRID_S)
    agent = escala.load_agent(STUDIES / "deepscheduler2020" / "agents" / "orion-0.95-0")
    policies: list[Callable[[], Any]] = [lambda: Rollout(8), _shielded, lambda: _Keeping()]
    policies += [agent.policy] if agent.policy().remembers_rows else []
    for make in policies:
        moved.clear()
        case.options["scheduler"] = make()
        assert differences(case, scheduler=make) == []
        assert sum(moved) > 3


SLOTTED = ("grid2019/agents/published-100-0", "a2c2020/agents/open-all-0", "marl2024/agents/team-2x2-0")


@pytest.mark.parametrize("folder", [*SLOTTED, "shortest", "ends"])
def test_slotted_agents_count_all_jobs_where_rows_are_given_anew(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = _moving(monkeypatch)
    if folder not in SLOTTED:
        rule = SlotPolicy("hold-pile", queue=folder, slots=5)
        lists = slots.options_of({"lists": 8, "queue": folder, "slots": 5}).job_lists()
        case = _drawn(lists, 0, QUICK_JOBS)
        case.options["scheduler"] = rule
        assert differences(case, scheduler=lambda: SlotPolicy("hold-pile", queue=folder, slots=5)) == []
    else:
        policy = _loaded(folder)
        assert _slotted_twin(policy, _lists_of(policy), QUICK_JOBS, sampled=False) == []
    assert sum(moved) > 3


class _Keeping:
    """A plain object: first-fit, the jobs that were seen waiting longest first, known by their rows."""

    name = "keeping"

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.asked = 0

    def decide(self, view: escala.View, act: escala.Commands) -> None:
        queue = view.queue
        for job in queue:
            self.seen[job.row] = self.seen.get(job.row, 0) + 1
        for job in sorted(queue, key=lambda job: (-self.seen[job.row], job.row)):
            act.start(job)
        self.asked += 1

    def state(self) -> Any:
        return [[row, times] for row, times in self.seen.items()]

    def restore(self, state: Any) -> None:
        self.seen = dict(state)


class _Watching:
    """Starts every job that is not the first of all; notes under which row each was seen, by its submission."""

    name = "watching"

    def __init__(self) -> None:
        self.rows: dict[float, set[int]] = {}

    def decide(self, view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            self.rows.setdefault(job.submit_s, set()).add(job.row)
            assert job.submit_s == 0.0 or act.start(job)
        assert not act.start(10**6) and act.refusal


def test_a_long_day_of_a_plain_object_keeps_tables_and_state_small() -> None:
    """3 000 jobs, each seen twice, beside one that waits all day: every job has one row, as ever, and no table grows
    with those gone."""
    watching = _Watching()
    desk = Desk("4x1", watching)
    for k in range(1, 3001):
        if k % 700 == 0:
            told = json.loads(json.dumps(desk.told()))
            assert len(json.dumps(told)) < 30_000
            desk = Desk("4x1", watching)
            desk.take(told)
        jobs = {
            "job_id": ["0", str(k - 1), str(k)],
            "submit_s": [0.0, 60.0 * k - 60.0, 60.0 * k],
            "walltime_s": [600.0] * 3,
        }
        jobs |= {"cores": [4, 1, 1], "state": ["queued"] * 3}
        if k == 1:
            jobs = {name: values[1:] for name, values in jobs.items()}
        orders = desk.decide(Snapshot.of(60.0 * k, jobs, {"power": ["on"] * 4}))
        assert {start.job_id for start in orders.starts} == {str(k - 1), str(k)} - {"0"}
    assert [min(rows) for rows in watching.rows.values()] == list(range(3001)) and all(
        len(rows) == 1 for rows in watching.rows.values()
    )
    assert desk._tables.rows <= 1024 and len(desk._carried.rows) == 3


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", ["bounded-slowdown", "wait"])
def test_long_runs_of_rollout(kind: str, objective: str) -> None:
    case = case_of("easy", "timeout:90", kind, JOBS, GRID_S)
    for k, job in enumerate(case.jobs):
        job["user"] = f"u{k % 7}"
    case.options["scheduler"] = Rollout(8, objective=objective)
    assert differences(case, scheduler=lambda: Rollout(8, objective=objective)) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shutdown", ["never", "timeout:90", "hold:0.5"])
def test_long_runs_behind_a_shield(kind: str, shutdown: str) -> None:
    assert _twin("scheduler", _shielded, shutdown, kind, JOBS) == []


@pytest.mark.long
@pytest.mark.parametrize("folder", kept("deepscheduler2020"))
def test_every_learnt_scheduler(folder: str) -> None:
    agent = escala.load_agent(STUDIES / folder)
    for kind in KINDS:
        for shutdown in ("never", "timeout:90"):
            assert _twin("scheduler", agent.policy, shutdown, kind, JOBS) == [], (kind, shutdown)


@pytest.mark.long
@pytest.mark.parametrize("folder", kept("deepshutdown2020"))
def test_every_learnt_shutdown_policy(folder: str) -> None:
    agent = escala.load_agent(STUDIES / folder)
    for kind in KINDS:
        for scheduler in ("saf", "easy"):
            assert _twin("shutdown", agent.policy, scheduler, kind, JOBS) == [], (kind, scheduler)


def _drawn(lists: Any, number: int, jobs: int) -> Case:
    """A job list that a slotted world draws, on its own machine."""
    workload, machine = lists.workload(number), lists.platform
    profile = draw_platform(random.Random(number), 1.0, False, 1)["profiles"][0]
    platform = {"cores": machine.cores.tolist(), "profiles": [profile], "profile_of": [0] * machine.n_nodes}
    platform["resources"] = {kind: values.tolist() for kind, values in machine.resources.items()}
    columns = ("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "load", "single_node")
    demands = [f"demand_{kind}" for kind in machine.resources]
    return Case(platform, workload.jobs.select(*columns, *demands).head(jobs).to_dicts(), {"shutdown": "never"})


def _slotted_twin(agent: Any, lists: Any, jobs: int, **how: Any) -> list[str]:
    case = _drawn(lists, 0, jobs)
    case.options["scheduler"] = agent.policy(**how)
    return differences(case, scheduler=lambda: agent.policy(**how))


def _loaded(folder: str) -> Any:
    return (load_team if "marl2024" in folder else escala.load_agent)(STUDIES / folder)


def _lists_of(policy: Any) -> Any:
    if hasattr(policy, "env_options"):
        return slots.options_of(policy.env_options | {"lists": 8}).job_lists()
    return multi.job_lists(**policy.options | {"lists": 1, "load": 1.1})


@pytest.mark.parametrize("folder", [*SLOTTED, "marl2024/agents/nothing-shared-50-3x1-1"])
def test_slotted_agents_and_teams(folder: str) -> None:
    policy = _loaded(folder)
    for sampled in (True, False):
        assert _slotted_twin(policy, _lists_of(policy), QUICK_JOBS, sampled=sampled) == [], sampled


@pytest.mark.long
@pytest.mark.parametrize("folder", [*kept("grid2019"), *kept("a2c2020"), *kept("marl2024")])
def test_every_slotted_agent_and_team(folder: str) -> None:
    """Those that know what no machine tells are refused, for that reason."""
    policy = _loaded(folder)
    lists = _lists_of(policy)
    options = policy.env_options if hasattr(policy, "env_options") else policy.options
    if options.get("arrivals_end", 0) or options.get("placement") == "reserve":
        with pytest.raises(
            EscalaError, match="when the last job comes" if options.get("arrivals_end") else "reservations that it gave"
        ):
            Desk(lists.platform, policy.policy())
        return
    for sampled in (True, False):
        assert _slotted_twin(policy, lists, JOBS, sampled=sampled) == [], sampled


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SlotPolicy("sjf", arrivals_end=50), "to know when the last job comes (arrivals_end=50)"),
        (lambda: SlotPolicy("sjf", placement="reserve"), "goes by reservations that it gave before"),
        (lambda: SlotPolicy("sjf", observation="image"), "sees a picture of where it placed jobs"),
        (lambda: SlotPolicy("easy"), "take the scheduler 'easy'"),
    ],
)
def test_agents_that_cannot_be_asked(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(EscalaError, match=re.escape(words)):
        Desk("10x1", make())


def test_a_team_takes_whole_jobs_alone() -> None:
    team = _loaded("marl2024/agents/team-2x1-0")
    desk = Desk(_lists_of(team).platform, team.policy())
    desk.warm()
    jobs = {"job_id": ["a"], "submit_s": [0.0], "walltime_s": [9.0], "cores": [2], "state": ["queued"]}
    with pytest.raises(EscalaError, match="the workload needs single_node for all of them"):
        desk.decide(Snapshot.of(0.0, jobs, {"power": ["on"] * 2}))


class Pressing(Desk):
    """Asks again soon, whatever becomes of its orders."""

    def decide(self, snapshot: Snapshot) -> Orders:
        orders = super().decide(snapshot)
        soon = orders.now_s + GRID_S
        return replace(orders, next_s=soon if orders.next_s is None else min(soon, orders.next_s))


WILFUL = ("deepscheduler2020/agents/orion-0.95-0", "deepshutdown2020/agents/g5k-1-4", "grid2019/agents/open-all-1")


@pytest.mark.parametrize("folder", WILFUL)
def test_a_machine_that_does_as_it_likes(folder: str, tmp_path: Path) -> None:
    """Every job ends or is cancelled, and no order is one that cannot be carried out."""
    agent = escala.load_agent(STUDIES / folder)
    role = "shutdown" if "shutdown" in folder else "scheduler"
    pair = {"scheduler": "saf", "shutdown": "never" if "grid2019" in folder else "timeout:0"}
    case = case_of(pair["scheduler"], pair["shutdown"], "one-core", QUICK_JOBS, GRID_S)
    if "grid2019" in folder:
        case = _drawn(_lists_of(agent), 0, QUICK_JOBS)
    machine = Wilful(case.platform, case.jobs)
    machine.run(lambda: Pressing(platform_of(case), **{**pair, role: agent.policy()}), tmp_path / "state.json")
    assert not machine.alive and sum(job.finish is not None for job in machine.jobs) > len(machine.jobs) / 3


@pytest.mark.parametrize("role", ["scheduler", "shutdown"])
def test_tables_do_not_grow_with_the_jobs_that_have_gone(role: str) -> None:
    name = {"scheduler": "deepscheduler2020/agents/orion-0.95-0", "shutdown": "deepshutdown2020/agents/orion-1-0"}[role]
    desk = Desk(escala.read_platform("2x1:taurus"), **{role: escala.load_agent(STUDIES / name)})
    users = [f"u{k}" for k in range(700)]
    for k, user in enumerate(users):
        jobs = {
            "job_id": [str(k)],
            "submit_s": [60.0 * k],
            "walltime_s": [60.0],
            "cores": [1],
            "state": ["queued"],
            "user": [user],
        }
        ended = {"job_id": [str(k - 1)], "start_s": [60.0 * k - 30.0], "end_s": [60.0 * k]} if k else {}
        desk.decide(Snapshot.of(60.0 * k, jobs, {"power": ["on"] * 2}, ended=ended))
    assert desk._tables.rows <= 1024 and len(desk._carried.runs) == 1
    if role == "scheduler":
        told = desk.told()["states"]["scheduler"]["users"]
        assert [(one[0], one[2]) for one in told] == [(k, 0.5) for k in range(699)]


def test_a_damaged_memory_is_refused(tmp_path: Path) -> None:
    agent = escala.load_agent(STUDIES / "deepscheduler2020" / "agents" / "orion-0.95-0")
    path = tmp_path / "state.json"

    def desk() -> Desk:
        return Desk(escala.read_platform("2x1:taurus"), agent.policy())

    first = desk()
    first.save(path)
    desk().restore(path)
    jobs = {"job_id": ["a"], "submit_s": [0.0], "walltime_s": [60.0], "cores": [1], "state": ["queued"], "user": ["u"]}
    first.decide(Snapshot.of(0.0, jobs, {"power": ["on"] * 2}))
    first.save(path)
    desk().restore(path)
    whole = json.loads(path.read_text())
    for name, value in (("memory", []), ("history", [[1.0]]), ("users", [[0, 3, 0.5, []]]), ("random", {"state": 5})):
        told = json.loads(json.dumps(whole))
        del told["sha256"]
        told["states"]["scheduler"][name] = value
        write_state(path, "", told)
        with pytest.raises(EscalaError, match=r"state.json: .*its state is none of its own"):
            desk().restore(path)
