"""What is kept of that which was tried beyond the rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from escala.report.tuned import beyond
from escala.tuning.steps import EVEN, Step, best_of, kept_of

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
        ("prediction", "easy:queue=saf:guard=24h:order_estimate=model:elsewhere", False),
        ("weights", "easy:queue=score:score.toml:guard=24h:order_estimate=model:model", False),
    ],
)
def test_what_held_on_other_logs_needs_no_proof_by_weeks_and_the_rest_does(part: str, name: str, kept: bool) -> None:
    better, shown = _step(part, name, RULE - 0.1), _step(part, name, RULE - 0.1, AHEAD)
    assert better.held == kept and kept_of([better], RULE) == (better if kept else None)
    assert kept_of([shown], RULE) == shown and kept_of([_step(part, name, RULE + 0.1, AHEAD)], RULE) is None
    few = _step(part, name, RULE - 0.1, (None, None, None))
    assert not few.ahead and kept_of([few], RULE) == (few if kept else None)


def test_where_the_past_cannot_tell_the_order_goes_by_a_model() -> None:
    even = _step("prediction", MODEL, RULE + 0.5 * EVEN)
    assert kept_of([even], RULE) == even and kept_of([_step("prediction", MODEL, RULE + 2 * EVEN)], RULE) is None
    assert kept_of([_step("given score", GIVEN, RULE)], RULE) is None


def test_where_nobody_waits_easy_stays() -> None:
    assert kept_of([_step("prediction", MODEL, 0.0), _step("given score", GIVEN, 0.0)], 0.0) is None
    assert kept_of([_step("prediction", MODEL, 0.5 * EVEN)], 0.0) is None


def test_a_broken_promise_is_never_kept() -> None:
    broken = [_step(part, MODEL, RULE - 1.0, AHEAD, excess=0.01) for part in ("prediction", "given score", "weights")]
    assert kept_of(broken, RULE) is None


def test_one_is_kept_the_best_on_the_whole_past() -> None:
    model, last2 = _step("prediction", MODEL, RULE - 0.2), _step("prediction", LAST2, RULE - 0.3, AHEAD, fit=-0.1)
    given, weights = (
        _step("given score", GIVEN, RULE - 0.1),
        _step("weights", "easy:queue=score:score.toml", RULE - 0.4),
    )
    assert kept_of([model, last2, given, weights], RULE) == last2
    # of those that must be ahead only the best where it was chosen is asked
    other = _step("prediction", LAST2 + "0", RULE - 0.4, UNSHOWN, fit=-0.2)
    assert kept_of([model, last2, given, other], RULE) == model


def test_of_equal_fits_the_better_on_the_whole_past_is_first() -> None:
    first, second = _step("weights", "a", -0.1), _step("weights", "b", -0.2)
    assert best_of([first, second, _step("weights", "c", -0.3, excess=0.1)]) == second


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (_step("prediction", LAST2, RULE - 0.1, AHEAD), "was ahead of the best rule, easy:queue=saf, on weeks"),
        (_step("prediction", MODEL, RULE, UNSHOWN), "its weeks alone do not prove it: 0.95 [0.80, 1.10] of the rule's"),
        (_step("given score", GIVEN, RULE - 0.1, AHEAD), "its weeks show it too: 0.80 [0.70, 0.90] of the rule's"),
        (_step("given score", GIVEN, RULE - 0.1, (None, None, None)), "its weeks alone do not prove it. Its kind"),
    ],
)
def test_the_page_says_why_it_was_kept(step: Step, told: str) -> None:
    assert told in beyond(SimpleNamespace(steps=[step], chosen=step.name, rule="easy:queue=saf", without=""))[0]  # type: ignore[arg-type]


def test_the_page_says_that_nothing_was_kept() -> None:
    tuned = SimpleNamespace(steps=[_step("prediction", LAST2, RULE)], chosen="easy", rule="easy", without="No users.")
    told = beyond(tuned)  # type: ignore[arg-type]
    assert told[0] == "No users." and told[1].startswith(
        "Nothing tried beyond the rules was kept in the place of easy. "
    )
    assert f"prediction {LAST2} (0.95 [0.80, 1.10])" in told[1]


def test_of_too_few_weeks_the_page_gives_no_ratio() -> None:
    tuned = SimpleNamespace(
        steps=[_step("given score", GIVEN, RULE, (None, None, None))], chosen="easy", rule="easy", without=""
    )
    told = beyond(tuned)  # type: ignore[arg-type]
    assert told == ["Nothing tried beyond the rules was kept in the place of easy."]
