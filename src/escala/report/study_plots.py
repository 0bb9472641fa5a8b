"""Figures that studies of papers need beside those of `curves` and `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from escala.report.plots import _WIDTH, _axis, figure_legend
from escala.report.style import DPI, INK, policy_colour, policy_line, styled


@styled
def metric_bars(table: pl.DataFrame, metrics: Sequence[str], *, time_unit: str | None = None) -> Figure:
    """One panel a metric, one bar a policy, with its interval where there is one (R1 figure 3).

    table: columns policy, the metrics, and `<metric>_low` / `<metric>_high`. time_unit: what a second stands for, where
    it is none.
    """
    columns = min(2, max(len(metrics), 1))
    lines = -(-max(len(metrics), 1) // columns)
    policies = table["policy"].to_list()
    figure = Figure(figsize=(_WIDTH, 0.6 + lines * (0.5 + 0.24 * len(policies))))
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    at = np.arange(len(policies))
    for axes, metric in zip(panels, metrics):
        divisor, label = _axis(metric, table[metric].drop_nulls().to_list(), time_unit)
        values = table[metric].fill_null(0.0).to_numpy() / divisor
        axes.barh(at, values, color=[policy_colour(i) for i in range(len(policies))], edgecolor=INK, linewidth=0.4)
        if f"{metric}_low" in table.columns:
            low, high = (table[f"{metric}_{end}"].to_numpy() / divisor for end in ("low", "high"))
            axes.hlines(at, low, high, color=INK, linewidth=1.2)
        axes.set(xlabel=label)
        axes.grid(axis="y", visible=False)
    panels[0].set_ylim(len(policies) - 0.5, -0.5)  # shared by all: the first policy on top
    for axes in panels[: len(metrics) : columns]:
        axes.set_yticks(at, policies)
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    return figure


def _abreast(n: int, height: float, label: str) -> tuple[Figure, Any]:
    """A figure of n panels (at least one), three abreast, with one value axis; label: of that axis."""
    columns = min(3, max(n, 1))
    lines = -(-max(n, 1) // columns)
    figure = Figure(figsize=(_WIDTH, 0.6 + height * lines))
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes in panels[::columns]:
        axes.set_ylabel(label)
    for axes in panels[n:]:
        axes.set_visible(False)
    return figure, panels


@styled
def yearly_shares(table: pl.DataFrame) -> Figure:
    """A panel for each input: each year's jobs by how soon they came after the one before, and by how they ended (R3
    figure 11). table: columns input, year, sequential (a share), error_of_sequential and error_of_others (null: not
    known)."""
    names = table["input"].unique(maintain_order=True).to_list()
    figure, panels = _abreast(len(names), 2.0, "Share of jobs (%)")
    for axes, name in zip(panels, names):
        rows = table.filter(pl.col("input") == name)
        soon, failed, others = (
            rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for column in ("sequential", "error_of_sequential", "error_of_others")
        )
        parts = {
            "within 5 min of the one before, ended in error": soon * failed,
            "within 5 min, completed": soon * (1.0 - failed),
            "later, ended in error": (1.0 - soon) * others,
            "later, completed": (1.0 - soon) * (1.0 - others),
        }
        below = np.zeros(rows.height)
        for k, (label, share) in enumerate(parts.items()):
            share = 100.0 * np.nan_to_num(share)
            axes.bar(
                range(rows.height), share, 0.7, below, color=policy_colour(k), edgecolor=INK, linewidth=0.4, label=label
            )
            below = below + share
        axes.set_xticks(range(rows.height), [year.removeprefix("year ") for year in rows["year"]])
        axes.set(title=name, xlabel="Year", ylim=(0.0, 100.0), xlim=(-1.0, max(rows.height, 3)))
        axes.grid(axis="x", visible=False)
    figure_legend(figure, panels[0], "outside upper center")
    return figure


@styled
def sums_by_group(table: pl.DataFrame, policies: Sequence[str]) -> Figure:
    """A panel for each group of days: the running sum of a quantity over the days it was learnt from and, after the
    dotted line, over the held-out ones, as a share of the largest policy's (R3 figure 20). table: columns group,
    held_out and the policies, one row a day."""
    groups = table["group"].unique().sort().to_list()
    figure, panels = _abreast(len(groups), 2.2, "Energy waste summed,\nshare of the largest")
    for axes, group in zip(panels, groups):
        days = table.filter(pl.col("group") == group)
        sums = {policy: np.cumsum(days[policy].to_numpy()) for policy in policies}
        largest = max((float(one[-1]) for one in sums.values()), default=0.0) or 1.0
        for i, (policy, running) in enumerate(sums.items()):
            axes.plot(
                np.arange(1, days.height + 1), running / largest, policy_line(i), color=policy_colour(i), label=policy
            )
        axes.axvline(float((~days["held_out"]).sum()) + 0.5, color=INK, linestyle=":", linewidth=1.2)
        axes.set(title=f"group #{group}", xlabel="training days | held-out days")
    figure_legend(figure, panels[0], "outside upper center")
    return figure


@styled
def running_means(table: pl.DataFrame, metrics: Sequence[str], policies: Sequence[str]) -> Figure:
    """A panel for each metric, one line a policy, over the days that were learnt from and, after the dotted line, the
    held-out ones: the first metric summed, the others as means over the days so far of either kind (R3 figure 21).
    table: columns held_out, policy, day and the metrics; null: a day that is left out."""
    figure = Figure(figsize=(_WIDTH, 0.6 + 2.0 * len(metrics)))
    panels = figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0]
    seen = table.filter(~pl.col("held_out"))["day"].n_unique()
    for k, (axes, metric) in enumerate(zip(panels, metrics)):
        sums = [float(table.filter(policy=policy)[metric].sum()) for policy in policies]
        divisor, label = _axis(metric, table[metric].drop_nulls().to_list() if k else sums)
        for i, policy in enumerate(policies):
            rows = table.filter(policy=policy).sort("held_out", "day")
            values = rows[metric].to_numpy().astype(np.float64) / divisor
            parts = [np.cumsum(values)] if k == 0 else [_means_so_far(part) for part in np.split(values, [seen])]
            days = [np.arange(1, rows.height + 1)] if k == 0 else np.split(np.arange(1, rows.height + 1), [seen])
            for j, (at, running) in enumerate(zip(days, parts, strict=True)):
                axes.plot(at, running, policy_line(i), color=policy_colour(i), label=None if j else policy)
        axes.axvline(seen + 0.5, color=INK, linestyle=":", linewidth=1.2)
        axes.set(ylabel=f"Sum of {label[:1].lower()}{label[1:]}" if k == 0 else label)
    panels[-1].set_xlabel("training days | held-out days")
    figure_legend(figure, panels[0], "outside upper center")
    return figure


def _means_so_far(values: Any) -> Any:
    """Mean of all values up to each, NaN left out; NaN before the first."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.cumsum(np.where(known, values, 0.0)) / np.where(known.cumsum() > 0, known.cumsum(), np.nan)


_HEAD = 34  # pixels above a picture, for its title
_FOOT = 22  # pixels below a picture, for names in it


@styled
def frames(pictures: Sequence[Any], titles: Sequence[str], names: Sequence[Sequence[tuple[float, str]]] = ()) -> Figure:
    """Pictures of an environment one below the other (R1 figures 1 and 5). In the PNG of `save` each of their pixels is
    a square of whole pixels, so that lines of a grid are equally thick. names: of each picture, what to write below it,
    and at which of its columns."""
    width = max(picture.shape[1] for picture in pictures)
    times = max(1, min(2, int(_WIDTH * DPI) // width))
    width, height = times * width, sum(times * picture.shape[0] + _HEAD for picture in pictures) + _FOOT * len(names)
    figure = Figure(figsize=(width / DPI, height / DPI))
    figure.set_layout_engine("none")  # every place is given
    top = height
    for k, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        high, wide = (times * n for n in picture.shape[:2])
        top -= _HEAD + high
        axes = figure.add_axes((0.0, top / height, wide / width, high / height))
        axes.imshow(picture, interpolation="none", aspect="auto")
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=8, pad=4)
        for column, name in names[k] if names else ():
            axes.text(column, picture.shape[0], name, ha="center", va="top", fontsize=7)
        top -= _FOOT * bool(names)
    return figure
