"""What is kept of that which was tried beyond the rules."""

from __future__ import annotations

from typing import Any

import pytest

from escala.tuning.steps import EVEN, Step, kept_of

RULE = -0.5
MODEL, LAST2 = "easy:queue=saf:guard=24h:order_estimate=model:model", "easy:queue=saf:guard=24h:order_estimate=last2"
PLAN, GIVEN = "easy:queue=saf:guard=24h:estimate=model:model", "easy:queue=escala:guard=24h"
PASSING = "easy:queue=saf:backfill=sjf:guard=24h"
AHEAD, UNSHOWN = (0.8, 0.7, 0.9), (0.95, 0.8, 1.1)


def _step(part: str, name: str, whole: float, ratio: Any = UNSHOWN, fit: float = 0.0, excess: float = 0.0) -> Step:
    return Step(part, name, fit, whole, excess, ratio, 0.9, ())


@pytest.mark.parametrize(
    ("part", "name", "kept"),
    [
        ("prediction", MODEL, True),
        ("given score", GIVEN, True),
        ("given score", GIVEN + ":order_estimate=model:model", True),
        ("prediction", LAST2, False),
        ("prediction", PLAN, False),
        ("given score", GIVEN + ":order_estimate=last2", False),
        ("backfill", PASSING, False),
        ("weights", "easy:queue=score:score.toml:guard=24h:order_estimate=model:model", False),
    ],
)
def test_what_held_on_other_logs_needs_no_proof_by_weeks_and_the_rest_does(part: str, name: str, kept: bool) -> None:
    better = _step(part, name, RULE - 0.1)
    assert better.held == kept and kept_of([better], RULE) == ([better] if kept else [])
    shown = _step(part, name, RULE - 0.1, AHEAD)
    assert kept_of([shown], RULE) == [shown] and kept_of([_step(part, name, RULE + 0.1, AHEAD)], RULE) == []


def test_where_the_past_says_nothing_the_order_goes_by_a_model() -> None:
    even = _step("prediction", MODEL, RULE + 0.5 * EVEN)
    assert kept_of([even], RULE) == [even] and kept_of([_step("prediction", MODEL, RULE + 2 * EVEN)], RULE) == []
    assert kept_of([_step("given score", GIVEN, RULE)], RULE) == []


def test_a_broken_promise_is_never_kept() -> None:
    broken = [_step(part, MODEL, RULE - 1.0, AHEAD, excess=0.01) for part in ("prediction", "given score", "weights")]
    assert kept_of(broken, RULE) == []


def test_of_each_part_one_is_kept_and_the_best_is_last() -> None:
    model, last2 = _step("prediction", MODEL, RULE - 0.2), _step("prediction", LAST2, RULE - 0.3, AHEAD, fit=-0.1)
    given, weights = (
        _step("given score", GIVEN, RULE - 0.1),
        _step("weights", "easy:queue=score:score.toml", RULE - 0.4),
    )
    assert kept_of([model, last2, given, weights], RULE) == [given, last2]
    # of those that must be ahead only the best where it was chosen is asked
    other = _step("prediction", LAST2 + "0", RULE - 0.4, UNSHOWN, fit=-0.2)
    assert kept_of([model, last2, given, other], RULE) == [given, model]
