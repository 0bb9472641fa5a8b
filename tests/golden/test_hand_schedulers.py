"""Hand-made schedules: what sets each scheduler apart. One-core nodes unless said; times in seconds; jobs run to their
walltime unless said."""

from __future__ import annotations

import pytest

from tests.golden.hand import Engine, job


# --- strict and greedy ------------------------------------------------------------------------------
def test_fcfs_blocks_and_first_fit_passes(run: Engine) -> None:
    """B (two nodes) cannot start before 10; C could."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 2, 20)]
    assert run(jobs, [1, 1], "fcfs").start == {"A": 0, "B": 10, "C": 15}
    assert run(jobs, [1, 1], "first-fit").start == {"A": 0, "C": 2, "B": 22}


def test_sjf_strict_greedy_and_with_easy(run: Engine) -> None:
    """At 1 the shortest is B (two nodes, 5 s), then D (6 s), then C (12 s); one node is free until 10."""
    jobs = [job("A", 0, 10), job("C", 1, 12), job("B", 1, 5, 2), job("D", 1, 6)]
    # strict: B first, and it blocks
    assert run(jobs, [1, 1], "sjf").start == {"A": 0, "B": 10, "D": 15, "C": 15}
    # greedy: B does not fit, D does (1..7), then C fits at 7 (7..19); B at 19
    assert run(jobs, [1, 1], "sjf-fit").start == {"A": 0, "D": 1, "C": 7, "B": 19}
    # EASY: the head is C, in queue order, and it fits at once (1..13); then B is head with both nodes from 13 on; D
    # (10..16) does not fit before
    assert run(jobs, [1, 1], "easy-sjf").start == {"A": 0, "C": 1, "B": 13, "D": 18}


def test_easy_sjf_tries_the_shorter_first(run: Engine) -> None:
    """B is head with both nodes from 10 on. One node is free: EASY tries C (8 s) first, EASY-SJF D (4 s) and then C no
    more."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 1, 8), job("D", 1, 4)]
    assert run(jobs, [1, 1], "easy").start == {"A": 0, "C": 1, "B": 10, "D": 15}
    assert run(jobs, [1, 1], "easy-sjf").start == {"A": 0, "D": 1, "B": 10, "C": 15}


def test_saf_orders_by_area(run: Engine) -> None:
    """Three nodes, two of them free until 10. Area of C: 2 x 3 = 6, of D: 1 x 5 = 5; by walltime C would be first."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 3), job("C", 1, 3, 2), job("D", 1, 5)]
    assert run(jobs, [1, 1, 1], "easy-sjf").start == {"A": 0, "C": 1, "D": 4, "B": 10}
    for name in ("saf", "easy-saf"):
        assert run(jobs, [1, 1, 1], name).start == {"A": 0, "D": 1, "C": 6, "B": 10}, name


def test_ljf_and_saf_strict(run: Engine) -> None:
    """One node after A: longest first; by area first."""
    jobs = [job("A", 0, 10), job("B", 1, 3), job("C", 1, 7), job("D", 1, 5)]
    assert run(jobs, [1], "ljf").start == {"A": 0, "C": 10, "D": 17, "B": 22}
    assert run(jobs, [1], "saf-strict").start == {"A": 0, "B": 10, "D": 13, "C": 18}


def test_ties_of_a_score_are_in_queue_order(run: Engine) -> None:
    jobs = [job("A", 0, 10), job("C", 1, 5), job("B", 2, 5), job("D", 3, 5)]
    for scheduler in ("sjf", "ljf", "saf-strict", "sjf-fit", "easy-sjf"):
        assert run(jobs, [1], scheduler).start == {"A": 0, "C": 10, "B": 15, "D": 20}, scheduler


def test_packer_tetris_and_first_fit(run: Engine) -> None:
    """Four nodes, all at 0. First-fit: B, C (2 + 1). Packer: D (3) first, then C. Tetris: 0.5 x 1 + 0.5 / 0.25 = 2.5 of
    C is the best, then D with 0.5 x 3 + 0.5 / 10 = 1.55 against B's 1.05."""
    jobs = [job("B", 0, 10, 2), job("C", 0, 0.25, 1), job("D", 0, 10, 3)]
    assert run(jobs, [1] * 4, "first-fit").start == {"B": 0, "C": 0, "D": 10}
    assert run(jobs, [1] * 4, "packer").nodes == {"D": "0-2", "C": "3", "B": "0-1"}
    assert run(jobs, [1] * 4, "tetris").nodes == {"C": "0", "D": "1-3", "B": "0-1"}
    assert run(jobs, [1] * 4, "tetris").start == {"C": 0, "D": 0, "B": 10}


@pytest.mark.parametrize(
    ("scheduler", "order"),
    [
        # -(wait / walltime)^3 x cores at 100: C -(90/30)^3 x 3 = -81, B -(80/40)^3 x 4 = -32, D -(50/20)^3 x 3 = -46.9
        ("wfp3", "CDB"),
        # -wait / (log2(cores) x walltime) at 100: C -3 / 1.585 = -1.89, B -2 / 2 = -1, D -2.5 / 1.585 = -1.58
        ("unicep", "CDB"),
    ],
)
def test_scores_that_grow_with_waiting(run: Engine, scheduler: str, order: str) -> None:
    """Four nodes and jobs of three or four: one at a time. After C (100..130) B has waited 110: -(2.75)^3 x 4 = -83; D
    80: -64 x 3 = -192."""
    jobs = [job("A", 0, 100, 4), job("C", 10, 30, 3), job("B", 20, 40, 4), job("D", 50, 20, 3)]
    start = run(jobs, [1] * 4, scheduler).start
    assert "".join(sorted("BCD", key=lambda name: start[name] or 0.0)) == order


@pytest.mark.parametrize(
    ("scheduler", "order"),
    [
        # log10(walltime) x cores + 870 log10(submit): B 2.5 x 4 + 870 x 1 = 880; C 0.7 x 3 + 870 x 1.3 = 1134; D 1 x 3
        # + 870 = 873
        ("f1", "DBC"),
        # sqrt(walltime) x cores + 25600 log10(submit): B 17.8 x 4 + 25600; D 3.2 x 3 + 25600; C 2.2 x 3 + 33307
        ("f2", "DBC"),
        # walltime x cores + 6.86e6 log10(submit); walltime x sqrt(cores) + 5.3e5 log10(submit): the same order
        ("f3", "DBC"),
        ("f4", "DBC"),
    ],
)
def test_scores_of_submission_and_size(run: Engine, scheduler: str, order: str) -> None:
    jobs = [job("A", 0, 100, 4), job("B", 10, 316, 4), job("D", 10, 10, 3), job("C", 20, 5, 3)]
    start = run(jobs, [1] * 4, scheduler).start
    assert "".join(sorted("BCD", key=lambda name: start[name] or 0.0)) == order


# --- EASY -------------------------------------------------------------------------------------------
def test_passing_job_may_end_exactly_at_the_reservation(run: Engine) -> None:
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 3, 7)]
    for scheduler in ("easy", "easy-fast"):
        for rules in ("escala", "batsched"):  # the margin of 5 s stands on both sides
            assert run(jobs, [1, 1], scheduler, rules=rules).start["C"] == 3
            assert run([*jobs[:2], job("C", 3, 8)], [1, 1], scheduler, rules=rules).start["C"] == 15


@pytest.mark.parametrize(("rules", "passes"), [("escala", True), ("batsched", False)])
def test_plans_of_the_reference_engine_are_exact_sums_of_doubles(run: Engine, rules: str, passes: bool) -> None:
    """A is planned to end at 2.4 + 0.6 (+ 5), which is 1.1e-16 below 8 as an exact sum of the doubles, C at 2.7 + 0.3
    (+ 5), 1.7e-16 above: in whole microseconds C ends in time for B, exactly it does not."""
    jobs = [job("A", 2.4, 0.5, 1, 0.6), job("B", 2.5, 0.6, 2), job("C", 2.7, 0.3)]
    start = run(jobs, [1, 1], "easy", rules=rules).start
    assert start == ({"A": 2.4, "C": 2.7, "B": 3.0} if passes else {"A": 2.4, "B": 2.9, "C": 3.5})


def test_reservation_lowest_id_or_latest_released(run: Engine) -> None:
    """Z frees node 0 at 1; A holds nodes 1 and 2 to 10. Head C (two nodes) has s = 10. Lowest-id reserves nodes 0 and
    1, so that the long D
    must wait for node 2 at 10; latest-released leaves one node over, and D takes node 0 at 3."""
    jobs = [job("Z", 0, 1), job("A", 0, 10, 2), job("C", 2, 5, 2), job("D", 3, 100)]
    lowest = run(jobs, [1] * 3, "easy")
    assert lowest.start == {"Z": 0, "A": 0, "C": 10, "D": 10}
    assert (lowest.nodes["C"], lowest.nodes["D"]) == ("0-1", "2")
    latest = run(jobs, [1] * 3, "easy", head="latest-released")
    assert latest.start == {"Z": 0, "A": 0, "D": 3, "C": 10}
    assert (latest.nodes["C"], latest.nodes["D"]) == ("1-2", "0")


def test_releases_of_one_instant_all_count(run: Engine) -> None:
    """A (nodes 0, 1) ends at 10; node 2 is free. Head B (two nodes) reserves nodes 0 and 1 of the three that are free
    at 10; the long C takes
    node 2 at once. With easy-fast nothing passes that runs beyond 10."""
    jobs = [job("A", 0, 10, 2), job("B", 1, 5, 2), job("C", 2, 50)]
    for head in ("lowest-id", "latest-released"):
        assert run(jobs, [1] * 3, "easy", head=head).start == {"A": 0, "B": 10, "C": 2}
    assert run(jobs, [1] * 3, "easy-fast").start == {"A": 0, "B": 10, "C": 10}


def test_spare_cores_are_used_up(run: Engine) -> None:
    """As above with two free nodes; the reservation leaves two over: C and D take them, E must wait."""
    jobs = [job("A", 0, 10, 2), job("B", 1, 5, 3), job("C", 2, 50), job("D", 3, 50)]
    for head in ("lowest-id", "latest-released"):
        assert run(jobs, [1] * 4, "easy", head=head).start == {"A": 0, "B": 10, "C": 2, "D": 15}


def test_easy_moves_its_reservation_and_easy_fast_keeps_it(run: Engine) -> None:
    """B asks for 30 s and ends at 14; H runs to 16; head K (three nodes) is promised 30. From 14 on easy promises it
    16, so C (15..25) may
    not pass; easy-fast keeps 30, C passes, and K waits for it."""
    jobs = [job("B", 0, 14, 1, 30), job("H", 0, 16), job("K", 1, 5, 3), job("C", 15, 10)]
    assert run(jobs, [1] * 3, "easy").start == {"B": 0, "H": 0, "K": 16, "C": 21}
    assert run(jobs, [1] * 3, "easy-fast").start == {"B": 0, "H": 0, "C": 15, "K": 25}


def test_estimate_runtime(run: Engine) -> None:
    """C asks for 100 s and runs 5: with the runtime known it passes B's reservation at 10."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 2, 5, 1, 100)]
    assert run(jobs, [1, 1], "easy").start["C"] == 15
    assert run(jobs, [1, 1], "easy", estimate="runtime").start["C"] == 2


def test_reservation_on_nodes_of_several_cores(run: Engine) -> None:
    """Two nodes of two cores. A holds node 0 to 10, B one core of node 1 to 30. Head H (three cores) has s = 10: two
    cores of node 0 and the free
    one of node 1; the long C must wait. With H of two cores the reservation is node 0 and C takes the core of node
    1."""
    first = [job("A", 0, 10, 2), job("B", 0, 30)]
    got = run([*first, job("H", 1, 5, 3), job("C", 2, 50)], [2, 2], "easy")
    assert got.start == {"A": 0, "B": 0, "H": 10, "C": 15}
    assert got.nodes["H"] == "0-1"
    got = run([*first, job("H", 1, 5, 2), job("C", 2, 50)], [2, 2], "easy")
    assert got.start == {"A": 0, "B": 0, "H": 10, "C": 2}
    assert (got.nodes["H"], got.nodes["C"]) == ("0", "1")


# --- conservative -----------------------------------------------------------------------------------
def test_conservative_protects_the_second_job_too(run: Engine) -> None:
    """A holds nodes 0 and 1 to 10; B (three nodes) 10..20 and then C (four nodes) 20..25. The long D would delay C
    only: EASY lets it start."""
    jobs = [job("A", 0, 10, 2), job("B", 1, 10, 3), job("C", 2, 5, 4), job("D", 3, 50)]
    assert run(jobs, [1] * 4, "easy").start == {"A": 0, "B": 10, "D": 3, "C": 53}
    assert run(jobs, [1] * 4, "conservative").start == {"A": 0, "B": 10, "C": 20, "D": 25}


def test_conservative_compress_and_rebuild(run: Engine) -> None:
    """Two nodes. A to 3 (asks to 5); B, both nodes, planned 5..7; C 2..3 (asks to 4) on node 1; D planned 4..5 on node
    1.
    At 3 A and C end. Compress: B is put back beside D's plan (4..5), so not before 5; then D moves to 3. Rebuild: B is
    first, at 3."""
    jobs = [job("A", 0, 3, 1, 5), job("B", 1, 1, 2, 2), job("C", 2, 1, 1, 2), job("D", 2, 1)]
    assert run(jobs, [1, 1], "conservative").start == {"A": 0, "B": 4, "C": 2, "D": 3}
    assert run(jobs, [1, 1], "conservative", rebuild=True).start == {"A": 0, "B": 3, "C": 2, "D": 4}


def test_conservative_moves_a_plan_of_one_pool_into_the_time_before_it(run: Engine) -> None:
    """One node of four cores. A to 40 (asks to 100); B, planned 100..200, goes to 40: the hole before its plan and the
    plan are one."""
    assert run([job("A", 0, 40, 4, 100), job("B", 1, 100, 4)], [4], "conservative").start == {"A": 0, "B": 40}


def test_conservative_depth(run: Engine) -> None:
    """B waits for 10. With one reservation C is not considered while B waits; with two it fills the hole on node 1."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 2, 4), job("D", 2, 3)]
    assert run(jobs, [1, 1], "conservative", depth=1).start == {"A": 0, "B": 10, "C": 15, "D": 15}
    assert run(jobs, [1, 1], "conservative", depth=2).start == {"A": 0, "B": 10, "C": 2, "D": 6}
    assert run(jobs, [1, 1], "conservative").start == {"A": 0, "B": 10, "C": 2, "D": 6}


def test_conservative_hole_may_begin_and_end_exactly(run: Engine) -> None:
    """Intervals are half-open: C (8 s) fits 2..10 on node 1; B needs both nodes from 10 to 15; D starts at 15."""
    jobs = [job("A", 0, 10), job("B", 1, 5, 2), job("C", 2, 8), job("D", 2, 9)]
    assert run(jobs, [1, 1], "conservative").start == {"A": 0, "B": 10, "C": 2, "D": 15}


def test_plan_margin(run: Engine) -> None:
    """A (nodes 0, 1) to 10, B (three nodes) after it 10 s, then F (four nodes). D (one node, 20 s) at 3 must end before
    F's plan: at 20 without a
    margin, but at 30 with 5 s for A and for B: 3 + 20 + 5 = 28. (All end at their plain walltime: the plans are
    compressed.)"""
    jobs = [job("A", 0, 10, 2), job("B", 1, 10, 3), job("F", 2, 5, 4), job("D", 3, 20)]
    assert run(jobs, [1] * 4, "conservative").start["D"] == 25
    assert run(jobs, [1] * 4, "conservative", rules="batsched").start["D"] == 3
    assert run(jobs, [1] * 4, "conservative", rules="batsched", plan_margin_s=0.0).start["D"] == 25
    assert run(jobs, [1] * 4, "conservative", plan_margin_s=5.0).start["D"] == 3
