"""Slurm's rules together, on random worlds: an independent simulator gives the same starts, ends and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.kernel.slurm import tables as t
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.run import play
from escala.slurm.settings import changed
from tests.oracle import backfill as slow
from tests.oracle.preemption import SECOND

ORIGIN = 1_800_000_000
WORLDS = 80
JOBS = 26
KINDS = ("after", "afterok", "afterany", "afternotok")
STATES = {t.HELD: "held", t.WAITING: "waits", t.ENDED: "ended", t.NEVER: "never", t.RUNNING: "runs", t.COMING: "coming"}


def drawn(seed: int) -> tuple[str, slow.Site, list[slow.Job]]:
    """A site.toml, the same site for the slow simulator, and its jobs."""
    draw = np.random.default_rng([seed, 2804])
    nodes = int(draw.integers(3, 9))

    def some(share: float) -> set[int]:
        return {n for n in range(nodes) if draw.random() < share} or {0}

    parts = {name: (some(0.7), int(draw.integers(1, 3))) for name in ("p", "q")} | {"all": (set(range(nodes)), 1)}
    features = {"fast": some(0.5)}
    spans = []
    for name in ("a", "b")[: int(draw.integers(0, 3))]:
        begin = int(draw.integers(0, 400))
        spans.append(slow.Reservation(name, some(0.4), begin, begin + int(draw.integers(50, 500))))
    limits = {"x": int(draw.integers(1, 4)), "y": 1 << 40}
    site = slow.Site(
        nodes, parts, features, spans, int(draw.choice([2, 3, 99])), int(draw.choice([max(nodes - 1, 2), 99])), limits,
        int(draw.choice([1, 2, 20])), bool(draw.random() < 0.8),
    )  # fmt: skip
    jobs = [_job(draw, site, row, int(at)) for row, at in enumerate(np.sort(draw.integers(0, 500, JOBS)))]
    return _text(site), site, jobs


def _job(draw: Any, site: slow.Site, row: int, at: int) -> slow.Job:
    parts = [str(one) for one in draw.permutation(list(site.parts))[: int(draw.choice([1, 1, 2]))]]
    job = slow.Job(
        row, at * SECOND, int(draw.integers(1, 150)) * SECOND, 1, 0, parts, int(draw.integers(1, 5)), str(draw.choice(["ann", "bob", "cy"]))
    )
    job.limit_s = 60 * int(draw.integers(job.run // SECOND // 60 + 1, 6))
    job.feature = "fast" if draw.random() < 0.2 else None
    job.begin = (at + int(draw.integers(-50, 250))) * SECOND if draw.random() < 0.2 else None
    job.array = str(draw.choice(["x", "y"])) if draw.random() < 0.3 else None
    names = [r.name for r in site.reservations]
    job.inside = str(draw.choice(names)) if names and draw.random() < 0.25 else None
    earlier = draw.permutation(row)[: int(draw.choice([0, 0, 0, 1, 2]))].tolist()
    job.waits_for = [(other, str(draw.choice(KINDS))) for other in earlier]
    room = {part: len(slow.Replay(site, []).suited(job, part)) for part in parts}
    job.parts = [part for part in parts if room[part] > 0] or parts[:1]
    job.nodes = int(draw.integers(1, max(min(room[part] for part in job.parts), 1) + 1))
    return job


def _text(site: slow.Site) -> str:
    text = ""
    for n in range(site.nodes):
        text += f'[[nodes]]\nnames = "n{n}"\ncores = 1\nfeatures = {[name for name, inside in site.features.items() if n in inside]}\n'
    for name, (inside, tier) in site.parts.items():
        text += f'[[partitions]]\nname = "{name}"\nnodes = "{",".join(f"n{n}" for n in sorted(inside))}"\ntier = {tier}\n'
    for one in site.reservations:
        text += f'[[closed]]\nkind = "reserved"\nname = "{one.name}"\nnodes = "{",".join(f"n{n}" for n in sorted(one.nodes))}"\n'
        text += f"from = {ORIGIN + one.begin_s}\nuntil = {ORIGIN + one.end_s}\n"
    kind = "backfill" if site.backfills else "builtin"
    settings = f"bf_interval=1,bf_resolution=1,sched_interval=1,batch_sched_delay=0,bf_max_job_array_resv={site.array_plans}"
    text += f'[slurm]\nSelectTypeParameters = "CR_CPU"\nSchedulerType = "sched/{kind}"\nSchedulerParameters = "{settings}"\n'
    return text + f"[qos]\nnormal = {{max_jobs_per_user = {site.most_jobs}, grp_tres = {{cpu = {site.most_cpus}}}}}\n"


def same(tmp_path: Path, seed: int) -> dict[str, int]:
    """Starts, ends, nodes and states are equal; how much of each thing there was."""
    text, site, jobs = drawn(seed)
    (tmp_path / "site.toml").write_text(text)
    columns: dict[str, Any] = {
        "submit_s": [one.submit / SECOND for one in jobs],
        "runtime_s": [one.run / SECOND for one in jobs],
        "walltime_s": [float(one.limit_s) for one in jobs],
        "nodes": [one.nodes for one in jobs],
        "partition": [",".join(one.parts) for one in jobs],
        "priority": [one.priority for one in jobs],
        "user": [one.user for one in jobs],
        "qos": ["normal"] * len(jobs),
        "features": [one.feature for one in jobs],
        "begin_s": [None if one.begin is None else one.begin / SECOND for one in jobs],
        "array_id": [one.array for one in jobs],
        "array_limit": [site.array_limit[one.array] if one.array == "x" else None for one in jobs],
        "reservation": [one.inside for one in jobs],
        "dependency": [",".join(f"{kind}:{row + 1}" for row, kind in one.waits_for) or None for one in jobs],
    }
    place = escala.read_site(tmp_path / "site.toml")
    work = escala.Workload.from_jobs(columns, origin_s=float(ORIGIN))
    settings = changed(settings_of(place), "slurm:started=-2.5:tick=0.4:tick_every=1:phase=0.7:drift=0")
    asked = Asking(work, place, settings).asked()
    for row in asked.refused:
        jobs[row].state = "never"
    waits = [list(one.waits_for) for one in jobs]
    run = play(work, place, settings, asked)
    slow.Replay(site, jobs).run(5_000)
    for job in jobs:
        at = slice(run.jobs.first[job.row], run.jobs.last[job.row])
        found = (STATES[int(run.jobs.state[job.row])], int(run.jobs.start[job.row]), int(run.jobs.finish[job.row]))
        assert found == (job.state, job.begun, job.finish), (seed, job)
        assert sorted(run.allocated.node[at].tolist()) == sorted(job.where), (seed, job)
    return {
        "inside": sum(one.inside is not None and one.begun >= 0 for one in jobs),
        "cut": sum(one.cut for one in jobs),
        "begun late": sum(one.begin is not None and one.begun >= one.begin > one.submit for one in jobs),
        "followers": sum(bool(w) and one.begun >= 0 for w, one in zip(waits, jobs, strict=True)),
        "tasks": sum(one.array is not None and one.begun >= 0 for one in jobs),
        "backfilled": int((run.jobs.by[run.jobs.start >= 0] == 1).sum()),
        "done": sum(one.state == "ended" for one in jobs),
    }


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_slow_simulator_gives_the_same(tmp_path: Path, seed: int) -> None:
    same(tmp_path, seed)


def test_the_worlds_are_full_of_it(tmp_path: Path) -> None:
    counts = [same(tmp_path, seed) for seed in range(0, WORLDS, 4)]
    least = {"inside": 20, "cut": 1, "begun late": 30, "followers": 60, "tasks": 60, "backfilled": 100, "done": 300}
    assert all(sum(one[name] for one in counts) >= few for name, few in least.items()), counts


@pytest.mark.long
def test_ten_thousand_worlds(tmp_path: Path) -> None:
    for seed in range(WORLDS, 10_000):
        same(tmp_path, seed)
