"""Comparing a simulation's tables with the reference engine's outputs. Every function returns a list of differences,
empty if none."""

from __future__ import annotations

from typing import Any

from tests.golden.runs import numbers
from tests.laws.laws import Rows, rows

SECONDS = 1e-6 + 1e-9  # the engine prints six decimals


def job_differences(jobs: Any, reference: dict[str, dict[str, Any]], states: bool) -> list[str]:
    """Start, finish, hosts and (with `states`) state of every job. At runtime = walltime the engine calls a flop job
    completed."""
    found = []
    mine = {row["job_id"]: row for row in rows(jobs)}
    if set(mine) != set(reference):
        found.append(f"jobs {sorted(set(mine) ^ set(reference))[:5]} are in one of the two only")
    for job_id, gold in reference.items():
        row = mine[job_id]
        for column in ("submit_s", "start_s", "finish_s"):
            if row[column] is None or abs(row[column] - gold[column]) > SECONDS:
                found.append(f"job {job_id}: {column} {row[column]}, reference {gold[column]}")
        if numbers(row["nodes"]) != gold["nodes"]:
            found.append(f"job {job_id}: nodes {row['nodes']}, reference {gold['nodes']}")
        if states and row["state"] != gold["state"]:
            found.append(f"job {job_id}: {row['state']}, reference {gold['state']}")
    return found


def switch_differences(nodes: Any, reference: list[dict[str, str]], begin_s: float, end_s: float) -> list[str]:
    """Every switch that the reference requested between the first submission and the makespan: same node, same instant,
    same end."""
    mine = {
        (row["node"], row["state"], round(row["from_s"], 6)): row["to_s"]
        for row in rows(nodes)
        if row["state"].startswith("switching") and row["from_s"] > begin_s
    }
    found = []
    for row in reference:
        asked, done = float(row["requested"]), float(row["done"])
        if not begin_s < asked < end_s - SECONDS:
            continue
        key = (int(row["host"]), f"switching_{row['direction']}", round(asked, 6))
        end = mine.pop(key, None)
        if end is None:
            found.append(f"no {key}")
        elif abs(end - min(done, end_s)) > SECONDS:
            found.append(f"{key} ends at {end}, reference {done}")
    return found + [f"{key} is not in the reference" for key in mine]


def relative(value: float, reference: float) -> float:
    return abs(value - reference) / abs(reference)


def work_joules(platform: dict[str, Any], workload: Rows, jobs: Any) -> float:
    """What computing adds to idling, in a run without switches: (computing - idle) x cores x load x time, over jobs;
    one-core nodes."""
    profile = platform["profiles"][0]
    load = {row["job_id"]: row["load"] for row in workload}
    extra: float = profile["computing_w"] - profile["idle_w"]
    busy: float = sum(row["cores"] * load[row["job_id"]] * (row["finish_s"] - row["start_s"]) for row in rows(jobs))
    return extra * busy
