"""Logs of users who ask for much more than their jobs take, each in a way of its own."""

from __future__ import annotations

import numpy as np

import escala

DAY_S = 86400.0
MONDAY_S = 1_700_438_400.0  # 20 November 2023, 0:00 UTC
PLATFORM = "1x8"


def habits(seed: int = 0, jobs: int = 900, days: float = 30.0, origin_s: float = MONDAY_S) -> escala.Workload:
    """Eight users whose jobs take about the same time, by user and request; no job outlives its request."""
    draw = np.random.default_rng(seed)
    user, size = draw.integers(0, 8, jobs), draw.integers(0, 3, jobs)
    runtime = (
        np.floor(250.0 * 2.0 ** (user % 5) * np.array([0.5, 2.0, 8.0])[size] * draw.lognormal(0.0, 0.2, jobs)) + 1.0
    )
    walltime = np.maximum(np.array([3600.0, 6 * 3600.0, 86400.0])[size], np.ceil(runtime) + 1.0)
    columns = {
        "submit_s": np.sort(np.floor(draw.uniform(0.0, days * DAY_S, jobs))),
        "runtime_s": runtime,
        "walltime_s": walltime,
        "cores": draw.choice([1, 2, 4, 8], jobs),
        "user": [f"u{k}" for k in user],
        "queue": draw.choice(["short", "long"], jobs),
    }
    return escala.Workload.from_jobs(columns, name="habits", origin_s=origin_s, max_cores=8)
