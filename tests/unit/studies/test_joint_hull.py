"""Agents and rules as points of waste and wait: sums, waits as R3 shows them, and the hull that mixtures of rules
reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escala.studies.deepscheduler2020 import completed
from escala.studies.lab.joint import Joint, usual_mean


def days(waste: float, *waits: float) -> dict[str, Any]:
    """One seed; days of ten jobs that all waste the same, with these mean waits, s."""
    count = len(waits)
    return {"waste_j": [waste] * count, "wait_s": [10.0 * wait for wait in waits], "jobs": [10.0] * count}


def table(waste: float, *waits: float) -> dict[str, np.ndarray]:
    return {name: np.array([values]) for name, values in days(waste, *waits).items()}


def test_usual_days_are_those_between_the_10th_and_the_90th_percentile() -> None:
    values = np.array([[1000.0, *range(1, 10), 0.0], [5.0] * 11])
    assert usual_mean(values).tolist() == pytest.approx([5.0, 5.0])  # 0 and 1000 are left out


def test_a_policy_is_held_against_mixtures_of_the_others_at_its_own_wait() -> None:
    joint = Joint(
        {"quick": table(100.0, 10.0, 10.0), "slow": table(60.0, 30.0, 30.0), "ours": table(70.0, 10.0, 30.0)},
        resamples=5,
    )
    # a coin between quick and slow has 80 at a mean wait of 20 s, where ours wastes 70
    assert joint.against_hull("ours", ["quick", "slow"], "mean")[0] == pytest.approx(70.0 / 80.0 - 1.0)
    assert joint.change("waste", "ours", "quick")[0] == pytest.approx(-0.3)
    assert joint.change("mean", "ours", "quick")[0] == pytest.approx(1.0)
    # below the least wait of all rules the quickest one counts
    fast = Joint({"quick": table(100.0, 10.0), "slow": table(60.0, 30.0), "ours": table(90.0, 5.0)}, resamples=5)
    assert fast.against_hull("ours", ["quick", "slow"], "mean").tolist() == pytest.approx([-0.1] * 6)


def test_seeds_are_averaged_day_by_day() -> None:
    seeds = table(100.0, 10.0, 50.0, 40.0), table(50.0, 30.0, 10.0, 20.0)
    two = {name: np.concatenate([one[name] for one in seeds]) for name in seeds[0]}
    joint = Joint({"ours": two, "other": table(75.0, 20.0, 30.0, 30.0)}, resamples=0)
    assert joint.waste["ours"].tolist() == joint.waste["other"].tolist() == [225.0]
    for way, wait in (("mean", 80.0 / 3.0), ("usual", 30.0)):  # of 20, 30 and 30 s; the 10th percentile is 22 s
        assert joint.wait[way]["ours"].tolist() == joint.wait[way]["other"].tolist() == pytest.approx([wait])


def hand_made() -> dict[str, Any]:
    """Cells of an input: rules on a line from (10 s, 100) to (30 s, 60); agents of two limits over either shutdown
    policy."""
    rules = {
        completed.EASY: days(100.0, 10.0, 10.0),
        completed.FIRST_FIT: days(100.0, 10.0, 10.0),
        completed.SHORTEST: days(60.0, 30.0, 30.0),
    }
    cells: dict[str, Any] = {f"joint/g5k/{part}": rules for part in completed.PARTS}
    of = {"5min/0.95/0": (90.0, 85.0), "5min/1.05/0": (70.0, 95.0), "0/0.95/0": (80.0, 78.0), "0/1.05/0": (79.0, 70.0)}
    for agent, (tried, held) in of.items():
        cells[f"done/g5k/{agent}"] = {"validation": days(tried, 20.0, 20.0), "test": days(held, 20.0, 20.0)}
    return cells


def test_the_agent_that_counts_is_chosen_on_validation_days_and_held_out_days_have_no_say() -> None:
    cells = hand_made()
    assert completed.chosen(cells, "g5k") == {"5min": "5min/1.05", "0": "0/1.05"}
    found = {claim.id: claim for claim in completed.claims(cells)}
    assert found["r3.done.waste_vs_easy.5min.g5k"].ours == pytest.approx(-0.05)
    worse, better = (found[f"r3.done.mean_hull.{over}.g5k"] for over in completed.OVER)
    assert worse.ours == pytest.approx(95 / 80 - 1) and worse.meets_aim is False
    assert better.ours == pytest.approx(70 / 80 - 1) and better.meets_aim is True
    table = completed.frame(cells)
    assert table.filter("chosen")["policy"].unique().sort().to_list() == ["0/1.05", "5min/1.05"]
    assert table.filter("agent", part="test").height == 4 and table.filter(~table["agent"], part="test").height == 3


def test_a_rule_in_the_environment_is_the_rule_in_the_simulator() -> None:
    """So agents and rules stand on the same ground: First-Fit by scores over nodes that go off at once, and First-Fit
    of the kernel."""
    source = {"name": "orion", "traces": None, "generated_days": 40, "most": 5}
    found = completed.pairs(source, "test")
    for order, rule in (("first-fit", "first-fit"), ("sjf-fit", "shortest")):
        for switch in ("timeout:0", "timeout:300"):
            ours, theirs = found[f"{rule} + {switch}"], found[f"{order} + {switch}"]
            assert sum(ours["waste_j"]) == pytest.approx(sum(theirs["waste_j"]), rel=0.05)
            assert sum(ours["wait_s"]) == pytest.approx(sum(theirs["wait_s"]), rel=0.05, abs=60.0)
