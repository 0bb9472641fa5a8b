"""Energy against wait of pairs of policies: what is on the frontier and on its hull, and the cheapest pair within a
limit on waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import escala
from escala.metrics import Prices, Series
from escala.report.frontier import sentences
from escala.tuning.joint import LONGEST

LOG = {
    "submit_s": [0.0, 0.0, 500.0, 900.0, 901.0],
    "runtime_s": [300.0, 100.0, 100.0, 50.0, 50.0],
    "cores": [2, 1, 2, 1, 1],
}


def _found(knows: tuple[str, ...] = (), **points: tuple[float, float]) -> escala.Frontier:
    """Pairs by (wait, energy); the 95th percentile and the longest wait are twice and four times the mean."""
    summaries = {
        name: {"mean_wait_s": wait, "p95_wait_s": 2 * wait, "max_wait_s": 4 * wait, "energy_j": energy}
        for name, (wait, energy) in points.items()
    }
    return escala.Frontier(summaries, {name: "run times" if name in knows else "" for name in points})


def test_who_is_on_the_frontier_and_on_its_hull() -> None:
    found = _found(
        now=(10.0, 100.0),
        middle=(20.0, 80.0),
        dent=(30.0, 75.0),
        low=(40.0, 50.0),
        worse=(41.0, 50.0),
        twin=(40.0, 50.0),
    )
    assert found.undominated() == ["low", "dent", "middle", "now"]
    # at a wait of 30 the line from low to middle is at 65, dent above it
    assert found.hull() == ["low", "middle", "now"]
    assert _found(now=(10.0, 100.0), on=(25.0, 75.0), low=(40.0, 50.0)).hull() == ["low", "now"]


def test_clairvoyant_pairs_are_not_chosen() -> None:
    found = _found(knows=("seer",), now=(10.0, 100.0), seer=(5.0, 50.0), rule=(10.0, 90.0))
    assert found.undominated() == ["rule"] and found.cheapest() == "rule"


@pytest.mark.parametrize(("margin", "chosen"), [(0.0, "now"), (0.02, "near"), (0.1, "far"), (1.0, "far")])
def test_the_cheapest_within_a_limit(margin: float, chosen: str) -> None:
    found = _found(now=(100.0, 10.0), near=(102.0, 9.0), far=(110.0, 8.0), starving=(100.0 * LONGEST + 1, 7.0))
    assert found.cheapest(margin) == chosen


def test_pairs_are_replayed_as_by_simulate() -> None:
    log = escala.Workload.from_jobs(LOG)
    found = escala.frontier(log, "2x1:grid5000", ["easy", "sjf-fit"], ["never", "timeout:0", "oracle"])
    assert list(found.summaries) == [
        f"{s} + {d}" for s in ("easy", "sjf-fit") for d in ("never", "timeout:0", "oracle")
    ]
    alone = escala.simulate(log, "2x1:grid5000", "sjf-fit", "timeout:0").summary()
    assert found.summaries["sjf-fit + timeout:0"] == pytest.approx(alone)
    assert found.reference == "easy + never" and found.knows["easy + oracle"] and not found.knows["easy + never"]


@pytest.mark.parametrize(
    ("platform", "how", "what"),
    [
        ("2x1", {"shutdowns": ["never"]}, "needs watts"),
        ("2x1", {}, "needs a power profile"),
        ("2x1:grid5000", {"schedulers": ["easy"], "shutdowns": ["never"]}, "a frontier of one pair"),
        ("2x1:grid5000", {"schedulers": ["easy", "eazy"]}, "eazy"),
        ("2x1:grid5000", {"shutdowns": ["oracle", "oracle:0.1"]}, "clairvoyant pairs only"),
        ("2x1:grid5000", {"estimate": "runtime"}, "leave it out"),
        ("2x1:grid5000", {"until_s": 100.0}, "leave --stop-at"),
    ],
)
def test_bad_input_is_told_in_one_line(platform: str, how: dict[str, Any], what: str) -> None:
    with pytest.raises(escala.EscalaError, match=what) as told:
        escala.frontier(escala.Workload.from_jobs(LOG), platform, **how)
    assert "\n" not in str(told.value)


def test_prices_that_change_choose_by_cost() -> None:
    """Two nodes of which one computes from 0 to 100, and from 900 to 1000 both. A kWh costs 1 before 500 and 9 from
    there on; its CO2 is 100 g."""
    columns = {"submit_s": [0.0, 900.0], "runtime_s": [100.0, 100.0], "cores": [1, 2]}
    log = escala.Workload.from_jobs(columns)
    money = Series(np.array([0.0, 500.0]), np.array([1.0, 9.0]))
    carbon = Series(np.array([0.0]), np.array([100.0]))
    asked = ("2x1:grid5000", ["easy"], ["never", "timeout:0"])
    plain = escala.frontier(log, *asked)
    found = escala.frontier(log, *asked, prices=Prices(money, carbon))
    assert (plain.least, found.least) == ("energy_j", "cost") and "cost" not in plain.summaries[plain.reference]
    for name, told in found.summaries.items():
        assert {key: told[key] for key in plain.summaries[name]} == plain.summaries[name]
        assert told["co2_kg"] == pytest.approx(told["energy_j"] / 3.6e6 * 0.1)
    kwh = 3.6e6
    before, after = (100 * 190 + 100 * 95 + 400 * 2 * 95) / kwh, (400 * 2 * 95 + 100 * 2 * 190) / kwh
    assert found.summaries["easy + never"]["cost"] == pytest.approx(before * 1.0 + after * 9.0)
    only_carbon = escala.frontier(log, *asked, prices=Prices(carbon=carbon))
    assert only_carbon.least == "energy_j" and "cost" not in only_carbon.summaries["easy + never"]


def test_the_least_cost_is_not_the_least_energy() -> None:
    found = _found(now=(10.0, 100.0), low=(10.0, 80.0), night=(10.0, 90.0))
    cost = {"now": 50.0, "low": 40.0, "night": 30.0}
    priced = replace(found, summaries={n: {**s, "cost": cost[n]} for n, s in found.summaries.items()}, least="cost")
    assert (found.cheapest(), priced.cheapest()) == ("low", "night")
    told = " ".join(sentences(priced)).replace("\u202f", " ")
    assert "night changes the cost by −40.0 %, the energy by −10.0 %" in told
    same = replace(priced, summaries={n: {**s, "cost": 50.0} for n, s in found.summaries.items()})
    assert "no pair costs less" in " ".join(sentences(same))


def test_prices_that_begin_after_the_log_are_refused() -> None:
    late = Prices(Series(np.array([50.0]), np.array([1.0])))
    with pytest.raises(escala.EscalaError, match="give prices from its beginning on"):
        escala.frontier(escala.Workload.from_jobs(LOG), "2x1:grid5000", ["easy"], ["never", "timeout:0"], prices=late)
