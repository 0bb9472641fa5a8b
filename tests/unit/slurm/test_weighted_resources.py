"""Weighted resources by hand: TRES weights of priorities, billing weights of use, and UsageFactor of a QOS.

Sources: https://slurm.schedmd.com/slurm.conf.html (PriorityWeightTRES, TRESBillingWeights), priority_multifactor.html,
tres.html.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import EscalaError
from escala.kernel.slurm import tables as t
from escala.platform.limits import QOS, bounds_of_row
from escala.platform.site_write import site_text
from escala.platform.tres_weights import weights_of
from escala.slurm import settings_of
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asking
from escala.slurm.run import play

SITE = """\
name = "weighted"
[[nodes]]
names = "n[1-4]"
cores = 8
memory_mb = 16384
gpus = {{a100 = 2, t4 = 2}}
[[partitions]]
name = "all"
nodes = "n[1-4]"
default = true
{first}
[[partitions]]
name = "half"
nodes = "n[3-4]"
{second}
[slurm]
PriorityType = "priority/multifactor"
PriorityCalcPeriod = "1"
PriorityDecayHalfLife = "0"
AccountingStorageType = "accounting_storage/slurmdbd"
SelectTypeParameters = "CR_CPU_Memory"
{settings}
[qos]
normal = 0
twice = {{usage_factor = 2.0}}
free = {{usage_factor = 0.0}}
"""


def site(tmp_path: Path, first: str = "", second: str = "", settings: str = "") -> Any:
    path = tmp_path / "site.toml"
    path.write_text(SITE.format(first=first, second=second, settings=settings))
    return escala.read_site(path)


def jobs(n: int, **columns: Any) -> escala.Workload:
    usual: dict[str, Any] = {
        "submit_s": [float(k) for k in range(n)],
        "runtime_s": [600.0] * n,
        "walltime_s": [3600.0] * n,
    }
    return escala.Workload.from_jobs(
        {**usual, "nodes": [1] * n, "user": ["u"] * n, **columns}, origin_s=1_800_000_000.0
    )


def world(place: Any, work: escala.Workload) -> t.World:
    settings = settings_of(place)
    return arrays_of(work, place, settings, Asking(work, place, settings).asked())


def test_a_job_gains_the_weighted_share_of_its_partition_that_it_asks_for(tmp_path: Path) -> None:
    """all: 32 CPUs, 64 GB, 4 nodes, 16 GPUs of which 8 are a100; half has half of each."""
    settings = 'PriorityWeightTRES = "CPU=3200,Mem=6400,Node=400,GRES/gpu=1600,GRES/gpu:a100=800"'
    place = site(tmp_path, settings=settings)
    asked = {
        "nodes": [2, 2, 1],
        "tasks": [4, 4, 1],
        "cores_per_task": [2, 2, 1],
        "memory_mb_per_core": [1024, 1024, None],
        "memory_mb_per_node": [None, None, 4096],
        "gpus_per_node": [1, 1, 2],
        "gpu_kind": ["a100", "a100", "t4"],
        "partition": ["all", "half", "all"],
    }
    base = world(place, jobs(3, **asked)).records.rest[:, t.OF_TRES].tolist()
    first = 8 * 100 + 8 * 100 + 2 * 100 + 2 * 100 + 2 * 100
    assert base == [first, 2 * first, 100 + 4 * 100 + 100 + 2 * 100]


def test_the_larger_weighted_job_goes_first(tmp_path: Path) -> None:
    """Two jobs of the whole machine wait; the last asks for more memory, and passes."""
    asked = {"nodes": [4, 4, 4], "tasks": [32, 32, 32], "memory_mb_per_node": [1024, 1024, 8192]}
    order = (
        escala.simulate(jobs(3, **asked), site(tmp_path), scheduler="slurm").jobs.sort("start_s")["job_id"].to_list()
    )
    assert order == ["1", "2", "3"]
    weighted = site(tmp_path, settings='PriorityWeightTRES = "Mem=1000"')
    order = escala.simulate(jobs(3, **asked), weighted, scheduler="slurm").jobs.sort("start_s")["job_id"].to_list()
    assert order == ["1", "3", "2"]


FAIR = "PriorityWeightFairshare = 1000\n"
ONE = {
    "nodes": [2],
    "tasks": [4],
    "cores_per_task": [2],
    "memory_mb_per_core": [512],
    "gpus_per_node": [1],
    "gpu_kind": ["a100"],
}


def charged(place: Any, **columns: Any) -> float:
    """What a second of the one job was charged."""
    work = jobs(1, **{**ONE, **columns})
    settings = settings_of(place)
    run = play(work, place, settings, Asking(work, place, settings).asked())
    ran = (
        int(run.jobs.finish[0] + run.rules.epoch_us) // t.SECOND
        - int(run.jobs.start[0] + run.rules.epoch_us) // t.SECOND
    )
    return float(run.shares.usage[run.shares.of_job[0]]) / ran


@pytest.mark.parametrize(
    ("weights", "settings", "second"),
    [
        ("", "", 8.0),  # CPUs alone
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", "", 8 * 1.0 + 4 * 0.25 + 2 * 2.0),
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.0,GRES/gpu:a100=5,GRES/gpu:t4=9,Node=.5", "", 8.0 + 1.0 + 4.0 + 2 * 5 + 2 * 0.5),
        ("CPU=1.0,Mem=0.25G,GRES/gpu=5.0", 'PriorityFlags = "MAX_TRES"', 10.0),
        ("CPU=1.0,Mem=3G,GRES/gpu=5.0", 'PriorityFlags = "MAX_TRES"', 12.0),
        ("GRES/gpu:t4=9", "", 0.0),
    ],
)
def test_use_is_billed_as_the_partition_says(tmp_path: Path, weights: str, settings: str, second: float) -> None:
    """8 CPUs, 4 GB, 2 nodes, 2 a100 a second."""
    told = f'tres_billing_weights = "{weights}"' if weights else ""
    assert charged(site(tmp_path, first=told, settings=FAIR + settings)) == pytest.approx(second)
    # of the other partition
    assert charged(site(tmp_path, second=told, settings=FAIR + settings)) == pytest.approx(8.0)
    assert charged(site(tmp_path, second=told, settings=FAIR + settings), partition=["half"]) == pytest.approx(second)


def test_memory_that_is_not_given_away_is_billed_by_select_linear_alone(tmp_path: Path) -> None:
    """As asked for; select/cons_tres has 0 in memory_allocated without CR_..._Memory."""
    place = site(tmp_path, first='tres_billing_weights = "Mem=1G"', settings=FAIR)
    text = (tmp_path / "site.toml").read_text()
    (tmp_path / "site.toml").write_text(text.replace("CR_CPU_Memory", "CR_CPU"))
    assert charged(place) == pytest.approx(4.0)
    assert charged(escala.read_site(tmp_path / "site.toml")) == 0.0
    (tmp_path / "site.toml").write_text(
        text.replace("CR_CPU_Memory", "CR_CPU").replace("[slurm]", '[slurm]\nSelectType = "select/linear"')
    )
    by_node = {"memory_mb_per_core": [None], "memory_mb_per_node": [1024]}
    assert charged(escala.read_site(tmp_path / "site.toml"), **by_node) == pytest.approx(2.0)


@pytest.mark.parametrize(("qos", "factor"), [(None, 1.0), ("normal", 1.0), ("twice", 2.0), ("free", 0.0)])
def test_a_qos_counts_by_its_factor(tmp_path: Path, qos: str | None, factor: float) -> None:
    assert charged(site(tmp_path, settings=FAIR), qos=[qos]) == pytest.approx(8.0 * factor)


def test_a_factor_alone_is_no_limit(tmp_path: Path) -> None:
    place = site(tmp_path)
    run = world(place, jobs(1, qos=["twice"]))
    assert run.rules.limited == 0 and not settings_of(place).unread


def test_weights_as_they_are_written() -> None:
    assert weights_of("CPU=1.0,Mem=0.25G,GRES/gpu:A100=.5,node=2K", "here") == {
        "cpu": 1.0,
        "mem": 0.25 / 1024,
        "gpu:A100": 0.5,
        "node": 2 / 1024,
    }
    assert weights_of("mem=.25", "here") == weights_of("Mem=0.25M", "here") == {"mem": 0.25}
    assert weights_of("(null)", "here") == weights_of("", "here") == {}
    unread: list[str] = []
    assert weights_of("cpu=2,license/matlab=3,billing=1", "here", unread) == {"cpu": 2.0}
    assert unread == ["here: license/matlab=3", "here: billing=1"]
    for wrong in ("cpu", "cpu=", "cpu=-1", "cpu=one", "cpu=1X", "license/matlab=1"):
        with pytest.raises(EscalaError, match="here"):
            weights_of(wrong, "here")


def test_weights_come_from_both_kinds_of_files_and_are_written_back(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=c\nPriorityType=priority/multifactor\nPriorityWeightTRES=CPU=1000,GRES/gpu=2000,License/x=3\nPriorityFlags=MAX_TRES\n"
        'NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES TRESBillingWeights="CPU=1.0,Mem=0.25G"\n'
    )
    place = escala.read_site(conf)
    settings = settings_of(place)
    assert settings.weight_tres == (("cpu", 1000.0), ("gpu", 2000.0)) and settings.max_tres
    assert any("License/x=3" in one for one in settings.unread)
    assert place.partitions[0].tres_billing_weights == "CPU=1.0,Mem=0.25G" and not place.unread
    toml = tmp_path / "written.toml"
    toml.write_text(site_text(place))
    assert escala.read_site(toml) == place
    conf.write_text(conf.read_text().replace("Mem=0.25G", "Mem=much"))
    with pytest.raises(EscalaError, match="Mem=much"):
        escala.read_site(conf)
    (tmp_path / "bad.toml").write_text(SITE.format(first='tres_billing_weights = "CPU"', second="", settings=""))
    with pytest.raises(EscalaError, match="tres_billing_weights"):
        escala.read_site(tmp_path / "bad.toml")


def test_factors_of_sacctmgr() -> None:
    unread: list[str] = []
    assert bounds_of_row({"usagefactor": "0.500000"}, QOS, "qos a", unread) == {"usage_factor": 0.5}
    assert bounds_of_row({"usagefactor": "1.000000"}, QOS, "qos a", unread) == {} and not unread
    with pytest.raises(EscalaError, match="no factor"):
        bounds_of_row({"usagefactor": "-1"}, QOS, "qos a", unread)


def test_the_usage_is_the_sum_of_what_each_run_is_billed(tmp_path: Path) -> None:
    """Many jobs of several users: the usage without decay is the sum of what each run is billed."""
    draw = np.random.default_rng(28)
    place = site(tmp_path, first='tres_billing_weights = "CPU=1.5,Node=0.25"', settings=FAIR)
    n = 60
    work = jobs(
        n,
        submit_s=np.sort(draw.uniform(0, 3000, n)),
        nodes=draw.integers(1, 4, n),
        tasks=draw.integers(4, 9, n),
        memory_mb_per_core=[256] * n,
        user=draw.choice(["u", "v"], n),
        qos=draw.choice(["normal", "twice"], n),
    )
    settings = settings_of(place)
    run = play(work, place, settings, Asking(work, place, settings).asked())
    told = dict.fromkeys(("u", "v"), 0.0)
    for j in range(n):
        rows = range(run.jobs.first[j], run.jobs.last[j])
        cpus = sum(int(run.allocated.cpus[at]) for at in rows)
        ran = (
            int(run.jobs.finish[j] + run.rules.epoch_us) // t.SECOND
            - int(run.jobs.start[j] + run.rules.epoch_us) // t.SECOND
        )
        factor = 2.0 if work.jobs["qos"][j] == "twice" else 1.0
        told[work.jobs["user"][j]] += factor * (1.5 * cpus + 0.25 * len(rows)) * ran
    for user, usage in told.items():
        row = next(int(run.shares.of_job[j]) for j in range(n) if work.jobs["user"][j] == user)
        assert run.shares.usage[row] == pytest.approx(usage)
