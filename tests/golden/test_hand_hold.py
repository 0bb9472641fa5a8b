"""Hand-made schedules: hold with its options, and arrivals-known. Power of a node as in `tests.golden.hand`: 5 s to
switch off, 20 s to switch on; off and on again cost 3600 J, as much as 36 s of idling. All nodes are off at the start.
Times in seconds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.golden.hand import POWER, Engine, job

LONG = job("A", 10, 190, 1, 190)  # starts at 30 where nothing holds it, and ends at 220


# --- hold:FRACTION:if-busy ----------------------------------------------------------------------------
@pytest.mark.parametrize("scheduler", ["fcfs", "first-fit", "easy", "conservative"])
def test_a_job_alone_is_not_held_if_busy(run: Engine, scheduler: str) -> None:
    assert run([LONG], [1, 1], scheduler, shutdown="hold:0.5", start_off=True).start == {"A": 125}
    assert run([LONG], [1, 1], scheduler, shutdown="hold:0.5:if-busy", start_off=True).start == {"A": 30}


def test_a_job_that_boots_keeps_nobody_waiting(run: Engine) -> None:
    """B comes at 20, while node 0 switches on for A: no job runs, so that node 1 is woken for B at once. C comes at 35,
    while A runs: it is held to 85."""
    jobs = [LONG, job("B", 20, 190), job("C", 35, 10, 1, 100)]
    got = run(jobs, [1] * 3, "easy", shutdown="hold:0.5:if-busy", start_off=True)
    assert got.start == {"A": 30, "B": 40, "C": 105}
    assert got.life(2) == [
        ("off", 10, 85),
        ("switching_on", 85, 105),
        ("computing", 105, 115),
        ("switching_off", 115, 120),
        ("off", 120, 230),
    ]


@pytest.mark.parametrize("scheduler", ["first-fit", "easy", "conservative"])
def test_the_last_end_frees_those_held_if_busy(run: Engine, scheduler: str) -> None:
    """B (two nodes) is held from 35 while A runs. At 50 nothing runs any more: B is given node 0 and node 1, which
    wakes to 70. With hold alone node 0 goes off at 50 and both are woken at 85."""
    jobs = [job("A", 10, 20), job("B", 35, 10, 2, 100)]
    got = run(jobs, [1, 1], scheduler, shutdown="hold:0.5:if-busy", start_off=True)
    assert got.start == {"A": 30, "B": 70}
    assert got.life(0) == [("switching_on", 10, 30), ("computing", 30, 50), ("idle", 50, 70), ("computing", 70, 80)]
    assert run(jobs, [1, 1], scheduler, shutdown="hold:0.5", start_off=True).start == {"A": 40, "B": 105}


def test_what_runs_when_a_decision_begins_counts(run: Engine) -> None:
    """Node 1 cannot switch off. A starts on it at 10, at once; B comes at the same instant and is not held, C comes
    later and is."""
    jobs = [job("A", 10, 190), job("B", 10, 50, 1, 100), job("C", 11, 50, 1, 100)]
    power = [POWER, {**POWER, "can_switch": False}, POWER]
    got = run(jobs, [1] * 3, "first-fit", powers=power, shutdown="hold:0.5:if-busy", start_off=True)
    assert got.start == {"A": 10, "B": 30, "C": 81}
    assert got.nodes == {"A": "1", "B": "0", "C": "2"}


def test_a_plan_on_a_node_that_falls_asleep_is_made_anew(run: Engine) -> None:
    """J (two nodes, held to 240) comes at 40, when both nodes are on, and is planned at 200, when A ends. At 50 node 1
    goes off, so J is planned at 240: K (held to 110, 100 s) has node 1 before that, woken to 130. It would not, were J
    still planned on that node at 200."""
    jobs = [job("A", 0, 200), job("B", 0, 50), job("J", 40, 10, 2, 400), job("K", 60, 100)]
    got = run(jobs, [1, 1], "conservative", shutdown="hold:0.5")
    assert got.start == {"A": 0, "B": 0, "K": 130, "J": 260}


# --- hold:FRACTION:SECONDS ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shutdown", "start"),
    [
        ("hold:0.5", 105),
        ("hold:0.5:10", 65),
        ("hold:0.5:if-busy:10", 65),
        ("hold:0.5:50", 105),
        ("hold:0.5:1000", 105),
        ("hold:0.5:0", 55),
    ],
)
def test_a_longest_wait(run: Engine, shutdown: str, start: float) -> None:
    """B comes at 35 while A runs and waits for half its 100 s, or for the cap; then node 1 takes 20 s."""
    jobs = [job("Z", 0, 300), LONG, job("B", 35, 10, 1, 100)]
    got = run(
        jobs, [1] * 3, "easy", powers=[{**POWER, "can_switch": False}, POWER, POWER], shutdown=shutdown, start_off=True
    )
    assert got.start["B"] == start


def test_a_reservation_counts_on_the_capped_hold(run: Engine) -> None:
    """EASY. Z holds node 0 to 300. B (two nodes) at 35 is held to 45: its reservation is then, so that D (20 s), which
    fits node 1 where it is on, could not end in time and waits for node 3, which it may wake at 50; with hold alone (to
    85) it could."""
    jobs = [job("Z", 0, 300), job("Y", 0, 40), job("B", 35, 10, 2, 100), job("D", 40, 20)]
    power = [{**POWER, "can_switch": False}] * 2 + [POWER] * 2
    for shutdown, starts in (("hold:0.5:10", {"B": 65, "D": 70}), ("hold:0.5", {"B": 105, "D": 40})):
        got = run(jobs, [1] * 4, "easy", powers=power, shutdown=shutdown, start_off=True)
        assert {name: got.start[name] for name in starts} == starts, shutdown


@pytest.mark.parametrize("busy", ["", ":if-busy"])
def test_no_job_is_held_for_more_than_an_hour_by_default(run: Engine, busy: str) -> None:
    """B comes at 35 while Z runs and asks for ten hours; half of them is five. The node takes 20 s."""
    jobs = [job("Z", 0, 40_000), job("B", 35, 10, 1, 36_000)]
    powers = [{**POWER, "can_switch": False}, POWER]
    held = {cap: 35 + seconds + 20 for cap, seconds in (("", 3600), (":7200", 7200), (":uncapped", 18_000))}
    got = {
        cap: run(jobs, [1] * 2, "easy", powers=powers, shutdown=f"hold:0.5{busy}{cap}", start_off=True).start["B"]
        for cap in held
    }
    assert got == held


# --- arrivals-known -----------------------------------------------------------------------------------
@pytest.mark.parametrize("gap", [0, 10, 35.9, 36, 36.1, 60])
def test_a_node_stays_on_for_a_job_within_its_break_even(run: Engine, gap: float) -> None:
    """A runs 10..20 on a node that is on from the start; B comes `gap` later."""
    jobs = [job("A", 10, 10), job("B", 20 + gap, 10)]
    got = run(jobs, [1], "easy", shutdown="arrivals-known")
    if gap <= 36:
        assert got.start["B"] == 20 + gap and got.transitions(0) == 0
        assert got.joules(0, "idle") == pytest.approx(100 * gap, rel=1e-12)
    else:
        assert got.start["B"] == 40 + gap and got.transitions(0) == 2
        assert got.joules(0, "switching_off") + got.joules(0, "switching_on") == pytest.approx(3600, rel=1e-12)


def test_as_many_nodes_stay_on_as_coming_jobs_take_the_lowest(run: Engine) -> None:
    """At 20 node 0 goes on computing and nodes 1 to 3 are idle. B (one core) and C (one) come within 36 s, D (one) does
    not: 1 and 2 stay on."""
    jobs = [job("Z", 10, 200), job("A", 10, 10, 3), job("B", 30, 90), job("C", 56, 90), job("D", 57, 9)]
    got = run(jobs, [1] * 4, "easy", shutdown="arrivals-known")
    assert got.start == {"Z": 10, "A": 10, "B": 30, "C": 56, "D": 77}
    assert got.nodes == {"Z": "0", "A": "1-3", "B": "1", "C": "2", "D": "3"}


def test_free_cores_of_a_node_at_work_serve_coming_jobs_first(run: Engine) -> None:
    """Two cores a node. B (one core) at 30 will take the free core of node 0: node 1 goes off at 20. With C (two) at 30
    besides, it stays on."""
    first = [job("Z", 10, 200), job("A", 10, 10, 3), job("B", 30, 9)]
    got = run(first, [2, 2], "easy", shutdown="arrivals-known")
    assert got.start["B"] == 30 and got.life(1)[1:3] == [("switching_off", 20, 25), ("off", 25, 210)]
    got = run([*first, job("C", 30, 9, 2)], [2, 2], "easy", shutdown="arrivals-known")
    assert got.start["B"] == 30 and got.start["C"] == 30 and got.nodes["C"] == "1"


def test_nothing_stays_on_for_a_job_that_will_not_fit(run: Engine) -> None:
    """B needs both nodes, of which Z has one."""
    jobs = [job("Z", 10, 200), job("A", 10, 10), job("B", 30, 9, 2)]
    assert run(jobs, [1, 1], "easy", shutdown="arrivals-known").life(1)[1] == ("switching_off", 20, 25)


def test_nodes_that_idle_at_no_cost_stay_on_and_those_that_switch_at_no_cost_do_not(run: Engine) -> None:
    jobs = [job("A", 10, 10), job("B", 21, 10), job("C", 500, 10)]
    free = {**POWER, "idle_w": 0.0, "off_w": 0.0}
    assert run(jobs, [1], "easy", free, shutdown="arrivals-known").transitions(0) == 0
    cheap = {**POWER, "switching_off_w": 0.0, "switching_on_w": 0.0}
    assert run(jobs, [1], "easy", cheap, shutdown="arrivals-known") == run(
        jobs, [1], "easy", cheap, shutdown="timeout:0"
    )


# --- a head that needs more nodes than are awake together ----------------------------------------------
SHUTDOWNS = ("timeout:0", "hold:0.5", "hold:0.5:if-busy", "hold:0.5:20", "hold:0.5:if-busy:20", "arrivals-known")


@pytest.mark.parametrize("shutdown", SHUTDOWNS)
@pytest.mark.parametrize("scheduler", ["fcfs", "sjf", "first-fit", "easy", "saf", "conservative"])
def test_a_head_that_needs_more_nodes_than_are_awake_together_starts(
    run: Engine, scheduler: str, shutdown: str
) -> None:
    """Short one-node jobs keep nodes coming and going; the head, all four nodes, comes among them."""
    small: list[dict[str, Any]] = [job(f"s{k}", 10 * k, 12) for k in range(60)]
    got = run([*small[:3], job("H", 25, 30, 4, 100), *small[3:]], [1] * 4, scheduler, shutdown=shutdown, start_off=True)
    assert all(state in ("COMPLETED", "KILLED") for state in got.state.values())
    start = got.start["H"] or math.inf
    if scheduler in ("fcfs", "easy", "saf"):  # elsewhere later jobs pass for as long as they come
        wait = {"timeout:0": 0, "arrivals-known": 0}.get(shutdown, 20 if shutdown.endswith(":20") else 50)
        assert start <= 25 + wait + 12 + 5 + 20 + 20 + 12, "held; what runs; switching off, on, on; a job that passed"


def test_who_passes_a_held_head_may_have_what_it_does_without(run: Engine) -> None:
    """200 s to switch on, and jobs that ask for nodes. A (held to 301) has one core of node 0, which boots to 501. Head
    H (two cores, held to 1302) counts no core that is not on: its are A's, from 511 on, and one of node 1, where B ends
    at 1081. It does without the other core of node 0: P (held to 393) claims it, though it runs beyond 1081."""
    jobs = [job("Z", 0, 10, 2, nodes=1), job("B", 1, 800, 2), job("A", 300, 10)]
    jobs += [job("H", 302, 10_000, 2), job("P", 303, 900)]
    got = run(jobs, [2, 2], "easy", power={**POWER, "switch_on_s": 200.0}, shutdown="hold:0.1", start_off=True)
    assert got.start == {"Z": 201, "B": 281, "A": 501, "H": 1081, "P": 501}
    assert (got.nodes["A"], got.nodes["P"], got.nodes["H"]) == ("0", "0", "0-1")
