"""Figures of training and of comparisons over many runs: learning curves, changes with intervals, metrics against
load."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from escala.errors import EscalaError
from escala.report.plots import _WIDTH, _axis, _legend, figure_legend
from escala.report.quantities import number, quantity
from escala.report.style import INK, policy_colour, policy_line, styled

_PANELS_ABREAST = 3
_FAR_PERCENT = 300.0
_FAR_TIMES = 6.0
_LABEL = 36  # letters of a value axis' label that fit beside it on one line
_MARKED = 20  # so few points of a curve are marked each


@dataclass(frozen=True)
class Training:
    """A learning curve and the levels of other policies on the same episodes.

    points: columns step (decisions taken so far), value (null: runs did not end, which is marked; the other seeds stand
    there one by one), seed where there are several runs, and line (a name) where there are several curves. levels:
    policy -> its value. label: what the value is, with its unit. caption: how it was measured. less_is_better: of the
    value; marks of runs that did not end stand at the worse edge.
    """

    points: pl.DataFrame
    levels: Mapping[str, float] = field(default_factory=dict)
    label: str = "Return per episode"
    title: str = "Learning curve"
    caption: str = ""
    less_is_better: bool = False

    def __post_init__(self) -> None:
        missing = [c for c in ("step", "value") if c not in self.points.columns]
        if missing:
            raise EscalaError(
                f"the learning curve lacks the column {missing[0]!r} (it has {', '.join(self.points.columns)})"
            )


@styled
def learning_curve(training: Training) -> Figure:
    """The mean over training seeds with the range over seeds shaded, and a level line for each other policy (R1 figure
    4, R3 figure 24)."""
    figure = Figure(figsize=(_WIDTH, 3.4))
    axes = figure.subplots()
    points = training.points.filter(pl.col("value").is_finite())
    runs = points["seed"].n_unique() if "seed" in points.columns else 1
    names = points["line"].unique().sort().to_list() if "line" in points.columns else [None]
    for i, line in enumerate(names):
        part = points if line is None else points.filter(pl.col("line") == line)
        mean = _over_seeds(part)
        name = line or "trained"
        if runs > 1:
            name += f" (mean of {runs} seeds; shaded: their range)"
        marker = "o" if mean.height <= _MARKED else ""
        axes.plot(mean["step"], mean["value"], marker=marker, color=policy_colour(i), label=name)
        if runs > 1:
            axes.fill_between(mean["step"], mean["low"], mean["high"], color=policy_colour(i), alpha=0.2, linewidth=0)
        gaps = training.points.filter(
            pl.col("value").is_null() & (pl.lit(True) if line is None else pl.col("line") == line)
        )
        if gaps.height:
            alone = part.join(gaps, on="step", how="semi")
            axes.plot(
                alone["step"], alone["value"], ".", color=policy_colour(i), label=f"{line or 'trained'}, single seeds"
            )
            _gaps(axes, gaps["step"].unique(), line or "trained", policy_colour(i), training.less_is_better)
    far = _far(points["value"].to_list(), training.levels)
    for i, (policy, level) in enumerate(training.levels.items(), start=len(names)):
        look: dict[str, Any] = {"color": policy_colour(i), "linestyle": ("--", ":", "-.")[i % 3], "linewidth": 1.2}
        if policy in far:
            axes.plot([], [], label=f"{policy} ({_short_number(float(f'{level:.3g}'), 0)}, off the scale)", **look)
        else:
            axes.axhline(level, label=policy, **look)
    axes.set(xlabel="Decisions in training", ylabel=textwrap.fill(training.label, _LABEL))
    axes.xaxis.set_major_formatter(_short_number)
    _legend(axes, len(names) + len(training.levels))
    return figure


def _far(values: Sequence[float], levels: Mapping[str, float]) -> list[str]:
    """Levels that would squeeze all the rest into a corner: without one the axis is less than 1 / _FAR_TIMES as long.
    Two always stay."""
    far: list[str] = []
    near = dict(levels)
    middle = float(np.mean(values)) if len(values) else 0.0
    while len(near) > 2:
        outer = max(near, key=lambda name: abs(near[name] - middle))
        rest = [*values, *(level for name, level in near.items() if name != outer)]
        if max(*rest, near[outer]) - min(*rest, near[outer]) <= _FAR_TIMES * (max(rest) - min(rest)):
            break
        far.append(outer)
        del near[outer]
    return far


@styled
def learning_curves(trainings: Sequence[Training]) -> Figure:
    """Learning curves of several learners, one panel each, with axes of their own: each may be judged in its own
    measure. The value axis keeps to the curve and the levels near it; those further off are told in the legend."""
    figure = Figure(figsize=(_WIDTH, 0.2 + 2.3 * max(len(trainings), 1)))
    panels = figure.subplots(max(len(trainings), 1), 1, squeeze=False)[:, 0]
    names = list(dict.fromkeys(policy.split(", ")[-1] for training in trainings for policy in training.levels))
    for axes, training in zip(panels, trainings):
        points = training.points.filter(pl.col("value").is_finite())
        mean = _over_seeds(points)
        runs = points["seed"].n_unique() if "seed" in points.columns else 1
        name = "trained" if runs == 1 else f"trained, mean of {runs} seeds\n(shaded: their range)"
        axes.plot(mean["step"], mean["value"], marker="o", markersize=3.5, color=policy_colour(0), label=name)
        axes.fill_between(mean["step"], mean["low"], mean["high"], color=policy_colour(0), alpha=0.2, linewidth=0)
        low, high = _limits([*mean["low"], *mean["high"]], list(training.levels.values()))
        for policy, level in training.levels.items():
            # "hold:0.3, the best constant" looks like the best constant elsewhere
            i = 1 + names.index(policy.split(", ")[-1])
            beyond = "" if low <= level <= high else ", below" if level < low else ", above"
            line, colour = ("--", ":", "-.")[i % 3], policy_colour(i)
            axes.axhline(
                level, color=colour, linestyle=line, linewidth=1.2, label=f"{policy} ({number(level, 4)}{beyond})"
            )
        axes.set(title=training.title, ylabel=training.label, ylim=(low, high))
        axes.xaxis.set_major_formatter(_short_number)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    panels[-1].set_xlabel("Decisions in training")
    return figure


def _limits(curve: Sequence[float], levels: Sequence[float]) -> tuple[float, float]:
    """Of an axis that shows a curve, and the levels that are at most so far from it as it spans three times over; the
    nearest level in any case."""
    low, high = min(curve, default=0.0), max(curve, default=1.0)
    reach = 3.0 * (high - low)
    away = {level: max(low - level, level - high, 0.0) for level in levels}
    shown = [low, high] + [level for level, far in away.items() if far <= max(reach, min(away.values()))]
    margin = 0.08 * (max(shown) - min(shown)) or 1.0
    return min(shown) - margin, max(shown) + margin


def _over_seeds(points: pl.DataFrame) -> pl.DataFrame:
    """Columns step, value (the mean over runs), low and high (their range), at every step that lies within all runs; a
    run without a point there counts by the line between its neighbours."""
    runs = (
        [run.group_by("step").agg(pl.col("value").mean()).sort("step") for _, run in points.group_by("seed")]
        if "seed" in points.columns
        else []
    )
    if len(runs) < 2:
        mean = points.group_by("step").agg(pl.col("value").mean()).sort("step")
        return mean.with_columns(low=pl.col("value"), high=pl.col("value"))
    first, last = max(int(run["step"][0]) for run in runs), min(int(run["step"][-1]) for run in runs)
    steps = points["step"].unique().sort()
    steps = steps.filter((steps >= first) & (steps <= last))
    values = np.array(
        [np.interp(steps.to_numpy(), run["step"].to_numpy(), run["value"].to_numpy()) for run in runs]
    ).reshape(len(runs), -1)
    return pl.DataFrame(
        {"step": steps, "value": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
    )


def _short_number(value: float, _: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g} {letter}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


@styled
def changes(comparison: pl.DataFrame) -> Figure:
    """Relative change of every metric and policy against the reference, with its interval: the rows of
    `metrics.compare.episodes` that have a change. An axis that must reach beyond +300 % is linear up to 100 % either
    way and logarithmic beyond, so that one far policy does not squeeze the others.
    """
    rows = comparison.drop_nulls("change")
    colour = {policy: policy_colour(i) for i, policy in enumerate(comparison["policy"].unique(maintain_order=True))}
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    policies = rows["policy"].unique(maintain_order=True).to_list()
    columns = min(max(len(metrics), 1), _PANELS_ABREAST)
    lines = -(-max(len(metrics), 1) // columns)
    figure = Figure(figsize=(_WIDTH, lines * (0.85 + 0.24 * max(len(policies), 1))))
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes, metric in zip(panels, metrics):
        here = rows.filter(pl.col("metric") == metric)
        for row in here.iter_rows(named=True):
            i, low, high = policies.index(row["policy"]), 100.0 * row["change_low"], 100.0 * row["change_high"]
            axes.plot([low, high], [i, i], color=colour[row["policy"]], linewidth=2.2, solid_capstyle="butt")
            axes.plot(
                100.0 * row["change"],
                i,
                "o",
                color=colour[row["policy"]],
                markersize=5,
                markeredgecolor=INK,
                markeredgewidth=0.5,
            )
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set(title=quantity(metric).name, xlabel="change (%)")
        _reach(axes, here["change_low", "change", "change_high"].to_numpy() * 100.0)
    panels[0].set_yticks(range(len(policies)), policies)
    panels[0].set_ylim(len(policies) - 0.5, -0.5)  # shared by all: the first policy on top
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    return figure


def _reach(axes: Axes, percents: np.ndarray) -> None:
    """Make an axis of changes logarithmic beyond 100 % where it must reach far."""
    low, high = min(float(percents.min()), 0.0), max(float(percents.max()), 0.0)
    if max(high, -low) <= _FAR_PERCENT:
        return
    axes.set_xscale("symlog", linthresh=100.0, linscale=1.5)
    axes.set(xlabel="change (%), log beyond 100", xlim=(1.3 * low - 10.0, 1.3 * high + 10.0))
    beyond = [
        m * 10.0**k
        for k in range(2, 1 + math.ceil(math.log10(max(high, -low))))
        for m in ((1, 3) if high < 1000.0 else (1,))
    ]
    ticks = [*(-t for t in beyond), -50.0, 0.0, 50.0, *beyond]
    axes.set_xticks([t for t in ticks if 1.3 * low - 10.0 <= t <= 1.3 * high + 10.0])
    axes.xaxis.set_major_formatter(_short_number)
    axes.minorticks_off()


@styled
def against(
    table: pl.DataFrame,
    x: str,
    metrics: Sequence[str],
    *,
    x_label: str | None = None,
    log: bool | Collection[str] = False,
    time_unit: str | None = None,
) -> Figure:
    """Metrics against a quantity such as the offered load, one line per policy (R1 figure 2, R4 figure 4).

    table: columns policy, `x`, the metrics, and `<metric>_low` / `<metric>_high` where there are intervals (shaded).
    log: logarithmic value axes, of all metrics or of those named. time_unit: what a second stands for, where it is
    none.
    """
    columns = 2 if len(metrics) > 1 else 1
    lines = -(-len(metrics) // columns)
    figure = Figure(figsize=(_WIDTH * (1.0 if columns > 1 else 0.72), 0.5 + 2.6 * lines))
    panels = figure.subplots(lines, columns, sharex=True, squeeze=False).ravel()
    for axes, metric in zip(panels, metrics):
        divisor, label = _axis(metric, table[metric].drop_nulls().to_list(), time_unit)
        for i, ((name,), rows) in enumerate(table.group_by("policy", maintain_order=True)):
            part = rows.sort(x)
            axes.plot(
                part[x],
                part[metric] / divisor,
                policy_line(i),
                marker="o",
                markersize=3.5,
                color=policy_colour(i),
                label=str(name),
            )
            if f"{metric}_low" in part.columns:
                axes.fill_between(
                    part[x],
                    part[f"{metric}_low"] / divisor,
                    part[f"{metric}_high"] / divisor,
                    color=policy_colour(i),
                    alpha=0.15,
                    linewidth=0,
                )
        axes.set(ylabel=label)
        if log is True or (log and metric in log):
            axes.set_yscale("log")
            known = table[metric].drop_nulls().to_numpy() / divisor
            _plain_ticks(axes, known[known > 0])
    for axes in panels[max(len(metrics) - columns, 0) : len(metrics)]:
        axes.set_xlabel(x_label or quantity(x).name)
        axes.tick_params(labelbottom=True)
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    figure_legend(figure, panels[0], "outside upper center")
    return figure


def _gaps(axes: Axes, steps: pl.Series, name: str, colour: Any, less_is_better: bool) -> None:
    """Crosses at the worse edge where not every run of a learner ended, so that its mean is not known."""
    if len(steps):
        edge: dict[str, Any] = {
            "marker": "x",
            "linestyle": "none",
            "transform": axes.get_xaxis_transform(),
            "clip_on": False,
        }
        axes.plot(
            steps.sort(),
            np.full(len(steps), float(less_is_better)),
            color=colour,
            label=f"{name}: not every run ends",
            **edge,
        )


@styled
def learning_panels(
    points: pl.DataFrame, levels: pl.DataFrame, metrics: Mapping[str, str], *, more_is_better: Collection[str] = ()
) -> Figure:
    """One panel a metric against the decisions of training (logarithmic): several learners, each the mean over its
    seeds with their range shaded, and a level line for each other policy (R2 figures 3 and 4). A metric that spans a
    wide range has a logarithmic axis.

    points: columns line (the learner), step, seed, the metrics (null in a seed: a cross at the worse edge in place of
    that step's mean), and acting where points may differ in it (hollow: "likeliest"). levels: columns policy and the
    metrics. metrics: column -> label.
    more_is_better: the metrics of which that is so.
    """
    lines = -(-len(metrics) // 2)
    figure = Figure(figsize=(_WIDTH, 0.8 + 2.6 * lines))
    panels = figure.subplots(lines, 2, sharex=True, squeeze=False).ravel()
    names = points["line"].unique(maintain_order=True).to_list()
    mixed = "acting" in points.columns and points["acting"].n_unique() > 1
    steps = points["step"].to_list()
    ticks = [m * 10.0**k for k in range(10) for m in (1, 2, 5) if min(steps) <= m * 10.0**k <= max(steps)]
    for axes, (metric, label) in zip(panels, metrics.items()):
        for i, name in enumerate(names):
            kept, gaps = _by_step(points.filter(pl.col("line") == name), metric)
            axes.plot(kept["step"], kept["mean"], color=policy_colour(i), marker="o", markersize=3.5, label=name)
            if mixed:
                hollow = kept.filter(pl.col("acting").list.contains("likeliest"))
                axes.plot(
                    hollow["step"],
                    hollow["mean"],
                    "o",
                    color=policy_colour(i),
                    markersize=3.5,
                    markerfacecolor="white",
                    zorder=3,
                )
            axes.fill_between(kept["step"], kept["low"], kept["high"], color=policy_colour(i), alpha=0.2, linewidth=0)
            _gaps(axes, gaps, name, policy_colour(i), metric not in more_is_better)
        for i, (policy, level) in enumerate(levels.select("policy", metric).iter_rows(), start=len(names)):
            axes.axhline(level, color=policy_colour(i), linestyle=("--", ":", "-.")[i % 3], linewidth=1.2, label=policy)
        axes.set(ylabel=label, xscale="log")
        axes.minorticks_off()
        axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(_short_number)
        _widen(axes, [*points[metric].drop_nulls(), *levels[metric]])
    for axes in panels[max(len(metrics) - 2, 0) : len(metrics)]:
        axes.set_xlabel("Decisions in training")
        axes.tick_params(labelbottom=True)
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    if mixed:
        panels[0].plot([], [], "o", color=INK, markersize=3.5, markerfacecolor="white", label="hollow: greedy actions")
    figure_legend(figure, panels[0], "outside upper center")
    return figure


def _by_step(points: pl.DataFrame, metric: str) -> tuple[pl.DataFrame, pl.Series]:
    """(step, mean, low and high over seeds, ways of acting; steps at which a run of a seed did not end)."""
    value = pl.col(metric)
    ways = {"acting": pl.col("acting").unique()} if "acting" in points.columns else {}
    found = points.group_by("step").agg(
        mean=value.mean(), low=value.min(), high=value.max(), gaps=value.null_count(), **ways
    )
    return found.filter(pl.col("gaps") == 0).sort("step"), found.filter(pl.col("gaps") > 0)["step"]


def _widen(axes: Axes, values: Sequence[float]) -> None:
    """Make a value axis logarithmic where values of one sign span more than _FAR_TIMES."""
    sizes = np.abs(np.array(values, np.float64))
    if len(sizes) and sizes.min() > 0 and sizes.max() > _FAR_TIMES * sizes.min() and np.ptp(np.sign(values)) == 0:
        axes.set_yscale("symlog", linthresh=float(sizes.min()), linscale=0.2)
        _plain_ticks(axes, sizes, float(np.sign(values[0])))


def _plain_ticks(axes: Axes, sizes: np.ndarray, sign: float = 1.0) -> None:
    """1, 2, 5, 10, ... on a logarithmic value axis, written plainly; where they span too little for that, matplotlib's
    own stay."""
    low, high = 0.8 * float(sizes.min(initial=np.inf)), 1.3 * float(sizes.max(initial=0.0))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) if low <= high else ()
    if len(ticks := [sign * m * 10.0**k for k in exponents for m in (1, 2, 5) if low <= m * 10.0**k <= high]) > 2:
        axes.set_yticks(ticks)
        axes.yaxis.set_major_formatter(_short_number)
        axes.yaxis.set_minor_locator(NullLocator())
