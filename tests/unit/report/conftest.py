"""Runs to report on."""

from __future__ import annotations

import polars as pl
import pytest
from synthetic import Run, run

from escala.metrics import compare


@pytest.fixture(scope="session")
def runs() -> dict[str, Run]:
    """Three policies on the same 400 jobs: one never switches off, one at once, one at once and starts jobs late."""
    return {
        "fcfs + never": run(400, timeout=1e12),
        "fcfs + timeout:0": run(400, timeout=0.0),
        "fcfs + hold": run(400, timeout=0.0, delay=900.0),
    }


@pytest.fixture(scope="session")
def comparison() -> pl.DataFrame:
    """Twelve days: `rule` always saves a tenth of the waste; `agent` (3 seeds) saves a fifth give or take; the wait of
    both is that of `never` give or take.
    """
    rows = []
    for day in range(12):
        waste, wait, noise = 1e6 * (1 + day), 60.0 + day, (-1) ** day * 5.0
        rows.append({"policy": "never", "episode": day, "seed": 0, "waste_j": waste, "mean_wait_s": wait})
        rows.append({"policy": "rule", "episode": day, "seed": 0, "waste_j": 0.9 * waste, "mean_wait_s": wait + noise})
        rows += [
            {
                "policy": "agent",
                "episode": day,
                "seed": s,
                "waste_j": waste * (0.8 + 0.01 * s),
                "mean_wait_s": wait - noise,
            }
            for s in range(3)
        ]
    return compare.episodes(pl.DataFrame(rows), ["waste_j", "mean_wait_s"], reference="never")
