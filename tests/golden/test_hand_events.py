"""Hand-made schedules: what happens at one instant, and in which order. One-core nodes unless said; times in
seconds."""

from __future__ import annotations

import pytest

from tests.golden.hand import Engine, job


def test_walltime_kill(run: Engine) -> None:
    """A job runs min(runtime, walltime); with runtime = walltime it counts as killed."""
    got = run([job("short", 0, 9, 1, 10), job("equal", 0, 10, 1, 10), job("long", 0, 12, 1, 10)], [1, 1, 1])
    assert got.state == {"short": "COMPLETED", "equal": "KILLED", "long": "KILLED"}
    assert got.finish == {"short": 9, "equal": 10, "long": 10}


def test_end_before_submission(run: Engine) -> None:
    """B arrives at the instant at which A ends: it is given A's node 0 and not node 1, which was free before."""
    got = run([job("A", 0, 10), job("B", 10, 5)], [1, 1], "easy")
    assert got.start["B"] == 10 and got.nodes["B"] == "0"


def test_ends_of_one_instant_are_one_decision(run: Engine) -> None:
    """A and B end together at 10: C (two nodes) fits then. Deciding after the first end alone would have started D
    before C."""
    jobs = [job("A", 0, 10), job("B", 0, 10), job("C", 1, 5, 2), job("D", 2, 5)]
    for scheduler in ("fcfs", "first-fit", "easy", "conservative"):
        assert run(jobs, [1, 1], scheduler).start == {"A": 0, "B": 0, "C": 10, "D": 15}, scheduler


def test_completion_and_kill_of_one_instant(run: Engine) -> None:
    """A completes and B is killed at 10; C needs both nodes."""
    got = run([job("A", 0, 10, 1, 20), job("B", 0, 30, 1, 10), job("C", 1, 5, 2)], [1, 1])
    assert (got.state["A"], got.state["B"]) == ("COMPLETED", "KILLED")
    assert got.start["C"] == 10


def test_end_and_switch_end(run: Engine) -> None:
    """Nodes begin off. A: node 0 wakes 0..20, A runs 20..50. B (two nodes) at 30: node 1 wakes 30..50; A ends at 50
    too: B starts."""
    got = run([job("A", 0, 30), job("B", 30, 5, 2)], [1, 1], start_off=True)
    assert got.start == {"A": 20, "B": 50}
    assert got.life(1) == [("off", 0, 30), ("switching_on", 30, 50), ("computing", 50, 55)]


def test_switch_end_and_submission(run: Engine) -> None:
    """The node wakes for A at 20; B, shorter, is submitted at 20: the one decision sees both and starts B."""
    got = run([job("A", 0, 10), job("B", 20, 5)], [1], "sjf", start_off=True)
    assert got.start == {"B": 20, "A": 25}


def test_submissions_of_one_instant_in_the_order_of_the_log(run: Engine) -> None:
    jobs = [job("2", 0, 10), job("10", 0, 10), job("1", 0, 10)]
    assert run(jobs, [1]).start == {"2": 0, "10": 10, "1": 20}


def test_submissions_of_one_instant_in_the_order_of_ids_as_text(run: Engine) -> None:
    """The reference engine's rule: "1" < "10" < "2"."""
    jobs = [job("2", 0, 10), job("10", 0, 10), job("1", 0, 10)]
    assert run(jobs, [1], rules="batsched").start == {"1": 0, "10": 10, "2": 20}


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_submission_before_timer(run: Engine, scheduler: str) -> None:
    """Idle since 0, timeout 10, job at 10: it starts, the node does not go off."""
    got = run([job("A", 10, 5)], [1], scheduler, shutdown="timeout:10")
    assert got.start["A"] == 10
    assert got.transitions(0) == 0


def test_submission_after_timer(run: Engine) -> None:
    """One microsecond later the node is switching off: off at 15, on again at 35."""
    got = run([job("A", 10.000001, 5)], [1], shutdown="timeout:10")
    assert got.start["A"] == 35


def test_end_before_timer(run: Engine) -> None:
    """Node 1 is idle since 0 and due at 10, when A ends on node 0 and B (two nodes) can start."""
    got = run([job("A", 0, 10), job("B", 1, 5, 2)], [1, 1], "easy", shutdown="timeout:10")
    assert got.start["B"] == 10


def test_planned_start_and_submission(run: Engine) -> None:
    """B is promised both nodes from 10 on; C arrives at 10 and must wait for it."""
    got = run([job("A", 0, 10), job("B", 1, 5, 2), job("C", 10, 3)], [1, 1], "conservative")
    assert got.start == {"A": 0, "B": 10, "C": 15}


def test_timeout_zero_at_time_zero(run: Engine) -> None:
    """With timeout 0 an idle node goes off at time 0, off at 5; the job of 100 waits for 20 s of waking."""
    got = run([job("A", 100, 5)], [1], shutdown="timeout:0")
    assert got.start["A"] == 120
    assert got.life(0) == [("switching_on", 100, 120), ("computing", 120, 125)]


def test_submission_at_time_zero_comes_before_timeout_zero(run: Engine) -> None:
    got = run([job("A", 0, 10)], [1, 1], "easy", shutdown="timeout:0")
    assert got.start["A"] == 0 and got.nodes["A"] == "0"
    assert got.life(1) == [("switching_off", 0, 5), ("off", 5, 10)]


@pytest.mark.parametrize("scheduler", ["fcfs", "first-fit", "easy", "easy-fast", "conservative"])
def test_a_switch_off_is_not_called_back(run: Engine, scheduler: str) -> None:
    """Going off 0..5, a job at 2: off at 5, woken 5..25."""
    assert run([job("A", 2, 10)], [1], scheduler, shutdown="timeout:0").start["A"] == 25


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_switches_of_no_length(run: Engine, scheduler: str) -> None:
    power = {
        "computing_w": 2.0,
        "idle_w": 1.0,
        "off_w": 0.0,
        "switching_off_w": 9.0,
        "switching_on_w": 9.0,
        "switch_off_s": 0.0,
        "switch_on_s": 0.0,
        "can_switch": True,
    }
    got = run([job("A", 10, 5), job("B", 20, 5)], [1], scheduler, power=power, shutdown="timeout:0")
    assert got.start == {"A": 10, "B": 20}
    assert got.life(0) == [("computing", 10, 15), ("off", 15, 20), ("computing", 20, 25)]
    assert got.transitions(0) == 3  # on at 10, off at 15, on at 20; off at 25 comes after the measured time


def test_what_happens_at_the_limit(run: Engine) -> None:
    """Cut at 10: A ends at 10 and is completed; B runs on; C, submitted at 10, is not decided; D comes later."""
    jobs = [job("A", 0, 10, 1, 20), job("B", 0, 15), job("C", 10, 5), job("D", 11, 5)]
    got = run(jobs, [1, 1], until_s=10.0)
    assert got.state == {"A": "COMPLETED", "B": "RUNNING", "C": "QUEUED", "D": "QUEUED"}
    assert got.finish == {"A": 10, "B": None, "C": None, "D": None}


def test_microseconds_are_kept(run: Engine) -> None:
    """Half a microsecond rounds up: 0.0000015 -> 2 us."""
    got = run([job("A", 0.0000015, 0.25)], [1])
    assert got.start["A"] == pytest.approx(2e-6, abs=1e-12)
    assert got.finish["A"] == pytest.approx(0.250002, abs=1e-12)


def test_jobs_that_can_never_run_are_dropped_on_request(run: Engine) -> None:
    got = run([job("A", 0, 10), job("B", 0, 10, 3)], [1, 1], oversized="drop")
    assert got.state == {"A": "KILLED", "B": "REJECTED"}
    assert got.start["B"] is None
