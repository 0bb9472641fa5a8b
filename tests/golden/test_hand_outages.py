"""Hand-made schedules of nodes that are down or drained for a while. Times in seconds; jobs run to their walltime
unless said."""

from __future__ import annotations

from typing import Any

from tests.golden.hand import POWER, Outcome, job
from tests.laws.laws import Rows, rows
from tests.laws.outages import check_outages
from tests.oracle.engines import ENGINES
from tests.oracle.worlds import Case


def gone(nodes: list[int], from_s: float, until_s: float, kind: str = "down", requeue: bool = True) -> dict[str, Any]:
    return {"nodes": nodes, "from_s": from_s, "until_s": until_s, "kind": kind, "requeue": requeue}


def play(jobs: Rows, cores: list[int], closed: Rows, scheduler: str = "easy", **options: Any) -> Outcome:
    """Both engines, which agree, and keep to the laws."""
    platform = {"cores": cores, "profiles": [POWER], "profile_of": [0] * len(cores), "closed": closed}
    found = []
    for engine in ENGINES.values():
        result = engine(Case(platform, jobs, {"scheduler": scheduler, **options}))
        check_outages(result, jobs, platform, options.get("until_s"))
        found.append(Outcome(rows(result.jobs), rows(result.nodes), rows(result.power)))
    assert found[0].start == found[1].start and found[0].nodes == found[1].nodes and found[0].state == found[1].state
    return found[1]


def lost(outcome: Outcome) -> dict[str, float]:
    return {row["job_id"]: row["lost_s"] for row in outcome.jobs if row["lost_s"]}


def test_what_ran_on_a_node_that_goes_down_runs_anew_from_its_old_place() -> None:
    """A has run 4 s in vain; on the one node that is left it starts before B, which came later."""
    found = play([job("A", 0, 10), job("B", 0, 6), job("C", 1, 5)], [1, 1], [gone([0], 4, 100)])
    assert found.start == {"A": 6, "B": 0, "C": 16}
    assert found.nodes == {"A": "1", "B": "1", "C": "1"}
    assert lost(found) == {"A": 4}


def test_or_ends_there() -> None:
    found = play([job("A", 0, 10), job("C", 1, 5)], [1], [gone([0], 4, 7, requeue=False)])
    assert found.start == {"A": 0, "C": 7} and found.finish == {"A": 4, "C": 12}
    assert found.state["A"] == "KILLED" and not lost(found)


def test_a_job_that_ends_as_its_node_goes_down_has_ended() -> None:
    found = play([job("A", 0, 4, walltime_s=9), job("C", 1, 5)], [1], [gone([0], 4, 7, requeue=False)])
    assert found.finish == {"A": 4, "C": 12} and found.state["A"] == "COMPLETED"


def test_what_runs_on_a_node_that_is_drained_runs_on() -> None:
    """Its cores come back to nobody until 20: B fits on node 0, which has one core free, and may not lie there."""
    found = play([job("A", 0, 10), job("C", 2, 3, 2), job("B", 3, 2)], [2], [gone([0], 1, 20, "drain")])
    assert found.start == {"A": 0, "C": 20, "B": 23} and found.finish["A"] == 10


def test_a_drained_node_that_comes_back_meanwhile_has_its_job_still() -> None:
    found = play([job("A", 0, 10), job("C", 2, 3, 2), job("B", 3, 2)], [2], [gone([0], 1, 6, "drain")])
    assert found.start == {"A": 0, "C": 10, "B": 6}


def test_nobody_plans_with_a_node_that_is_gone() -> None:
    """Of H, which needs both nodes, nobody knows when it can start; so D (50 s) passes it. With both there it would
    have to wait."""
    jobs = [job("A", 0, 5), job("H", 3, 2, 2), job("D", 4, 50)]
    assert play(jobs, [1, 1], [gone([1], 2, 30)]).start == {"A": 0, "H": 55, "D": 5}
    assert play(jobs, [1, 1], [gone([1], 60, 70)]).start == {"A": 0, "H": 5, "D": 7}


def test_all_plans_are_made_anew_when_a_node_comes_back() -> None:
    """H was to start at 20 with the end of A; with node 1 back at 5 it starts then. S (3 s) no longer passes it."""
    jobs = [job("A", 0, 20), job("H", 1, 4), job("S", 5, 3)]
    for scheduler in ("easy", "easy-fast", "conservative"):
        assert play(jobs, [1, 1], [gone([1], 0, 5)], scheduler).start == {"A": 0, "H": 5, "S": 9}, scheduler


def test_nodes_may_be_gone_from_before_the_beginning_and_never_come_back() -> None:
    found = play([job("A", 0, 5), job("B", 0, 5)], [1, 1], [gone([0], -5, 1000)])
    assert found.start == {"A": 0, "B": 5} and found.nodes == {"A": "1", "B": "1"}


def test_one_node_in_two_closures_is_back_with_the_last() -> None:
    found = play([job("A", 2, 5)], [1], [gone([0], 1, 4), gone([0], 3, 9, "drain")])
    assert found.start == {"A": 9}


def test_nodes_of_a_job_of_several_are_free_when_one_goes_down() -> None:
    """Node 1, which stays, is idle from 3 on; what was done in vain has drawn power."""
    found = play([job("A", 0, 10, 2), job("B", 1, 2)], [1, 1], [gone([0], 3, 50)])
    assert found.start == {"A": 50, "B": 3} and found.nodes["B"] == "1"
    assert found.life(1) == [("computing", 0, 5), ("idle", 5, 50), ("computing", 50, 60)]
    assert found.life(0) == [("computing", 0, 3), ("idle", 3, 50), ("computing", 50, 60)]


def test_a_job_that_waits_for_a_node_to_be_on_waits_again() -> None:
    """The only node is off, is woken at 0 for 20 s, and drained at 10; it is on by 20 all the same."""
    found = play([job("A", 0, 5)], [1], [gone([0], 10, 30, "drain")], shutdown="timeout:100", start_off=True)
    assert found.start == {"A": 30} and not lost(found)
    assert found.life(0) == [("switching_on", 0, 20), ("idle", 20, 30), ("computing", 30, 35)]


def test_a_node_that_is_gone_is_not_switched() -> None:
    """Idle from 5 on it would be off at 8; it is gone from 6 to 40 and idle anew from then on."""
    found = play([job("A", 0, 5), job("B", 60, 5, 2)], [1, 1], [gone([0], 6, 40)], shutdown="timeout:3")
    assert found.life(0)[:4] == [
        ("computing", 0, 5),
        ("idle", 5, 43),
        ("switching_off", 43, 48),
        ("off", 48, 60),
    ]
    assert found.life(1)[:2] == [("idle", 0, 3), ("switching_off", 3, 8)]


def test_a_user_s_last_run_is_the_one_that_an_outage_ended() -> None:
    """last2 takes B for 4 s long, as long as A ran."""
    jobs = [job("A", 0, 30, user="u"), job("B", 5, 10, walltime_s=30, user="u"), job("C", 5, 6)]
    found = play(jobs, [1], [gone([0], 4, 6, requeue=False)], "easy:queue=sjf", order_estimate="last2")
    assert found.start == {"A": 0, "B": 6, "C": 16}
