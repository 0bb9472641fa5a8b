"""The laws hold for the oracle's tables, and notice each kind of breach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.laws.laws import check
from tests.oracle.engines import run_oracle
from tests.oracle.oracle import Tables, simulate
from tests.oracle.worlds import Case, worlds


@settings(deadline=None, derandomize=True, max_examples=300, suppress_health_check=list(HealthCheck))
@given(case=worlds())
def test_the_oracle_obeys_the_laws(case: Case) -> None:
    check(run_oracle(case), case.jobs, case.platform, case.options.get("until_s"))


PLATFORM = {
    "cores": [2, 2],
    "profiles": [
        {
            "computing_w": 200.0,
            "idle_w": 100.0,
            "off_w": 10.0,
            "switching_off_w": 120.0,
            "switching_on_w": 150.0,
            "switch_off_s": 5.0,
            "switch_on_s": 20.0,
            "can_switch": True,
        }
    ],
    "profile_of": [0, 0],
}
JOBS = [
    {"job_id": "a", "submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 20.0, "cores": 3},
    {"job_id": "b", "submit_s": 1.0, "runtime_s": 30.0, "walltime_s": 30.0, "cores": 2},
    {"job_id": "c", "submit_s": 100.0, "runtime_s": 5.0, "walltime_s": 9.0, "cores": 4},
]


def result() -> Tables:
    return simulate(JOBS, PLATFORM, "easy", "timeout:10")


def test_the_unspoilt_tables_pass() -> None:
    check(result(), JOBS, PLATFORM)


def test_a_job_on_a_node_where_it_may_not_lie_is_noticed() -> None:
    named = {**PLATFORM, "names": ["n0", "n1"], "features": [["x"], ["y"]]}
    for asked in (
        {"features": "x&y|y"},
        {"features": "y&(x|y)"},
        {"excluded_nodes": "n0"},
        {"required_nodes": "n1", "nodes": 1},
    ):
        jobs = [{**JOBS[1], **asked}]
        check(simulate(jobs, named), jobs, named)
        with pytest.raises(AssertionError, match="job b on node 0"):
            check(simulate([{**JOBS[1], "nodes": 1}], named), jobs, named)


def test_a_job_outside_its_partition_is_noticed() -> None:
    apart = {**PLATFORM, "partitions": [{"name": "p", "nodes": [0], "max_s": 20}, {"name": "q", "nodes": [1]}]}
    apart["partitions"][1]["default"] = True
    for asked in ({"partition": "q"}, {"partition": "p,q"}, {"queue": "q"}, {"queue": "r"}, {}):
        jobs = [{**JOBS[1], "walltime_s": 60.0, **asked}]
        check(simulate(jobs, apart), jobs, apart)
        with pytest.raises(AssertionError, match="job b on node 0: partition"):
            check(simulate([{**job, "nodes": 1} for job in jobs], PLATFORM), jobs, apart)


@pytest.mark.parametrize("more", [{}, {"limited": False}, {"walltime_s": 11.0}])
def test_a_job_that_does_not_run_as_its_slowest_node_does_is_noticed(more: dict[str, Any]) -> None:
    jobs = [job | more for job in JOBS]
    tables = simulate(jobs, {**PLATFORM, "node_speed": [1.0, 0.8]})
    check(tables, jobs, {**PLATFORM, "node_speed": [1.0, 0.8]})
    for spoilt in ({"node_speed": [1.0, 0.5]}, {"node_speed": [2.0, 1.0]}, {}):
        with pytest.raises(AssertionError, match="job"):
            check(tables, jobs, {**PLATFORM, **spoilt})


def _set(table: str, row: int, **values: Any) -> Callable[[Tables], None]:
    def spoil(tables: Tables) -> None:
        getattr(tables, table)[row].update(values)

    return spoil


BREACHES: dict[str, Callable[[Tables], None]] = {
    "a job twice": lambda tables: tables.jobs.append(dict(tables.jobs[0])),
    "a job missing": lambda tables: tables.jobs.remove(tables.jobs[2]),
    "start before submission": _set("jobs", 1, start_s=0.5, wait_s=-0.5, finish_s=30.5),
    "runs too long": _set("jobs", 0, finish_s=11.0),
    "wrong state": _set("jobs", 1, state="COMPLETED"),
    "wrong wait": _set("jobs", 1, wait_s=3.0),
    "cores overused": _set("jobs", 1, start_s=5.0, wait_s=4.0, finish_s=35.0),
    "cores missing": _set("jobs", 0, place=[(0, 2)]),
    "wrong nodes": _set("jobs", 0, nodes="0"),
    "gap in node states": _set("nodes", 0, to_s=9.0),
    "impossible state": _set("nodes", 0, state="switching_on"),
    "short switch": lambda tables: _shorten_switch(tables),
    "seconds": _set("power", 0, seconds=1.0),
    "joules": _set("power", 0, joules=1.0),
    "transitions": lambda tables: _forget_transitions(tables),
}


def _shorten_switch(tables: Tables) -> None:
    k = next(k for k, row in enumerate(tables.nodes) if row["state"] == "switching_off")
    tables.nodes[k]["to_s"] -= 1
    tables.nodes[k + 1]["from_s"] -= 1


def _forget_transitions(tables: Tables) -> None:
    for row in tables.power:
        row["transitions"] = 0


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_noticed(name: str) -> None:
    tables = result()
    BREACHES[name](tables)
    with pytest.raises(AssertionError):
        check(tables, JOBS, PLATFORM)
