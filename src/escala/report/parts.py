"""The parts of a page, out of runs and of comparisons: tables, figures and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from matplotlib.figure import Figure

from escala.errors import EscalaError
from escala.metrics import jobs as job_metrics
from escala.report import curves, gantt, operator, plots, tables

LINES_SHOWN = 8
"""Policies in a figure of lines; with more, the first ones are drawn and the page says so."""


class Run(Protocol):
    """What a report reads of a Result."""

    @property
    def jobs(self) -> pl.DataFrame: ...
    @property
    def nodes(self) -> pl.DataFrame: ...
    @property
    def power(self) -> pl.DataFrame: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...

    def summary(self) -> Mapping[str, float | int]: ...


@dataclass(frozen=True)
class Section:
    """A further part of a page: text, tables (data frames, with a caption; units are taken from the column names; or
    ready tables) and figures (or files of them that `style.save` wrote), each with a caption.
    """

    title: str
    text: str = ""
    tables: Sequence[tuple[pl.DataFrame, str] | tables.Table] = ()
    figures: Sequence[tuple[Figure | Path, str]] = ()


def _part(
    title: str,
    *,
    text: str = "",
    tables: Sequence[tables.Table] = (),
    figures: Sequence[tuple[Figure | Path, str]] = (),
    folded: tuple[str, Sequence[tables.Table]] = ("", ()),
) -> dict[str, Any]:
    """folded: a line, and the tables that are shown when it is opened."""
    return {"title": title, "text": text, "tables": list(tables), "figures": list(figures), "folded": folded}


def _held_out_part(comparison: pl.DataFrame | None) -> list[dict[str, Any]]:
    if comparison is None:
        return []
    figures = [(curves.changes(comparison), "Change against the reference; the bar is the 95 % interval.")]
    text = (
        "Policies are compared on the same episodes, pair by pair. A change whose interval leaves out zero is more "
        "than chance."
    )
    return [
        _part(
            "Comparison over episodes",
            text=text,
            tables=[tables.overview_table(comparison)],
            figures=figures if comparison["change"].count() else [],
            folded=(
                "Metric by metric: differences, share of episodes won, mean ranks",
                tables.comparison_tables(comparison),
            ),
        )
    ]


def _section_part(section: Section) -> dict[str, Any]:
    given = [item if isinstance(item, tables.Table) else tables.frame_table(*item) for item in section.tables]
    return _part(section.title, text=section.text, tables=given, figures=section.figures)


def _priced(
    days: Sequence[operator.JudgedDays],
    summaries: Mapping[str, Mapping[str, float | int]],
    reference: str,
    prices: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """For whoever runs the cluster, of judged days and of runs. EscalaError for a price, or CO2, of what is no
    energy."""
    for_days = [
        _part(judged.title, tables=found)
        for judged in days
        if (found := operator.tables_of_days(judged, **prices)) is not None
    ]
    for_runs = _operator_part(summaries, reference, prices)
    if not for_days and not for_runs and (prices["price"] is not None or prices["carbon"] is not None):
        raise EscalaError(
            "there is no energy by state that a price of a kWh, or its CO2, could be told for: give runs or an "
            "evaluation (an old one judged anew) on a platform with a power profile (--power), or leave the price and "
            "the CO2 out"
        )
    return for_days, for_runs


def _operator_part(
    summaries: Mapping[str, Mapping[str, float | int]], reference: str, priced: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """For whoever runs the cluster; nothing where no energy was counted. priced: see `operator.year_table`."""
    if not _energetic(summaries):
        return []
    yearly = operator.year_table(summaries, reference, **priced)
    return [_part("For the operator: energy, waits, and a year", tables=[operator.energy_table(summaries), yearly])]


def _single_run_parts(
    results: Mapping[str, Run], summaries: Mapping[str, Mapping[str, float | int]], reference: str
) -> list[dict[str, Any]]:
    if not results:
        return []
    parts = [
        _part("Metrics", tables=[tables.metrics_table(summaries, reference=reference), tables.counts_table(summaries)])
    ]
    shown = dict(list(results.items())[:LINES_SHOWN])
    rest = "" if len(shown) == len(results) else f"Drawn for the first {len(shown)} of {len(results)} policies."
    jobs = {name: r.jobs for name, r in shown.items()}
    cores = int(next(iter(summaries.values()))["cores"])
    energy = _energetic(summaries)
    if energy:
        figures = [
            (
                plots.energy_by_state(summaries),
                "Energy by node state. A computing node draws its idle power for its free cores too, so that "
                "computing energy depends on the policy as well: jobs that share nodes need less of it than jobs "
                "spread over partly busy ones.",
            )
        ]
        if len(results) > 1 and all(math.isfinite(float(s["mean_wait_s"])) for s in summaries.values()):
            figures.append(
                (
                    plots.frontier(summaries),
                    "Energy against mean wait: round points are beaten by no other in both.",
                )
            )
        parts.append(_part("Energy", figures=figures))
    if any(float(s["n_jobs"]) > 0 for s in summaries.values()):
        note = "Utilisation is the mean over equal intervals; the queue keeps its highest and lowest values."
        windows = {name: window for name, r in shown.items() if (window := _window(r)) is not None}
        parts.append(_part("Load over time", text=rest, figures=[(plots.load_over_time(jobs, cores, windows), note)]))
    if energy:
        of_nodes = {name: _node_tables(r) for name, r in shown.items()}
        kept = {name: tables_of for name, tables_of in of_nodes.items() if tables_of is not None}
        missing = [
            f"Not drawn for {name}: its tables of nodes were too large to keep."
            for name in of_nodes
            if name not in kept
        ]
        figure = plots.power_over_time(
            {name: nodes for name, (nodes, _) in kept.items()}, {name: power for name, (_, power) in kept.items()}
        )
        caption = "Mean over equal intervals, so areas are energies."
        parts.append(
            _part("Power over time", text=" ".join([rest, *missing]), figures=[(figure, caption)] if kept else [])
        )
    if any(float(s["n_completed"]) + float(s["n_killed"]) > 0 for s in summaries.values()):
        measured = {name: job_metrics.measures(table) for name, table in jobs.items()}
        panels = {m: {name: table[m] for name, table in measured.items()} for m in ("wait_s", "bounded_slowdown")}
        note = (
            "The share of finished jobs above a value; the height at the left edge is the share of jobs that "
            "waited (were slowed) at all."
        )
        parts.append(
            _part("How waits and slowdowns are distributed", text=rest, figures=[(plots.distributions(panels), note)])
        )
    return parts


def _charts(
    results: Mapping[str, Run], summaries: Mapping[str, Mapping[str, float | int]], job_limit: int
) -> list[dict[str, Any]]:
    each = max(job_limit // max(len(results), 1), 1)
    charts = []
    for name, result in results.items():
        of_nodes, summary = _node_tables(result), summaries[name]
        nodes = None if of_nodes is None else of_nodes[0]
        window = _window(result)
        end = None if window is None else window[1]
        charts.append(gantt.pack(name, result.jobs, nodes, n_nodes=int(summary["nodes"]), end_s=end, limit=each))
    return charts


def _energetic(summaries: Mapping[str, Mapping[str, float | int]]) -> bool:
    """Did every run count energy, and some of them draw any? Runs with and without watts are not drawn side by side."""
    every = [s.get("energy_j") for s in summaries.values()]
    return None not in every and any(float(energy) > 0.0 for energy in every if energy is not None)


def _window(result: Run) -> tuple[float, float] | None:
    """Start and end of the run, s; None for a run that does not say."""
    window = result.manifest.get("window")
    return None if window is None else (float(window["start_s"]), float(window["end_s"]))


def _node_tables(result: Run) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """The tables of nodes and power; None for a run so large that it keeps none (a Result then refuses them by
    name)."""
    try:
        return result.nodes, result.power
    except EscalaError:
        return None
