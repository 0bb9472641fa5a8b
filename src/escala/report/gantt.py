"""The interactive Gantt chart: what goes into the page. gantt.js draws it from binary columns (deflated, base64), a few
bytes a job.

What is too much for a page is left out by size, never silently: every packed chart carries the sentences that say what
it does not show.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.metrics.jobs import require
from escala.report.style import STATE_COLOURS

JOB_LIMIT = 100_000
"""Jobs drawn on a page, over all its charts."""
_SEGMENTS_PER_JOB = 6
_STATE_LIMIT = 400_000
_PAIR_LIMIT = 3_000_000  # (job, node) pairs up to which jobs that share a node are laid side by side
_TICK_S = 1e-3
_STATE_ROWS = 5_000_000  # node intervals looked at; of more, the longest
_NODES = {"node": pl.Int64, "from_s": pl.Float64, "to_s": pl.Float64, "state": pl.String}
_DRAWN_STATES = tuple(state for state in STATE_COLOURS if state != "computing")  # computing is where the jobs are
_OUTCOMES = ("COMPLETED", "KILLED", "RUNNING")

Ints = NDArray[np.int64]


def pack(
    name: str,
    jobs: pl.DataFrame,
    nodes: pl.DataFrame | None,
    *,
    n_nodes: int,
    end_s: float | None = None,
    limit: int = JOB_LIMIT,
) -> dict[str, Any]:
    """One chart as a JSON-ready dictionary for gantt.js.

    jobs, nodes: tables of a Result; None for nodes where that table was too large to keep, then no node states are
    drawn. n_nodes: nodes of the platform. end_s: where the run was cut, for jobs that still run. limit: jobs to draw at
    most; the largest by core seconds are kept.
    """
    require(jobs, "job_id", "submit_s", "start_s", "finish_s", "cores", "state", "nodes")
    without = nodes is None
    nodes = pl.DataFrame(schema=_NODES) if nodes is None else nodes
    begin, end = _window(jobs, nodes, end_s)
    drawn, segments, notes = _chosen(jobs.filter(pl.col("start_s").is_not_null()), end, limit)
    lanes, crowded = _lanes(drawn, segments)
    notes += crowded
    tick = max(_TICK_S, (end - begin) / 4e9)
    start = _ticks(drawn["start_s"], begin, tick)
    finish = _ticks(drawn["finish_s"], begin, tick)
    users = drawn["user"].fill_null("").unique(maintain_order=True).to_list() if "user" in drawn.columns else [""]
    user = np.zeros(drawn.height)
    if len(users) > 1:
        user = drawn["user"].fill_null("").replace_strict(users, list(range(len(users)))).to_numpy()
    per_job = np.bincount(lanes["job"], minlength=drawn.height)
    states, left_out = _states(nodes)
    notes += ["Node states are not drawn: that table was too large to keep."] if without else left_out
    columns: list[tuple[str, Any, str]] = [
        ("start", np.diff(start, prepend=0), "u4"),
        ("duration", finish - start, "u4"),
        ("wait", np.maximum(start - _ticks(drawn["submit_s"], begin, tick), 0), "u4"),
        ("cores", drawn["cores"].to_numpy(), "u4"),
        ("user", user, "u4"),
        ("outcome", drawn["state"].replace_strict(_OUTCOMES, list(range(3)), default=0).to_numpy(), "u1"),
        ("segments", per_job, "u4"),
        ("low", lanes["low"], "u4"),
        ("more", lanes["high"] - lanes["low"], "u4"),
        ("lane", lanes["lane"], "u2"),
        ("lanes", lanes["lanes"], "u2"),
        ("state", states["state"].to_numpy(), "u1"),
        ("state_from", np.diff(_ticks(states["from_s"], begin, tick), prepend=0), "u4"),
        ("state_duration", _ticks(states["to_s"], begin, tick) - _ticks(states["from_s"], begin, tick), "u4"),
        ("state_low", states["low"].to_numpy(), "u4"),
        ("state_more", (states["high"] - states["low"]).to_numpy(), "u4"),
    ]
    ids = "\n".join(i.replace("\n", " ") for i in drawn["job_id"].to_list()).encode()
    blob = b"".join(np.ascontiguousarray(values).astype("<" + kind).tobytes() for _, values, kind in columns) + ids
    about = {"name": name, "nodes": n_nodes, "origin": begin, "tick": tick, "end": end, "users": users}
    return about | {
        "states": list(_DRAWN_STATES),
        "columns": [[label, kind, len(values)] for label, values, kind in columns],
        "notes": notes,
        "data": base64.b64encode(zlib.compress(blob, 6)).decode(),
    }


def _window(jobs: pl.DataFrame, nodes: pl.DataFrame, end_s: float | None) -> tuple[float, float]:
    begin = [t for t in (jobs["submit_s"].min(), nodes["from_s"].min()) if t is not None]
    end = [t for t in (jobs["finish_s"].max(), jobs["start_s"].max(), nodes["to_s"].max(), end_s) if t is not None]
    low = float(min(begin, default=0.0))  # type: ignore[arg-type]
    return low, max(float(max(end, default=low)), low + 1.0)  # type: ignore[arg-type]


def _ticks(times: pl.Series, begin: float, tick: float) -> Ints:
    return np.rint((times.to_numpy() - begin) / tick).astype(np.int64)


def _chosen(started: pl.DataFrame, end: float, limit: int) -> tuple[pl.DataFrame, dict[str, Ints], list[str]]:
    """The jobs to draw, in order of start, and their node intervals (job, low, high)."""
    notes = []
    drawn = started.with_columns(pl.col("finish_s").fill_null(end)).filter(
        pl.col("nodes").fill_null("").str.len_bytes() > 0
    )
    if drawn.height < started.height:
        notes.append(f"{started.height - drawn.height} jobs without a list of nodes are not drawn.")
    size = (pl.col("finish_s") - pl.col("start_s")) * pl.col("cores")
    drawn = drawn.with_columns(core_s=size, pieces=pl.col("nodes").str.count_matches(" ") + 1).sort(
        "core_s", descending=True, maintain_order=True
    )
    fits = (pl.int_range(pl.len()) < limit) & (pl.col("pieces").cum_sum() <= _SEGMENTS_PER_JOB * limit)
    kept = drawn.filter(fits)
    if kept.height < drawn.height:
        share = float(kept["core_s"].sum()) / float(drawn["core_s"].sum())
        notes.append(
            f"The {kept.height:,} largest of {drawn.height:,} jobs are drawn ({100 * share:.1f} % of the core "
            "seconds); nodes that compute a job left out show the chart's background."
        )
    kept = kept.drop("core_s", "pieces").sort("start_s", maintain_order=True)
    return kept, _intervals(kept["nodes"]), notes


def _intervals(lists: pl.Series) -> dict[str, Ints]:
    """The interval lists "0-3 7" as arrays job (row), low, high."""
    pieces = pl.DataFrame(
        {"job": np.arange(lists.len()), "piece": lists.str.split(" ")}, schema_overrides={"piece": pl.List(pl.String)}
    )
    ends = (
        pieces.explode("piece")
        .with_columns(pl.col("piece").str.splitn("-", 2).struct.rename_fields(["low", "high"]))
        .unnest("piece")
    )
    ends = ends.with_columns(pl.col("low").cast(pl.Int64), high=pl.coalesce("high", "low").cast(pl.Int64))
    return {c: ends[c].to_numpy().astype(np.int64) for c in ("job", "low", "high")}


def _lanes(drawn: pl.DataFrame, segments: dict[str, Ints]) -> tuple[dict[str, Ints], list[str]]:
    """Intervals with a lane each: jobs that share a node at one time get equal parts of the node's row for as long as
    they overlap."""
    width = segments["high"] - segments["low"] + 1
    alone = {**segments, "lane": np.zeros_like(width), "lanes": np.ones_like(width)}
    total = int(width.sum())
    if total > _PAIR_LIMIT:
        return alone, ["Jobs that share a node are drawn over each other: there are too many to lay them side by side."]
    job = np.repeat(segments["job"], width)
    node = np.arange(total) - np.repeat(np.cumsum(width) - width, width) + np.repeat(segments["low"], width)
    start, finish = drawn["start_s"].to_numpy()[job], drawn["finish_s"].to_numpy()[job]
    order = np.lexsort((job, start, node))
    lane, lanes = np.zeros(total, np.int64), np.ones(total, np.int64)
    shared = np.isin(node[order], np.unique(node[order][1:][_overlap(node[order], start[order], finish[order])]))
    if not shared.any():
        return alone, []
    at = order[shared]
    lane[at], lanes[at] = _side_by_side(node[at].tolist(), start[at].tolist(), finish[at].tolist())
    cut = np.flatnonzero((np.diff(job) != 0) | (np.diff(node) != 1) | (np.diff(lane) != 0) | (np.diff(lanes) != 0))
    first, last = np.concatenate([[0], cut + 1]), np.concatenate([cut, [total - 1]])
    return {"job": job[first], "low": node[first], "high": node[last], "lane": lane[first], "lanes": lanes[first]}, []


def _overlap(node: Ints, start: NDArray[np.float64], finish: NDArray[np.float64]) -> NDArray[np.bool_]:
    """For each pair but the first (sorted by node and start), whether it starts before its forerunner on that node
    ends."""
    return (node[1:] == node[:-1]) & (start[1:] < finish[:-1])


def _side_by_side(node: list[int], start: list[float], finish: list[float]) -> tuple[Ints, Ints]:
    """The lane of each pair (sorted by node and start) and the number of lanes of its group, a group being what
    overlaps without a gap."""
    lane, lanes = np.zeros(len(node), np.int64), np.ones(len(node), np.int64)
    free: list[float] = []  # when each lane of the group is free again
    group, until, here = 0, -np.inf, -1
    for i, (n, s, f) in enumerate(zip(node, start, finish)):
        if n != here or s >= until:
            lanes[group:i] = max(len(free), 1)
            group, until, here, free = i, f, n, []
        until = max(until, f)
        for k, at in enumerate(free):
            if at <= s:
                free[k] = f
                break
        else:
            k = len(free)
            free.append(f)
        lane[i] = k
    lanes[group:] = max(len(free), 1)
    return lane, lanes


def _states(nodes: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Node states but computing as rectangles state, from_s, to_s, low, high (neighbours that change together are one),
    by from_s."""
    require(nodes, "node", "from_s", "to_s", "state", name="nodes")
    order = ["state", "from_s", "to_s", "node"]
    notes = []
    rows = nodes.lazy().filter(pl.col("state").is_in(_DRAWN_STATES)).select(*order).collect()
    if rows.height > _STATE_ROWS:
        notes.append(f"Of {rows.height:,} node intervals the {_STATE_ROWS:,} longest are drawn.")
        rows = rows.top_k(_STATE_ROWS, by=pl.col("to_s") - pl.col("from_s"))
    rows = rows.sort(*order)
    new = pl.any_horizontal(
        pl.col("state", "from_s", "to_s").ne_missing(pl.col("state", "from_s", "to_s").shift(1))
    ) | (pl.col("node").diff() != 1)
    merged = rows.with_columns(block=new.fill_null(True).cast(pl.Int64).cum_sum())
    merged = merged.group_by("block", maintain_order=True).agg(
        pl.col("state", "from_s", "to_s").first(), low=pl.col("node").min(), high=pl.col("node").max()
    )
    if merged.height > _STATE_LIMIT:
        notes.append(f"The {_STATE_LIMIT:,} longest of {merged.height:,} stretches of node states are drawn.")
        length = (pl.col("to_s") - pl.col("from_s")) * (pl.col("high") - pl.col("low") + 1)
        merged = merged.sort(length, descending=True, maintain_order=True).head(_STATE_LIMIT)
    code = pl.col("state").replace_strict(_DRAWN_STATES, list(range(len(_DRAWN_STATES))), return_dtype=pl.Int64)
    return merged.with_columns(code).sort("from_s", maintain_order=True), notes
