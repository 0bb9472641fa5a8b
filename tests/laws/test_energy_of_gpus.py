"""Energy with watts of GPUs is the integral of what nodes and GPUs draw over the schedule: each node's watts in each
piece of its life, its idle GPUs while it is on, and those of each job while it runs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala

SITE = """
[[nodes]]
names = "a[1-3]"
cores = 8
gpus = {a100 = 4}
power = "blade"
[[nodes]]
names = "v[1-2]"
cores = 6
gpus = {v100 = 2}
power = "blade"
[[nodes]]
names = "c[1-2]"
cores = 8
power = "blade"
[[nodes]]
names = "t1"
cores = 8
gpus = 4
power = "tesla"
[power.blade]
computing_w = 400
idle_w = 150
off_w = 5
switching_off_w = 90
switching_on_w = 210
switch_off_s = 7.5
switch_on_s = 20.25
gpu_idle_w = {a100 = 52.5, v100 = 40}
gpu_computing_w = {a100 = 400, v100 = 250}
[power.tesla]
computing_w = 300
idle_w = 100
can_switch = false
gpu_idle_w = 9
gpu_computing_w = 70
"""
IDLE = [4 * 52.5] * 3 + [2 * 40.0] * 2 + [0.0] * 2 + [4 * 9.0]
MORE = [347.5] * 3 + [210.0] * 2 + [0.0] * 2 + [61.0]


def draw_log(seed: int) -> Any:
    draw = np.random.default_rng([seed, 0x6B0])
    n = 80
    kind = draw.choice(["a100", "v100", ""], n)
    gpus = np.where(kind == "v100", draw.integers(1, 3, n), draw.integers(0, 5, n))
    gpus = np.where(kind == "", np.minimum(gpus, 2), gpus)
    some = gpus > 0
    return escala.Workload.from_jobs(
        {
            "submit_s": np.sort(draw.integers(0, 3000, n)) / 4,
            "runtime_s": draw.integers(1, 400, n) / 8,
            "walltime_s": np.full(n, 50.0),
            "cores": (nodes := draw.integers(1, 3, n)) * draw.integers(1, 4, n),
            "nodes": nodes,
            "gpus_per_node": [int(g) if g else None for g in gpus],
            "gpu_kind": [str(k) if k and s else None for k, s in zip(kind, some, strict=True)],
            "load": draw.choice([0.0, 0.5, 1.0], n),
        }
    )


def by_hand(result: Any, log: Any, site: Any) -> tuple[dict[int, float], dict[int, float]]:
    """Node -> joules, and those of GPUs: from the table of states and the spans of jobs alone."""
    profiles = [site.profiles[k] for k in site.profile_of]
    spans = {row["job_id"]: row for row in result.jobs.to_dicts() if row["start_s"] is not None}
    asked = {row["job_id"]: row for row in log.jobs.to_dicts()}
    end = result.manifest["window"]["end_s"]
    whole, of_gpus = defaultdict[int, float](float), defaultdict[int, float](float)
    for row in result.nodes.to_dicts():
        node, lasts = row["node"], row["to_s"] - row["from_s"]
        on = row["state"] in ("computing", "idle")
        watts = profiles[node].idle_w if on else getattr(profiles[node], f"{row['state']}_w")
        of_gpus[node] += lasts * IDLE[node] * on
        whole[node] += lasts * watts
    for row in result.allocations.to_dicts():
        job, node, span = asked[row["job_id"]], row["node"], spans[row["job_id"]]
        lasts = (end if span["finish_s"] is None else span["finish_s"]) - span["start_s"]
        own = profiles[node].computing_w - profiles[node].idle_w
        whole[node] += lasts * own * job["load"] * row["cores"] / int(site.cores[node])
        of_gpus[node] += lasts * MORE[node] * (job["gpus_per_node"] or 0)
    return {node: joules + of_gpus[node] for node, joules in whole.items()}, of_gpus


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [
        ("fcfs", {}),
        ("easy", {"shutdown": "timeout:10"}),
        ("easy", {"shutdown": "timeout:10", "until_s": 300.0}),
        ("conservative", {"shutdown": "timeout:0", "start_off": True}),
        ("sjf-fit", {"shutdown": "hold:0.5"}),
        ("slurm", {}),
    ],
)
def test_energy_is_the_integral_over_the_schedule(scheduler: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SITE)
    site = escala.read_site(tmp_path / "site.toml")
    for seed in range(3):
        log = draw_log(seed)
        result = escala.simulate(log, site, scheduler, **options)
        whole, of_gpus = by_hand(result, log, site)
        sums = result.power.drop("state").group_by("node").sum()
        for row in sums.to_dicts():
            assert row["joules"] == pytest.approx(whole[row["node"]], rel=1e-9)
            assert row["gpu_joules"] == pytest.approx(of_gpus[row["node"]], rel=1e-9)
        summary = result.summary()
        assert summary["energy_j"] == pytest.approx(sum(whole.values()), rel=1e-9)
        assert summary["gpu_j"] == pytest.approx(sum(of_gpus.values()), rel=1e-9)
        assert sum(of_gpus.values()) > 0.2 * sum(whole.values()), "they are a part that is seen"
        asleep = result.power.filter(~result.power["state"].is_in(["computing", "idle"]))
        assert asleep["gpu_joules"].sum() == 0.0
