"""A shadow beside a fake Slurm, for tests."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from escala.bridges.slurm import shape as journals
from escala.bridges.slurm.guard import Limits
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, Beside, Setting
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.snapshots import layout
from escala.live import Desk
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm

WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=5,switch_on_s=20"

PERIOD = 10
OPEN = {"spare": 0, "switches": 10**6, "min_on_s": 0.0, "min_off_s": 0.0, "longest_wait_s": 1e9}
"""Guards that refuse next to nothing: a policy's own wishes."""


def thirty_jobs() -> list[FakeJob]:
    """Thirty jobs, of which some wait."""
    sizes = itertools.cycle((2, 5, 1, 3, 8, 1))
    return [
        FakeJob(k + 1, EPOCH + 17 * k + 3, next(sizes), 20 + 13 * k % 50, user=("ann", "bob")[k % 2]) for k in range(30)
    ]


def beside_of(
    slurm: Any, folder: Path, shutdown: str = "timeout:30", scheduler: str = "easy", looks_at: Any = None, **limits: Any
) -> Beside:
    """limits: other ones than `OPEN`."""
    reader = looks_at or Reader(slurm, clock=slurm.clock)
    first = looks_at.first if looks_at else reader.read()
    at = layout(first, "batch", WATTS)
    folder.mkdir(exist_ok=True)
    guards = Limits(**{**OPEN, "allowed": frozenset(at.names), **limits})
    beside = Beside(
        reader,
        Desk(at.platform, scheduler, shutdown),
        at,
        folder,
        Setting("shadow", PERIOD, {"slurm": "22.05", "cluster": "lab"}, {}, guards),
    )
    beside.begin(first.now_s)
    return beside


def run_beside(folder: Path, cycles: int, restart_every: int = 0, **more: Any) -> FakeSlurm:
    """restart_every: the process dies without warning after so many cycles."""
    slurm = FakeSlurm(8, thirty_jobs())
    slurm.advance(1)
    beside = beside_of(slurm, folder, **more)
    for k in range(cycles):
        if restart_every and k and k % restart_every == 0:
            beside.journal.close()  # the system does this for a process that dies
            beside = beside_of(slurm, folder, **more)
        beside.cycle()
        slurm.advance(PERIOD)
    beside.journal.close()
    return slurm


def looks_of(folder: Path) -> list[dict[str, Any]]:
    """The looks, without what differs from run to run."""
    left = ("read_ms", "decide_ms", "seen")
    return [
        {k: v for k, v in one.items() if k not in left}
        for one in records(folder / JOURNAL)
        if one["kind"] == journals.LOOK
    ]


def total_of(told: list[dict[str, Any]], name: str) -> float:
    return sum(one["lived"].get(name, 0.0) for one in told)
