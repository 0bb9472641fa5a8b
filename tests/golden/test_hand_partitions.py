"""Hand-made schedules: partitions that share no node have queues of their own, those that overlap have one. Times in
seconds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.hand import Engine, job

STRICT = ["fcfs", "sjf", "saf-strict", "xfactor", "sjf:guard=1"]
EASY = ["easy", "easy-sjf", "easy-wfp3", "easy:queue=sjf", "easy:queue=f1:backfill=xfactor", "easy:queue=sjf:guard=50"]
APART = {"gpu": [0], "batch": [1]}


def of(partition: str, job_id: str, submit_s: float, runtime_s: float, cores: int = 1, **more: Any) -> dict[str, Any]:
    return job(job_id, submit_s, runtime_s, cores, partition=partition, **more)


@pytest.mark.parametrize("scheduler", STRICT)
def test_a_blocked_head_blocks_its_own_queue_alone(run: Engine, scheduler: str) -> None:
    """Nodes of 2 cores. A leaves one core of gpu; H, of two, waits for it until 20, and C behind H. B, of batch, does
    not; D waits for B, though it comes after C."""
    jobs = [of("gpu", "A", 0, 20), of("gpu", "H", 1, 3, 2), of("gpu", "C", 2, 9), of("batch", "B", 3, 4, 2)]
    got = run([*jobs, of("batch", "D", 4, 5)], [2, 2], scheduler, partitions=APART)
    assert got.start == {"A": 0, "H": 20, "C": 23, "B": 3, "D": 7}


@pytest.mark.parametrize("scheduler", ["fcfs", "sjf"])
def test_partitions_that_share_a_node_share_a_queue(run: Engine, scheduler: str) -> None:
    """As before, with a partition of both nodes, whether it has jobs or not; and where a job names both."""
    jobs = [of("gpu", "A", 0, 20), of("gpu", "H", 1, 3, 2), of("gpu", "C", 2, 9), of("batch", "B", 3, 4, 2)]
    expected = {"A": 0, "H": 20, "C": 23, "B": 23} if scheduler == "fcfs" else {"A": 0, "H": 20, "B": 20, "C": 23}
    assert run(jobs, [2, 2], scheduler, partitions=APART | {"all": [0, 1]}).start == expected
    got = run([*jobs, of("gpu,batch", "E", 100, 5)], [2, 2], scheduler, partitions=APART)
    assert got.start == expected | {"E": 100}


@pytest.mark.parametrize("scheduler", EASY)
def test_each_queue_has_a_head_with_a_reservation(run: Engine, scheduler: str) -> None:
    """Nodes of 4 cores; A has 3 of gpu to 10, B 3 of batch to 20. Head G of gpu is to start at 10, head H of batch at
    20. C, of gpu and 8 s, ends by 10 and passes. D, of batch and 15 s, passes too, though that is later than 10. E, of
    batch and 100 s, would be in the way of H, and so would F, of gpu, in that of G."""
    jobs = [of("gpu", "A", 0, 10, 3), of("batch", "B", 0, 20, 3), of("gpu", "G", 1, 6, 4), of("batch", "H", 1, 7, 4)]
    jobs += [of("gpu", "C", 2, 8), of("gpu", "F", 2, 90), of("batch", "E", 2, 100), of("batch", "D", 3, 15)]
    got = run(jobs, [4, 4], scheduler, partitions=APART)
    assert got.start == {"A": 0, "B": 0, "G": 10, "H": 20, "C": 2, "F": 16, "E": 27, "D": 3}


def test_the_time_of_easy_fast_is_that_of_its_own_queue(run: Engine) -> None:
    """Head G of gpu is to start at 10. That is nothing to E, of batch and 100 s; F, of gpu and 90 s, waits behind G."""
    jobs = [of("gpu", "A", 0, 10), of("gpu", "G", 1, 6, 2), of("gpu", "F", 2, 90), of("batch", "E", 3, 100)]
    got = run(jobs, [2, 2], "easy-fast", partitions=APART)
    assert got.start == {"A": 0, "G": 10, "F": 16, "E": 3}


def test_the_head_of_easy_fast_keeps_its_time_from_turn_to_turn(run: Engine) -> None:
    """Head G of gpu is to start at 40, by A's request. A ends at 5; F, of 20 s, comes at 6 and ends by 40, though X
    will leave room for G at 10."""
    jobs = [of("gpu", "A", 0, 5, walltime_s=40), of("gpu", "X", 0, 10), of("gpu", "G", 1, 6, 2), of("gpu", "F", 6, 20)]
    got = run([*jobs, of("batch", "B", 2, 50)], [2, 2], "easy-fast", partitions=APART)
    assert got.start == {"A": 0, "X": 0, "B": 2, "F": 6, "G": 26}


def test_nodes_go_off_where_nobody_waits_in_a_strict_order(run: Engine) -> None:
    """A has one of two cores of gpu, and H waits for both: node 0 stays on. B has one of two nodes of batch, and the
    other goes off after 5 s; node 1 itself does so when B has ended. C then wakes a node of its own partition, and not
    the one of nobody."""
    jobs = [of("gpu", "A", 0, 60), of("gpu", "H", 1, 10, 2), of("batch", "B", 1, 9, 2), of("batch", "C", 30, 4, 3)]
    got = run(jobs, [2] * 4, "fcfs", partitions={"gpu": [0], "batch": [1, 2]}, shutdown="timeout:5")
    assert got.start == {"A": 0, "H": 60, "B": 1, "C": 50}
    assert got.life(2)[:3] == [("idle", 0, 5), ("switching_off", 5, 10), ("off", 10, 30)]
    assert got.life(1)[:4] == [("idle", 0, 1), ("computing", 1, 10), ("idle", 10, 15), ("switching_off", 15, 20)]
    assert [state for state, _, _ in got.life(3)] == ["idle", "switching_off", "off"]


def test_each_queue_counts_the_arrivals_of_its_own(run: Engine) -> None:
    """Switching costs as much as 36 s of idling. B comes to batch at 20: node 1 stays on for it, and node 0 is off."""
    got = run([of("batch", "B", 20, 5), of("gpu", "A", 100, 5)], [2, 2], partitions=APART, shutdown="arrivals-known")
    assert got.start == {"B": 20, "A": 120}
    assert got.life(0)[0] == ("off", 20, 100) and got.life(1)[0] == ("computing", 20, 25)
