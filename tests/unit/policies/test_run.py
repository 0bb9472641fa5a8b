"""Running policies from outside: what they see, what they order, how they are named, and what becomes of those that
never end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload

LARGE = Workload.from_jobs({"submit_s": [0.0, 10.0], "runtime_s": [600.0, 600.0], "cores": [4, 4]})
TWO_NODES = Workload.from_jobs({"submit_s": [0.0, 0.0, 70.0], "runtime_s": [50.0, 60.0, 5.0], "cores": [1, 1, 1]})


def greedy(view: escala.View, act: escala.Commands) -> None:
    for job in view.queue:
        act.start(job)


def idle(view: escala.View, act: escala.Commands) -> None:
    pass


class Sleeper:
    def decide(self, view: escala.View, act: escala.Commands) -> None:
        act.call_at(view.now_s + 60.0)


def test_inertial_serves_a_job_as_large_as_the_machine() -> None:
    """The backlog stands still while the first job runs: it must not keep all nodes off for ever."""
    assert escala.simulate(LARGE, "4x1:grid5000", "easy", "inertial").jobs["state"].to_list() == ["COMPLETED"] * 2


@pytest.mark.parametrize("scheduler", [form for form in escala.policies.SCHEDULERS if ":" not in form])
def test_a_lone_job_starts_when_its_nodes_are_released(scheduler: str) -> None:
    """No new job comes: the release alone has to be noticed."""

    def release(view: escala.View, act: escala.Commands) -> None:
        act.reserve_off(4 if view.now_s < 60.0 else 0)
        act.call_at(60.0)

    alone = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [10.0], "cores": [3]})
    done = escala.simulate(alone, "4x1:grid5000", scheduler, release, start_off=True)
    assert done.jobs["state"].to_list() == ["COMPLETED"]


@pytest.mark.parametrize(
    ("scheduler", "shutdown", "why"),
    [
        (Sleeper(), "never", "starts nothing"),
        (idle, "never", "starts nothing"),
        ("easy", "off-reservation:99", "4 of 4 nodes off"),
        ("conservative", "off-reservation:99", "4 of 4 nodes off"),
    ],
)
def test_a_policy_that_never_ends_is_told_apart(scheduler: Any, shutdown: str, why: str) -> None:
    with pytest.raises(EscalaError, match=f"2 jobs wait .*{why}"):
        escala.simulate(LARGE, "4x1:grid5000", scheduler, shutdown)


def test_waiting_long_on_purpose_is_no_fault() -> None:
    """A policy that is asked every second while a job runs, and that starts the other one late, ends well."""

    def late(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            if job.wait_s >= 30_000 or job.row == 0:
                act.start(job)
        act.call_at(view.now_s + 2.0)

    jobs = escala.simulate(
        Workload.from_jobs({"submit_s": [0.0, 0.0], "runtime_s": [9.0, 9.0], "cores": [4, 4]}), "4x1", late
    ).jobs
    assert jobs["start_s"].to_list() == [0.0, 30_000.0]


def test_policies_are_known_by_their_own_names() -> None:
    assert list(escala.compare(TWO_NODES, "2x1", [greedy, "easy"]).results) == ["greedy + never", "easy + never"]
    assert escala.simulate(TWO_NODES, "2x1", greedy).manifest["scheduler"] == "greedy"
    with pytest.raises(EscalaError, match=r"called 'greedy [+] never'.*name of its own"):
        escala.compare(TWO_NODES, "2x1", [greedy, greedy])


@pytest.mark.parametrize("shutdown", ["never", "timeout:1000"])
def test_view_tells_since_when_nodes_idle(shutdown: str) -> None:
    seen: dict[float, list[float]] = {}

    def look(view: escala.View, act: escala.Commands) -> None:
        greedy(view, act)
        seen[view.now_s] = view.idle_since_s.tolist()
        assert view.free_any == int(view.free_cores.sum())

    escala.simulate(TWO_NODES, "2x1:grid5000", look, shutdown)
    assert np.isnan(seen[0.0]).all()
    assert seen[50.0][0] == 50.0 and np.isnan(seen[50.0][1])
    assert seen[60.0] == [50.0, 60.0]
    assert np.isnan(seen[70.0][0]) and seen[70.0][1] == 60.0


def test_a_single_node_job_is_started_on_the_node_named() -> None:
    def last_node(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            assert act.start_on(job, 2)

    jobs = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [2], "single_node": [True]})
    assert escala.simulate(jobs, "3x4", last_node).jobs["nodes"].to_list() == ["2"]


THREE = {"submit_s": [0.0, 0.0, 5.0], "runtime_s": [50.0, 20.0, 9.0], "cores": [3, 2, 6], "job_id": ["a", "b", "c"]}


def test_jobs_are_started_on_the_nodes_named_in_their_order() -> None:
    seen = {}

    def named(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            nodes = {0: [2, 0], 1: np.array([1]), 2: (1, 2, 0)}[job.row]
            if view.free_cores[list(nodes)].sum() >= job.cores:
                assert act.start_on(job, nodes)
        seen[view.now_s] = {job.row: (job.start_s, job.nodes) for job in view.running}

    result = escala.simulate(Workload.from_jobs(THREE), "3x2", named)
    assert seen[0.0] == {0: (0.0, ((2, 2, 2), (0, 0, 1))), 1: (0.0, ((1, 1, 2),))}
    assert seen[50.0] == {2: (50.0, ((1, 2, 2), (0, 0, 2)))}
    assert result.jobs.sort("job_id")["nodes"].to_list() == ["0 2", "1", "0-2"]


def test_a_job_may_be_given_nodes_that_are_off() -> None:
    seen = {}

    def last_first(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            assert act.start_on(job, [3, 1])
        seen[view.now_s] = [(job.start_s, job.nodes) for job in view.running]

    jobs = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [2]})
    result = escala.simulate(jobs, "4x1:grid5000", last_first, start_off=True)
    assert seen[0.0] == [(None, ((3, 3, 1), (1, 1, 1)))]
    assert result.jobs["start_s"].item() > 0.0 and result.jobs["nodes"].item() == "1 3"
    woken = result.nodes.filter(result.nodes["state"] == "switching_on")["node"]
    assert sorted(woken.to_list()) == [1, 3]


@pytest.mark.parametrize(
    ("platform", "nodes", "words"),
    [
        ("3x2", [0, 0], "node 0 is named twice"),
        ("3x2", [0, 3], "there is no node 3: the last one is 2"),
        ("3x2", [0], "the nodes named have 2 free cores, and job 1 needs 3: name more"),
        ("3x2", [0, 2, 1], "node 2 has no cores for job 1 now"),
        ("5x1", [0, 4], "node 4 has no cores for job 1 now"),
        ("5x1", [0, 1], "the nodes named have 2 free cores, and job 1 needs 3: name more"),
        ("3x3", [0, 1], "job 1 has all of its 3 cores from the first of the nodes named"),
        ("4x2", [0, 1, 2], "job 1 has all of its 3 cores from the first 2 of the nodes named"),
    ],
)
def test_nodes_that_cannot_be_given_are_one_line(platform: str, nodes: list[int], words: str) -> None:
    def named(view: escala.View, act: escala.Commands) -> None:
        last = len(view.node_cores) - 1
        act.start_on(0, [last, last - 1] if view.node_cores[0] == 1 else [last])
        act.start_on(1, nodes)

    jobs = Workload.from_jobs({"submit_s": [0.0, 0.0], "runtime_s": [5.0, 5.0], "cores": [2, 3]})
    with pytest.raises(EscalaError, match=f"start_on: {words}"):
        escala.simulate(jobs, platform, named)


def test_one_core_and_one_job_are_said_as_one() -> None:
    def named(view: escala.View, act: escala.Commands) -> None:
        act.start_on(0, [0, 1])

    jobs = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [1]})
    with pytest.raises(EscalaError, match="job 0 has its one core from the first of the nodes named: name no more"):
        escala.simulate(jobs, "2x2", named)
    with pytest.raises(EscalaError, match="1 job waits and nothing will ever happen again"):
        escala.simulate(jobs, "2x2", lambda view, act: None)


def test_lists_of_nodes_that_are_none_are_refused() -> None:
    replies = []

    def odd(view: escala.View, act: escala.Commands) -> None:
        for row, nodes in ((0, []), (0, [1.5]), (0, [None, 1]), (9, [0, 1]), (None, [0, 1])):
            assert not act.start_on(row, nodes)
            replies.append(act.refusal)
        assert act.start_on(0, [1])
        assert not act.start_on(0, [0])

    jobs = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [2], "single_node": [True]})
    assert escala.simulate(jobs, "3x4", odd).jobs["nodes"].to_list() == ["1"]
    assert [text.split(" ")[0] for text in replies[:5]] == ["that", "that", "that", "there", "that"]


def test_commands_are_recorded_on_request(tmp_path: Path) -> None:
    def twice(view: escala.View, act: escala.Commands) -> None:
        greedy(view, act)
        greedy(view, act)
        act.start(99)

    result = escala.simulate(TWO_NODES, "2x1", twice, decisions=True)
    table = result.decisions
    assert table is not None
    done = table.filter(table["refusal"] == "")
    assert done["command"].to_list() == ["start"] * 3
    assert done["time_s"].to_list() == [0.0, 0.0, 70.0]
    assert done["job_id"].to_list() == result.jobs["job_id"].to_list()
    refused = table.filter(table["refusal"] != "")
    assert len(refused) and refused["job_id"].null_count() == len(refused)
    again = escala.Result.load(result.save(tmp_path / "run")).decisions
    assert again is not None and again.equals(table)
    assert escala.simulate(TWO_NODES, "2x1", twice).decisions is None
    with pytest.raises(EscalaError, match="inside the kernel"):
        escala.simulate(TWO_NODES, "2x1", "easy", decisions=True)


def test_times_to_be_called_at() -> None:
    asked: list[tuple[bool, str]] = []

    def ask(view: escala.View, act: escala.Commands) -> None:
        if not asked:
            asked.append((act.call_at(view.now_s), act.refusal))
            # more than there is room for at first
            asked.extend((act.call_at(view.now_s + 1.0 + k), act.refusal) for k in range(500))
            with pytest.raises(EscalaError, match="call_at"):
                act.call_at(float("nan"))
        greedy(view, act)

    escala.simulate(TWO_NODES, "2x1", ask)
    assert asked[0] == (False, "the time is not later than now")
    assert all(done for done, _ in asked[1:])


def test_a_saved_run_is_run_again_from_its_manifest(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("site,at,took,size\na,0,5,1\nb,0,9,2\na,1,0,1\na,2,7,2\n")
    read = {
        "columns": {"submit_s": "at", "runtime_s": "took", "cores": "size"},
        "select": {"site": "a"},
        "name": "mine",
    }
    first = escala.simulate(
        escala.read_workload(log, **read), "2x1:grid5000", "easy-sjf", "timeout:3", start_off=True, until_s=40.0
    )
    again = escala.rerun(first.save(tmp_path / "run"), log)
    assert again.jobs.equals(first.jobs) and again.totals.equals(first.totals)
    drop = {"elapsed_s"}
    assert {k: v for k, v in again.manifest.items() if k not in drop} == {
        k: v for k, v in first.manifest.items() if k not in drop
    }
    log.write_text(log.read_text().replace("a,2,7,2", "a,2,8,2"))
    with pytest.raises(EscalaError, match="sha256"):
        escala.rerun(first)
    log.unlink()
    with pytest.raises(EscalaError, match=r"log\.csv"):
        escala.rerun(first)


def test_a_run_of_jobs_made_in_memory_needs_them_again() -> None:
    run = escala.simulate(TWO_NODES, "2x1", "rollout:4")
    assert escala.rerun(run, TWO_NODES).jobs.equals(run.jobs)
    with pytest.raises(EscalaError, match="give it to rerun"):
        escala.rerun(run)
    with pytest.raises(EscalaError, match="the scheduler of that run was an object \\('greedy'\\)"):
        escala.rerun(escala.simulate(TWO_NODES, "2x1", greedy), TWO_NODES)


@pytest.mark.parametrize(
    ("column", "scheduler"),
    [
        ("user", "easy+"),
        ("estimate_s", "easy:estimate=estimate_s"),
        ("single_node", "easy"),
        ("load", "easy"),
        ("demand_gpu", "easy"),
    ],
)
def test_a_run_is_not_run_again_on_a_log_that_differs_where_it_looked(column: str, scheduler: str) -> None:
    jobs: dict[str, Any] = {
        "submit_s": [0.0, 0.0, 1.0],
        "runtime_s": [5.0, 3.0, 2.0],
        "walltime_s": [9.0, 9.0, 9.0],
        "cores": [1, 1, 1],
        "user": ["a", "b", "b"],
        "estimate_s": [6.0, 3.0, 2.0],
        "single_node": [True, False, False],
        "load": [0.5, 1.0, 1.0],
    }
    if column == "demand_gpu":
        jobs |= {"single_node": [True] * 3, "demand_gpu": [0, 0, 1]}
    platform = Platform.from_spec({"name": "c", "nodes": [{"count": 2, "cores": 1, "resources": {"gpu": 2}}]})
    log = Workload.from_jobs(jobs)
    run = escala.simulate(log, platform, scheduler)
    assert escala.rerun(run, log).jobs.equals(run.jobs)
    with pytest.raises(EscalaError, match=f"its column '{column}' is not that of that run"):
        escala.rerun(run, Workload.from_jobs({**jobs, column: jobs[column][::-1]}))
    # what the run did not look at may differ
    assert ("user" in run.manifest.get("columns", {})) == (scheduler == "easy+")


def test_the_date_at_which_the_clock_begins_is_that_of_the_run() -> None:
    run = escala.simulate(TWO_NODES, "2x1", "easy")
    with pytest.raises(EscalaError, match=r"begins at 3600\.0 s since 1970, that of the log of that run at 0\.0 s"):
        escala.rerun(run, TWO_NODES.with_jobs(TWO_NODES.jobs, origin_s=3600.0))


def test_a_shutdown_policy_as_scheduler_is_told() -> None:
    with pytest.raises(EscalaError, match=r"'hold:0\.25': it is a shutdown policy, give it as --shutdown"):
        escala.simulate(TWO_NODES, "2x1", "hold:0.25")


class Half:
    """Guesses half of the request."""

    def estimate(self, view: Any, job: Any) -> float:
        return float(job.walltime_s / 2)


@pytest.mark.parametrize("estimate", ["walltime", "last2", Half()])
@pytest.mark.parametrize("how", ["scheduler", "shutdown"])
def test_the_work_that_waits_is_that_of_the_queue(estimate: Any, how: str) -> None:
    log = escala.workload.generate.lublin(cores=32, jobs=120, seed=3)
    log = Workload.from_jobs(
        log.jobs.with_columns(walltime_s=log.jobs["walltime_s"] + 0.125, user=log.jobs["job_id"].str.slice(-1))
    )
    seen = set[float]()

    class Looking:
        before_scheduler = True

        def decide(self, view: escala.View, act: escala.Commands) -> None:
            assert view.waiting_work == sum(job.cores * job.walltime_s for job in view.queue)
            assert view.n_nodes == len(view.node_states) == 8
            if how == "scheduler":
                greedy(view, act)
                assert view.waiting_work == sum(job.cores * job.walltime_s for job in view.queue)
            seen.add(view.waiting_work)

    pair = {how: Looking()} if how == "scheduler" else {how: Looking(), "scheduler": "easy"}
    escala.simulate(log, "8x4:grid5000", estimate=estimate, **pair)
    assert len(seen) > 15 and 0.0 in seen


def test_the_work_that_waits_is_known_beside_a_machine() -> None:
    seen = []

    def look(view: escala.View, act: escala.Commands) -> None:
        seen.append((view.waiting_work, view.n_nodes))

    jobs = {
        "job_id": ["1", "2", "3"],
        "submit_s": [0.0] * 3,
        "walltime_s": [60.0, 90.5, 7.0],
        "cores": [1, 2, 1],
        "state": ["queued"] * 3,
    }
    desk = escala.live.Desk("4x1", look)
    desk.decide(escala.live.Snapshot.of(1.0, jobs, {"power": ["on"] * 4}))
    desk.decide(
        escala.live.Snapshot.of(2.0, {name: values[1:] for name, values in jobs.items()}, {"power": ["on"] * 4})
    )
    assert seen == [(248.0, 4), (188.0, 4)]
