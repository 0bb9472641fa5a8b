"""Laws of nodes that are down or drained for a while."""

from __future__ import annotations

import math
from typing import Any

from tests.laws.laws import (
    Rows,
    as_asked,
    each_job_once,
    half_up,
    micro,
    nothing_overused,
    places_agree,
    rows,
    where_they_may_lie,
)


def check_outages(result: Any, workload: Rows, platform: dict[str, Any], until_s: float | None = None) -> None:
    """`result` has .jobs and .allocations."""
    jobs, places = rows(result.jobs), rows(result.allocations)
    workload = [as_asked(job, platform.get("partitions", [])) for job in workload]
    each_job_once(jobs, workload)
    places_agree(jobs, places, workload)
    nothing_overused(jobs, places, workload, platform, until_s)
    where_they_may_lie(places, workload, platform)
    nobody_on_nodes_that_are_gone(jobs, places, platform, until_s)
    each_ran_whole_or_was_ended(jobs, places, workload, platform)
    if hasattr(result, "totals"):
        totals_are_sums(result)


def totals_are_sums(result: Any) -> None:
    """What the kernel counted is what the nodes did."""
    power = rows(result.power)
    for row in rows(result.totals):
        mine = [one for one in power if one["state"] == row["state"]]
        for name in ("seconds", "joules", "transitions"):
            assert math.isclose(row[name], sum(one[name] for one in mine), rel_tol=1e-9, abs_tol=1e-6), (row, name)


def nobody_on_nodes_that_are_gone(
    jobs: Rows, places: Rows, platform: dict[str, Any], until_s: float | None = None
) -> None:
    """No job starts on a node that is gone, and none runs on while it goes down."""
    named = {row["job_id"]: row for row in jobs}
    for place in places:
        row = named[place["job_id"]]
        start = micro(row["start_s"])
        end = micro(row["finish_s"] if row["finish_s"] is not None else until_s)
        for one in platform["closed"]:
            if place["node"] not in one["nodes"]:
                continue
            begins, ends = half_up(one["from_s"]), half_up(one["until_s"])
            assert not begins <= start < ends, f"{row} starts on node {place['node']}, gone by {one}"
            if one["kind"] == "down" and (until_s is None or begins < half_up(until_s)):
                assert not start < begins < end, f"{row} runs on node {place['node']} through {one}"


def each_ran_whole_or_was_ended(jobs: Rows, places: Rows, workload: Rows, platform: dict[str, Any]) -> None:
    """A finished job ran as long as it does (at nodes of one speed), or was ended as a node of its went down."""
    asked = {str(row["job_id"]): row for row in workload}
    if "node_speed" in platform:
        return
    for row in jobs:
        if row["finish_s"] is None:
            continue
        job, mine = asked[row["job_id"]], {one["node"] for one in places if one["job_id"] == row["job_id"]}
        whole = half_up(job["runtime_s"])
        whole = min(whole, half_up(job["walltime_s"])) if job.get("limited", True) else whole
        ran = micro(row["finish_s"]) - micro(row["start_s"])
        ends = {
            half_up(one["from_s"])
            for one in platform["closed"]
            if one["kind"] == "down" and not one["requeue"] and mine & set(one["nodes"])
        }
        assert ran == whole or (row["state"] == "KILLED" and micro(row["finish_s"]) in ends and ran < whole), row
