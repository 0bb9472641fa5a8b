"""Other orders of the queue on a real site: `slurm:queue=SCORE`, and EASY as Slurm itself can be set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala.scores import FIXED
from tests.unit.slurm.by_hand import QUICK, jobs, starts

CLOCK = "slurm:started=-2.5:tick=0.4"
RANKED = (
    f"{QUICK}\nPriorityType=priority/multifactor\nPriorityWeightPartition=1000\n"
    "AccountingStorageType=accounting_storage/slurmdbd\nPriorityWeightAge=1000\nPriorityMaxAge=1"
)
PARTS = "PartitionName=p Nodes=n[1-2] Default=YES PriorityJobFactor=9\nPartitionName=q Nodes=n[1-4]"


def test_the_shortest_first_within_partitions_and_shapes(site: Any) -> None:
    """Behind the first, which has all nodes, the shortest goes before the one of the partition of higher priority, and
    each on nodes of its own partition."""
    work = jobs((0, 100, 120, 4), (1, 90, 180, 2), (2, 50, 60, 4), partition=["q", "p", "q"])
    there = site(partitions=PARTS, more=RANKED)
    assert starts(work, there, CLOCK) == pytest.approx([0.4, 100.7, 191.3], abs=1)
    result = escala.simulate(work, there, scheduler=f"{CLOCK}:queue=sjf")
    assert result.jobs["start_s"].to_list() == pytest.approx([0.4, 151.1, 100.7], abs=1)
    assert result.jobs["nodes"].to_list() == ["0-3", "0-1", "0-3"]
    assert starts(work, there, f"{CLOCK}:queue=fcfs") == pytest.approx([0.4, 100.7, 191.3], abs=1)


@pytest.mark.parametrize("name", ["fcfs", *FIXED])
def test_an_order_is_as_if_its_places_were_priorities(site: Any, name: str) -> None:
    draw = np.random.default_rng(5)
    rows = [
        (float(k), float(60 * m - 9), 60.0 * m, n)
        for k, (m, n) in enumerate(zip(draw.integers(1, 6, 30), draw.integers(1, 5, 30), strict=True))
    ]
    submit, _, limit, size = (np.array(column) for column in zip(*rows, strict=True))
    score = submit if name == "fcfs" else FIXED[name](submit * 1e6, limit * 1e6, size)
    place = np.empty(30, int)
    place[np.argsort(score, kind="stable")] = np.arange(30)
    given = jobs(*rows, priority=(100 - place).tolist())
    assert starts(jobs(*rows), site(), f"{CLOCK}:queue={name}") == starts(given, site())
    assert starts(given, site(), f"{CLOCK}:queue={name}") == starts(given, site())  # what jobs are given counts no more


def test_with_one_reservation_backfill_is_easy(site: Any) -> None:
    """The third waits for all nodes behind the second. The fourth, on the node that the second does not need, would
    delay the third alone. "bf_job_part_count_reserve: ... enough to reserve resources for the specified count of the
    highest priority jobs in each partition" (https://slurm.schedmd.com/slurm.conf.html)"""
    work = jobs((0, 100, 120, 2), (1, 50, 60, 3), (2, 50, 60, 4), (3, 500, 600, 1))
    every, first = (starts(work, site(), f"{CLOCK}{more}") for more in ("", ":bf_job_part_count_reserve=1"))
    assert every[3] > 150 and every[2] < 160
    assert first[3] < 5 and first[1] == every[1] and first[2] > 500


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slurm:queue=saff", "did you mean saf?"),
        ("slurm:queue", "is no order"),
    ],
)
def test_an_order_that_is_none(site: Any, name: str, said: str) -> None:
    with pytest.raises(escala.EscalaError, match=said.replace("?", r"\?")):
        starts(jobs((0, 5, 60, 1)), site(), name)
