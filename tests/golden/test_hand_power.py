"""Hand-made schedules: node states, shutdown policies and joules. Power of a node: 200 computing, 100 idle, 10 off, 120
and 5 s to switch off,
150 and 20 s to switch on. Times in seconds."""

from __future__ import annotations

import pytest

from tests.golden.hand import POWER, Engine, job


# --- joules -----------------------------------------------------------------------------------------
def test_joules_of_a_shared_node(run: Engine) -> None:
    """A node of four cores: A (one core, full load) 0..10, B (two cores, half load) 5..15, nothing 15..20, C (delay: no
    load) 20..30."""
    jobs = [job("A", 0, 10), job("B", 5, 10, 2, load=0.5), job("C", 20, 10, 4, load=0.0)]
    got = run(jobs, [4])
    # watts: 0..5 100 + 25, 5..10 100 + 25 + 25, 10..15 100 + 25, 15..20 idle, 20..30 100
    assert got.joules(0, "computing") == pytest.approx(5 * 125 + 5 * 150 + 5 * 125 + 10 * 100, rel=1e-12)
    assert got.joules(0, "idle") == pytest.approx(500, rel=1e-12)
    assert got.life(0) == [("computing", 0, 15), ("idle", 15, 20), ("computing", 20, 30)]


def test_joules_are_measured_from_first_submission_to_last_finish(run: Engine) -> None:
    """Off at 0, submitted at 50, woken to 70, run to 80; the switch-off at 80 does not count."""
    got = run([job("A", 50, 10)], [1], start_off=True, shutdown="timeout:0")
    assert got.life(0) == [("switching_on", 50, 70), ("computing", 70, 80)]
    assert got.joules(0, "switching_on") == pytest.approx(3000, rel=1e-12)
    assert got.joules(0, "computing") == pytest.approx(2000, rel=1e-12)
    assert got.joules(0, "off") == 0.0
    assert got.transitions(0) == 1


def test_joules_with_a_limit_run_from_zero_to_the_limit(run: Engine) -> None:
    """Idle 0..50, computing 50..60, switching off 60..65, off 65..100."""
    got = run([job("A", 50, 10)], [1], shutdown="timeout:55", until_s=100.0)
    assert got.life(0) == [("idle", 0, 50), ("computing", 50, 60), ("idle", 60, 100)]
    got = run([job("A", 50, 10)], [1], shutdown="timeout:51", until_s=200.0)
    assert got.life(0) == [
        ("idle", 0, 50),
        ("computing", 50, 60),
        ("idle", 60, 111),
        ("switching_off", 111, 116),
        ("off", 116, 200),
    ]
    assert got.joules(0, "off") == pytest.approx(840, rel=1e-12)


def test_a_delay_job_computes_at_idle_power(run: Engine) -> None:
    got = run([job("A", 0, 10, load=0.0)], [1])
    assert got.life(0) == [("computing", 0, 10)]
    assert got.joules(0, "computing") == pytest.approx(1000, rel=1e-12)


# --- strict schedulers wake by number ---------------------------------------------------------------
def test_strict_wakes_for_the_head_even_if_it_must_also_wait(run: Engine) -> None:
    """All off at 5. A at 10 wakes node 0 (10..30), runs 30..100. B (three nodes) at 40: need 3, two nodes are off: both
    wake 40..60 and stay
    on, idle, because the queue is not empty, until A ends."""
    got = run([job("A", 10, 70), job("B", 40, 5, 3)], [1] * 3, shutdown="timeout:0")
    assert got.start == {"A": 30, "B": 100}
    assert got.life(1) == [("off", 10, 40), ("switching_on", 40, 60), ("idle", 60, 100), ("computing", 100, 105)]


def test_strict_wakes_for_the_head_only(run: Engine) -> None:
    """A (two nodes) is the head at 10; node 2 sleeps until B is the head at 30."""
    got = run([job("A", 10, 50, 2), job("B", 11, 5)], [1] * 3, shutdown="timeout:0")
    assert got.start == {"A": 30, "B": 50}


def test_woken_nodes_are_not_bound_to_the_head(run: Engine) -> None:
    """SJF: A (two nodes, 10 s) wakes nodes 0 and 1 at 10; B (one node, 5 s) comes at 20 and is the head at 30: it
    starts on node 0."""
    got = run([job("A", 10, 10, 2), job("B", 20, 5)], [1, 1], "sjf", shutdown="timeout:0")
    assert got.start == {"B": 30, "A": 35}


def test_strict_does_not_switch_off_while_a_job_waits(run: Engine) -> None:
    """Timeout 10. A on node 0 to 100; B (two nodes) waits from 1 to 100: node 1 stays on."""
    got = run([job("A", 0, 100), job("B", 1, 5, 2)], [1, 1], shutdown="timeout:10")
    assert got.start["B"] == 100
    assert got.life(1) == [("idle", 0, 100), ("computing", 100, 105)]


def test_an_overdue_timeout_acts_when_the_queue_is_empty(run: Engine) -> None:
    """Three nodes. B (two nodes) waits 1..50 while node 2 is due at 10; at 50 B starts on nodes 0 and 1 and node 2 goes
    off."""
    got = run([job("A", 0, 50, 2), job("B", 1, 30, 2)], [1] * 3, shutdown="timeout:10")
    assert got.life(2) == [("idle", 0, 50), ("switching_off", 50, 55), ("off", 55, 80)]


# --- given nodes ------------------------------------------------------------------------------------
def test_given_nodes_are_the_jobs_own_and_stay_on(run: Engine) -> None:
    """Timeout 0, node 0 left on as spare. A (two nodes) at 10 is given node 0 and node 1, which wakes 10..30. B at 11
    cannot take the idle node 0:
    it is given node 2 (11..31)."""
    got = run([job("A", 10, 20, 2), job("B", 11, 5)], [1] * 3, "easy", shutdown="timeout:0+1")
    assert got.start == {"A": 30, "B": 31}
    assert got.nodes == {"A": "0-1", "B": "2"}
    assert got.life(0) == [("idle", 10, 30), ("computing", 30, 50)]


def test_on_before_switching_on_before_off(run: Engine) -> None:
    """Two cores a node, all off at 5."""
    # A (one core) is given node 0 at 10 (switching on to 30); B (three cores) at 12: one core of node 0, then two of
    # node 1
    got = run([job("A", 10, 20), job("B", 12, 20, 3)], [2, 2, 2], "easy", shutdown="timeout:0")
    assert got.start == {"A": 30, "B": 32}
    assert got.nodes == {"A": "0", "B": "0-1"}
    # C at 40: one core of the node that is on comes before the sleeping node 2
    got = run([job("A", 10, 20), job("B", 12, 20, 2), job("C", 40, 5)], [2, 2, 2], "easy", shutdown="timeout:0")
    assert got.nodes == {"A": "0", "B": "0-1", "C": "1"}
    assert got.start["C"] == 40


def test_a_plan_counts_from_readiness(run: Engine) -> None:
    """Nodes 0 and 1 run A to 100; head B (three nodes) has s = 100. C (75 s) at 10 would end at 85 on a node that is
    on, and at 105 on node 2,
    which is off: it waits. B is given all three at 100, when node 2 wakes: 120..125. With 70 s C runs 30..100 and may
    pass."""
    jobs = [job("A", 0, 100, 2), job("B", 1, 5, 3)]
    assert run([*jobs, job("C", 10, 75)], [1] * 3, "easy", shutdown="timeout:0").start == {"A": 0, "B": 120, "C": 125}
    assert run([*jobs, job("C", 10, 70)], [1] * 3, "easy", shutdown="timeout:0").start == {"A": 0, "C": 30, "B": 100}


# --- the policies -----------------------------------------------------------------------------------
def test_timeout_with_spare_nodes(run: Engine) -> None:
    """Timeout 10, one spare: node 0 computes to 30; of the idle nodes 1 and 2 the lower stays on."""
    got = run([job("A", 0, 30)], [1] * 3, "easy", shutdown="timeout:10+1")
    assert got.transitions(1) == 0
    assert got.life(2) == [("idle", 0, 10), ("switching_off", 10, 15), ("off", 15, 30)]


def test_proportional(run: Engine) -> None:
    """Two of five nodes compute: ceil(0.5 x 2) = 1 idle node stays on; from 10 on one computes, and still one stays."""
    got = run([job("A", 0, 10), job("B", 0, 30)], [1] * 5, "easy", shutdown="proportional:0.5")
    # at 10 node 0 is the lowest idle one
    assert got.life(2) == [("idle", 0, 10), ("switching_off", 10, 15), ("off", 15, 30)]
    assert got.life(3) == [("switching_off", 0, 5), ("off", 5, 30)]
    assert got.life(0) == [("computing", 0, 10), ("idle", 10, 30)]


def test_off_reservation(run: Engine) -> None:
    """One of three nodes is kept off, the highest; B waits for A although node 2 is there."""
    got = run([job("A", 0, 50, 2), job("B", 1, 10)], [1] * 3, "easy", shutdown="off-reservation:1")
    assert got.start == {"A": 0, "B": 50}
    assert got.life(2) == [("switching_off", 0, 5), ("off", 5, 60)]
    assert got.life(1) == [("computing", 0, 50), ("idle", 50, 60)]


def test_off_reservation_acts_before_the_scheduler(run: Engine) -> None:
    """Two of three nodes are reserved, the highest, before the scheduler acts: one node is left for A and then B."""
    got = run([job("A", 0, 50), job("B", 1, 10)], [1] * 3, "easy", shutdown="off-reservation:2")
    assert got.nodes["A"] == "0" and got.start == {"A": 0, "B": 50}


@pytest.mark.parametrize("scheduler", ["fcfs", "first-fit", "easy", "easy-fast", "conservative"])
def test_hold(run: Engine, scheduler: str) -> None:
    """The node is off from 5. A asks for 100 s and is submitted at 10: it may be given the node after half of that, at
    60; on at 80."""
    assert run([job("A", 10, 100)], [1], scheduler, shutdown="hold:0.5").start["A"] == 80


def test_hold_does_not_keep_a_job_from_nodes_that_are_on(run: Engine) -> None:
    """A starts on node 0 at 80 (see above) and ends at 90; B, submitted at 85, takes node 0 at 90 before it goes
    off."""
    got = run([job("A", 10, 10, 1, 100), job("B", 85, 10, 1, 100)], [1, 1], "easy", shutdown="hold:0.5")
    assert got.start == {"A": 80, "B": 90}


def test_nodes_that_cannot_switch(run: Engine) -> None:
    got = run(
        [job("A", 10, 10)], [1, 1], "easy", power={**POWER, "can_switch": False}, shutdown="timeout:0", start_off=True
    )
    assert got.start["A"] == 10
    assert got.life(1) == [("idle", 10, 20)]


def test_switch_off_and_on_again_without_a_rest(run: Engine) -> None:
    """Going off 0..5, wanted at 2: the node is off for no time at 5 and leaves no such row."""
    got = run([job("A", 2, 10)], [1], shutdown="timeout:0")
    assert got.life(0) == [("switching_off", 2, 5), ("switching_on", 5, 25), ("computing", 25, 35)]
    assert got.transitions(0) == 1  # the switch-off began before the measured time


def test_conservative_gives_sleeping_nodes(run: Engine) -> None:
    """Node 0 computes to 100; A (one core) at 50 is given the sleeping node 1 at once: on at 70."""
    got = run([job("Z", 0, 100), job("A", 50, 10)], [1, 1], "conservative", shutdown="timeout:0")
    assert got.start == {"Z": 0, "A": 70}
