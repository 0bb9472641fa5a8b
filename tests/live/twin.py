"""The same world twice: inside the kernel, and on a machine that is asked from outside decision by decision."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from escala.live import Desk
from tests.laws.laws import rows
from tests.live.machine import Machine
from tests.oracle.engines import (
    job_differences,
    place_differences,
    platform_of,
    power_differences,
    run_kernel,
    state_differences,
)
from tests.oracle.whole import draw_whole
from tests.oracle.worlds import ASKED as SHAPES
from tests.oracle.worlds import CONSERVATIVE, SCHEDULERS, Case, draw, draw_jobs, draw_platform, is_possible, shape_jobs

RUN_ONLY = ("until_s", "oversized", "calls_s", "start_off")
KINDS = {"pool": [24], "one-core": [1] * 20, "multi-core": [4, 2, 4, 3, 4, 4]}
ASKED = tuple(name for name in SCHEDULERS if name != "random")


def askable(case: Case) -> Case | None:
    """The world with policies and options that may be asked from outside; None where nothing is left of it."""
    options = {name: value for name, value in case.options.items() if name not in ("until_s", "oversized", "calls_s")}
    for name in ("estimate", "order_estimate"):
        if options.get(name) in ("runtime", "estimate_s"):
            options[name] = "walltime"
    if options["shutdown"] == "arrivals-known":
        options["shutdown"] = "timeout:2"
    if options["scheduler"].startswith("conservative"):
        options["rebuild"] = True
    for ending in ("estimate=runtime", "estimate=estimate_s"):
        if ending in options["scheduler"]:
            return None
    platform = {name: value for name, value in case.platform.items() if name != "partitions"}
    apart = ("partition", "queue")  # a desk knows none
    jobs = [{name: value for name, value in job.items() if name not in apart} for job in case.jobs]
    jobs = [job for job in jobs if is_possible(job, platform, "never")]
    return replace(case, platform=platform, options=options, jobs=jobs) if jobs else None


def differences(
    case: Case, restart_every: int = 10, scheduler: Any = None, shutdown: Any = None, kind: type[Machine] = Machine
) -> list[str]:
    """What the machine did otherwise than the run inside the kernel; empty if nothing. scheduler, shutdown: make
    objects, one a desk."""
    expected = run_kernel(case)
    options = {name: value for name, value in case.options.items() if name not in RUN_ONLY}
    platform = platform_of(case)

    def make() -> Desk:
        objects = {
            name: made() for name, made in (("scheduler", scheduler), ("shutdown", shutdown)) if made is not None
        }
        return Desk(platform, **{**options, **objects})

    machine = kind(case.platform, case.jobs, case.options.get("start_off", False))
    with tempfile.TemporaryDirectory() as folder:
        machine.run(make, Path(folder) / "state.json", restart_every)
    return table_differences(machine.tables(), expected)


def table_differences(tables: Sequence[Any], expected: Any) -> list[str]:
    """What jobs, allocations, nodes and power from outside have otherwise than a run inside the kernel."""
    jobs, allocations, nodes, power = tables
    table = [{name: value for name, value in row.items() if name != "estimate_s"} for row in rows(expected.jobs)]
    return (
        job_differences(jobs, table)
        + place_differences(allocations, rows(expected.allocations))
        + state_differences(nodes, rows(expected.nodes))
        + power_differences(power, rows(expected.power))
    )


def case_of(scheduler: str, shutdown: str, kind: str, jobs: int, grid: float = 1.0, **options: Any) -> Case:
    """A world with every node of a kind. grid: of its times, s."""
    rng = random.Random(f"twin/{kind}")
    cores = KINDS[kind]
    platform = draw_platform(rng, grid, False, len(cores))
    profile = {**platform["profiles"][0], "can_switch": True, "switch_on_s": 3 * grid, "switch_off_s": 2 * grid}
    platform = {"cores": cores, "profiles": [profile], "profile_of": [0] * len(cores)}
    asked = {"scheduler": scheduler, "shutdown": shutdown, "head": "lowest-id", **options}
    asked["shutdown"] = shutdown.replace("off-reservation:1", "off-reservation:0") if len(cores) == 1 else shutdown
    case = askable(Case(platform, draw_jobs(rng, grid, platform, asked, False, jobs), asked))
    assert case is not None
    return case


def shaped_case(scheduler: str, shutdown: str, number: int, jobs: int, **options: Any) -> Case:
    """World `number` in which most jobs ask for nodes, tasks, memory, GPUs, whole nodes or nodes by name or feature."""
    rng = random.Random(f"shaped/{number}")
    platform = draw_platform(rng, 1.0, True, 6)
    platform |= {"cores": [4] * 6, "resources": {"memory": [6, 6, 4, 6, 6, 8], "gpu": [0, 2, 2, 0, 3, 1]}}
    platform["profiles"] = [{**one, "can_switch": True} for one in platform["profiles"]]
    asked = {"scheduler": scheduler, "shutdown": shutdown, "head": "lowest-id", **options}
    found = draw_jobs(rng, 1.0, platform, asked, True, jobs)
    shape_jobs(rng, found, platform, asked)
    case = askable(Case(platform, found, asked))
    assert case is not None and sum(any(job[name] is not None for name in SHAPES) for job in case.jobs) > jobs / 3
    return case


def whole_case(scheduler: str, shutdown: str, number: int, jobs: int) -> Case:
    """The same on nodes of several sizes, which more jobs have to themselves."""
    case = shaped_case(scheduler, shutdown, number, jobs)
    case.platform["cores"] = [4, 8, 4, 6, 4, 12]
    assert draw_whole(random.Random(f"whole/{number}"), case)
    return case


def world(seed: int, number: int, large: float = 0.05, shaped: bool = False) -> Case | None:
    """World `number` of a seed, always the same. shaped: jobs may ask for more than cores. Where latest-released and
    packer count cores of any nodes otherwise beside whole jobs, a desk that knows of none decides otherwise than a run
    whose log has some: no such jobs there."""
    case = draw(random.Random(f"live/{seed}/{number}"), ASKED, 25, large, shaped)
    alike = case.options.get("head") != "latest-released" and "packer" not in case.options["scheduler"]
    if shaped and number % 3 == 0 and alike:
        draw_whole(random.Random(f"live/{seed}/{number}/whole"), case)
    return askable(case)


__all__ = [
    "ASKED",
    "CONSERVATIVE",
    "KINDS",
    "askable",
    "case_of",
    "differences",
    "platform_of",
    "shaped_case",
    "whole_case",
    "world",
]
