"""Hand-made schedules on nodes of several speeds: a job runs as long as its slowest node takes. Times in seconds."""

from __future__ import annotations

import pytest

from tests.golden.hand import Engine, job

ALL = ["fcfs", "first-fit", "sjf", "sjf-fit", "packer", "easy", "easy:queue=sjf", "easy-fast", "conservative"]


@pytest.mark.parametrize("scheduler", ALL)
def test_as_long_as_on_the_slowest_node(run: Engine, scheduler: str) -> None:
    """Nodes of speed 1, 0.8 and 2. A has node 0: 10 s; B node 1: 10 / 0.8 = 12.5; C node 2: 10 / 2 = 5. At 12.5 D has
    all three, the slowest of 0.8: 8 / 0.8 = 10."""
    jobs = [job(name, 0, 10, walltime_s=30) for name in "ABC"]
    got = run([*jobs, job("D", 1, 8, 3, walltime_s=30)], [1] * 3, scheduler, speeds=[1.0, 0.8, 2.0])
    assert got.nodes == {"A": "0", "B": "1", "C": "2", "D": "0-2"}
    assert got.finish == {"A": 10, "B": 12.5, "C": 5, "D": 22.5}
    assert set(got.state.values()) == {"COMPLETED"}


@pytest.mark.parametrize("scheduler", ALL)
def test_a_slow_node_lets_a_job_reach_its_limit_and_a_fast_one_keeps_it_from_it(run: Engine, scheduler: str) -> None:
    """The limit is 12 s on any node. On speed 0.8 the 10 s of A are 12.5, so it is killed at 12; on 0.5 B's 6 s are 12,
    which is at the limit too; on 2 the 20 s of C, which asks for less, are 10."""
    jobs = [job("A", 0, 10, walltime_s=12), job("B", 0, 6, walltime_s=12), job("C", 0, 20, walltime_s=12)]
    got = run(jobs, [1] * 3, scheduler, speeds=[0.8, 0.5, 2.0])
    assert got.finish == {"A": 12, "B": 12, "C": 10}
    assert got.state == {"A": "KILLED", "B": "KILLED", "C": "COMPLETED"}


def test_plans_go_by_the_requested_time(run: Engine) -> None:
    """Two nodes of speed 0.5 and 1. A has node 0 and asks for 20 s; its 5 s are 10. Head H of both nodes is planned at
    20. B, of 18 s, ends before that on node 1, and C, of 19, would not: it waits, though A is done at 10 already. At
    20 B has ended at 20, and H starts."""
    jobs = [job("A", 0, 5, walltime_s=20), job("H", 1, 4, 2), job("B", 2, 18), job("C", 2, 19)]
    got = run(jobs, [1, 1], "easy", speeds=[0.5, 1.0])
    assert got.start == {"A": 0, "B": 2, "H": 20, "C": 24} and got.finish["A"] == 10
    assert got.finish["H"] == 24  # of 4 s it asks for 4, and would take 8
    assert got.state["H"] == "KILLED"


def test_cores_of_one_node_and_of_two(run: Engine) -> None:
    """Nodes of 4 cores, of speed 1 and 0.25. A has 3 cores of the first: 8 s. B has its last and one of the second:
    8 / 0.25 = 32. C starts when A ends, on the first node: 8 s."""
    jobs = [job("A", 0, 8, 3, walltime_s=50), job("B", 0, 8, 2, walltime_s=50), job("C", 1, 8, 3, walltime_s=50)]
    got = run(jobs, [4, 4], "fcfs", speeds=[1.0, 0.25])
    assert got.nodes == {"A": "0", "B": "0-1", "C": "1"}
    assert got.finish == {"A": 8, "B": 32, "C": 33}


def test_half_a_microsecond_is_rounded_up_and_nothing_runs_no_time(run: Engine) -> None:
    """3 us / 2 = 1.5 us, so 2; 1 us / 3 = 0.33, which is at least 1; 10 us / 3 = 3.33, so 3."""
    jobs = [job(name, 0, us / 1e6, walltime_s=1) for name, us in (("A", 3), ("B", 1), ("C", 10))]
    got = run(jobs, [1] * 3, "fcfs", speeds=[2.0, 3.0, 3.0])
    assert got.finish == {"A": 2e-6, "B": 1e-6, "C": 3e-6}


def test_a_job_that_does_not_compute_takes_its_time(run: Engine) -> None:
    """Load 0, as a delay of Batsim's: 10 s on any node. The other half computes: 10 / 0.5."""
    jobs = [job("A", 0, 10, walltime_s=30), job("B", 0, 10, walltime_s=30)]
    jobs[0]["load"] = 0.0
    assert run(jobs, [1, 1], "fcfs", speeds=[0.5, 0.5]).finish == {"A": 10, "B": 20}


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "first-fit"])
def test_without_a_limit_plans_take_the_slowest_node(run: Engine, scheduler: str) -> None:
    """Nodes of speed 1 and 0.5, a log without requests. A of 10 s has node 0 to 10, B node 1 to 20. Both are planned to
    20, so under EASY and conservative C of 2 cores is planned at 20; D, of 6 s, may take 12 and would end at 22: it
    waits behind C, but for first-fit, where it has node 0 at 10. No job is killed."""
    jobs = [job("A", 0, 10), job("B", 0, 10), job("C", 1, 3, 2), job("D", 2, 6)]
    jobs = [one | {"limited": False} for one in jobs]
    got = run(jobs, [1, 1], scheduler, speeds=[1.0, 0.5])
    first = scheduler == "first-fit"
    assert got.finish == {"A": 10, "B": 20, "C": 26, "D": 16 if first else 32}
    assert set(got.state.values()) == {"COMPLETED"}


def test_known_run_times_are_those_on_the_slowest_node(run: Engine) -> None:
    """estimate=runtime: plans take 10 / 0.5 = 20 s for A and B, 4 for D. A is done at 10 on node 0; head C, of both, is
    planned at 20. D, which arrives at 15, may take 4: done by 19, it passes on node 0, where it takes 2."""
    jobs = [job("A", 0, 10, walltime_s=90), job("B", 0, 10, walltime_s=90), job("C", 1, 3, 2, walltime_s=90)]
    got = run([*jobs, job("D", 15, 2, walltime_s=90)], [1, 1], "easy", speeds=[1.0, 0.5], estimate="runtime")
    assert got.start == {"A": 0, "B": 0, "D": 15, "C": 20} and got.finish["D"] == 17


def test_what_a_slow_node_takes_longer_is_energy(run: Engine) -> None:
    """10 s on speed 0.5 are 20 s. One core of two computes, so the node draws half of the way from 100 to 200 W."""
    got = run([job("A", 0, 10, walltime_s=90)], [2], "fcfs", speeds=[0.5])
    assert got.joules(0, "computing") == pytest.approx(20 * 150)


def test_the_last_runs_of_a_user_are_as_they_ran(run: Engine) -> None:
    """last2: A of ann ran 10 / 0.5 = 20 s. So her B is planned for 20, which it outlives: 15 s are 30. The plan moves
    by 60 s, at most to its request."""
    jobs = [job("A", 0, 10, walltime_s=90, user="ann"), job("B", 20, 15, walltime_s=90, user="ann")]
    jobs += [job("C", 21, 19, walltime_s=19, user="bob")]
    got = run(jobs, [1], "easy", speeds=[0.5], estimate="last2")
    assert got.finish == {"A": 20, "B": 50, "C": 69}
