"""Hand-made schedules of jobs that are expected to run another time than the one requested. One-core nodes; times in
seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.hand import Engine, job

COLUMN = "estimate_s"


def expected(
    job_id: str, submit_s: float, runtime_s: float, estimate_s: float, cores: int = 1, walltime_s: float | None = None
) -> Any:
    return job(job_id, submit_s, runtime_s, cores, walltime_s, estimate_s=estimate_s)


OUTLIVED = [expected("A", 0, 400, 100, 1, 1000), expected("B", 1, 50, 50, 2), expected("C", 2, 150, 150)]
"""A is expected to end at 100 and runs to 400; B needs both nodes; C (150 s) fits beside A."""


def test_a_plan_that_is_outlived_moves(run: Engine) -> None:
    """B is promised 100, then 160 (+1 min), then 460 (+5 min): from 160 on C may pass. By the request, 1000, C passes
    at once."""
    assert run(OUTLIVED, [1, 1], "easy").start == {"A": 0, "C": 2, "B": 400}
    assert run(OUTLIVED, [1, 1], "easy", estimate=COLUMN).start == {"A": 0, "C": 160, "B": 400}
    assert run(OUTLIVED, [1, 1], "easy:estimate=estimate_s").start == {"A": 0, "C": 160, "B": 400}


def test_it_moves_by_the_steps_that_are_given_and_then_to_the_request(run: Engine) -> None:
    """Steps of 10 s: 110, 120, 130, then 1000."""
    for steps, start in (((), 100), ((10,), 110), ((10, 10, 10), 130), ((149,), 249), ((200,), 100)):
        assert run(OUTLIVED, [1, 1], "easy", estimate=COLUMN, corrections_s=steps).start == {
            "A": 0,
            "C": start,
            "B": max(400, start + 150),
        }


@pytest.mark.parametrize("length, start", [(30, 100), (31, 130)])
def test_it_moves_at_most_to_the_request(run: Engine, length: float, start: float) -> None:
    """A asks for 130 s: at 100 its plan moves to 130 and not to 160; C (from 75 on) must end by then. A ends at 125."""
    jobs = [expected("A", 0, 125, 100, 1, 130), expected("B", 1, 5, 5, 2), expected("C", 75, length, length)]
    assert run(jobs, [1, 1], "easy", estimate=COLUMN).start["C"] == start


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "first-fit", "conservative", "easy-fast", "easy:queue=sjf"])
def test_a_job_is_killed_at_its_request_and_not_at_its_estimate(run: Engine, scheduler: str) -> None:
    jobs = [expected("A", 0, 200, 10, 1, 100), expected("B", 0, 50, 10, 1, 100), expected("C", 0, 50, 1000, 1, 100)]
    got = run(jobs, [1, 1, 1], scheduler, estimate=COLUMN, corrections_s=(5,))
    assert got.finish == {"A": 100, "B": 50, "C": 50}
    assert got.state == {"A": "KILLED", "B": "COMPLETED", "C": "COMPLETED"}


def test_conservative_gives_all_new_holes_when_a_plan_moves(run: Engine) -> None:
    """B is planned at 100 and C, 150 s, behind it at 150 on node 0. At 100 A's plan moves to 160. Compressed: B, beside
    C's plan, goes to 300, and C, next, to 100 on node 1. Rebuilt: B at 160 first, C behind it; at 160, when B goes to
    460, C starts."""
    assert run(OUTLIVED, [1, 1], "conservative", estimate=COLUMN).start == {"A": 0, "C": 100, "B": 400}
    assert run(OUTLIVED, [1, 1], "conservative", estimate=COLUMN, rebuild=True).start == {"A": 0, "C": 160, "B": 400}


def test_last2_is_the_mean_of_the_last_two_runs_that_ended(run: Engine) -> None:
    """J ends at 10, K at 20, N at 21, P at 27, M at 40, L at 55. M comes when J ends; Q is another's; P asks for
    less."""
    rows = [
        ("J", 0, 10),
        ("K", 0, 20),
        ("L", 5, 50),
        ("M", 10, 30),
        ("N", 20, 1),
        ("O", 25, 2),
        ("P", 25, 2),
        ("Q", 26, 5),
        ("R", 60, 5),
    ]
    jobs = [
        job(name, *times, 1, 7 if name == "P" else 100, user="other" if name == "Q" else "one") for name, *times in rows
    ]
    jobs.append(job("S", 61, 5, 1, 100, user=None))
    got = run(jobs, [1] * 10, "easy", estimate="last2")
    expected = {"J": 100, "K": 100, "L": 100, "M": 10, "N": 15, "O": 10.5, "P": 7, "Q": 100, "R": 40, "S": 100}
    assert {row["job_id"]: row["estimate_s"] for row in got.jobs} == expected


@pytest.mark.parametrize("several", range(3, 9))
def test_of_jobs_that_end_together_those_submitted_last_ended_last(run: Engine, several: int) -> None:
    """All end at 100; job k, submitted at 10 k, runs 100 - 10 k."""
    jobs = [job(f"{k}", 10 * k, 100 - 10 * k, user="one") for k in range(several)]
    got = run([*jobs, job("next", 101, 5, 1, 100, user="one")], [1] * several, "easy", estimate="last2")
    assert got.jobs[-1]["estimate_s"] == 100 - 10 * (several - 1.5)


SHORTER = [
    job("W", 0, 1000),
    job("a", 0, 50, user="a"),
    job("b", 0, 10, user="b"),
    job("G", 58, 20),
    job("H", 65, 5, 2),
    job("X", 66, 5, 1, 100, user="a"),
    job("Y", 67, 5, 1, 100, user="b"),
]
"""W holds one node. a runs 50 s, b 10 s, G to 80. H needs both nodes, at 1000. X and Y ask for 100 s and are expected
to run 50 and 10."""


@pytest.mark.parametrize("scheduler", ["easy++", "easy-sjf:estimate=last2", "easy-sjf:order_estimate=last2"])
def test_the_shortest_by_prediction_is_tried_first(run: Engine, scheduler: str) -> None:
    for plain in ("easy", "easy-sjf", "easy+", scheduler):
        got = run(SHORTER, [1, 1], plain).start
        assert (got["X"], got["Y"]) == ((85, 80) if plain == scheduler else (80, 85)), plain


def test_a_greedy_order_goes_by_prediction_too(run: Engine) -> None:
    """b 0 to 10 and a 0 to 50, W from 10, G 58 to 78; then X and Y, 5 s each."""
    for scheduler, starts in (
        ("sjf-fit", (78, 83)),
        ("sjf-fit:estimate=last2", (83, 78)),
        ("sjf-fit:order_estimate=last2", (83, 78)),
    ):
        got = run(SHORTER, [1, 1], scheduler).start
        assert (got["X"], got["Y"]) == starts, scheduler


def test_plans_and_order_have_estimates_of_their_own(run: Engine) -> None:
    """C asks for 60 s and is expected to run 5, D for 50 and to run 20. B (both nodes) is promised 50 by A's request.
    By requests neither C nor D may pass before it; by estimates both may, and the order says which is first."""
    jobs = [
        expected("A", 0, 50, 50),
        expected("B", 1, 5, 5, 2),
        expected("C", 2, 5, 5, 1, 60),
        expected("D", 2, 20, 20, 1, 50),
    ]
    pairs = [(plans, order) for plans in ("walltime", COLUMN) for order in ("walltime", COLUMN)]
    found = [run(jobs, [1, 1], "easy-sjf", estimate=plans, order_estimate=order).start for plans, order in pairs]
    assert [(got["C"], got["D"]) for got in found] == [(55, 55), (55, 55), (22, 2), (2, 7)]


def test_last2_in_the_order_knows_no_runtime_though_plans_do(run: Engine) -> None:
    """Nobody has a past, so the order goes by the requests: D (1 s) before C (3 s), which runs half a second."""
    jobs = [job("A", 0, 5), job("C", 1, 0.5, 1, 3), job("D", 1, 1, 1, 1)]
    for way in ("easy:queue=sjf", "conservative:queue=sjf"):
        assert run(jobs, [1], way, estimate="runtime", order_estimate="last2").start == {"A": 0, "C": 6, "D": 5}


def test_two_orders_and_weights_go_by_what_becomes_known_at_submission(run: Engine, tmp_path: Path) -> None:
    """u has run 1 s and v 4 s. At 10 a node is free: C (u) asks for 8 s and is expected to run 1, D (v) for 2 s, and
    2."""
    path = tmp_path / "score.toml"
    path.write_text('form = "linear"\n[weights]\nlog_estimate = 1\n', encoding="utf-8")
    past = [job("P", 0, 1, 1, 1, user="u"), job("Q", 0, 4, 1, 4, user="v")]
    jobs = [
        *past,
        job("A", 5, 10, user="x"),
        job("B", 5, 5, user="x"),
        job("C", 6, 1, 1, 8, user="u"),
        job("D", 6, 2, 1, 2, user="v"),
    ]
    for order in ("sjf", f"score:{path}", f"smallest:backfill=score:{path}", f"score:{path}:backfill=sjf"):
        starts = run(jobs, [1, 1], f"easy:queue={order}", order_estimate="last2").start
        assert starts == {"P": 0, "Q": 0, "A": 5, "B": 5, "C": 10, "D": 11}, order
    assert run(jobs, [1, 1], f"easy:queue=score:{path}").start == {"P": 0, "Q": 0, "A": 5, "B": 5, "C": 12, "D": 10}
