"""Hand-made schedules of queues in order of priority, and of guards. One-core nodes; times in seconds; jobs run to
their walltime unless said."""

from __future__ import annotations

import random

import pytest

from tests.golden.hand import Engine, job
from tests.oracle.engines import run_kernel
from tests.oracle.worlds import EASY, GREEDY, Case, draw


def test_the_first_in_order_has_the_reservation_and_not_the_oldest(run: Engine) -> None:
    """B and C need both nodes, which are free at 10."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 1, 4, 2)]
    assert run(jobs, [1, 1], "easy-sjf").start == {"A": 0, "B": 10, "C": 15}
    assert run(jobs, [1, 1], "easy:queue=sjf").start == {"A": 0, "C": 10, "B": 14}


def test_the_others_pass_in_order(run: Engine) -> None:
    """H (2 s, both nodes) has the reservation at 10. One node is free from 1: D (4 s) is tried before C (8 s), and then
    C does not fit."""
    jobs = [job("A", 0, 10), job("C", 1, 8), job("D", 1, 4), job("H", 1, 2, 2)]
    assert run(jobs, [1, 1], "easy:queue=sjf").start == {"A": 0, "D": 1, "H": 10, "C": 12}
    assert run(jobs, [1, 1], "easy:queue=ljf").start == {"A": 0, "C": 1, "D": 9, "H": 13}


def test_the_others_pass_in_an_order_of_their_own(run: Engine) -> None:
    """As above: H is first by sjf; of C (8 s) and D (4 s) the second order says who is tried first. Ties of that are in
    queue order."""
    jobs = [job("A", 0, 10), job("C", 1, 8), job("D", 1, 4), job("H", 1, 2, 2)]
    assert run(jobs, [1, 1], "easy:queue=sjf:backfill=ljf").start == {"A": 0, "C": 1, "D": 12, "H": 10}
    assert run(jobs, [1, 1], "easy:queue=sjf:backfill=saf").start == {"A": 0, "D": 1, "H": 10, "C": 12}
    ties = [job("A", 0, 10), job("C", 1, 8), job("D", 1, 4), job("E", 1, 3), job("H", 1, 2, 2)]
    assert run(ties, [1, 1], "easy:queue=sjf:backfill=smallest").start == {"A": 0, "C": 1, "H": 10, "D": 12, "E": 12}


def test_the_old_pass_first_whatever_the_order_of_passing(run: Engine) -> None:
    """From 5 on one node is free. Behind a guard of 3 s W (both nodes, from 10) is first and C (5 s) passes it before
    D, which is younger; without one D is first and starts."""
    jobs = [job("A", 0, 10), job("L", 0, 5), job("W", 1, 2, 2), job("C", 2, 5), job("D", 4, 1)]
    assert run(jobs, [1, 1], "easy:queue=sjf:backfill=saf:guard=3").start == {"A": 0, "L": 0, "C": 5, "W": 10, "D": 12}
    assert run(jobs, [1, 1], "easy:queue=sjf:backfill=saf").start == {"A": 0, "L": 0, "D": 5, "W": 10, "C": 12}


def test_a_new_job_that_is_first_takes_the_reservation_over(run: Engine) -> None:
    """At 2 B has it (both nodes from 10); H comes, is shorter, and goes first; C (9 s) would run into either."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 1, 9.5), job("H", 3, 1, 2)]
    assert run(jobs, [1, 1], "easy:queue=sjf").start == {"A": 0, "B": 11, "C": 16, "H": 10}


LATE = [job("A", 0, 5), job("D", 0, 100), job("C", 1, 200), job("B", 2, 10, 2)]
"""From 5 on one node is free. C (200 s) fits, but B is shorter, needs both nodes, and has them at 100."""


def test_without_a_guard_the_long_job_waits(run: Engine) -> None:
    assert run(LATE, [1, 1], "easy:queue=sjf").start == {"A": 0, "D": 0, "C": 110, "B": 100}
    assert run(LATE, [1, 1], "sjf").start == {"A": 0, "D": 0, "C": 110, "B": 100}


@pytest.mark.parametrize(
    "scheduler", ["easy:queue=sjf", "easy:queue=saf", "easy:queue=xfactor", "sjf", "xfactor", "saf-strict"]
)
def test_a_guard_that_falls_due_between_events_starts_the_job_at_once(run: Engine, scheduler: str) -> None:
    """Nothing happens at 31 but that C has waited 30 s: it stands in front, and starts. B waits for it."""
    assert run(LATE, [1, 1], f"{scheduler}:guard=30").start == {"A": 0, "D": 0, "C": 31, "B": 231}


def test_a_guard_that_is_reached_at_the_end_is_not_yet_too_late(run: Engine) -> None:
    """At 100 both nodes are free, and C has waited exactly 99 s."""
    assert run(LATE, [1, 1], "easy:queue=sjf:guard=99").start["C"] == 100
    assert run(LATE, [1, 1], "easy:queue=sjf:guard=99.000001").start["C"] == 110


def test_greedy_and_conservative_with_a_guard(run: Engine) -> None:
    """Greedy: C starts as soon as it fits. Conservative: it was promised the node at 5 before B came."""
    for scheduler in ("sjf-fit:guard=30", "conservative:queue=sjf:guard=30", "conservative:queue=sjf"):
        assert run(LATE, [1, 1], scheduler).start == {"A": 0, "D": 0, "C": 5, "B": 205}, scheduler


def test_greedy_walks_the_old_first(run: Engine) -> None:
    """At 40 one node is free; C has waited 39 s, E less than 30."""
    jobs = [job("A", 0, 40), job("C", 1, 7), job("E", 20, 3)]
    assert run(jobs, [1], "sjf-fit").start == {"A": 0, "C": 43, "E": 40}
    assert run(jobs, [1], "sjf-fit:guard=30").start == {"A": 0, "C": 40, "E": 47}
    assert (
        run(jobs, [1], "packer:guard=30").start == run(jobs, [1], "tetris:guard=30").start == {"A": 0, "C": 40, "E": 47}
    )


def test_those_that_have_waited_the_guard_stand_in_order_of_submission(run: Engine) -> None:
    """E and F come at one instant, later than C; all are old at 40, and G is not."""
    jobs = [job("A", 0, 40), job("C", 1, 9), job("E", 2, 5), job("F", 2, 3), job("G", 30, 1)]
    for scheduler in ("easy:queue=sjf:guard=20", "sjf:guard=20", "easy:queue=wfp3:guard=20"):
        assert run(jobs, [1], scheduler).start == {"A": 0, "C": 40, "E": 49, "F": 54, "G": 57}, scheduler


def test_ties_of_the_order_are_in_queue_order(run: Engine) -> None:
    jobs = [job("A", 0, 10), job("C", 1, 5), job("B", 2, 5), job("D", 3, 5)]
    for scheduler in (
        "easy:queue=sjf",
        "easy:queue=smallest",
        "easy:queue=saf",
        "conservative:queue=sjf",
        "easy:queue=sqrt-area",
    ):
        assert run(jobs, [1], scheduler).start == {"A": 0, "C": 10, "B": 15, "D": 20}, scheduler


def test_the_root_of_the_cores_and_the_expansion_factor(run: Engine) -> None:
    """Area: B 4 x 4 = 16, C 1 x 10. Walltime x sqrt(cores): B 4 x 2 = 8. At 12 B has waited 11 / 4 of its walltime, C 2
    / 1, D 11 / 10."""
    jobs = [job("A", 0, 12, 4), job("B", 1, 4, 4), job("C", 1, 10)]
    assert run(jobs, [1] * 4, "saf-strict").start == {"A": 0, "B": 22, "C": 12}
    assert run(jobs, [1] * 4, "sqrt-area").start == {"A": 0, "B": 12, "C": 16}
    jobs = [job("A", 0, 12), job("D", 1, 10), job("B", 1, 4), job("C", 10, 1)]
    assert run(jobs, [1], "xfactor").start == {"A": 0, "B": 12, "C": 16, "D": 17}


def test_conservative_is_put_back_in_the_order_of_the_score(run: Engine) -> None:
    """Both nodes are promised to B at 20 and to C at 25. A ends early, at 10: C is put back first, and takes both
    nodes."""
    jobs = [job("A", 0, 10, 2, 20), job("B", 1, 5, 2), job("C", 2, 4, 2)]
    assert run(jobs, [1, 1], "conservative").start == {"A": 0, "B": 10, "C": 15}
    assert run(jobs, [1, 1], "conservative:queue=sjf").start == {"A": 0, "B": 14, "C": 10}


ALIKE = {
    "easy:queue=sjf": "easy",
    "easy:queue=wfp3": "easy",
    "sjf": "fcfs",
    "unicep": "fcfs",
    "saf-fit": "first-fit",
    "random": "first-fit",
}


@pytest.mark.parametrize("scheduler", [*ALIKE, "conservative:queue=ljf"])
def test_a_guard_of_nothing_is_the_order_of_submission(scheduler: str) -> None:
    """Everybody has waited it."""
    plain = ALIKE.get(scheduler, "conservative")
    for number in range(40):
        case = draw(random.Random(f"guard-{number}"), (plain,), 20)
        case.options.pop("depth", None)  # needs a plan made anew in another order
        expected = run_kernel(case).jobs
        case.options["scheduler"] = case.options["scheduler"].replace(plain, f"{scheduler}:guard=0", 1)
        assert run_kernel(case).jobs.equals(expected), case.program()


def test_a_guard_that_nobody_waits_changes_nothing() -> None:
    for number in range(60):
        rng = random.Random(f"no-guard-{number}")
        case = draw(rng, (*GREEDY[1:], *(f"easy:queue={name.removeprefix('easy-')}" for name in EASY[2:])), 20)
        case.options["scheduler"] = case.options["scheduler"].partition(":guard")[0]
        expected = run_kernel(case).jobs
        guarded = Case(
            case.platform, case.jobs, {**case.options, "scheduler": case.options["scheduler"] + ":guard=100d"}
        )
        assert run_kernel(guarded).jobs.equals(expected), guarded.program()
