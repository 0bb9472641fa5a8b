"""The two engines on one world, and how their tables differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.laws.laws import Rows, rows
from tests.oracle.oracle import Tables, simulate
from tests.oracle.worlds import Case


def run_oracle(case: Case) -> Tables:
    """The oracle knows no generator: the keys of the scheduler "random", one a job, are drawn here as Escala draws
    them."""
    options = dict(case.options)
    seed = options.pop("seed", 0)
    if options.get("scheduler", "").startswith("random"):
        options["keys"] = list(np.random.default_rng([seed, 0x5C4ED]).random(len(case.jobs)))
    return simulate(case.jobs, case.platform, **options)


class Calling:
    """first-fit or sjf-fit as a policy of commands, which asks at its first decision to be called at these times (s)
    too."""

    role = "scheduler"

    def __init__(self, name: str, calls_s: list[float]) -> None:
        self.shortest_first, self.calls_s = name == "sjf-fit", calls_s

    def decide(self, view: Any, act: Any) -> None:
        for time in self.calls_s:
            if time > view.now_s:
                assert act.call_at(time), act.refusal
        self.calls_s = []
        for job in sorted(view.queue, key=lambda job: job.walltime_s) if self.shortest_first else view.queue:
            act.start(job)


def run_kernel(case: Case) -> Any:
    """`escala.simulate` on the same world."""
    import escala

    options = dict(case.options)
    if "calls_s" in options:
        options["scheduler"] = Calling(options["scheduler"], options.pop("calls_s"))
    return escala.simulate(escala.Workload.from_jobs(case.jobs), platform_of(case), **options)


def platform_of(case: Case) -> Any:
    """Its nodes as an `escala.Platform`."""
    import escala
    from escala.platform.closures import Closure

    site = {name: tuple(case.platform[name]) for name in ("names", "features") if name in case.platform}
    if "partitions" in case.platform:
        site["partitions"] = tuple(
            escala.platform.site.Partition(**{**one, "nodes": tuple(one["nodes"])})
            for one in case.platform["partitions"]
        )
    if "closed" in case.platform:
        site["closed"] = tuple(
            Closure(tuple(one["nodes"]), one["from_s"], one["until_s"], one["kind"], one["requeue"])
            for one in case.platform["closed"]
        )
    return (escala.Site if site else escala.Platform)(
        name="world",
        cores=case.platform["cores"],
        profiles=tuple(
            escala.PowerProfile(name=f"p{k}", **profile) for k, profile in enumerate(case.platform["profiles"])
        ),
        profile_of=case.platform["profile_of"],
        resources=case.platform.get("resources", {}),
        node_speed=case.platform.get("node_speed"),
        **site,
    )


SUMMED = ("seconds", "joules", "transitions")
ENGINES = {"oracle": run_oracle, "kernel": run_kernel}


def differences(case: Case) -> list[str]:
    """What the kernel's Result has otherwise than the oracle's tables; empty if nothing."""
    try:
        expected = run_oracle(case)
    except Exception as error:
        return [f"the oracle fails: {repr(error)[:300]}"]
    try:
        got = run_kernel(case)
    except Exception as error:
        return [f"the kernel fails: {repr(error)[:300]}"]
    return (
        job_differences(expected.jobs, rows(got.jobs))
        + place_differences(expected.allocations, rows(got.allocations))
        + state_differences(expected.nodes, rows(got.nodes))
        + power_differences(expected.power, rows(got.power))
        + total_differences(expected.power, rows(got.totals))
    )


def job_differences(expected: Rows, got: Rows) -> list[str]:
    """Job by job; the kernel's table may be in another order."""
    mine = {row["job_id"]: {"estimate_s": None, **row} for row in got}
    guessed = bool(got) and "estimate_s" in got[0]
    found = (
        [f"jobs {sorted(set(mine) ^ {row['job_id'] for row in expected})} in one only"]
        if len(mine) != len(expected)
        else []
    )
    columns = [
        "submit_s",
        "start_s",
        "finish_s",
        "wait_s",
        "cores",
        "walltime_s",
        "runtime_s",
        "state",
        "nodes",
    ] + guessed * ["estimate_s"]
    columns += ["lost_s"] if got and "lost_s" in got[0] else []
    for row in expected:
        for column in columns:
            a, b = row[column], mine.get(row["job_id"], {}).get(column)
            if column == "runtime_s" and row["state"] == "REJECTED":
                continue  # nothing ran
            if not same(a, b):
                found.append(f"job {row['job_id']}: {column} should be {a}, kernel {b}")
    return found


def same(a: Any, b: Any) -> bool:
    """Equal; texts also where one is null and the other empty; times to the last microsecond."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return round(a * 1e6) == round(b * 1e6)
    return a == b or (not a and not b and (a in ("", None)) and (b in ("", None)))


def place_differences(expected: Rows, got: Rows) -> list[str]:
    ours = {(row["job_id"], row["node"]): row["cores"] for row in expected}
    theirs = {(row["job_id"], row["node"]): row["cores"] for row in got}
    return [
        f"job {job} on node {node}: should have {ours.get((job, node), 0)} cores, kernel {theirs.get((job, node), 0)}"
        for job, node in sorted(set(ours) | set(theirs))
        if ours.get((job, node)) != theirs.get((job, node))
    ]


def state_differences(expected: Rows, got: Rows) -> list[str]:
    ours, theirs = (
        sorted((row["node"], round(row["from_s"] * 1e6), round(row["to_s"] * 1e6), row["state"]) for row in table)
        for table in (expected, got)
    )
    missing = [
        f"node {n}: should be {s} from {a / 1e6} to {b / 1e6} s"
        for n, a, b, s in ours
        if (n, a, b, s) not in set(theirs)
    ]
    return missing + [
        f"node {n}: is {s} from {a / 1e6} to {b / 1e6} s in the kernel"
        for n, a, b, s in theirs
        if (n, a, b, s) not in set(ours)
    ]


def total_differences(expected: Rows, got: Rows) -> list[str]:
    """What the kernel counted over all nodes."""
    sums = [
        {
            "node": None,
            "state": total["state"],
            **{name: sum(row[name] for row in expected if row["state"] == total["state"]) for name in SUMMED},
        }
        for total in got
    ]
    return [f"total {line}" for line in power_differences(sums, [{"node": None, **row} for row in got])]


def power_differences(expected: Rows, got: Rows) -> list[str]:
    """Seconds, joules (1e-9 relative) and transitions of each node and state; a state never entered may be left out."""
    mine = {(row["node"], row["state"]): row for row in got}
    found = []
    for row in expected:
        key = row["node"], row["state"]
        other = mine.pop(key, {"seconds": 0.0, "joules": 0.0, "transitions": 0})
        if not math.isclose(row["seconds"], other["seconds"], rel_tol=1e-12, abs_tol=1e-7):
            found.append(f"{key}: {row['seconds']} s, kernel {other['seconds']}")
        if not math.isclose(row["joules"], other["joules"], rel_tol=1e-9, abs_tol=1e-7):
            found.append(f"{key}: {float(row['joules'])} J, kernel {other['joules']}")
        if row["transitions"] != other["transitions"]:
            found.append(f"{key}: {row['transitions']} transitions, kernel {other['transitions']}")
    return found + [f"kernel has {key} too" for key in mine]
