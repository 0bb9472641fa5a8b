"""Tables for people: policies in rows, metrics with units in columns, the best value marked, the number of jobs behind
every mean beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from escala.metrics.compare import COUNTS, KNOWS, change, measured
from escala.report import marks
from escala.report.quantities import among, count, number, percent, quantity, scale

Summary = Mapping[str, float | int]

_CLEAR = "better than the reference, and the interval leaves out zero"


@dataclass(frozen=True)
class Cell:
    """`note` stands small under the text; `best` marks the best value of its column; `plain` is text, which is set
    flush left."""

    text: str
    note: str = ""
    best: bool = False
    plain: bool = False


@dataclass(frozen=True)
class Table:
    """Headers are (name, unit, meaning). star: what the mark of `Cell.best` says."""

    headers: Sequence[tuple[str, str, str]]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    star: str = "best"


def metrics_table(summaries: Mapping[str, Summary], *, reference: str, metrics: Sequence[str] | None = None) -> Table:
    """The metrics of each policy (by default those of `METRICS` that there are), with the change against the reference
    policy under each value."""
    metrics = measured(summaries) if metrics is None else metrics
    columns = [metric_column(metric, [float(s[metric]) for s in summaries.values()]) for metric in metrics]
    against = list(summaries).index(reference)
    rows = []
    for i, name in enumerate(summaries):
        row = [Cell(name, "reference" if name == reference and len(summaries) > 1 else "", plain=True)]
        for values, _, texts, best in columns:
            note = "" if i == against else percent(change(values[i], values[against]))
            row.append(Cell(texts[i], note, best=best[i] and len(summaries) > 1))
        rows.append(row)
    headers = [("Policy", "", ""), *(header for _, header, _, _ in columns)]
    return Table(
        headers, rows, f"Changes are against {reference}. Means are over finished jobs." if len(summaries) > 1 else ""
    )


def metric_column(
    metric: str, values: Sequence[float], *, exact: bool = True
) -> tuple[Sequence[float], tuple[str, str, str], list[str], list[bool]]:
    """(values, header, texts in one unit, which are best) of a column. exact: counts are whole; False for means of
    counts."""
    what = quantity(metric)
    finite = [v for v in values if math.isfinite(v)]
    divisor, unit = scale(
        what.kind, median(map(abs, finite)) if finite else 0.0
    )  # of the middle value: one huge value must not squeeze the rest
    whole = what.kind == "n" and exact
    texts = [count(v) if whole else among(what.kind, v, divisor) for v in values]
    goal = {"less": min, "more": max}.get(what.better)
    top = goal(finite) if goal and finite else math.nan
    best = [math.isclose(v, top, rel_tol=1e-9) for v in values]
    return values, (what.name, unit, what.meaning), texts, [b and not all(best) for b in best]


def counts_table(summaries: Mapping[str, Summary]) -> Table:
    """What became of the jobs, per policy: means leave out what did not finish, so this belongs beside them."""
    headers = [("Policy", "", ""), *((quantity(c).name, "jobs", quantity(c).meaning) for c in COUNTS)]
    rows = [[Cell(name, plain=True), *(Cell(count(s[c])) for c in COUNTS)] for name, s in summaries.items()]
    return Table(headers, rows)


def overview_table(comparison: pl.DataFrame) -> Table:
    """`metrics.compare.episodes` at a glance: policies in rows, metrics in columns, under each mean the change and its
    interval."""
    policies = comparison["policy"].unique(maintain_order=True).to_list()
    headers, columns = [("Policy", "", "")], [[Cell(name, plain=True) for name in policies]]
    for (metric,), rows in comparison.group_by("metric", maintain_order=True):
        by_policy = {row["policy"]: row for row in rows.iter_rows(named=True)}
        what = quantity(str(metric))
        _, header, texts, _ = metric_column(str(metric), [by_policy[name]["mean"] for name in policies], exact=False)
        headers.append(header)
        columns.append([_overviewed(by_policy[name], text, what.better) for name, text in zip(policies, texts)])
    caption = (
        "Means over episodes; below, the change of the sum over episodes against the reference and its 95 % interval. "
        "Starred: better beyond chance."
    )
    return Table(headers, list(zip(*columns)), caption, star=_CLEAR)


def _overviewed(row: Mapping[str, Any], text: str, better: str) -> Cell:
    if row["difference"] is None:
        return Cell(text, "reference")
    if row["change"] is None:
        return Cell(text)
    note = f"{percent(row['change'])}\n{between(row['change_low'], row['change_high'], 0.01, signed=True)}"
    return Cell(text, note, best=outcome(row, better) == "better")


def outcome(row: Mapping[str, Any], better: str) -> str:
    """ "better", "worse" or "undecided" (the interval of the change holds zero): what a row of
    `metrics.compare.episodes` says."""
    low, high = row["change_low"], row["change_high"]
    if low <= 0.0 <= high:
        return "undecided"
    return "better" if (low > 0.0) == (better == "more") else "worse"


def comparison_tables(comparison: pl.DataFrame) -> list[Table]:
    """One table per metric from `metrics.compare.episodes`: means, changes and differences with their intervals."""
    tables = []
    for (metric,), rows in comparison.group_by("metric", maintain_order=True):
        what = quantity(str(metric))
        finite = [abs(v) for v in rows["mean"] if v is not None and math.isfinite(v)]
        divisor, unit = scale(what.kind, max(finite, default=0.0))
        body = [_compared(row, what.kind, divisor, what.better) for row in rows.iter_rows(named=True)]
        headers = [
            ("Policy", "", ""),
            (what.name, unit, what.meaning or "mean over episodes"),
            ("Change", "%", "relative change of the sum over episodes, with its interval"),
            ("Difference", unit, "mean of the paired differences, with its interval"),
            ("Better in", "% of episodes", "episodes in which the policy beats the reference"),
            ("Mean rank", "", "1 is best in every episode"),
        ]
        episodes, seeds = max(rows["episodes"]), max(rows["seeds"])
        behind = f"{episodes} paired episodes" + (f", {seeds} seeds" if seeds != 1 else "")
        tables.append(
            Table(
                headers,
                body,
                f"{what.name}: {behind}; [..] are 95 % bootstrap intervals. Starred: better beyond chance.",
                star=_CLEAR,
            )
        )
    return tables


def _compared(row: Mapping[str, Any], kind: str, divisor: float, better: str) -> list[Cell]:
    low, high = row["change_low"], row["change_high"]
    gain = None not in (low, high) and outcome(row, better) == "better"
    cells = [Cell(str(row["policy"]), plain=True), Cell(among(kind, row["mean"], divisor))]
    if row["difference"] is None:
        return [*cells, Cell("reference"), Cell("–"), Cell("–"), Cell(number(row["mean_rank"], 3))]
    cells.append(Cell(percent(row["change"]), between(low, high, 0.01, signed=True), best=gain))
    cells.append(
        Cell(number(row["difference"] / divisor), between(row["difference_low"], row["difference_high"], divisor))
    )
    return [*cells, Cell(count(100.0 * row["better_share"])), Cell(number(row["mean_rank"], 3))]


def between(low: float | None, high: float | None, divisor: float, *, signed: bool = False) -> str:
    """An interval as text: [−26.1, −22.0]; empty where there is none."""
    if low is None or high is None:
        return ""
    texts = (_signed(v / divisor) if signed else number(v / divisor, 3) for v in (low, high))
    return f"[{', '.join(texts)}]"


def _signed(value: float) -> str:
    return (f"{value:+.0f}" if abs(value) >= 100.0 else f"{value:+.1f}").replace("-", "−")


def frame_table(frame: pl.DataFrame, caption: str = "") -> Table:
    """Any table: names and units from the column names (mean_wait_s, waste_j, ..._change), numbers with four digits,
    text as it is. What policies know of the future (column `knows`) becomes marks and their legend."""
    if KNOWS in frame.columns:
        return marks.in_table(frame_table(frame.drop(KNOWS), caption), marks.known(frame))
    headers, columns = [], []
    for name in frame.columns:
        series = frame[name]
        if series.dtype.is_numeric() and not _known_integer(name, series):
            _, header, texts, _ = metric_column(name, [math.nan if v is None else float(v) for v in series])
            headers.append(header)
            columns.append([Cell(t) for t in texts])
        else:
            words = quantity(name)
            headers.append((words.name, "", words.meaning))
            columns.append([_plain(v) for v in series])
    return Table(headers, list(zip(*columns)) if columns else [], caption)


def _known_integer(name: str, series: pl.Series) -> bool:
    return series.dtype.is_integer() and quantity(name).kind in ("1", "n")


def _plain(value: object) -> Cell:
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(count(value))
    return Cell("–" if value is None else str(value), plain=True)
