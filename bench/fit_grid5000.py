"""Fit the share of quick visits in the Grid'5000-like generator, and print how close the generator comes to the
published figures.

python bench/fit_grid5000.py            the table of docs/generators.md, with the shares that the package holds
python bench/fit_grid5000.py --fit      the share that meets the sequential submissions of table 2, by bisection
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from escala.workload.describe import describe
from escala.workload.generate_grid5000 import draw, grid5000
from escala.workload.grid5000_clusters import CLUSTERS, Cluster

DAYS = 5000
# table 3 of the dissertation: days in the groups #1 .. #5
TABLE_3 = {
    "econome": (259, 520, 504, 271, 39),
    "graphite": (487, 705, 427, 149, 24),
    "orion": (659, 777, 496, 129, 28),
    "taurus": (441, 947, 612, 130, 22),
}


def sequential(cluster: Cluster, seeds: range) -> float:
    """Share of submissions less than 5 min after the previous one, mean over seeds."""
    shares = []
    for seed in seeds:
        submit = np.asarray(draw(cluster, DAYS, np.random.default_rng(seed))["submit_s"])
        shares.append(np.mean(np.diff(submit) < 300))
    return float(np.mean(shares))


def fit(cluster: Cluster) -> float:
    """The quick share that meets `cluster.sequential`; the same random numbers at each step, so the function is nearly
    monotone."""
    low, high = 0.02, 0.999 - cluster.long_share
    for _ in range(10):
        middle = (low + high) / 2
        met = sequential(replace(cluster, quick_share=middle), range(100, 104))
        low, high = (middle, high) if met < cluster.sequential else (low, middle)
    return (low + high) / 2


def table() -> None:
    """Markdown: published | generated for each cluster, mean of four seeds of DAYS days."""
    print("| cluster | jobs a day | sequential % | utilisation % | groups #1..#5 % | ended in error % |")
    print("|---|---|---|---|---|---|")
    for name, cluster in CLUSTERS.items():
        described = []
        for seed in range(4):
            described.append(describe(grid5000(name, DAYS, seed)))
        jobs = np.mean([d["jobs"] / DAYS for d in described])
        share = np.mean([d["sequential_share"] for d in described])
        used = np.mean([d["utilisation"] for d in described])
        error = np.mean([d["error_share"] for d in described])
        days = _percent(np.mean([list(d["day_groups"].values()) for d in described], axis=0))
        print(
            f"| {name} | {cluster.jobs_per_day:.1f} / {jobs:.1f} | {100 * cluster.sequential:.1f} / {100 * share:.1f} "
            f"| {100 * cluster.utilisation:.1f} / {100 * used:.1f} | {_percent(TABLE_3.get(name))} / {days} | "
            f"{100 * error:.0f} |"
        )


def _percent(days: object) -> str:
    if days is None:
        return "not printed"
    counts = np.asarray(days, np.float64)
    return " ".join(f"{share:.0f}" for share in 100 * counts / counts.sum())


if __name__ == "__main__":
    if "--fit" in sys.argv:
        for name, cluster in CLUSTERS.items():
            print(f"{name}: quick_share {fit(cluster):.3f}")
    else:
        table()
