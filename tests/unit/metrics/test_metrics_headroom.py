"""The share of what is possible."""

from __future__ import annotations

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.metrics import headroom


def test_by_hand() -> None:
    """Means 4 (reference), 3 (policy), 2 (best): half the way."""
    share = headroom([2.0, 4.0], [3.0, 5.0], [1.0, 3.0])
    assert share.value == 0.5 and (share.low, share.high) == (0.5, 0.5)
    assert headroom([3.0, 5.0], [3.0, 5.0], [1.0, 3.0]).value == 0.0
    # two training seeds: all of it, and none
    assert headroom([[1.0, 3.0], [3.0, 5.0]], [3.0, 5.0], [1.0, 3.0]).value == 0.5
    assert headroom([4.0, 6.0], [3.0, 5.0], [1.0, 3.0]).value == -0.5


def test_resamples_without_room_are_left_out() -> None:
    """The second episode has room by rounding alone."""
    share = headroom([2.0, 1.2], [3.0, 1.1 + 2e-16], [1.0, 1.1])
    assert (share.low, share.high) == pytest.approx((0.45, 0.5))


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    hits = 0
    for k in range(200):
        best = random.gamma(2.0, 1.0, 80)
        reference, policy = best + random.gamma(2.0, 1.0, 80), best + random.gamma(2.0, 0.4, 80)
        share = headroom(policy, reference, best, resamples=400, seed=k)
        hits += share.low <= 0.6 <= share.high
    assert 175 <= hits <= 200


@pytest.mark.parametrize(
    ("values", "reference", "best", "word"),
    [([1.0], [1.0], [1.0], "no room"), ([1.0, 2.0], [3.0], [0.0], "episodes"), ([float("nan")], [2.0], [1.0], "nan")],
)
def test_bad_input(values: list[float], reference: list[float], best: list[float], word: str) -> None:
    with pytest.raises(EscalaError, match=word):
        headroom(values, reference, best)


def test_a_best_for_each_seed() -> None:
    """A seed that may gain 2 gains 1, one that may gain 1 gains nothing: a third; both alike: as with one best."""
    share = headroom([[2.0, 4.0], [3.0, 5.0]], [3.0, 5.0], [[1.0, 3.0], [2.0, 4.0]])
    assert share.value == pytest.approx(1.0 / 3.0) and share.seeds == 2 and share.low <= share.value <= share.high
    values, reference, best = [[2.0, 4.0], [3.0, 5.5]], [3.0, 6.0], [1.0, 3.0]
    assert headroom(values, reference, [best, best]).value == headroom(values, reference, best).value
    with pytest.raises(EscalaError, match="episodes"):
        headroom([[1.0, 2.0]], [3.0, 4.0], [[0.0, 0.0], [0.0, 0.0]])
