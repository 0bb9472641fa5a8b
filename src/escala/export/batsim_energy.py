"""Batsim's consumed_energy.csv: the energy of all nodes over time, from the tables of a Result."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.platform import Platform

ENDS, SWITCHES, STARTS = 0, 1, 2  # the order of the rows of one instant
DRAWN = {"computing": "idle_w", **{state: f"{state}_w" for state in ("idle", "off", "switching_off", "switching_on")}}
Floats = NDArray[np.float64]


class Run(Protocol):
    """What is read of a Result."""

    @property
    def jobs(self) -> pl.DataFrame: ...
    @property
    def nodes(self) -> pl.DataFrame: ...
    @property
    def allocations(self) -> pl.DataFrame: ...
    @property
    def manifest(self) -> dict[str, Any]: ...


class Steps:
    """A sum of intervals (from, to, watts) as a function of time."""

    def __init__(self, begin: pl.Series, end: pl.Series, watts: pl.Series) -> None:
        times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
        change = np.bincount(place, np.concatenate([watts, -watts]), minlength=len(times))
        self.times = np.append(-np.inf, times)
        self.watts = np.append(0.0, np.cumsum(change))  # from this time on
        # until this time
        self.joules = np.concatenate([[0.0, 0.0], np.cumsum(self.watts[1:-1] * np.diff(times))])[: len(self.times)]

    def watts_at(self, times: Floats) -> Floats:
        """Just after each time."""
        return self.watts[np.searchsorted(self.times, times, "right") - 1]

    def joules_at(self, times: Floats) -> Floats:
        """Up to each time."""
        k = np.searchsorted(self.times, times, "right") - 1
        return self.joules[k] + np.where(k > 0, self.watts[k] * (times - np.where(k > 0, self.times[k], 0.0)), 0.0)


def consumed_energy(result: Run, switched: pl.Series) -> pl.DataFrame:
    """A row for each job that starts (s) or ends (e) and each change of power states (p, at the times `switched`; the
    first is the state at the beginning and has none): joules since the beginning of the window, the least watts of the
    nodes in the states that they have after this instant, and the mean watts since the row before (null where no time
    passed)."""
    times, kinds = _events(result.jobs, switched)
    least, added = _least(result), _added(result)
    energy = least.joules_at(times) + added.joules_at(times)
    passed = np.diff(times, prepend=times[:1])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(passed > 0.0, np.diff(energy, prepend=0.0) / passed, np.nan)
    return pl.DataFrame(
        {
            "time": times,
            "energy": energy,
            "event_type": pl.Series(np.array(["e", "p", "s"], object)[kinds], dtype=pl.String),
            "wattmin": least.watts_at(times),
            "epower": pl.Series(mean, nan_to_null=True),
        }
    )


def _events(jobs: pl.DataFrame, switched: pl.Series) -> tuple[Floats, NDArray[np.int64]]:
    """Times and kinds of the rows."""
    parts = {
        ENDS: jobs["finish_s"].drop_nulls(),
        SWITCHES: switched.filter(switched > switched.min()),
        STARTS: jobs["start_s"].drop_nulls(),
    }
    times = np.concatenate([np.asarray(values, np.float64) for values in parts.values()])
    kinds = np.repeat(np.array(list(parts)), [len(values) for values in parts.values()])
    order = np.lexsort((kinds, times))
    return times[order], kinds[order]


def _least(result: Run) -> Steps:
    """What the states of the nodes draw at least: computing nodes their idle watts. After the window the last states
    hold."""
    nodes = result.nodes.join(_nodes(result.manifest["platform"]), on="node", how="left", maintain_order="left")
    watts = pl.coalesce([pl.when(pl.col("state") == state).then(pl.col(column)) for state, column in DRAWN.items()])
    last = pl.col("to_s") == pl.col("to_s").max()
    rows = nodes.select("from_s", pl.when(last).then(np.inf).otherwise("to_s").alias("to_s"), watts.alias("watts"))
    return Steps(rows["from_s"], rows["to_s"], rows["watts"])


def _added(result: Run) -> Steps:
    """What jobs add to that."""
    end = result.manifest["window"]["end_s"]
    ran = result.jobs.select("job_id", "start_s", end_s=pl.col("finish_s").fill_null(end)).filter(
        pl.col("end_s") > pl.col("start_s")
    )
    placed = result.allocations.join(ran, on="job_id").join(_nodes(result.manifest["platform"]), on="node")
    share = pl.col("idle_w") * pl.col("cores") / pl.col("node_cores")
    rows = placed.select("start_s", "end_s", watts=pl.col("joules") / (pl.col("end_s") - pl.col("start_s")) - share)
    return Steps(rows["start_s"], rows["end_s"], rows["watts"])


def _nodes(spec: dict[str, Any]) -> pl.DataFrame:
    """node, node_cores and what it draws in each state, from the plain description of a platform."""
    machine = Platform.from_spec(spec)
    drawn = machine.drawn
    columns: dict[str, Any] = {"node": np.arange(machine.n_nodes), "node_cores": machine.cores}
    for name in DRAWN.values():
        columns[name] = np.array([getattr(profile, name) for profile in drawn.profiles])[drawn.profile_of]
    return pl.DataFrame(columns)
