"""Small days, and rollouts of one action."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import escala
import escala.envs

DAY_S = 86400.0


def workload(*jobs: tuple[float, float, float, int], users: list[str] | None = None) -> escala.Workload:
    """Jobs as (submit, runtime, walltime, cores)."""
    table: dict[str, Any] = {name: [job[k] for job in jobs] for k, name in enumerate(("submit_s", "runtime_s", "walltime_s", "cores"))}
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
        for name, value in (("reward", reward), ("waste_j", info["waste_j"]), ("late_cores", info["late_cores"]), ("steps", 1.0)):
            sums[name] += np.where(done, 0.0, value)
        done |= terminated | truncated
    return sums
