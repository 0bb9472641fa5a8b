"""Nodes that go and come back: what is refused, what is said, and what policies see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala import EscalaError, EscalaWarning
from escala.bounds.schedule_bound import bound_of_runs
from escala.platform.closures import Closure
from escala.policies import rerun
from escala.unseen import CLOSED, INTO, OUTAGES, OUTSIDE, RESERVED

GRID = escala.read_platform("1x1:grid5000").profiles[0]


def site(*closed: Closure, nodes: int = 2, cores: int = 1) -> Any:
    return escala.Site(name="s", cores=[cores] * nodes, profiles=(GRID,), profile_of=[0] * nodes, closed=closed)


def log(*rows: tuple[float, float, int]) -> escala.Workload:
    """Rows of (submit_s, runtime_s, cores)."""
    return escala.Workload.from_jobs(
        [
            {"job_id": str(k), "submit_s": submit, "runtime_s": run, "walltime_s": run, "cores": cores, "user": "u"}
            for k, (submit, run, cores) in enumerate(rows)
        ]
    )


def test_a_policy_that_plans_with_what_is_to_come_is_refused() -> None:
    with pytest.raises(EscalaError, match="oracle does not know of nodes that are down or drained"):
        escala.simulate(log((0, 5, 1)), site(Closure((0,), 1, 2)), "easy", "oracle")


def test_a_job_for_which_too_few_nodes_ever_come_back_is_an_error_that_says_so() -> None:
    with pytest.raises(EscalaError, match=r"1 of 2 nodes are down or drained and never come back \(\[\[closed\]\]\)"):
        escala.simulate(log((0, 5, 2)), site(Closure((1,), 0, 1e11)), "easy")


def test_reservations_take_no_new_jobs_and_say_what_they_do_not_do() -> None:
    """B may not start from 3 to 9; under slurm A would not have run into that."""
    maintenance = site(Closure((0, 1), 3, 9, "reserved"))
    with pytest.warns(EscalaWarning, match="run on into it"):
        found = escala.simulate(log((0, 5, 1), (4, 1, 1)), maintenance)
    assert found.jobs["start_s"].to_list() == [0, 9] and found.unseen == {"closed": INTO}
    course = site(Closure((0, 1), 3, 9, "reserved", name="course"))
    with pytest.warns(EscalaWarning, match="reserved for others"):
        found = escala.simulate(log((0, 5, 1), (4, 1, 1)), course)
    assert found.jobs["start_s"].to_list() == [0, 4] and found.unseen == {"reserved": RESERVED}
    assert "lost_s" not in found.jobs.columns


def test_a_stream_says_that_it_knows_of_none(tmp_path: Path) -> None:
    from escala import streaming

    log((0, 5, 1)).jobs.write_parquet(tmp_path / "jobs.parquet")
    with pytest.warns(EscalaWarning, match="runs of simulate alone"):
        found = streaming.stream(tmp_path / "jobs.parquet", site(Closure((0,), 1, 2)), "easy", "never")
    assert found.manifest["unseen"] == {"closed": CLOSED}


def test_a_run_again_of_one_that_knew_of_none_says_so(tmp_path: Path) -> None:
    jobs, place = log((0, 5, 1)), site(Closure((0,), 1, 2))
    first = escala.simulate(jobs, place)
    assert rerun(first, jobs).jobs.equals(first.jobs) and not first.unseen
    with pytest.warns(EscalaWarning, match="lay on nodes that were down"):
        rerun(replace_manifest(first, {"closed": CLOSED}), jobs)
    assert OUTAGES.startswith("jobs ")


def replace_manifest(result: Any, unseen: dict[str, str]) -> Any:
    return replace(result, manifest={**result.manifest, "unseen": unseen})


def test_a_policy_sees_which_nodes_are_gone_and_is_asked_when_they_go_and_come_back() -> None:
    seen = dict[float, Any]()

    class Looking:
        role = "scheduler"

        def decide(self, view: Any, act: Any) -> None:
            seen[view.now_s] = view.node_states, view.free_cores.tolist(), [job.row for job in view.queue]
            for job in view.queue:
                act.start(job)
            if view.now_s == 0:
                act.call_at(12.0)

    found = escala.simulate(log((0, 10, 1), (0, 4, 1), (1, 2, 2)), site(Closure((0,), 3, 8)), Looking())
    assert seen[3.0] == (["gone", "on"], [0, 0], [0, 2])
    assert seen[4.0][1] == [0, 1] and 12.0 in seen
    assert seen[8.0][0] == ["on", "on"] and seen[8.0][2] == [2]
    assert found.jobs["start_s"].to_list() == [4, 0, 14] and found.jobs["lost_s"].to_list() == [3, 0, 0]


@pytest.mark.parametrize("kind", ["down", "drain"])
def test_energy_is_that_of_the_nodes_whoever_had_them(kind: str) -> None:
    """Totals, nodes and power agree; a lost run has drawn power, and no allocation of its own."""
    place = site(Closure((0,), 3, 8, kind), nodes=3, cores=2)
    found = escala.simulate(log((0, 10, 2), (0, 4, 1), (1, 2, 4), (2, 7, 1)), place, "easy", "timeout:1")
    power = found.power
    assert found.totals["joules"].sum() == pytest.approx(power["joules"].sum())
    assert found.totals["seconds"].sum() == pytest.approx(3 * found.manifest["window"]["end_s"])
    busy = found.nodes.filter(found.nodes["state"] == "computing")
    computing = (busy["to_s"] - busy["from_s"]).sum()
    assert computing == pytest.approx(found.totals.filter(found.totals["state"] == "computing")["seconds"].item())
    assert found.allocations["job_id"].n_unique() == 4 == len(found.allocations.unique(["job_id", "node"])) - 1
    assert (found.jobs["lost_s"].sum() > 0) == (kind == "down")


def test_other_policies_run_beside_each_other_on_such_a_site() -> None:
    place = site(Closure((0,), 3, 8))
    table = escala.compare(log((0, 10, 1), (0, 4, 1), (1, 2, 2)), place, ["easy", "fcfs"], ["never", "timeout:3"])
    assert len(table.results) == 4


def test_totals_are_those_of_the_nodes_where_tables_grow_meanwhile() -> None:
    place = site(Closure((199,), 400, 1000), Closure((198,), 700, 1300), nodes=200)
    found = escala.simulate(log((0, 1500, 150), (60, 1000, 20)), place, "easy", "timeout:60")
    assert found.totals["joules"].sum() == pytest.approx(found.power["joules"].sum()) == found.summary()["energy_j"]


def test_a_policy_of_one_s_own_is_not_blamed_for_what_an_outage_does() -> None:
    for kind, until_s in (("drain", 95.0), ("down", 150.0)):
        place = site(Closure((0,), 90, 200, kind, False), nodes=1)
        found = escala.simulate(log((0, 100, 1)), place, "easy", "inertial", until_s=until_s)
        assert found.jobs["state"].to_list() == ["RUNNING" if kind == "drain" else "KILLED"]


def test_a_job_on_a_drained_node_is_shown_with_all_that_it_has() -> None:
    seen = dict[float, Any]()

    class Looking:
        role = "scheduler"

        def decide(self, view: Any, act: Any) -> None:
            seen[view.now_s] = [(job.cores, job.nodes) for job in view.running]
            for job in view.queue:
                act.start(job)

    escala.simulate(log((0, 10, 2), (4, 1, 1)), site(Closure((0,), 3, 8, "drain"), nodes=2), Looking())
    assert seen[3.0] == seen[4.0] == seen[8.0] and seen[3.0][0][0] == 2


def test_outages_that_all_lie_at_other_times_are_remarked() -> None:
    with pytest.warns(EscalaWarning, match="meet none of the site's closures"):
        found = escala.simulate(log((0, 5, 1)), site(Closure((0,), 1.7e9, 1.8e9)))
    assert found.unseen == {"closed": OUTSIDE}


def test_bounds_and_the_policies_beside_them_leave_outages_out() -> None:
    place = site(Closure((0,), 1, 60))
    with pytest.warns(EscalaWarning, match="bounds, and policies beside them, pass that over"):
        found = escala.bound(log((0, 5, 1), (0, 5, 1), (1, 5, 2)), place, "wait")
    assert found.policies["easy"] == pytest.approx(4 / 3)
    jobs = log((0, 5, 1))
    with pytest.raises(EscalaError, match="of which bounds know nothing"):
        bound_of_runs({"easy": escala.simulate(jobs, place)}, jobs, place, "wait")
