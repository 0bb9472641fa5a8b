"""The page of a calibration: does a replay stand for its cluster, where it does not, and what the log has that it
cannot explain."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from escala.calibration.calibrate import (
    EARLIER,
    FEWEST,
    LEAST_DAYS,
    MEAN_WITHIN,
    RANK_ABOVE,
    RESEMBLES,
    STANDS,
    UNTESTED,
    Calibration,
)
from escala.report import marks
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.plots import _WIDTH, figure_legend
from escala.report.quantities import number, percent, scale
from escala.report.style import policy_colour, styled
from escala.workload.filters import ABSOLUTE_FROM_S

MOST_ROWS = 40
NAMES = {"day": "By day of submission", "partition": "By partition", "size": "By cores of the job", "user": "By user"}
COLUMNS = {
    "mean_recorded_s": "mean wait, log",
    "mean_replayed_s": "mean wait, replay",
    "error_of_mean_s": "error",
    "median_recorded_s": "median, log",
    "median_replayed_s": "median, replay",
}
RULE = (
    f"A replay stands for its cluster where its mean wait is within {100 * MEAN_WITHIN:.0f} % of the recorded one and "
    f"mean waits of days rank alike (Spearman above {RANK_ABOVE:g}; with fewer than {LEAST_DAYS} days, waits of "
    "jobs). It resembles it where the means differ by a factor of 2 at most."
)
FROM_ITSELF = (
    "A platform inferred from the same log has its bottlenecks built in, and proves less than the site's "
    "own description."
)


def answer(found: Calibration) -> str:
    """Does this replay stand for the cluster? In one sentence or two."""
    whole = found.whole
    ours, own = _span(whole["mean_replayed_s"]), _span(whole["mean_recorded_s"])
    change = percent(whole["error_of_mean_s"] / whole["mean_recorded_s"]) if whole["mean_recorded_s"] > 0 else "–"
    rank = whole["rank_correlation_of_days"]
    days = "" if rank is None else f", and the mean waits of days have a rank correlation of {rank:.2f}"
    means = f"jobs waited {ours} in the mean here, {own} in the log ({change}; {whole['jobs']:,} jobs){days}"
    if found.verdict == UNTESTED:
        why = (
            "hardly any job waited"
            if whole["jobs"] >= FEWEST
            else f"only {whole['jobs']:,} jobs can be held against the log"
        )
        return (
            f"Whether this replay stands for the cluster cannot be told: {why} (mean wait {ours} here, {own} in "
            "the log)."
        )
    if found.verdict == STANDS:
        return f"This replay stands for the cluster: {means}."
    if found.verdict == RESEMBLES:
        return f"This replay resembles the cluster and does not stand for it: {means}."
    return f"This replay does not stand for the cluster: {means}. What it says of waits may not hold for this machine."


def sentences(found: Calibration) -> list[str]:
    """What is to be known beside the answer."""
    whole, about = found.whole, found.about
    ranks = whole["rank_correlation"]
    told = [
        f"{100 * whole['within_5_min_share']:.0f} % of the jobs started within 5 minutes of when the log started them"
        + ("." if ranks is None else f"; the waits of jobs have a rank correlation of {ranks:.2f}.")
    ]
    if about["warm"]:
        told.append(
            f"Warm start: {about['running']:,} jobs ran and {about['waiting']:,} waited at the log's first instant; "
            "the former are on the machine when the replay begins, and are not judged."
        )
    else:
        told.append("Cold start: the log has no job that ran at its first instant, or hardly any that began later.")
    return [*told, *marks.lines(_knows(found)), *found.causes]


def _knows(found: Calibration) -> dict[str, str]:
    """What the replay's scheduler knows of the future."""
    return {found.about["scheduler"]: found.about["knows"]}


def shown(table: pl.DataFrame) -> list[dict[str, str]]:
    """The rows of a group as texts, each wait in the unit that suits it."""
    rows = []
    for row in table.head(MOST_ROWS).iter_rows(named=True):
        texts = [_span(row[name]) for name in COLUMNS]
        texts[2] = f"{'+' if row['error_of_mean_s'] > 0 else ''}{texts[2]}"
        rows.append(
            {table.columns[0]: str(row[table.columns[0]]), "jobs": f"{row['jobs']:,}"}
            | dict(zip(COLUMNS.values(), texts, strict=True))
            | {"within 5 min": f"{100 * row['within_5_min_share']:.0f} %"}
        )
    return rows


def _span(seconds: float) -> str:
    divisor, unit = scale("s", seconds)
    return f"{number(seconds / divisor, 3) if abs(seconds) >= 1.0 else f'{seconds:.1f}'}\u202f{unit}"


@styled
def by_day(found: Calibration) -> Figure:
    """The mean wait of each day, by the log and by the replay."""
    table = found.groups["day"].filter(pl.col("day") != EARLIER)
    figure = Figure(figsize=(_WIDTH, 2.8))
    axes = figure.subplots()
    longest = pl.concat([table["mean_recorded_s"], table["mean_replayed_s"]]).max() or 1.0
    divisor, unit = scale("s", float(longest))  # type: ignore[arg-type]
    for k, (name, label) in enumerate((("mean_recorded_s", "log"), ("mean_replayed_s", "replay"))):
        axes.plot(range(table.height), table[name] / divisor, "o-", markersize=3.5, color=policy_colour(k), label=label)
    places = range(0, table.height, max(1, table.height // 8))
    axes.set_xticks(list(places), [table["day"][k] for k in places])
    axes.set(ylabel=f"Mean wait ({unit})", xlabel="Day of submission")
    figure_legend(figure, axes, "outside upper right")
    return figure


@styled
def over_time(found: Calibration) -> Figure:
    """Cores in use and jobs that wait, over time, by the log and by the replay."""
    figure = Figure(figsize=(_WIDTH, 4.2))
    panels = figure.subplots(2, 1, sharex=True)
    days = (found.curves["at_s"] - found.about["since_s"]) / 86400
    for axes, name, factor, label in zip(
        panels, ("utilisation", "queue"), (100.0, 1.0), ("Cores in use (%)", "Jobs that wait"), strict=True
    ):
        for k, how in enumerate(("recorded", "replayed")):
            values = factor * found.curves[f"{name}_{how}"]
            axes.step(
                days,
                values,
                where="post",
                color=policy_colour(k),
                label="log" if how == "recorded" else "replay",
                linewidth=1.1,
            )
        axes.set(ylabel=label)
    panels[-1].set_xlabel(f"Days since {_since(found)}")
    figure_legend(figure, panels[0], "outside upper right")
    return figure


def _since(found: Calibration) -> str:
    at = found.about["origin_s"] + found.about["since_s"]
    if found.about["origin_s"] < ABSOLUTE_FROM_S:
        return f"{number(at)} s of the log"
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def sections(found: Calibration) -> list[Section]:
    """The parts of the page."""
    use, wait = (
        [found.whole[f"{name}_{how}"] for how in ("recorded", "replayed")] for name in ("utilisation", "queue")
    )
    caption = (
        f"In the mean {100 * use[0]:.1f} % of the cores in use in the log and {100 * use[1]:.1f} % in the replay; "
        f"{wait[0]:.1f} and {wait[1]:.1f} jobs waiting. Jobs without a recorded start are in neither."
    )
    parts = [
        Section("Mean wait of each day", "", [], [(by_day(found), RULE)]),
        Section("Over time", "", [], [(over_time(found), caption)]),
    ]
    for name, table in found.groups.items():
        more = (
            f" The first {MOST_ROWS} of {table.height:,}; calibration.json has all." if table.height > MOST_ROWS else ""
        )
        parts.append(
            Section(NAMES[name], "", [(pl.DataFrame(shown(table)), f"Error: replay less log, of the mean.{more}")])
        )
    return parts


def write_page(found: Calibration, path: Path) -> None:
    """Write the page."""
    about = found.about
    by = marks.shown(about["scheduler"], _knows(found))
    run = f"{about['log']} ({about['jobs']:,} jobs) on {about['platform']} by {by}. {FROM_ITSELF}"
    write_report(
        path,
        {},
        title=answer(found).partition(": ")[0],
        notes=[answer(found), *sentences(found), run],
        sections=sections(found),
    )
