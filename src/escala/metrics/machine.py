"""Machine metrics: utilisation, loss of capacity, and step functions over time.

A *step function* is a table with a column `time_s` (strictly increasing) and value columns; a row's values hold from
its time to the time of the next row; the last row closes the function (its values hold for no time).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.metrics.energy import STATES
from escala.metrics.jobs import require

Floats = NDArray[np.float64]
Window = tuple[float, float]
_ROWS = 2_000_000  # of the nodes table looked at in one go


def busy_core_seconds(jobs: pl.DataFrame, start_s: float, end_s: float) -> float:
    """Core seconds that started jobs used within the window; a job that still runs counts to the window's end."""
    require(jobs, "start_s", "finish_s", "cores")
    span = pl.col("finish_s").fill_null(end_s).clip(upper_bound=end_s) - pl.col("start_s").clip(lower_bound=start_s)
    begun = jobs.select("start_s", "finish_s", "cores").filter(pl.col("start_s").is_not_null())
    return float(begun.select((span.clip(lower_bound=0.0) * pl.col("cores")).sum()).item() or 0.0)


def utilisation(jobs: pl.DataFrame, cores: int, start_s: float, end_s: float) -> float:
    """Sum q p / (makespan |R|) over the window; NaN for an empty window. With the window [first submission, last
    finish] this is R3's utilisation.
    """
    capacity = cores * (end_s - start_s)
    return busy_core_seconds(jobs, start_s, end_s) / capacity if capacity > 0.0 else float("nan")


def steps(times: Floats, deltas: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]) -> pl.DataFrame:
    """The step function that changes by `deltas` at `times` (any order, repeats allowed), starting from 0."""
    order = np.argsort(times, kind="stable")
    at = times[order]
    first = np.flatnonzero(np.diff(at, prepend=-np.inf) > 0.0) if at.size else np.empty(0, np.int64)
    columns = {name: np.cumsum(np.add.reduceat(d[order], first)) if at.size else d for name, d in deltas.items()}
    return pl.DataFrame({"time_s": at[first], **columns})


def within(function: pl.DataFrame, start_s: float, end_s: float) -> pl.DataFrame:
    """The step function in the window only: from `start_s` with the values that it has there (0 before its first row),
    to a closing row at `end_s`. An empty function stays empty.
    """
    if function.is_empty():
        return function
    begun = function.filter(pl.col("time_s") <= start_s).tail(1)
    if begun.is_empty():
        begun = function.head(1).with_columns(pl.exclude("time_s") * 0)
    inside = function.filter((pl.col("time_s") > start_s) & (pl.col("time_s") <= end_s))
    kept = pl.concat([begun.with_columns(time_s=pl.lit(start_s, pl.Float64)), inside])
    closing = kept.tail(1).filter(pl.col("time_s") < end_s).with_columns(time_s=pl.lit(end_s, pl.Float64))
    return pl.concat([kept, closing])


def _in(window: Window | None, function: pl.DataFrame) -> pl.DataFrame:
    return function if window is None else within(function, *window)


def used_cores(jobs: pl.DataFrame, window: Window | None = None) -> pl.DataFrame:
    """Cores in use over time (`value`). window: start and end of the run, s; a run that was cut needs it, for its jobs
    that still run hold their cores to the end of the window.
    """
    require(jobs, "start_s", "finish_s", "cores")
    begun = jobs.filter(pl.col("start_s").is_not_null())
    ended = begun.filter(pl.col("finish_s").is_not_null())
    times = np.concatenate([begun["start_s"].to_numpy(), ended["finish_s"].to_numpy()]).astype(np.float64)
    return _in(
        window,
        steps(
            times, {"value": np.concatenate([begun["cores"].to_numpy(), -ended["cores"].to_numpy()]).astype(np.int64)}
        ),
    )


def queue_length(jobs: pl.DataFrame, window: Window | None = None) -> pl.DataFrame:
    """Jobs submitted and not started, over time (`value`). Rejected jobs never queue. window: start and end of the run,
    s; a run that was cut needs it, for its table also holds jobs that were to be submitted after the cut.
    """
    require(jobs, "submit_s", "start_s", "state")
    queued = jobs.filter(pl.col("state") != "REJECTED")
    begun = queued["start_s"].drop_nulls().to_numpy()
    times = np.concatenate([queued["submit_s"].to_numpy(), begun]).astype(np.float64)
    return _in(window, steps(times, {"value": np.repeat(np.array([1, -1], np.int64), [queued.height, begun.size])}))


def queued_cores(jobs: pl.DataFrame, window: Window | None = None) -> pl.DataFrame:
    """Cores that waiting jobs ask for, over time (`value`); `window` as in `queue_length`."""
    require(jobs, "submit_s", "start_s", "state", "cores")
    queued = jobs.filter(pl.col("state") != "REJECTED")
    begun = queued.filter(pl.col("start_s").is_not_null())
    times = np.concatenate([queued["submit_s"].to_numpy(), begun["start_s"].to_numpy()]).astype(np.float64)
    return _in(
        window,
        steps(
            times, {"value": np.concatenate([queued["cores"].to_numpy(), -begun["cores"].to_numpy()]).astype(np.int64)}
        ),
    )


def nodes_by_state(nodes: pl.DataFrame) -> pl.DataFrame:
    """Number of nodes in each state over time: one column per state."""
    return _over_states(nodes, np.ones(nodes.height, np.int64))


def power_by_state(nodes: pl.DataFrame, power: pl.DataFrame) -> pl.DataFrame:
    """Watts drawn in each state over time: one column per state. See `mean_power_by_state` for very long tables.

    A node draws its mean power in each state, joules / seconds of the power table. This is exact for every state but
    computing, where the draw of a partly busy node varies and its mean stands for it; the integral over time is exact
    in all.
    """
    return _over_states(nodes, _watts(nodes, power))


def _watts(nodes: pl.DataFrame, power: pl.DataFrame) -> Floats:
    """Mean draw of the node in the state of each row, W."""
    require(power, "node", "state", "seconds", "joules", name="power")
    require(nodes, "node", "state", name="nodes")
    watts = power.filter(pl.col("seconds") > 0.0).select("node", "state", watts=pl.col("joules") / pl.col("seconds"))
    drawn = nodes.select("node", "state").join(watts, on=["node", "state"], how="left", maintain_order="left")
    return drawn["watts"].fill_null(0.0).to_numpy()


def mean_power_by_state(nodes: pl.DataFrame, power: pl.DataFrame, edges_s: Floats) -> pl.DataFrame:
    """The exact mean watts in each state and interval between edges: columns from_s, to_s and one per state.

    The same as `binned_mean` of `power_by_state`, without the step function in between: nothing is sorted and the
    memory needed does not grow with the table. With E(t) = sum over rows of w ((t - from)+ - (t - to)+), the energy up
    to t, only E at the edges is needed.
    """
    require(nodes, "node", "from_s", "to_s", "state", name="nodes")
    columns: dict[str, Floats] = {"from_s": edges_s[:-1], "to_s": edges_s[1:]} | {
        state: np.zeros(edges_s.size - 1) for state in STATES
    }
    for begin in range(0, nodes.height, _ROWS):
        rows = nodes[begin : begin + _ROWS]
        watts = _watts(rows, power)
        for state in STATES:
            here = (rows["state"] == state).to_numpy()
            begun = _energy_since(rows["from_s"].to_numpy()[here], watts[here], edges_s)
            ended = _energy_since(rows["to_s"].to_numpy()[here], watts[here], edges_s)
            columns[state] = columns[state] + np.diff(begun - ended) / np.diff(edges_s)
    return pl.DataFrame(columns)


def _energy_since(times: Floats, watts: Floats, edges_s: Floats) -> Floats:
    """sum over rows of watts (edge - time)+ at each edge, J."""
    place = np.searchsorted(edges_s, times)
    drawn = np.bincount(place, watts, edges_s.size + 1)[:-1].cumsum()
    return (
        drawn * (edges_s - edges_s[0])
        - np.bincount(place, watts * (times - edges_s[0]), edges_s.size + 1)[:-1].cumsum()
    )


def _over_states(nodes: pl.DataFrame, weight: NDArray[np.int64] | Floats) -> pl.DataFrame:
    require(nodes, "node", "from_s", "to_s", "state", name="nodes")
    times = np.concatenate([nodes["from_s"].to_numpy(), nodes["to_s"].to_numpy()]).astype(np.float64)
    deltas = {}
    for state in STATES:
        here = np.where((nodes["state"] == state).to_numpy(), weight, 0)
        deltas[state] = np.concatenate([here, -here])
    return steps(times, deltas)


def resample(function: pl.DataFrame, points: int, value: str = "value") -> pl.DataFrame:
    """At most `points` rows of a step function (columns time_s and `value`), chosen so that no extreme is lost.

    Time is cut into points / 4 equal intervals; of each the first, the last, the lowest and the highest row stay (the
    M4 aggregation of Jugel et al. 2014).
    """
    if points < 4:
        raise EscalaError(f"cannot resample to {points} points; ask for at least 4")
    table = function.select("time_s", value)
    if table.height <= points:
        return table
    time, y = table["time_s"].to_numpy(), table[value].to_numpy()
    buckets = points // 4
    bucket = np.minimum(((time - time[0]) / (time[-1] - time[0]) * buckets).astype(np.int64), buckets - 1)
    first = np.flatnonzero(np.diff(bucket, prepend=-1) > 0)
    last = np.append(first[1:], time.size) - 1
    by_value = np.lexsort((y, bucket))
    keep = np.unique(np.concatenate([first, last, by_value[first], by_value[last]]))
    return table[keep]


def binned_mean(function: pl.DataFrame, edges_s: Floats) -> pl.DataFrame:
    """The exact mean over time of every value column in each interval between edges: columns from_s, to_s and the
    values. 0 outside the function.
    """
    time = function["time_s"].to_numpy()
    columns: dict[str, Floats] = {"from_s": edges_s[:-1], "to_s": edges_s[1:]}
    for name in function.columns:
        if name == "time_s":
            continue
        if time.size == 0:
            columns[name] = np.zeros(edges_s.size - 1)
            continue
        integral = np.concatenate([[0.0], np.cumsum(function[name].to_numpy()[:-1] * np.diff(time))])
        columns[name] = np.diff(np.interp(edges_s, time, integral)) / np.diff(edges_s)
    return pl.DataFrame(columns)


def loss_of_capacity(jobs: pl.DataFrame, cores: int, start_s: float, end_s: float) -> float:
    """The share of the window's core seconds that were free while a job waited (Zhang et al. 2003); NaN for an empty
    window."""
    capacity = cores * (end_s - start_s)
    if capacity <= 0.0:
        return float("nan")
    queued = jobs.select("state", "submit_s", "start_s", "finish_s", "cores").filter(pl.col("state") != "REJECTED")
    begun = queued.filter(pl.col("start_s").is_not_null())
    ended = begun.filter(pl.col("finish_s").is_not_null())
    times = np.concatenate([queued["submit_s"], begun["start_s"], ended["finish_s"]]).astype(np.float64)
    waiting = np.repeat(np.array([1, -1, 0], np.int64), [queued.height, begun.height, ended.height])
    used = np.concatenate([np.zeros(queued.height, np.int64), begun["cores"], -ended["cores"]])
    both = steps(times, {"waiting": waiting, "used": used})
    time = np.append(np.clip(both["time_s"].to_numpy(), start_s, end_s), end_s)
    free = np.where(both["waiting"].to_numpy() > 0, cores - both["used"].to_numpy(), 0)
    return float((free * np.diff(time)).sum()) / capacity
