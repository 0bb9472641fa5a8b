"""Partitions that share no node: together each job starts as it does where its partition is alone."""

from __future__ import annotations

import random
import re

import pytest

from tests.laws.laws import rows
from tests.oracle.engines import run_kernel
from tests.oracle.lanes import lane_of, lanes_of
from tests.oracle.nodes import taking_of
from tests.oracle.worlds import Case, draw

FIXED = ("fcfs", "sjf", "saf-strict", "easy", "saf", "easy-sjf", "easy-fast", "easy:queue=sjf", "easy:queue=f2")
GREEDY = ("first-fit", "sjf-fit", "packer")
TOLD = ("rules", "head", "plan_margin_s", "start_off", "oversized")
"""Options that say nothing of other jobs."""


def alone(case: Case, lanes: list[set[int]], lane: int) -> Case:
    """The jobs of a queue, on a site that has no other partitions than its own."""
    parts = case.platform["partitions"]
    mine = [{**one, "default": False} for one in parts if set(one["nodes"]) <= lanes[lane]]
    jobs = []
    for job in case.jobs:
        taking = [one["name"] for one in taking_of(job, parts)]
        if taking and lane_of(job, lanes, parts) == lane:
            jobs.append(job | {"partition": ",".join(taking)})
    return Case(case.platform | {"partitions": mine}, jobs, case.options)


@pytest.mark.filterwarnings("ignore::escala.errors.EscalaWarning")
@pytest.mark.parametrize("shutdown", ["never", "timeout:0", "timeout:2"])
def test_partitions_that_share_no_node_are_machines_of_their_own(shutdown: str) -> None:
    several = waited = 0
    for number in range(150):
        case = draw(random.Random(f"alone/{shutdown}/{number}"), FIXED + GREEDY, 25, 0.0, True, 1.0)
        scheduler = re.sub(":(backfill|estimate|order_estimate)=.*", "", case.options["scheduler"])
        lanes = lanes_of(case.jobs, len(case.platform["cores"]), case.platform.get("partitions", ()))
        if len(lanes) < 2 or "score:" in scheduler:  # of users
            continue
        kept = {name: case.options[name] for name in TOLD if name in case.options}
        case.options = kept | {"scheduler": scheduler, "shutdown": shutdown}
        whole = {row["job_id"]: row["start_s"] for row in rows(run_kernel(case).jobs)}
        for one in (alone(case, lanes, lane) for lane in range(len(lanes))):
            several += len(one.jobs) > 0
            for row in rows(run_kernel(one).jobs) if one.jobs else ():
                waited += bool(row["wait_s"])
                assert row["start_s"] == whole[row["job_id"]], (row["job_id"], case.program())
    assert several > 100 and waited > 300
