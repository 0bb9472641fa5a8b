"""Preemption on random worlds: an independent simulator gives the same starts, and with all of Slurm's rules nothing is
over-used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.drive import drive
from escala.slurm import settings_of
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asking
from escala.slurm.in_name import changed
from escala.slurm.run import play
from tests.oracle import preemption as slow

ORIGIN = 1_800_000_000.0
WORLDS = 80
NAMES = ("low", "mid", "high")


def _drawn_jobs(draw: np.random.Generator, sets: dict[str, set[int]]) -> tuple[list[slow.Job], list[int]]:
    """Jobs of partitions of these nodes, and their limits in s."""
    jobs: list[slow.Job] = []
    limits: list[int] = []
    at = np.sort(draw.integers(0, 500, 24))
    for row in range(24):
        part, qos = (str(one) for one in draw.choice(NAMES, 2, p=[0.5, 0.3, 0.2]))
        run = int(draw.integers(1, 150))
        jobs.append(
            slow.Job(
                row,
                int(at[row]) * slow.SECOND,
                run * slow.SECOND,
                int(draw.integers(1, len(sets[part]) + 1)),
                part,
                qos,
            )
        )
        limits.append(60 * int(draw.integers(run // 60 + 1, 6)))
    return jobs, limits


def drawn(seed: int) -> tuple[str, slow.Site, list[slow.Job], list[int]]:
    """A site.toml, the same site for the slow simulator, its jobs, and their limits in s."""
    draw = np.random.default_rng([seed, 28])
    by_qos, nodes = bool(draw.random() < 0.6), int(draw.integers(2, 9))
    sets = {
        name: set(range(nodes)) if draw.random() < 0.5 else set(range(int(draw.integers(0, nodes - 1)), nodes))
        for name in NAMES
    }
    tiers = [1, 2, 3] if not by_qos or draw.random() < 0.3 else [1, 1, 1]
    modes = [str(one) for one in draw.choice(["requeue", "cancel", "off"], 3, p=[0.6, 0.3, 0.1])]
    words = [str(one) for one in draw.choice(["", "priority", "within"], 3, p=[0.7, 0.15, 0.15])]
    grace, exempt = (
        draw.choice([0, 20, 70], 3, p=[0.6, 0.2, 0.2]).tolist(),
        draw.choice([0, 40], 3, p=[0.7, 0.3]).tolist(),
    )
    below = [set(), {"low"} if draw.random() < 0.8 else set(), {one for one in ("low", "mid") if draw.random() < 0.8}]
    youngest, strict, reorder = bool(draw.random() < 0.3), bool(draw.random() < 0.3), int(draw.integers(0, 4))
    delay = int(draw.choice([120, 7]))
    rank = dict(zip(NAMES, tiers, strict=True)) if not by_qos else dict(zip(NAMES, [0, 10, 20], strict=True))
    flags = "," * youngest + "youngest_first" * youngest + ",strict_order" * strict
    text = f"""\
name = "random"
[[nodes]]
names = "n[0-{nodes - 1}]"
cores = 1
[slurm]
SelectTypeParameters = "CR_CPU"
SchedulerType = "sched/builtin"
SchedulerParameters = "sched_interval=1,requeue_delay={delay}"
PreemptType = "preempt/{"qos" if by_qos else "partition_prio"}"
PreemptMode = "requeue"
PreemptParameters = "reorder_count={reorder}{flags}"
"""
    for k, name in enumerate(NAMES):
        listed = f'"n[{min(sets[name])}-{nodes - 1}]"'
        text += f'[[partitions]]\nname = "{name}"\nnodes = {listed}\ntier = {tiers[k]}\n'
        mode = ",".join(one for one in (modes[k], words[k] if words[k] != "within" else "") if one)
        text += f'preempt_mode = "{mode}"\ngrace_time = {grace[k]}\n' if not by_qos else ""
    text += "[qos]\n"
    for k, name in enumerate(NAMES):
        mode = ",".join(one for one in (modes[k], words[k]) if one)
        own = f'preempt = {sorted(below[k])}, preempt_mode = "{mode}", grace_time = {grace[k]}, ' if by_qos else ""
        text += f"{name} = {{priority = {10 * k}, {own}exempt_time = {exempt[k] if by_qos else 0}}}\n"
    site = slow.Site(
        nodes,
        {name: (sets[name], tiers[k]) for k, name in enumerate(NAMES)},
        by_qos,
        dict(zip(NAMES, below, strict=True)),
        rank,
        dict(zip(NAMES, modes, strict=True)),
        {name: {words[k]} - {"", "" if by_qos else "within"} for k, name in enumerate(NAMES)},
        dict(zip(NAMES, grace, strict=True)),
        dict(zip(NAMES, exempt if by_qos else [0, 0, 0], strict=True)),
        delay,
        youngest,
        strict,
        reorder,
    )
    return text, site, *_drawn_jobs(draw, sets)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_slow_simulator_gives_the_same(tmp_path: Path, seed: int) -> None:
    same(tmp_path, seed)


@pytest.mark.long
def test_ten_thousand_worlds(tmp_path: Path) -> None:
    """Where jobs take nodes from each other for ever, both say so."""
    losses, endless = 0, 0
    for seed in range(WORLDS, 10_000):
        try:
            losses += same(tmp_path, seed)
        except escala.EscalaError as error:
            assert "has lost its nodes more than" in str(error), seed
            _, site, jobs, limits = drawn(seed)
            with pytest.raises(slow.Endless):
                slow.replay(site, jobs, dict(enumerate(limits)))
            endless += 1
    assert losses > 10_000 and endless < 10


def same(tmp_path: Path, seed: int) -> int:
    """Starts, ends, nodes and lost time are equal; how often jobs lost their nodes."""
    text, site, jobs, limits = drawn(seed)
    (tmp_path / "site.toml").write_text(text)
    columns: dict[str, Any] = {
        "submit_s": [one.submit / slow.SECOND for one in jobs],
        "runtime_s": [one.run / slow.SECOND for one in jobs],
        "walltime_s": [float(one) for one in limits],
        "nodes": [one.nodes for one in jobs],
        "partition": [one.part for one in jobs],
        "qos": [one.qos for one in jobs],
    }
    place = escala.read_site(tmp_path / "site.toml")
    work = escala.Workload.from_jobs(columns, origin_s=ORIGIN)
    settings = changed(settings_of(place), "slurm:started=-2.5:tick=0.4:tick_every=1")
    run = play(work, place, settings, Asking(work, place, settings).asked())
    slow.replay(site, jobs, dict(enumerate(limits)))
    for job in jobs:
        at = slice(run.jobs.first[job.row], run.jobs.last[job.row])
        found = (run.jobs.start[job.row], run.jobs.finish[job.row], run.jobs.lost[job.row], run.jobs.again[job.row] < 0)
        assert found == (job.begun, job.finish, job.lost, job.state == "cancelled"), (seed, job)
        assert job.state == "cancelled" or sorted(run.allocated.node[at].tolist()) == sorted(job.where), (seed, job)
    return int(np.abs(run.jobs.again).sum())


def test_the_worlds_are_full_of_it(tmp_path: Path) -> None:
    assert sum(same(tmp_path, seed) for seed in range(0, WORLDS, 2)) > 40


SITE = """\
name = "all"
[[nodes]]
names = "a[1-3]"
cores = 4
memory_mb = 4000
gpus = {k = 2}
[[nodes]]
names = "b[1-3]"
cores = 8
memory_mb = 6000
[[partitions]]
name = "p"
nodes = "ALL"
default = true
[[partitions]]
name = "q"
nodes = "a[1-3]"
tier = 2
preempt_mode = "MODE"
grace_time = 20
[slurm]
SelectTypeParameters = "CR_CPU_Memory"
SchedulerParameters = "bf_interval=5,bf_resolution=1"
PriorityType = "priority/multifactor"
PriorityWeightAge = 1000
PriorityWeightQOS = 500
AccountingStorageType = "accounting_storage/slurmdbd"
PreemptType = "preempt/KIND"
PreemptMode = "MODE"
[qos]
low = {priority = 1, grp_tres = {cpu = 20}, flags = ["NoReserve"]}
high = {priority = 9, preempt = ["low"], max_jobs_per_user = 3}
"""


@pytest.mark.parametrize("kind", ["qos", "partition_prio"])
@pytest.mark.parametrize("mode", ["requeue", "cancel"])
@pytest.mark.parametrize("worlds", [8, pytest.param(12, marks=pytest.mark.long)])
def test_nothing_is_over_used_at_any_moment(tmp_path: Path, kind: str, mode: str, worlds: int) -> None:
    """Backfill, shapes, memory, GPUs, limits, an outage: what runs at a moment fits, and who loses nodes is queued
    again, or is over."""
    (tmp_path / "site.toml").write_text(SITE.replace("KIND", kind).replace("MODE", mode))
    site = escala.read_site(tmp_path / "site.toml")
    losses = 0
    for seed in range(worlds):
        draw = np.random.default_rng([seed, 2828])
        n = 60
        run_s = draw.exponential(90, n).clip(1)
        columns: dict[str, Any] = {
            "submit_s": np.sort(draw.uniform(0, 900, n)),
            "runtime_s": run_s,
            "walltime_s": run_s * draw.uniform(1, 3, n) + 30,
            "tasks": draw.integers(1, 7, n),
            "memory_mb_per_core": draw.integers(100, 900, n),
            "gpus_per_node": [1 if k < 0.2 else None for k in draw.random(n)],
            "exclusive": draw.random(n) < 0.1,
            "qos": draw.choice(["low", "high"], n, p=[0.7, 0.3]).tolist(),
            "partition": draw.choice(["p", "q", "p,q"], n).tolist(),
            "user": draw.choice(["ann", "bob"], n).tolist(),
        }
        work = escala.Workload.from_jobs(columns, origin_s=ORIGIN)
        settings = settings_of(site)
        asked = Asking(work, site, settings).asked()
        world = arrays_of(work, site, settings, asked)
        before, last_lost = world.jobs.state.copy(), world.jobs.lost.copy()
        for until in range(1, 12_000):
            done = drive(t.table_of(world), until * t.SECOND)
            now = world.jobs.state
            used = {kind: np.zeros_like(getattr(world.machine, kind)) for kind in ("cpus", "memory", "gpus")}
            for j in np.flatnonzero(now == t.RUNNING):
                at = np.arange(world.jobs.first[j], world.jobs.last[j])
                for kind_of, total in used.items():
                    np.add.at(total, world.allocated.node[at], getattr(world.allocated, kind_of)[at])
            for kind_of, total in used.items():
                assert (total == getattr(world.machine, kind_of) - getattr(world.free, kind_of)).all(), (
                    "the books hold what runs"
                )
                assert (getattr(world.free, kind_of) >= 0).all(), (seed, until, kind_of)
            lost = np.flatnonzero(world.jobs.lost > last_lost)
            losses += lost.size
            for j in lost:
                assert columns["qos"][j] == "low" or kind == "partition_prio"
                assert now[j] == (t.HELD if mode == "requeue" else t.ENDED)
            came = np.flatnonzero((before == t.HELD) & (now != t.HELD))
            assert (world.jobs.eligible[came] >= (until - 1) * t.SECOND).all(), "not before its time"
            before, last_lost = now.copy(), world.jobs.lost.copy()
            if done == 0 and (now >= t.ENDED).all():
                break
        assert (world.jobs.state == t.ENDED).sum() + len(asked.refused) == n
        whole = world.jobs.again >= 0
        ran = (world.jobs.finish - world.jobs.start)[whole & (world.jobs.state == t.ENDED)]
        assert (ran <= world.jobs.run[whole & (world.jobs.state == t.ENDED)]).all()
    assert losses > 20, f"nodes are taken: {losses}"
