"""A workload written as Batsim's JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from escala.errors import EscalaError
from escala.workload.batsim import PROFILE_NAMES, check_speed
from escala.workload.columns import NAMED
from escala.workload.files import write_atomic
from escala.workload.table import Workload
from escala.workload.unsayable import refuse_unsayable, warn_unwritten
from escala.workload.whole_nodes import on_hosts

FORM = "Batsim's JSON"


def write_batsim(
    workload: Workload,
    path: str | Path,
    platform_size: int | None = None,
    speed: float | None = None,
    names: Literal["v4", "v5"] = "v4",
    node_cores: int | None = None,
) -> None:
    """Write a workload as Batsim JSON (gzipped if the name ends in `.gz`; the whole file or nothing).

    Jobs with load 0 become delays, with load 1 homogeneous parallel tasks of runtime x `speed` flops (or of their
    `flops`), others a task followed by a delay, so that energy is kept. `speed`: flop/s of one core; needed if any job
    computes. `platform_size`: `nb_res`; by default `max_cores` or the largest job. `names`: profile names of Batsim up
    to 4 or from 5 on. `node_cores`: Batsim's hosts are nodes of so many cores, of which each job takes whole ones;
    `speed` is then the flop/s of a host. Status, recorded waits and queues have no place there.

    Dependencies and priorities are not written (`EscalaWarning`).

    Raises:
        EscalaError: jobs that ask for nodes without `node_cores`, or that do not take whole ones; begin times after
            submission.
    """
    if node_cores is not None:
        workload = on_hosts(workload, node_cores)
    refuse_unsayable(workload, FORM, "or give node_cores=16 (--node-cores 16) where jobs take whole nodes")
    jobs = workload.jobs
    if speed is not None:
        check_speed(speed)
    if speed is None and bool(((jobs["load"] > 0) & jobs["runtime_s"].is_not_nan()).any()):
        raise EscalaError(
            f"workload {workload.name!r}: some jobs compute: give the flop/s of one core of the Batsim platform, "
            "speed=1e9 (--speed 1e9)"
        )
    if names not in PROFILE_NAMES:
        raise EscalaError(f"names is {names!r}: give 'v4' or 'v5'")
    profiles: dict[str, Any] = {}
    rows = [_job(row, profiles, speed, PROFILE_NAMES[names]) for row in jobs.iter_rows(named=True)]
    size = platform_size or workload.max_cores or int(jobs["cores"].max() or 1)  # type: ignore[arg-type]
    head = {"description": f"workload {workload.name}, written by Escala", "nb_res": size}
    if workload.origin_s:
        head["origin_s"] = workload.origin_s
    warn_unwritten(workload, FORM)

    def pieces() -> Iterator[bytes]:
        yield json.dumps(head)[:-1].encode() + b',\n"jobs": [\n'
        yield ",\n".join(json.dumps(row) for row in rows).encode()
        yield b'\n],\n"profiles": {\n'
        yield ",\n".join(f"{json.dumps(name)}: {json.dumps(profile)}" for name, profile in profiles.items()).encode()
        yield b"\n}}\n"

    write_atomic(path, pieces())


def _job(
    row: dict[str, Any], profiles: dict[str, Any], speed: float | None, kinds: tuple[str, str, str, str]
) -> dict[str, Any]:
    """One job; its profile is added to `profiles`."""
    job = {
        "id": row["job_id"],
        "subtime": _short(row["submit_s"]),
        "res": row["cores"],
        "profile": _profile(row, profiles, speed, kinds),
    }
    if row.get("limited", True) and not math.isnan(row["walltime_s"]):
        job["walltime"] = _short(row["walltime_s"])
    if row["user"] is not None:
        job["user"] = row["user"]
    return job | {name: row[name] for name in NAMED if row.get(name) is not None}


def _profile(
    row: dict[str, Any], profiles: dict[str, Any], speed: float | None, kinds: tuple[str, str, str, str]
) -> str:
    """The name of the profile of a job, after what it does; defined in `profiles`."""
    delay, task, uneven, sequence = kinds
    flops, load, cores = row.get("flops"), row["load"], row["cores"]

    def add(name: str, profile: dict[str, Any]) -> str:
        profiles[name] = profile
        return name

    def compute(amount: float) -> str:
        return add(f"c{_short(amount)}", {"type": task, "cpu": _short(amount), "com": 0})

    def wait(seconds: float) -> str:
        return add(f"d{_short(seconds)}", {"type": delay, "delay": _short(seconds)})

    if flops is not None and load < 1.0 and cores > 1:
        # one core does it all, the others so much that the mean is the load
        rest = max(0.0, flops * (load * cores - 1) / (cores - 1))
        return add(
            f"p{cores}x{_short(flops)}x{_short(rest)}",
            {"type": uneven, "cpu": [_short(flops)] + [_short(rest)] * (cores - 1)},
        )
    if flops is not None:
        return compute(flops)
    if load in (0.0, 1.0):
        return compute(row["runtime_s"] * (speed or 0.0)) if load else wait(row["runtime_s"])
    parts = [compute(row["runtime_s"] * load * (speed or 0.0)), wait(row["runtime_s"] * (1.0 - load))]
    return add("+".join(parts), {"type": sequence, "repeat": 1, "seq": parts})


def _short(value: float) -> int | float:
    """Whole numbers without a fraction."""
    return int(value) if value == int(value) and abs(value) < 2**53 else value
