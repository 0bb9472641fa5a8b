"""Waste against stretch: rules as a line, learnt policies beside it with the interval of their distance from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from escala.report.labels import beside
from escala.report.marks import named
from escala.report.plots import _WIDTH, _axis, figure_legend
from escala.report.style import INK, policy_colour, styled

_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "hold": (
        "hold(x), by x; their line",
        {"marker": "o", "linestyle": "none", "markersize": 4.5, "color": policy_colour(0)},
    ),
    "rule": ("other rules", {"marker": "s", "linestyle": "none", "markersize": 4.5, "color": "#777777"}),
    "searched": (
        "searched agents, × the price of waiting",
        {"marker": "D", "linestyle": "--", "markersize": 5.5, "color": policy_colour(1)},
    ),
    "likeliest": (
        "their greedy actions",
        {"marker": "D", "linestyle": "none", "markersize": 5.5, "color": policy_colour(1)},
    ),
    "ppo": ("MaskablePPO", {"marker": "^", "linestyle": "none", "markersize": 7.0, "color": policy_colour(2)}),
}
_STRETCH = "Mean stretch (wait / walltime)"
_BEYOND = 0.06  # above T(0): what wastes more is shown at the edge


@styled
def waste_against_stretch(panels: Mapping[str, pl.DataFrame]) -> Figure:
    """One panel below the other, by title. The line of hold(x) is the least waste of any x at no more stretch. Each
    table: columns kind (hold, rule, searched, likeliest, ppo), mark (a label), stretch, waste_vs_t0, and against_hold
    with _low and _high, from which the bars of learnt policies are made: how far each is from that line at its own
    stretch. What wastes much more than T(0) is put at the upper edge, with its value."""
    figure = Figure(figsize=(_WIDTH, 0.5 + 3.7 * len(panels)))
    drawn = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    shown = [_points(axes, title, table) for axes, (title, table) in zip(drawn, panels.items(), strict=True)]
    drawn[-1].set_xlabel(_STRETCH)
    figure_legend(figure, drawn[0], "outside upper center")
    for axes, (at, labels, colours) in zip(drawn, shown, strict=True):
        lines = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() != "None"]
        bars = [segment.tolist() for bar in axes.collections for segment in bar.get_segments()]
        beside(axes, at, labels, colours, size=7.0, lines=[*lines, *bars])
    return figure


_BY_WAIT: dict[str, tuple[str, dict[str, Any]]] = {
    "rule": (
        "rules that searches begin with; their line",
        {"marker": "o", "linestyle": "none", "markersize": 4.0, "color": policy_colour(0)},
    ),
    "scheduler": ("schedulers", {"marker": "s", "linestyle": "none", "markersize": 4.5, "color": "#777777"}),
    "agent": (
        "agents, by the limit of waiting",
        {"marker": "D", "linestyle": "none", "markersize": 5.5, "color": policy_colour(1)},
    ),
}


@styled
def waste_against_wait(panels: Mapping[str, pl.DataFrame]) -> Figure:
    """One panel below the other, by title. The line is the least waste of any rule that waits no longer. Each table:
    columns kind (rule, scheduler, agent), mark (a label, or nothing), waste_vs_easy and wait_vs_first_fit."""
    figure = Figure(figsize=(_WIDTH, 0.5 + 3.4 * len(panels)))
    drawn = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, table) in zip(drawn, panels.items(), strict=True):
        points, labels, colours = [], [], []
        for kind, (name, look) in _BY_WAIT.items():
            rows = table.filter(pl.col("kind") == kind).sort("wait_vs_first_fit")
            x, y = (100.0 * rows[column].to_numpy() for column in ("wait_vs_first_fit", "waste_vs_easy"))
            axes.plot(
                x, y, **look, label=name, markeredgecolor=INK, markeredgewidth=0.5, zorder=4 if kind == "agent" else 3
            )
            if kind == "rule":
                axes.step(x, np.minimum.accumulate(y), where="post", color=look["color"], linewidth=1.0, zorder=1)
            points += [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
            labels += rows["mark"].to_list()
            colours += [INK if kind == "scheduler" else look["color"]] * len(rows)
        axes.set(title=title, ylabel="Energy waste against EASY (%)")
        axes.margins(x=0.08, y=0.12)
        beside(axes, points, labels, colours, size=7.0, lines=[])
    drawn[-1].set_xlabel("Mean wait against First-Fit (%)")
    figure_legend(figure, drawn[0], "outside upper center")
    return figure


@styled
def waste_above_bound(table: pl.DataFrame, metric: str) -> Figure:
    """Each policy's waste against its stretch, in its own colour, and hollow, below it, what no policy with the same
    waits can be below. Columns policy, stretch, `metric` and bound, both in J a day."""
    figure = Figure(figsize=(_WIDTH, 3.8))
    axes = figure.subplots()
    divisor, label = _axis(metric, table[metric].to_list())
    rows = [
        (named(row["policy"]), row["stretch"], row[metric] / divisor, row["bound"] / divisor)
        for row in table.iter_rows(named=True)
    ]
    colours = [policy_colour(k) for k in range(len(rows))]
    for colour, (_, stretch, waste, bound) in zip(colours, rows, strict=True):
        axes.plot([stretch] * 2, [bound, waste], color=colour, linewidth=0.8, zorder=1)
        axes.plot(stretch, waste, "o", color=colour, markeredgecolor=INK, markeredgewidth=0.5, markersize=6.5)
        axes.plot(stretch, bound, "o", color=colour, markerfacecolor="white", markersize=6.5)
    axes.plot([], [], "o", color=INK, markersize=6.5, label="policy")
    axes.plot([], [], "o", color=INK, markerfacecolor="white", markersize=6.5, label="bound at its waits")
    axes.set(xlabel=_STRETCH, ylabel=label.replace(" (", " a day ("), ylim=(0.0, None))
    axes.margins(x=0.1)
    figure_legend(figure, axes, "outside upper center")
    points = [(stretch, waste) for _, stretch, waste, _ in rows] + [(stretch, bound) for _, stretch, _, bound in rows]
    labels = [name for name, *_ in rows] + [""] * len(rows)
    stems = [[(stretch, bound), (stretch, waste)] for _, stretch, waste, bound in rows]
    beside(axes, points, labels, [*colours, *colours], lines=stems)
    return figure


def _points(axes: Axes, title: str, table: pl.DataFrame) -> tuple[list[tuple[float, float]], list[str], list[str]]:
    """Draw one panel; its points, labels and their colours."""
    near = table.filter(pl.col("waste_vs_t0") <= _BEYOND)
    change = near["waste_vs_t0"].to_numpy()
    highest, lowest = (
        100.0 * float(change.max(initial=0.0)),
        float(np.minimum(100.0 * change, _ends(near)[0]).min(initial=0.0)),
    )
    margin = 0.08 * (highest - lowest) + 1.0
    top = highest + (2.5 if near.height < table.height else 1.0) * margin
    points, labels, colours = [], [], []
    for kind, (name, look) in _KINDS.items():
        rows = table.filter(pl.col("kind") == kind).sort("stretch")
        if not rows.height:
            continue
        change = 100.0 * rows["waste_vs_t0"].to_numpy()
        y = np.minimum(change, top - 0.7 * margin)
        filled = {"markerfacecolor": "white"} if kind == "likeliest" else {}
        axes.plot(rows["stretch"], y, **look | filled, label=name, linewidth=1.0,
                  markeredgecolor=INK if not filled else look["color"],
                  markeredgewidth=0.5 if not filled else 1.0, zorder=4 if kind in ("searched",
                                                                                   "ppo") else 3)  # fmt: skip
        if kind == "hold":
            axes.plot(rows["stretch"], np.minimum.accumulate(y), color=look["color"], linewidth=1.2, zorder=1)
        if kind in ("searched", "ppo"):
            _bars(axes, rows, look["color"], change <= y)
        for row, value, height in zip(rows.iter_rows(named=True), change, y, strict=True):
            points.append((row["stretch"], float(height)))
            mark = f"×{row['mark']}" if kind == "searched" else named(row["mark"])
            labels.append("" if kind == "likeliest" else mark + (f" ({value:+.0f} %)" if value > height else ""))
            colours.append(INK if kind == "rule" else look["color"])
    axes.set(title=title, ylabel="Energy waste against T(0) (%)", ylim=(lowest - margin, top))
    axes.margins(x=0.08)
    return points, labels, colours


def _bars(axes: Axes, rows: pl.DataFrame, colour: str, within: np.ndarray) -> None:
    """Intervals of the distance from the line of hold(x), around each point."""
    low, high = _ends(rows)
    axes.vlines(
        rows["stretch"].to_numpy()[within], low[within], high[within], color=colour, linewidth=1.6, alpha=0.6, zorder=2
    )


def _ends(rows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Their ends, in % of T(0)'s waste."""
    line = (1.0 + rows["waste_vs_t0"].to_numpy()) / (1.0 + rows["against_hold"].to_numpy())
    low, high = (100.0 * (line * (1.0 + rows[f"against_hold_{end}"].to_numpy()) - 1.0) for end in ("low", "high"))
    return low, high
