"""Figures over the tables of Results: time courses, energy, frontier, distributions. Every function returns a
matplotlib figure with labels and units.

Time courses are resampled so that no extreme is lost (lines) or averaged exactly over equal intervals (stacked areas);
both say so where they are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from escala.metrics import machine
from escala.report.labels import beside
from escala.report.quantities import number, quantity, scale
from escala.report.style import INK, STATE_COLOURS, STATE_NAMES, policy_colour, policy_line, styled

Summary = Mapping[str, float | int]

_WIDTH = 9.0  # inches; the page's column
_POINTS = 1200  # per line
_BINS = 240  # per stacked area


@styled
def load_over_time(
    jobs: Mapping[str, pl.DataFrame], cores: int, windows: Mapping[str, machine.Window] | None = None
) -> Figure:
    """Utilisation (mean over equal intervals) and queue length (no extreme lost) over time, one line per policy.

    jobs: policy -> jobs table. cores: of the platform. windows: policy -> start and end of its run, s; every line is
    drawn within its own. Without them the jobs' own times bound the figure, which suits only runs to the last finish.
    """
    windows = windows or {}
    figure = Figure(figsize=(_WIDTH, 4.2))
    top, bottom = figure.subplots(2, 1, sharex=True)
    own = {name: _span(_times(table, windows.get(name))) for name, table in jobs.items() if table.height}
    begin, end = _span([pl.Series(times) for times in own.values()])
    divisor, unit = scale("s", end - begin)
    for i, (name, table) in enumerate(jobs.items()):
        look: dict[str, Any] = {"color": policy_colour(i), "linestyle": policy_line(i), "label": name}
        window = own.get(name, (begin, end))
        edges = np.linspace(*window, _BINS + 1)
        used = machine.binned_mean(machine.used_cores(table, window), edges)["value"].to_numpy() / cores
        top.stairs(100.0 * used, (edges - begin) / divisor, baseline=None, **look)
        queue = machine.resample(machine.queue_length(table, window), _POINTS)
        bottom.step((queue["time_s"].to_numpy() - begin) / divisor, queue["value"].to_numpy(), where="post", **look)
    top.set(ylabel="Utilisation (%)", ylim=(0, 105), xlim=(0, (end - begin) / divisor))
    bottom.set(ylabel="Queue (jobs)", xlabel=f"Time ({unit})", ylim=(0, None))
    _legend(top, len(jobs))
    return figure


def _times(table: pl.DataFrame, window: machine.Window | None) -> list[pl.Series]:
    return [table["submit_s"], table["finish_s"]] if window is None else [pl.Series(window, dtype=pl.Float64)]


def _span(columns: Sequence[pl.Series]) -> tuple[float, float]:
    """The first and last of all times; [0, 1] where there is none."""
    kept = [c.drop_nulls() for c in columns]
    low = [float(c.min()) for c in kept if c.len()]  # type: ignore[arg-type]
    high = [float(c.max()) for c in kept if c.len()]  # type: ignore[arg-type]
    if not low:
        return 0.0, 1.0
    begin, end = min(low), max(high)
    return begin, end if end > begin else begin + 1.0


def columns_of(labels: Sequence[str], inches: float) -> int:
    """How many columns of a legend with these labels fit a figure's width; at most 5."""
    longest = max(map(len, labels), default=1)
    return max(1, min(5, len(labels), int(inches / (0.6 + 0.065 * longest))))


def _legend(axes: Axes, entries: int) -> None:
    if entries:
        labels = axes.get_legend_handles_labels()[1]
        fitting = columns_of(labels, axes.figure.get_figwidth())  # type: ignore[union-attr]
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=fitting, borderaxespad=0.2)


def figure_legend(figure: Figure, axes: Axes, loc: Any) -> None:
    """One legend above all panels, of what one of them shows."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc=loc, ncols=columns_of(labels, figure.get_figwidth()))


@styled
def power_over_time(nodes: Mapping[str, pl.DataFrame], power: Mapping[str, pl.DataFrame]) -> Figure:
    """Power by node state over time, stacked, one panel per policy on one scale. Means over equal intervals, so areas
    are energies."""
    figure = Figure(figsize=(_WIDTH, 0.9 + 1.5 * max(len(nodes), 1)))
    panels = figure.subplots(max(len(nodes), 1), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    begin, end = _span([t for table in nodes.values() for t in (table["from_s"], table["to_s"])])
    divisor, unit = scale("s", end - begin)
    edges = np.linspace(begin, end, _BINS + 1)
    binned = {name: machine.mean_power_by_state(table, power[name], edges) for name, table in nodes.items()}
    peak = max(
        (float(b.select(pl.sum_horizontal(*STATE_COLOURS)).max().item() or 0.0) for b in binned.values()), default=1.0
    )
    watt, watt_unit = scale("W", peak)
    for axes, (name, bins) in zip(panels, binned.items()):
        low = np.zeros(_BINS)
        for state, colour in STATE_COLOURS.items():
            high = low + bins[state].to_numpy() / watt
            axes.stairs(
                high,
                (edges - begin) / divisor,
                baseline=low,
                fill=True,
                color=colour,
                linewidth=0,
                label=STATE_NAMES[state],
            )
            low = high
        axes.set(ylabel=f"Power ({watt_unit})", title=name, ylim=(0, None), xlim=(0, (end - begin) / divisor))
    panels[-1].set_xlabel(f"Time ({unit})")
    if binned:
        figure_legend(figure, panels[0], "outside upper right")
    return figure


@styled
def energy_by_state(summaries: Mapping[str, Summary]) -> Figure:
    """Energy of each policy by node state, stacked; the number at the end is the total."""
    figure = Figure(figsize=(_WIDTH, 0.9 + 0.34 * max(len(summaries), 1)))
    axes = figure.subplots()
    names = list(summaries)
    totals = [float(s["energy_j"]) for s in summaries.values()]
    divisor, unit = scale("J", max(totals, default=1.0))
    left = np.zeros(len(names))
    for state, colour in STATE_COLOURS.items():
        width = np.array([float(s[f"{state}_j"]) / divisor for s in summaries.values()])
        axes.barh(names, width, left=left, color=colour, linewidth=0, height=0.7, label=STATE_NAMES[state])
        left = left + width
    for row, total in enumerate(totals):
        axes.annotate(
            number(total / divisor),
            (total / divisor, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set(xlabel=f"Energy ({unit})", xlim=(0, 1.12 * max(totals, default=1.0) / divisor or 1.0))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    figure_legend(figure, axes, "outside upper right")
    return figure


def frontier(summaries: Mapping[str, Summary], x: str = "mean_wait_s", y: str = "energy_j") -> Figure:
    """One metric against another, one point per policy; the staircase joins the policies that no other beats in both
    (both: less is better).
    """
    return frontier_of({name: (float(s[x]), float(s[y])) for name, s in summaries.items()}, x, y)


@styled
def frontier_of(points: Mapping[str, tuple[float, float]], x: str, y: str) -> Figure:
    """As `frontier`, from points policy -> (x, y), for means over several runs."""
    finite = {n: p for n, p in points.items() if np.isfinite(p).all()}
    figure = Figure(figsize=(_WIDTH, max(3.6, 0.17 * len(finite) + 0.25)))  # so high that its legend fits
    axes = figure.subplots()
    (x_divisor, x_label), (y_divisor, y_label) = (
        _axis(metric, [p[i] for p in finite.values()]) for i, metric in ((0, x), (1, y))
    )
    best = non_dominated(list(finite.values()))
    order = sorted(np.asarray(list(finite.values()))[best].tolist()) if finite else []
    steps = np.array(order).reshape(-1, 2) / (x_divisor, y_divisor)
    axes.step(steps[:, 0], steps[:, 1], where="post", color=INK, alpha=0.4, linewidth=1.0, zorder=1)
    for i, (name, point) in enumerate(finite.items()):
        at = (point[0] / x_divisor, point[1] / y_divisor)
        look: dict[str, Any] = {
            "color": policy_colour(i),
            "markeredgecolor": INK,
            "markeredgewidth": 0.5,
            "linestyle": "none",
        }
        axes.plot(*at, marker="o" if best[i] else "s", markersize=7 if best[i] else 5, label=f"{i + 1}  {name}", **look)
    axes.set(
        xlabel=x_label,
        ylabel=y_label,
        xscale=_spread([p[0] for p in finite.values()]),
        yscale=_spread([p[1] for p in finite.values()]),
    )
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.margins(x=0.06, y=0.12)
    if finite:
        figure.legend(loc="outside right upper")
        places = [(p[0] / x_divisor, p[1] / y_divisor) for p in finite.values()]
        beside(axes, places, [str(i + 1) for i in range(len(places))], [INK] * len(places))
    return figure


def _spread(values: Sequence[float]) -> str:
    """The scale of an axis: logarithmic where values are positive and differ more than thirtyfold."""
    return "log" if values and min(values) > 0.0 and max(values) > 30.0 * min(values) else "linear"


def non_dominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For each point, whether no other is at most as large in both and smaller in one."""
    return [not any(a[0] <= b[0] and a[1] <= b[1] and a != b for a in points) for b in points]


def _axis(metric: str, values: Sequence[float], time_unit: str | None = None) -> tuple[float, str]:
    """The divisor and the label with unit that suit an axis. time_unit: what a second stands for, where it is none."""
    what = quantity(metric)
    if time_unit is not None and what.kind == "s":
        return 1.0, f"{what.name} ({time_unit})"
    finite = [abs(v) for v in values if np.isfinite(v)]
    divisor, unit = scale(what.kind, max(finite, default=1.0))
    return divisor, f"{what.name} ({unit})" if unit else what.name


@styled
def distributions(values: Mapping[str, Mapping[str, pl.Series]]) -> Figure:
    """How job metrics are distributed: for each metric a panel with the share of jobs above a value, one line per
    policy.

    values: metric -> policy -> one value per finished job. The value axis is logarithmic; where a line starts on the
    left is the share of jobs above that value, so the jobs that waited less (or not at all) are the gap to 100 %.
    """
    figure = Figure(figsize=(_WIDTH, 3.4))
    panels = figure.subplots(1, max(len(values), 1), squeeze=False, sharey=True)[0]
    floor = {"s": 1.0, "1": 1.0}
    for axes, (metric, by_policy) in zip(panels, values.items()):
        what = quantity(metric)
        for i, (name, series) in enumerate(by_policy.items()):
            x, share = _exceedance(series.to_numpy(), floor.get(what.kind, 1e-3))
            axes.step(x, 100.0 * share, where="post", color=policy_colour(i), linestyle=policy_line(i), label=name)
        unit = " (s)" if what.kind == "s" else ""
        axes.set(xscale="log", xlabel=what.name.removeprefix("Mean ").capitalize() + unit, ylim=(0, 102))
    panels[0].set_ylabel("Jobs above (%)")
    if values:
        figure_legend(figure, panels[0], "outside upper center")
    return figure


def _exceedance(values: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Share of values above x, for x from `floor` to the largest value, at no more than about 600 of the values."""
    x = np.sort(values[np.isfinite(values)])
    if x.size == 0:
        return np.array([floor]), np.array([0.0])
    pick = np.unique(
        np.concatenate([np.linspace(0, x.size - 1, 400), x.size - 1 - np.geomspace(1, x.size, 200) + 1]).astype(
            np.int64
        )
    )
    at = np.unique(np.concatenate([[floor], x[pick][x[pick] > floor]]))
    return at, 1.0 - np.searchsorted(x, at, side="right") / x.size
