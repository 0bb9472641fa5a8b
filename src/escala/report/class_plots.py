"""Figures of classes of jobs: bars and boxes side by side for several policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from escala.report.plots import _WIDTH, _axis, _legend
from escala.report.style import INK, policy_colour, styled


@styled
def by_class(
    tables: Mapping[str, pl.DataFrame], metric: str, *, x_label: str, share: bool = False, log: bool = False
) -> Figure:
    """Grouped bars over classes of jobs: the median of a metric with a whisker to the 95th percentile (R3 figure 22),
    or the share of jobs (figure 25).

    tables: policy -> `metrics.jobs.by_class`. x_label: what the classes are of. log: logarithmic value axis.
    """
    figure = Figure(figsize=(_WIDTH, 3.2))
    axes = figure.subplots()
    classes = _in_order([table["class"].to_list() for table in tables.values()])
    divisor, label = (0.01, "Jobs (%)") if share else _axis(metric, [v for t in tables.values() for v in t["p95"]])
    width = 0.8 / max(len(tables), 1)
    for i, (name, table) in enumerate(tables.items()):
        rows = {row["class"]: row for row in table.iter_rows(named=True)}
        here = [c for c in classes if c in rows]
        at = np.array([classes.index(c) for c in here]) + (i - (len(tables) - 1) / 2) * width
        height = np.array([rows[c]["share" if share else "median"] for c in here]) / divisor
        axes.bar(at, height, width, color=policy_colour(i), edgecolor=INK, linewidth=0.4, label=name)
        if not share:
            top = np.array([rows[c]["p95"] for c in here]) / divisor
            axes.vlines(at, height, top, color=INK, linewidth=0.8)
    axes.set_xticks(range(len(classes)), classes)
    axes.set(
        xlabel=x_label,
        ylabel=label if share else f"{label.removeprefix('Mean ').capitalize()}: median, 95th percentile",
        yscale="log" if log else "linear",
    )
    axes.grid(axis="x", visible=False)
    _legend(axes, len(tables))
    return figure


@styled
def boxes(tables: Mapping[str, pl.DataFrame], metric: str, *, x_label: str, log: bool = False) -> Figure:
    """Grouped boxes over classes of jobs: quartiles, and whiskers to the last value within 1.5 times their distance (R3
    figure 26).

    tables: policy -> `metrics.jobs.boxes_by_class`. x_label: what the classes are of. log: logarithmic value axis.
    """
    figure = Figure(figsize=(_WIDTH, 3.2))
    axes = figure.subplots()
    classes = _in_order([table["class"].to_list() for table in tables.values()])
    divisor, label = _axis(metric, [v for t in tables.values() for v in t["high"]])
    width = 0.8 / max(len(tables), 1)
    for i, (name, table) in enumerate(tables.items()):
        at = [classes.index(c) + (i - (len(tables) - 1) / 2) * width for c in table["class"]]
        stats = [
            {"med": row["median"] / divisor, "q1": row["q1"] / divisor, "q3": row["q3"] / divisor,
             "whislo": row["low"] / divisor, "whishi": row["high"] / divisor}
            for row in table.iter_rows(named=True)
        ]  # fmt: skip
        colour = policy_colour(i)
        axes.bxp(
            stats, positions=at, widths=0.85 * width, showfliers=False, patch_artist=True, manage_ticks=False,
            boxprops={"facecolor": colour, "edgecolor": INK, "linewidth": 0.6},
            medianprops={"color": INK, "linewidth": 1.2},
            whiskerprops={"color": INK, "linewidth": 0.6}, capprops={"color": INK, "linewidth": 0.6},
        )  # fmt: skip
        axes.bar([0.0], [0.0], color=colour, edgecolor=INK, linewidth=0.4, label=name)
    axes.set_xticks(range(len(classes)), classes)
    axes.set(xlabel=x_label, ylabel=label.removeprefix("Mean ").capitalize(), yscale="log" if log else "linear")
    axes.set_xlim(-0.5, max(len(classes), 1) - 0.5)
    if log:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", visible=False)
    _legend(axes, len(tables))
    return figure


def _in_order(lists: Sequence[Sequence[str]]) -> list[str]:
    """One list with every class of all lists, each list's order kept."""
    merged: list[str] = []
    for classes in lists:
        place = 0
        for name in classes:
            if name in merged:
                place = merged.index(name) + 1
            else:
                merged.insert(place, name)
                place += 1
    return merged
