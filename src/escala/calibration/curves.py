"""What a schedule held over time: cores in use and jobs that waited, as means over equal spans, exact."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SPANS = 200


def over_time(jobs: pl.DataFrame, start: str, end: str, total_cores: int, grid: Floats) -> pl.DataFrame:
    """utilisation (share of the cores) and queue (jobs) in each span of the grid. jobs: submit_s, cores, and the
    columns named."""
    submit, begun, ended = (jobs[name].cast(pl.Float64).to_numpy() for name in ("submit_s", start, end))
    cores, ones = jobs["cores"].cast(pl.Float64).to_numpy(), np.ones(jobs.height)
    width = np.diff(grid)
    busy = np.diff(_integral(begun, cores, grid) - _integral(ended, cores, grid)) / width
    queue = np.diff(_integral(submit, ones, grid) - _integral(begun, ones, grid)) / width
    return pl.DataFrame({"utilisation": busy / total_cores, "queue": np.maximum(queue, 0.0)})


def grid_of(first_s: float, last_s: float, spans: int = SPANS) -> Floats:
    """Edges of equal spans."""
    return np.linspace(first_s, max(last_s, first_s + 1.0), spans + 1)


def _integral(steps_at: Floats, heights: Floats, at: Floats) -> Floats:
    """Up to each instant, the integral of a sum of steps, each of its height from its time on."""
    order = np.argsort(steps_at, kind="stable")
    times, sizes = steps_at[order], heights[order]
    many = np.searchsorted(times, at, side="right")
    height = np.concatenate([[0.0], np.cumsum(sizes)])[many]
    moment = np.concatenate([[0.0], np.cumsum(sizes * times)])[many]
    return np.asarray(at * height - moment)


def levels(starts: Floats, ends: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """(instants, what is held from each on): ends go before starts of the same instant, or millisecond."""
    times = np.round(np.concatenate([ends, starts]), 3)
    order = np.lexsort((np.concatenate([np.zeros(len(ends)), np.ones(len(starts))]), times))
    return times[order], np.cumsum(np.concatenate([-sizes, sizes])[order])
