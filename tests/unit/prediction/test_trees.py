"""Trees in LightGBM's text: evaluated as LightGBM does, to the bit, and refused where they make no sense."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.prediction.trees import evaluate, read_trees

lightgbm = pytest.importorskip("lightgbm")
FEATURES = 6
SETTINGS = {"num_leaves": 15, "learning_rate": 0.1, "num_threads": 1, "deterministic": True, "verbosity": -1, "seed": 0}


def table(seed: int, rows: int) -> np.ndarray:
    """Some columns have holes, some many zeros."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, FEATURES))
    x[:, 1][draw.random(rows) < 0.3] = np.nan
    x[:, 2][draw.random(rows) < 0.5] = 0.0
    x[:, 3] = np.round(x[:, 3])
    return x


def booster(objective: str = "regression", **more: Any) -> Any:
    x = table(1, 2000)
    y = 3.0 * x[:, 0] + np.nan_to_num(x[:, 1], nan=5.0) ** 2 + x[:, 2] * x[:, 3]
    return lightgbm.train({**SETTINGS, "objective": objective, **more}, lightgbm.Dataset(x, y), 40)


def values(text: str, rows: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows))
    evaluate(read_trees(text, Path("trees.txt"), FEATURES), rows, out)
    return out


@pytest.mark.parametrize(
    "more", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"objective": "regression_l1"}]
)
def test_they_say_what_lightgbm_says(more: dict[str, Any]) -> None:
    fitted, rows = booster(**{"objective": "regression", **more}), table(2, 3000)
    rows[::7, 0] = np.nan  # no value was missing there when it was fitted
    rows[::11, 4] = 0.0
    found = values(fitted.model_to_string(), rows)
    assert np.array_equal(found, fitted.predict(rows)) and len(np.unique(found)) > 1000


def test_a_tree_may_be_one_leaf() -> None:
    rows, flat = table(3, 50), lightgbm.Dataset(table(3, 50), np.full(50, 2.5))
    fitted = lightgbm.train({**SETTINGS, "objective": "regression"}, flat, 3)
    assert np.array_equal(values(fitted.model_to_string(), rows), fitted.predict(rows))


DAMAGED = {
    "no trees": lambda text: text.split("Tree=0")[0],
    "a leaf too few": lambda text: text.replace("num_leaves=15", "num_leaves=16", 1),
    "a leaf that is none": lambda text: text.replace("leaf_value=", "leaf_value=nan ", 1),
    "no number": lambda text: text.replace("threshold=", "threshold=x", 1),
    "a section less": lambda text: text.replace("left_child=", "left=", 1),
    "a circle": lambda text: re.sub(r"left_child=\S+", "left_child=0", text, count=1),
    "a child beyond": lambda text: re.sub(r"left_child=\S+", "left_child=14", text, count=1),
    "a leaf beyond": lambda text: re.sub(r"right_child=\S+", "right_child=-16", text, count=1),
    "a feature beyond": lambda text: re.sub(r"split_feature=\S+", f"split_feature={FEATURES}", text, count=1),
    "categories": lambda text: re.sub(r"decision_type=\S+", "decision_type=1", text, count=1),
    "huge numbers": lambda text: text.replace("split_feature=", "split_feature=99999999999999999999 ", 1),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_what_makes_no_sense_is_one_line(how: str) -> None:
    text = booster().model_to_string()
    damaged = DAMAGED[how](text)
    assert damaged != text
    with pytest.raises(EscalaError, match=r"trees.txt: .*fit the model again") as caught:
        read_trees(damaged, Path("trees.txt"), FEATURES)
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None
