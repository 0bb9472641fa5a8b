"""How near predictions of run times are to what jobs ran."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.metrics.jobs import size_classes

Floats = NDArray[np.float64]
LEAST_JOBS = 20
"""Users with fewer later jobs are not judged one by one."""
PAST_JOBS = {"0": 0, "1-9": 1, "10-99": 10, "100-999": 100, "1000 and more": 1000}
"""Class of users -> the least number of their jobs in the past."""


def figures(predicted: Floats, runtime: Floats) -> dict[str, float]:
    """mean_absolute_error_s, median_absolute_error_s; underestimated: the share of jobs that ran longer; nearness: the
    mean of the smaller of prediction and run time over the larger; rank_correlation (Spearman). NaN where there is no
    job, or no difference."""
    if not len(runtime):
        return dict.fromkeys(
            ("mean_absolute_error_s", "median_absolute_error_s", "underestimated", "nearness", "rank_correlation"),
            float("nan"),
        )
    error = np.abs(predicted - runtime)
    return {
        "mean_absolute_error_s": float(error.mean()),
        "median_absolute_error_s": float(np.median(error)),
        "underestimated": float((runtime > predicted).mean()),
        "nearness": float((np.minimum(predicted, runtime) / np.maximum(predicted, runtime)).mean()),
        "rank_correlation": _ranked(predicted, runtime),
    }


def _ranked(a: Floats, b: Floats) -> float:
    ranks = pl.DataFrame({"a": a, "b": b}).select(pl.corr("a", "b", method="spearman"))
    value = ranks.item()
    return float("nan") if value is None else float(value)


def by_size(cores: Floats, predictions: Mapping[str, Floats], runtime: Floats) -> list[dict[str, object]]:
    """Rows by the class of the job's cores: group, jobs, and of each prediction NAME_error_s, the mean absolute
    error."""
    return _grouped(size_classes(cores), cores, predictions, runtime)


def by_past(
    users: pl.Series, past: pl.Series, predictions: Mapping[str, Floats], runtime: Floats
) -> list[dict[str, object]]:
    """Rows by how many jobs the user has in the past. users, past: of the later jobs, of the past ones; none where no
    user is known."""
    if users.null_count() == len(users):
        return []
    counts = past.drop_nulls().value_counts().rename({past.name: "user"})
    own = (
        pl.DataFrame({"user": users})
        .join(counts, on="user", how="left", maintain_order="left")["count"]
        .fill_null(0)
        .to_numpy()
    )
    names, least = list(PAST_JOBS), np.array(list(PAST_JOBS.values()))
    place = np.searchsorted(least, own, side="right") - 1
    return _grouped(pl.Series([names[k] for k in place]), own.astype(np.float64), predictions, runtime)


def _grouped(
    group: pl.Series, order: Floats, predictions: Mapping[str, Floats], runtime: Floats
) -> list[dict[str, object]]:
    errors = {name: np.abs(each - runtime) for name, each in predictions.items()}
    table, means = (
        pl.DataFrame({"group": group, "order": order, **errors}),
        [pl.col(name).mean().alias(f"{name}_error_s") for name in errors],
    )
    rows = table.group_by("group").agg(pl.len().alias("jobs"), pl.col("order").min(), *means)
    return rows.sort("order").drop("order").to_dicts()


def users_nearer(
    users: pl.Series, predictions: Mapping[str, Floats], runtime: Floats, model: str
) -> dict[str, float] | None:
    """Of users with enough later jobs: their number, and the shares of them to whom the model is nearer on average than
    each other prediction; None where there is none."""
    errors = {name: np.abs(each - runtime) for name, each in predictions.items()}
    means = [pl.col(name).mean() for name in errors]
    each = pl.DataFrame({"user": users, **errors}).drop_nulls("user").group_by("user").agg(pl.len(), *means)
    each = each.filter(pl.col("len") >= LEAST_JOBS)
    if each.is_empty():
        return None
    share = {name: float((each[model] < each[name]).to_numpy().mean()) for name in predictions if name != model}
    nearer = {f"nearer_than_{name}": value for name, value in share.items()}
    return {"users": float(each.height), **nearer}
