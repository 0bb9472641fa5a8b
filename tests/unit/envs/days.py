"""Small days, and rollouts of one action."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import polars as pl

import escala
import escala.envs

DAY_S = 86400.0


def workload(*jobs: tuple[float, float, float, int], users: list[str] | None = None) -> escala.Workload:
    """Jobs as (submit, runtime, walltime, cores)."""
    table: dict[str, Any] = {
        name: [job[k] for job in jobs] for k, name in enumerate(("submit_s", "runtime_s", "walltime_s", "cores"))
    }
    if users is not None:
        table["user"] = users
    return escala.Workload.from_jobs(table, name="hand")


def constant(always: int, days: list[escala.Workload], platform: Any, **options: Any) -> dict[str, np.ndarray]:
    """Sums over each day, all played at once by one constant action: reward, waste_j, late_cores, steps."""
    n = len(days)
    env = gymnasium.make_vec("escala/OffReservation-v0", num_envs=n, workload=days, platform=platform, **options)
    env.reset(seed=0, options={"day": np.arange(n)})
    sums = {name: np.zeros(n) for name in ("reward", "waste_j", "late_cores", "steps")}
    done = np.zeros(n, bool)
    while not done.all():
        _, reward, terminated, truncated, info = env.step(np.full(n, always))
        for name, value in (
            ("reward", reward),
            ("waste_j", info["waste_j"]),
            ("late_cores", info["late_cores"]),
            ("steps", 1.0),
        ):
            sums[name] += np.where(done, 0.0, value)
        done |= terminated | truncated
    return sums


def scheduling_return(result: escala.Result, day: escala.Workload, n_nodes: int) -> float:
    """What the rewards of a scheduled day must add up to: 0.2 computing - idle, in node-minutes / nodes, less the
    walltimes waited."""
    seconds = dict(result.power.group_by("state").sum().select("state", "seconds").iter_rows())
    return float((0.2 * seconds["computing"] - seconds["idle"]) / 60.0 / n_nodes - _queued(result, day))


def _queued(result: escala.Result, day: escala.Workload) -> float:
    """Sum over jobs of the time in the queue / walltime. The wait of a Result lasts until the start; a job that was
    given nodes left the queue before that, by the nodes' boot."""
    end = float(result.manifest["window"]["end_s"])
    jobs = result.jobs.filter(pl.col("submit_s") <= end)
    given = dict(zip(jobs["job_id"], _given_at(result, jobs), strict=True))
    return sum(
        (min(given[j], end) - s) / w
        for j, s, w in zip(jobs["job_id"], jobs["submit_s"], jobs["walltime_s"], strict=True)
    )


def _given_at(result: escala.Result, jobs: Any) -> list[float]:
    """When each job left the queue: its start, or, where one of its nodes was then just booted for it, the latest
    moment at which a node of it was off."""
    boots: dict[int, list[tuple[float, float]]] = {}
    for node, begin, until, state in result.nodes.select("node", "from_s", "to_s", "state").iter_rows():
        if state == "switching_on":
            boots.setdefault(int(node), []).append((begin, until))
    out = []
    for start, text in jobs.select("start_s", "nodes").iter_rows():
        if not text:
            out.append(float("inf"))
            continue
        own = [n for part in text.split() for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
        began = [b for n in own for b, until in boots.get(n, []) if start is None or until == start]
        out.append(max(began) if began and (start is not None) else (start if start is not None else max(began)))
    return out
