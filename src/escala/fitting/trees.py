"""Trees fitted by LightGBM (Ke et al. 2017, "LightGBM: A Highly Efficient Gradient Boosting Decision Tree"), imported
here alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.extras import need

ROUNDS = 120
SETTINGS: dict[str, Any] = {
    "objective": "regression_l1",
    "num_leaves": 31,
    "learning_rate": 0.08,
    "min_data_in_leaf": 20,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
"""Absolute error of the log of the run time: the prediction is a median, and short jobs count as much as long ones."""


def fitted(
    rows: NDArray[np.float64], runtime_s: NDArray[np.float64], features: tuple[str, ...], seed: int
) -> tuple[str, dict[str, float]]:
    """(LightGBM's text of the trees, the share of the gain of each feature). EscalaError where LightGBM is not
    installed, or fails."""
    need("predict", "predict")
    import lightgbm

    data = lightgbm.Dataset(rows, np.log(runtime_s), feature_name=list(features), free_raw_data=True)
    try:
        booster = lightgbm.train({**SETTINGS, "seed": seed}, data, ROUNDS)
    except lightgbm.basic.LightGBMError as error:
        raise EscalaError(f"LightGBM cannot fit these jobs ({error}): give another log, or more of it") from error
    gain = booster.feature_importance("gain")
    total = max(float(gain.sum()), 1e-300)
    shares = {
        name: float(each) / total for name, each in sorted(zip(features, gain, strict=True), key=lambda pair: -pair[1])
    }
    return booster.model_to_string(num_iteration=-1), shares
