"""Queueing and switching on generated days, beside what the dissertation prints for T(0): the second table of
docs/generators.md.

    python bench/grid5000_days.py [DAYS]

Each day by itself, as there: all nodes off at its start, scheduler SAF, nodes switched off when idle, cut at midnight,
requests and run times cut at 24 h. Means over days.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

import escala

# stretch, transitions
TABLE_5 = {"econome": (0.15, 106.1), "graphite": (0.26, 42.2), "orion": (0.30, 42.4), "taurus": (0.22, 82.1)}
DAY_S = 86400.0


def main(days: int) -> None:
    """Print the table."""
    print("| cluster | mean stretch | median day's stretch | transitions a day | jobs not started by midnight % |")
    print("|---|---|---|---|---|")
    for cluster, (stretch, transitions) in TABLE_5.items():
        platform = escala.read_platform(cluster)
        log = escala.workload.generate.grid5000(cluster, days, seed=0)
        cut = log.with_jobs(log.jobs.with_columns(pl.col("runtime_s", "walltime_s").clip(upper_bound=DAY_S)))
        stretches, switches, waiting = [], [], []
        for day in cut.split_days():
            if len(day) < 2:
                continue
            result = escala.simulate(
                day, platform, scheduler="saf", shutdown="timeout:0", until_s=DAY_S, start_off=True
            )
            wait = result.jobs["start_s"].fill_null(DAY_S) - result.jobs["submit_s"]
            stretches.append((wait / result.jobs["walltime_s"]).mean())
            waiting.append(result.jobs["start_s"].is_null().mean())
            switches.append(result.power["transitions"].sum())
        print(
            f"| {cluster} | {stretch:.2f} / {np.mean(stretches):.2f} | {np.median(stretches):.2f} "
            f"| {transitions:.0f} / {np.mean(switches):.0f} | {100 * np.mean(waiting):.0f} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
