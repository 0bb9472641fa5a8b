"""Laws of Slurm's rules on random sites and jobs: no kind is over-used on any node, no job is outside its partition or
its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.kernel.slurm import tables as t
from escala.options import Options
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.run import play, run_slurm

ORIGIN = 1_800_000_007.0
WORLDS = 60


def world(seed: int, folder: Path, n: int = 40) -> tuple[Any, escala.Workload]:
    """A site of a few nodes with overlapping partitions, and n jobs of all shapes, four a minute; those that can never
    run are dropped."""
    draw = np.random.default_rng([seed, 41])
    groups = [
        f"NodeName=a[1-{draw.integers(1, 5)}] CPUs={draw.integers(1, 9)} RealMemory={draw.integers(2, 9) * 1000} "
        "Features=x Weight=2",
        f"NodeName=b[1-{draw.integers(1, 5)}] CPUs={draw.integers(1, 17)} RealMemory=16000 "
        f"Gres=gpu:k:{draw.integers(1, 5)} Features=x,y",
    ]
    takes = draw.choice(["CR_CPU", "CR_CPU_Memory", "CR_Core_Memory", "CR_CPU,CR_LLN"])
    memory = f"DefMemPerCPU={draw.integers(1, 6) * 100}" if "Memory" in takes else ""
    parameters = [
        f"bf_interval={draw.integers(1, 40)}",
        f"bf_resolution={draw.integers(1, 61)}",
        f"sched_interval={draw.integers(2, 70)}",
    ]
    parameters += list(
        draw.choice(
            ["bf_busy_nodes", "bf_max_job_user=2", "bf_max_job_part=3", "bf_window_linear=30"], 2, replace=False
        )
    )
    path = folder / f"{seed}.conf"
    path.write_text(
        "\n".join(
            [
                "ClusterName=random",
                f"SelectTypeParameters={takes}",
                memory,
                f"SchedulerParameters={','.join(parameters)}",
                f"PriorityType=priority/{draw.choice(['basic', 'multifactor'])}",
                "PriorityWeightAge=1000",
                "PriorityWeightJobSize=300",
                "AccountingStorageType=accounting_storage/slurmdbd",
                *groups,
                "PartitionName=p Nodes=a[1] Default=YES MaxTime=1:00:00",
                "PartitionName=q Nodes=ALL PriorityTier=2",
                f"PartitionName=r Nodes=b[1] OverSubscribe={draw.choice(['EXCLUSIVE', 'NO'])}",
                "",
            ]
        )
    )
    picked = draw.choice(["p", "q", "q,p", "r", None], n, p=[0.2, 0.4, 0.2, 0.1, 0.1])
    some = draw.random((5, n))
    run = draw.exponential(120, n).clip(1)
    columns = {
        "submit_s": np.sort(draw.uniform(0, 15 * n, n)),
        "runtime_s": run,
        "walltime_s": run * draw.uniform(0.8, 3, n),
        "tasks": draw.integers(2, 9, n),
        "nodes": [int(k) if s < 0.4 else None for k, s in zip(draw.integers(1, 3, n), some[0])],
        "cores_per_task": [int(k) if s < 0.2 else None for k, s in zip(draw.integers(1, 3, n), some[1])],
        "memory_mb_per_core": [int(k) if s < 0.3 else None for k, s in zip(draw.integers(100, 900, n), some[2])],
        "gpus_per_node": [int(k) if s < 0.2 else None for k, s in zip(draw.integers(1, 3, n), some[3])],
        "exclusive": [bool(s < 0.1) for s in some[4]],
        "features": [str(k) if s < 0.3 else None for k, s in zip(draw.choice(["x", "y", "x&y", "x|y"], n), some[4])],
        "user": [str(k) for k in draw.integers(0, 4, n)],
        "partition": picked.tolist(),
    }
    return escala.read_site(path), escala.Workload.from_jobs(columns, origin_s=ORIGIN)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_nothing_is_over_used_and_limits_hold(tmp_path: Path, seed: int) -> None:
    site, jobs = world(seed, tmp_path)
    settings = settings_of(site)
    asked = Asking(jobs, site, settings).asked()
    run = play(jobs, site, settings, asked)
    ended = np.flatnonzero(run.jobs.state == t.ENDED)
    assert len(ended) + len(asked.refused) == len(jobs)
    assert (run.jobs.start[ended] >= run.jobs.submit[ended]).all()
    have = {"cpus": run.machine.cpus, "memory": run.machine.memory}
    moments: list[tuple[int, int, int]] = []
    for j in ended:
        at = np.arange(run.jobs.first[j], run.jobs.last[j])
        shape, node = run.jobs.shape[j], run.allocated.node[at]
        allowed = [asked.masks[run.records.mask[k]] for k in range(run.jobs.record[j], run.jobs.record[j + 1])]
        assert any(mask[node].all() for mask in allowed)
        assert len(set(node)) == len(node) >= shape[t.MIN_NODES]
        assert len(node) <= shape[t.MAX_NODES]
        if shape[t.EXCLUSIVE] == 1:
            assert (run.allocated.cpus[at] == have["cpus"][node]).all()
        else:
            assert run.allocated.cpus[at].sum() >= shape[t.MIN_CORES]
        assert (run.allocated.gpus[at].sum(axis=1) >= shape[t.GPUS_NODE]).all()
        moments += [(int(run.jobs.start[j]), 1, int(j)), (int(run.jobs.finish[j]), 0, int(j))]
    used = {
        "cpus": np.zeros(site.n_nodes, int),
        "memory": np.zeros(site.n_nodes, int),
        "gpus": np.zeros(run.machine.gpus.shape, int),
    }
    for _, begins, j in sorted(moments):
        at = np.arange(run.jobs.first[j], run.jobs.last[j])
        for kind in used:
            used[kind][run.allocated.node[at]] += (1 if begins else -1) * getattr(run.allocated, kind)[at]
            assert (used[kind] <= getattr(run.machine, kind)).all()
            assert (used[kind] >= 0).all()


@pytest.mark.parametrize("seed", range(0, WORLDS, 20))
def test_a_replay_repeats_itself_and_its_tables_agree(tmp_path: Path, seed: int) -> None:
    site, jobs = world(seed, tmp_path)
    one, other = (run_slurm(jobs, site, "slurm", Options(oversized="drop")) for _ in range(2))
    assert one.jobs.equals(other.jobs)
    assert one.totals["seconds"].sum() == pytest.approx(
        site.n_nodes * (one.manifest["window"]["end_s"] - one.manifest["window"]["start_s"])
    )
    ran = one.jobs.filter(one.jobs["state"] != "REJECTED")
    assert one.allocations["job_id"].n_unique() == ran.height
