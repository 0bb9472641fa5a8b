"""Laws that the tables of every simulation must obey, whatever the policy. Each function raises AssertionError with the
first breach.

The tables are polars data frames or lists of dicts with the columns of docs/design.md, section 3; `allocations` has
job_id, node, cores. A platform is a dict {"cores": [per node], "profiles": [dict], "profile_of": [per node],
"resources": {kind: [per node]}, "names": [per node], "features": [per node], "node_speed": [per node], "partitions":
[dict of each]}; the last four may be left out. Times are compared in whole microseconds, joules to 1e-9 relative.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Any

Rows = list[dict[str, Any]]
WHOLE = 1 << 30
"""Jobs on a node, when one asks for whole nodes."""
BEYOND_CORES = (
    *("memory_mb_per_core", "memory_mb_per_node", "gpus_per_node", "gpus_per_task", "tasks_per_node"),
    *("features", "required_nodes", "excluded_nodes"),
)
STATES = ("computing", "idle", "off", "switching_off", "switching_on")
FOLLOWS = {
    "computing": {"idle"},
    "idle": {"computing", "switching_off"},
    "switching_off": {"off"},
    "off": {"switching_on"},
    "switching_on": {"idle", "computing"},
}


def rows(table: Any) -> Rows:
    """A list of dicts from a polars data frame (or from such a list)."""
    return table if isinstance(table, list) else list(table.to_dicts())


def micro(seconds: float) -> int:
    """Seconds of a table (clock / 1e6) back to whole microseconds."""
    return round(seconds * 1e6)


def half_up(seconds: float) -> int:
    return math.floor(seconds * 1e6 + 0.5)


def numbers(intervals: str) -> list[int]:
    """ "0-2 7" -> [0, 1, 2, 7]."""
    found: list[int] = []
    for part in (intervals or "").split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def check(result: Any, workload: Rows, platform: dict[str, Any], until_s: float | None = None) -> None:
    """All laws. `result` has .jobs, .nodes, .power and .allocations."""
    jobs, nodes, power, places = (rows(getattr(result, name)) for name in ("jobs", "nodes", "power", "allocations"))
    workload = [as_asked(job, platform.get("partitions", [])) for job in workload]
    each_job_once(jobs, workload)
    times_of_jobs(jobs, workload, platform.get("node_speed"), until_s)
    places_agree(jobs, places, workload)
    nothing_overused(jobs, places, workload, platform, until_s)
    where_they_may_lie(places, workload, platform)
    begin, end = window(jobs, until_s)
    nodes_cover(nodes, len(platform["cores"]), begin, end)
    states_follow(nodes, platform, begin, end)
    computing_when_jobs_run(jobs, places, nodes, begin, end)
    ledgers_add_up(nodes, power, len(platform["cores"]), begin, end)
    joules_add_up(jobs, places, workload, nodes, power, platform, begin, end)


def window(jobs: Rows, until_s: float | None) -> tuple[int, int]:
    """What is measured: first submission to last finish, or 0 to the limit; microseconds."""
    if until_s is not None:
        return 0, half_up(until_s)
    counted = [row for row in jobs if row["state"] != "REJECTED"]
    if not counted:
        return 0, 0
    return min(micro(row["submit_s"]) for row in counted), max(micro(row["finish_s"]) for row in counted)


def each_job_once(jobs: Rows, workload: Rows) -> None:
    """Each submitted job is in the table exactly once."""
    assert sorted(row["job_id"] for row in jobs) == sorted(str(row["job_id"]) for row in workload)


def times_of_jobs(jobs: Rows, workload: Rows, speeds: list[float] | None, until_s: float | None) -> None:
    """No start before the submission; a job runs min(runtime / speed of its slowest node, walltime), without a limit
    the former; the state says which; all finish without a time limit."""
    asked = {str(row["job_id"]): row for row in workload}
    for row in jobs:
        job = asked[row["job_id"]]
        submit, length = half_up(job["submit_s"]), half_up(job["runtime_s"])
        slowest = min((speeds[node] for node in numbers(row["nodes"])), default=1.0) if speeds else 1.0
        if slowest != 1.0 and job.get("load", 1.0) > 0:
            length = max(1, math.floor(length / slowest + 0.5))
        killed = job.get("limited", True) and length >= half_up(job["walltime_s"])
        length = half_up(job["walltime_s"]) if killed else length
        name = f"job {row['job_id']}"
        assert micro(row["submit_s"]) == submit and row["cores"] == job["cores"], name
        if row["state"] in ("REJECTED", "QUEUED"):
            assert row["start_s"] is None and row["finish_s"] is None and row["wait_s"] is None, name
            assert row["state"] == "REJECTED" or until_s is not None, name
            continue
        start = micro(row["start_s"])
        assert start >= submit and micro(row["wait_s"]) == start - submit, name
        if row["state"] == "RUNNING":
            assert until_s is not None and row["finish_s"] is None, name
            assert start <= half_up(until_s) and start + length >= half_up(until_s), name
        else:
            assert micro(row["finish_s"]) == start + length, name
            assert row["state"] == ("KILLED" if killed else "COMPLETED"), name


def places_agree(jobs: Rows, places: Rows, workload: Rows) -> None:
    """A started job has its cores, on the nodes listed; a single-node job on one, one of n nodes on n. Whole nodes, and
    whole tasks, may be more cores than it asks for."""
    asked = {str(row["job_id"]): row for row in workload}
    held: dict[str, dict[int, int]] = defaultdict(dict)
    for place in places:
        assert place["cores"] > 0 and place["node"] not in held[place["job_id"]], place
        held[place["job_id"]][place["node"]] = place["cores"]
    for row in jobs:
        name = f"job {row['job_id']}"
        if row["start_s"] is None:
            assert not row["nodes"], name
            continue
        mine = held[row["job_id"]]
        job = asked[row["job_id"]]
        exactly = not job.get("exclusive") and not job.get("cores_per_task") and not job.get("tasks")
        assert sum(mine.values()) >= row["cores"], name
        if exactly and row["cores"] >= (job.get("nodes") or 1):
            assert sum(mine.values()) == row["cores"], name
        assert numbers(row["nodes"]) == sorted(mine), name
        if job.get("nodes") or job.get("single_node"):
            assert len(mine) == (job.get("nodes") or 1), name


def where_they_may_lie(places: Rows, workload: Rows, platform: dict[str, Any]) -> None:
    """Each node that a job has is of a partition that it names (its queue, or else the default) and that allows its
    request; one of those that it requires, none of those that it excludes, and has the features that it asks for, where
    the platform has partitions, names and features."""
    asked = {str(row["job_id"]): row for row in workload}
    partitions = platform.get("partitions", [])
    names, features = platform.get("names"), platform.get("features", [])
    for place in places:
        job, node, what = asked[place["job_id"]], place["node"], f"job {place['job_id']} on node {place['node']}"
        inside = not partitions or any(node in one["nodes"] for one in taking(job, partitions))
        assert inside, f"{what}: partition {job.get('partition')}, queue {job.get('queue')}"
        if names is not None:
            assert not job.get("required_nodes") or names[node] in job["required_nodes"].split(","), what
            assert names[node] not in (job.get("excluded_nodes") or "").split(","), what
        if job.get("features") and any(features):
            has = has_them(job["features"], features[node])
            assert has, f"{what} with {features[node]}: {job['features']}"


def as_asked(job: dict[str, Any], partitions: Rows) -> dict[str, Any]:
    """A job that asks for whole nodes, if the first partition that takes it gives them."""
    return job | {"exclusive": True} if any(one.get("exclusive") for one in taking(job, partitions)[:1]) else job


def taking(job: dict[str, Any], partitions: Rows) -> Rows:
    """The partitions that a job names, in its order, and that allow its request."""
    known = {one["name"]: one for one in partitions}
    queue = job.get("queue") if job.get("queue") in known else None
    named = job.get("partition") or queue or ",".join(name for name in known if known[name].get("default"))
    asked = [known[name] for name in re.split(", *", named)] if known else []
    return [one for one in asked if one.get("up", True) and job["walltime_s"] <= (one.get("max_s") or math.inf)]


def is_alone(job: dict[str, Any], platform: dict[str, Any]) -> bool:
    """Must nobody be on the nodes of a job that asks for whole ones? Where it says no number of nodes, if its tasks can
    be dealt out evenly; not looked at where it asks for more, or may not lie on all nodes."""
    sizes = platform["cores"]
    if not job.get("exclusive") or job.get("nodes") or job.get("single_node") or len(set(sizes)) == 1:
        return bool(job.get("exclusive"))
    if platform.get("partitions") or any(job.get(name) for name in BEYOND_CORES):
        return False
    per = job.get("cores_per_task") or 1
    tasks = job.get("tasks") or -(-job["cores"] // per)
    return any(sum(-(-tasks // n) * per <= size for size in sizes) >= n for n in range(1, len(sizes) + 1))


def has_them(asked: str, features: list[str]) -> bool:
    """Innermost parentheses first: each becomes one word, which is true or false."""
    while inner := re.search(r"\(([^()]*)\)", asked):
        asked = asked[: inner.start()] + f"={has_them(inner[1], features)}" + asked[inner.end() :]
    has = True
    for either, word in re.findall("([|&,]?)([^|&,]+)", asked):
        here = word == "=True" or word in features
        has = has or here if either == "|" else has and here
    return has


def runs(jobs: Rows, until_s: float | None) -> dict[str, tuple[int, int]]:
    """Job id -> (start, end), microseconds, of what has started."""
    found = {}
    for row in jobs:
        if row["start_s"] is not None:
            end = row["finish_s"] if row["finish_s"] is not None else until_s
            assert end is not None
            found[row["job_id"]] = (micro(row["start_s"]), micro(end))
    return found


def least_uses(job: dict[str, Any], cores: int) -> dict[str, int]:
    """What a job uses at least of further kinds on a node on which it has so many cores."""
    memory = (job.get("memory_mb_per_node") or 0) + (job.get("memory_mb_per_core") or 0) * cores
    gpus, per = job.get("gpus_per_node") or 0, job.get("cores_per_task") or 1
    if job.get("tasks") and job["tasks"] * per == job["cores"] and not job.get("exclusive"):
        gpus += (job.get("gpus_per_task") or 0) * (cores // per)
    kind = job.get("gpu_kind")
    return {"memory": memory, "gpu": gpus, **({f"gpu:{kind}": gpus} if kind else {})}


def nothing_overused(jobs: Rows, places: Rows, workload: Rows, platform: dict[str, Any], until_s: float | None) -> None:
    """At no instant is more of a resource kind used on a node than the node has, or is a job on a node beside one that
    asks for whole nodes; intervals are half-open."""
    asked = {str(row["job_id"]): row for row in workload}
    spans = runs(jobs, until_s)
    changes: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for place in places:
        if place["job_id"] not in spans:
            continue
        start, end = spans[place["job_id"]]
        uses = {"cores": place["cores"], "alone": WHOLE if is_alone(asked[place["job_id"]], platform) else 1}
        if asked[place["job_id"]].get("single_node"):
            uses |= {kind: asked[place["job_id"]].get(f"demand_{kind}") or 0 for kind in platform.get("resources", {})}
        for kind, amount in least_uses(asked[place["job_id"]], place["cores"]).items():
            if kind in platform.get("resources", {}):
                uses[kind] = uses.get(kind, 0) + amount
        for kind, amount in uses.items():
            changes[place["node"], kind] += [(start, amount), (end, -amount)]
    for (node, kind), events in changes.items():
        capacity = {"cores": platform["cores"][node], "alone": WHOLE}.get(kind) or platform["resources"][kind][node]
        used = 0
        for time, amount in sorted(events):  # at one instant what ends comes before what starts
            used += amount
            assert used <= capacity, f"{kind} of node {node} at {time / 1e6} s: {used} of {capacity}"


def nodes_cover(nodes: Rows, number: int, begin: int, end: int) -> None:
    """The states of each node follow each other without gap or overlap and add up to the window."""
    by_node: dict[int, Rows] = defaultdict(list)
    for row in nodes:
        by_node[row["node"]].append(row)
    assert set(by_node) == (set(range(number)) if end > begin else set()), sorted(by_node)
    for node, mine in by_node.items():
        time = begin
        for row in mine:
            assert row["state"] in STATES and micro(row["from_s"]) == time < micro(row["to_s"]), f"node {node}: {row}"
            time = micro(row["to_s"])
        assert time == end, f"node {node} ends at {time / 1e6} s"


def states_follow(nodes: Rows, platform: dict[str, Any], begin: int, end: int) -> None:
    """States change only as nodes can, and a switch lasts as long as its profile says (less only where the window cuts
    it)."""
    before: dict[str, Any] | None = None
    for row in nodes:
        profile = platform["profiles"][platform["profile_of"][row["node"]]]
        instant = {s for s in ("switching_on", "switching_off") if half_up(profile[s.replace("ing", "") + "_s"]) == 0}
        if before is not None and before["node"] == row["node"]:
            assert row["state"] in reachable(before["state"], instant), (
                f"{before['state']} -> {row['state']}, node {row['node']}"
            )
        if row["state"] in ("switching_on", "switching_off"):
            assert profile["can_switch"], row
            length = half_up(profile[row["state"].replace("ing", "") + "_s"])
            lasted = micro(row["to_s"]) - micro(row["from_s"])
            cut = micro(row["from_s"]) == begin or micro(row["to_s"]) == end
            assert lasted == length or (cut and lasted < length), row
        before = row


def reachable(state: str, instant: set[str]) -> set[str]:
    """States that may follow in the table: idle or off for no time, and a switch of no length, leave no row."""
    found = set(FOLLOWS[state])
    while True:
        more = set(found)
        for passed in found & (instant | {"idle", "off"}):
            more |= FOLLOWS[passed]
        if more == found:
            return found - {state}
        found = more


def computing_when_jobs_run(jobs: Rows, places: Rows, nodes: Rows, begin: int, end: int) -> None:
    """A node computes exactly while at least one of its jobs runs."""
    spans = runs(jobs, end / 1e6)
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place in places:
        if place["job_id"] in spans and spans[place["job_id"]][1] > spans[place["job_id"]][0]:
            expected[place["node"]].append(spans[place["job_id"]])
    seen: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in nodes:
        if row["state"] == "computing":
            seen[row["node"]].append((micro(row["from_s"]), micro(row["to_s"])))
    for node in set(expected) | set(seen):
        assert joined(expected[node]) == joined(seen[node]), f"node {node}"


def joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of intervals."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def ledgers_add_up(nodes: Rows, power: Rows, number: int, begin: int, end: int) -> None:
    """`power` has the seconds that `nodes` shows; over all states they are makespan x nodes; switches are counted at
    least as shown."""
    shown: dict[tuple[int, str], int] = defaultdict(int)
    begun: dict[tuple[int, str], int] = defaultdict(int)
    for row in nodes:
        shown[row["node"], row["state"]] += micro(row["to_s"]) - micro(row["from_s"])
        begun[row["node"], row["state"]] += micro(row["from_s"]) > begin
    total = 0
    for row in power:
        key = row["node"], row["state"]
        assert abs(row["seconds"] * 1e6 - shown[key]) <= 1e-9 * max(1, end), (
            f"{key}: {row['seconds']} s, shown {shown[key] / 1e6}"
        )
        total += shown.pop(key, 0)
        if row["state"] in ("switching_on", "switching_off"):
            assert row["transitions"] >= begun[key], key
    assert not any(shown.values()), f"states that `power` leaves out: {dict(shown)}"
    assert total == number * (end - begin)


def joules_add_up(
    jobs: Rows, places: Rows, workload: Rows, nodes: Rows, power: Rows, platform: dict[str, Any], begin: int, end: int
) -> None:
    """Joules = watts x seconds; computing adds (computing - idle) x load x share of the node x seconds of its jobs.
    What a job has beyond what it asks for does not compute."""
    asked = {str(row["job_id"]): row for row in workload}
    has: dict[str, int] = defaultdict(int)
    for place in places:
        has[place["job_id"]] += place["cores"]
    spans = runs(jobs, end / 1e6)
    effort: dict[int, float] = defaultdict(float)  # node -> load x core seconds
    for place in places:
        if place["job_id"] in spans:
            start, stop = spans[place["job_id"]]
            job = asked[place["job_id"]]
            computing = place["cores"] * job["cores"] / has[place["job_id"]]
            effort[place["node"]] += job.get("load", 1.0) * computing * (stop - start) / 1e6
    for row in power:
        profile = platform["profiles"][platform["profile_of"][row["node"]]]
        seconds = row["seconds"]
        if row["state"] == "computing":
            extra = (profile["computing_w"] - profile["idle_w"]) * effort[row["node"]] / platform["cores"][row["node"]]
            expected = profile["idle_w"] * seconds + extra
        else:
            expected = profile[row["state"] + "_w"] * seconds
        if "joules" not in row:  # no node has a power profile: no energy is counted
            assert expected == 0.0
            continue
        assert math.isclose(float(row["joules"]), expected, rel_tol=1e-9, abs_tol=1e-6), f"{row}: expected {expected} J"
