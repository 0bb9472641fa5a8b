"""One self-contained HTML page from saved Results: summary first, then tables with units, then figures, then the chart of every job. It
loads nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import jinja2
import polars as pl
from matplotlib.figure import Figure

from escala.errors import EscalaError
from escala.foresight import known_by_name, known_in
from escala.metrics import compare
from escala.metrics import jobs as job_metrics
from escala.metrics.recorded import recorded_waits
from escala.platform import Platform
from escala.report import curves, gantt, marks, operator, plots, recorded, tables, verdict
from escala.report.curves import Training
from escala.report.quantities import ENERGY_UNITS, QUANTITIES
from escala.report.style import STATE_COLOURS, inline_file, inline_svg
from escala.result import without_places
from escala.workload.ignored import told
from escala.writing import sealed_text, write_whole

LINES_SHOWN = 8
"""Policies in a figure of lines; with more, the first ones are drawn and the page says so."""

SCRIPTS, FIGURES = ("gantt_data.js", "gantt_pane.js", "gantt.js"), "figure.js"


_FOLDERS = re.compile(r"\b((?:score|policy|agent|model):)/(?:[^\s:<>\"'&,/]+/)*([^\s:<>\"'&,/]+)")
"""A policy that is read from an absolute path: its folders tell of somebody's machine."""


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
    """A further part of a page: text, tables (data frames, with a caption; units are taken from the column names; or ready tables) and
    figures (or files of them that `style.save` wrote), each with a caption.
    """

    title: str
    text: str = ""
    tables: Sequence[tuple[pl.DataFrame, str] | tables.Table] = ()
    figures: Sequence[tuple[Figure | Path, str]] = ()


def write_report(
    path: Path | str,
    results: Mapping[str, Run],
    *,
    title: str,
    notes: str | Sequence[str] = (),
    reference: str | None = None,
    comparison: pl.DataFrame | None = None,
    training: Training | Sequence[Training] = (),
    sections: Sequence[Section] = (),
    days: Sequence[operator.JudgedDays] = (),
    job_limit: int = gantt.JOB_LIMIT,
    price: float | None = None,
    carbon: float | None = None,
    currency: str = "",
) -> Path:
    """Write the page to `path` (a folder gets report.html) and return where it is. A page is whole or not there: it is written aside and
    moved.

    results: policy -> Result; all over the same jobs (else EscalaError). notes: paragraphs under the title. reference: the policy that
    changes are against, by default the first that keeps all nodes on, else the first. comparison: `metrics.compare.episodes` over
    held-out episodes. training: learning curves.
    sections: further parts, shown after the comparison. days: policies judged day by day, each a part for operators. job_limit: jobs drawn
    in the interactive chart, over all policies. price (of a kWh, in `currency`), carbon (g CO2 of a kWh): what a year would save in these
    as well, see `report.operator`; EscalaError where the page has no part for operators.
    """
    html = render(
        results,
        title=title,
        notes=notes,
        reference=reference,
        comparison=comparison,
        training=training,
        sections=sections,
        days=days,
        job_limit=job_limit,
        price=price,
        carbon=carbon,
        currency=currency,
    )
    target = Path(path)
    target = target / "report.html" if target.is_dir() else target
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, sealed_text(_FOLDERS.sub(r"\1\2", html)))
    return target


def render(
    results: Mapping[str, Run],
    *,
    title: str,
    notes: str | Sequence[str] = (),
    reference: str | None = None,
    comparison: pl.DataFrame | None = None,
    training: Training | Sequence[Training] = (),
    sections: Sequence[Section] = (),
    days: Sequence[operator.JudgedDays] = (),
    job_limit: int = gantt.JOB_LIMIT,
    price: float | None = None,
    carbon: float | None = None,
    currency: str = "",
) -> str:
    """The page as text; see `write_report`."""
    curves_given = [training] if isinstance(training, Training) else list(training)
    if not results and comparison is None and not sections and not curves_given and not days:
        raise EscalaError("nothing to report: no results, no comparison, no sections, no training; give at least one")
    summaries = {name: result.summary() for name, result in results.items()}
    reference = verdict.today(list(summaries)) if reference is None else reference
    if summaries and reference not in summaries:
        raise EscalaError(f"the reference {reference!r} is not among the policies {', '.join(summaries)}; name one of them")
    knows = _known(results, comparison, days, curves_given)
    results = {marks.shown(name, knows): result for name, result in results.items()}
    summaries = {marks.shown(name, knows): summary for name, summary in summaries.items()}
    reference = marks.shown(reference, knows)
    comparison = None if comparison is None else marks.in_frame(comparison, knows)
    days = [_shown_days(judged, knows) for judged in days]
    curves_given = [_shown_levels(curve, knows) for curve in curves_given]
    for_days, for_runs = _priced(days, summaries, reference, {"price": price, "carbon": carbon, "currency": currency})
    parts = [*_held_out_part(comparison), *for_days, *map(_section_part, sections)]
    parts += [*_single_run_parts(results, summaries, reference), *for_runs]
    waits = {name: both for name, result in results.items() if (both := recorded_waits(result.jobs)) is not None}
    parts += [_part("Wait: the log's own and its replays'", tables=recorded.tables(waits))] if waits else []
    power = list(dict.fromkeys([*map(_power, results.values()), *(judged.power for judged in days)]))
    _name_watts(parts, " ".join(filter(None, power)))
    _mark_tables(parts, knows)
    parts += [_part(t.title, figures=[(curves.learning_curve(t), t.caption)]) for t in curves_given]
    _number_figures(parts)
    remarks = compare.check(summaries, cut=True) if summaries else []
    charts = _charts(results, summaries, job_limit)
    return _template().render(
        title=title,
        subject=verdict.subject(summaries),
        notes=[notes] if isinstance(notes, str) else list(notes),
        power=[line for line in power if line],
        findings=verdict.held_out(comparison) or verdict.answers(summaries, reference, waits.get(reference, {}).get("mean_recorded_s")),
        cards=verdict.cards(summaries, reference=reference) if comparison is None else verdict.held_out_cards(comparison),
        warnings=[*filter(None, [_ignored(results), recorded.sentence(waits, reference), marks.legend(knows)]), *remarks],
        caution=verdict.caution(summaries, comparison),
        parts=parts,
        charts=charts,
        state_colours=STATE_COLOURS,
        meanings=[(q.name, q.meaning) for q in QUANTITIES.values() if q.meaning and (summaries or comparison is not None)],
        manifests=[(name, _manifest(result)) for name, result in results.items()],
        css=_file("page.css"),
        script="\n".join(map(_file, [*(SCRIPTS if charts else ()), FIGURES])) if charts or any(part["figures"] for part in parts) else "",
    )


def _file(name: str) -> str:
    return resources.files("escala.report").joinpath(name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_file("page.html.j2"))


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


def _known(
    results: Mapping[str, Run], comparison: pl.DataFrame | None, days: Sequence[operator.JudgedDays], training: Sequence[Training]
) -> dict[str, str]:
    """What each policy of the page knows of the future."""
    frames = [*([] if comparison is None else [comparison]), *(judged.rows for judged in days)]
    found = {name: known_by_name(name) for curve in training for name in curve.levels}
    found |= {name: what for frame in frames for name, what in marks.known(frame).items()}
    return found | {name: known_in(result.manifest) for name, result in results.items()}


def _shown_days(judged: operator.JudgedDays, knows: marks.Knows) -> operator.JudgedDays:
    """Judged days with their policies as they are shown."""
    reference = None if judged.reference is None else marks.shown(judged.reference, knows)
    return replace(judged, rows=marks.in_frame(judged.rows, knows), reference=reference)


def _shown_levels(training: Training, knows: marks.Knows) -> Training:
    """A learning curve with the policies beside it as they are shown."""
    return replace(training, levels={marks.shown(name, knows): level for name, level in training.levels.items()})


def _mark_tables(parts: Sequence[dict[str, Any]], knows: marks.Knows) -> None:
    """Mark clairvoyant policies in every table, with the legend beside it."""
    for part in parts:
        part["tables"] = [marks.in_table(table, knows) for table in part["tables"]]
        part["folded"] = (part["folded"][0], [marks.in_table(table, knows) for table in part["folded"][1]])


def _power(result: Run) -> str:
    """Whose watts a run's energies rest on; "" for a run that does not say its platform."""
    spec = result.manifest.get("platform")
    return Platform.from_spec(spec).power_line if isinstance(spec, Mapping) else ""


def _ignored(results: Mapping[str, Run]) -> str:
    """What the log of these runs has and no replay looks at, in a sentence; "" for nothing, or runs that do not say."""
    workloads = [run.manifest.get("workload") or {} for run in results.values()]
    sentence = next(filter(None, (told(workload.get("ignored") or {}) for workload in workloads)), "")
    return sentence and f"{sentence[:1].upper()}{sentence[1:]}."


def _name_watts(parts: Sequence[dict[str, Any]], power: str) -> None:
    """Say beside every table with energies whose watts they rest on."""
    for part in parts:
        for i, table in enumerate(part["tables"]):
            if power and any(unit in ENERGY_UNITS for _, unit, _ in table.headers):
                told = f"{power[:1].upper()}{power[1:]}."
                part["tables"][i] = replace(table, caption=f"{table.caption} {told}".strip())


def _number_figures(parts: list[dict[str, Any]]) -> None:
    """Turn figures into elements of the page, each with ids of its own."""
    count = 0
    for part in parts:
        for i, (figure, caption) in enumerate(part["figures"]):
            drawn = inline_file if isinstance(figure, Path) else inline_svg
            part["figures"][i] = (drawn(figure, f"f{count}"), caption)
            count += 1


def _held_out_part(comparison: pl.DataFrame | None) -> list[dict[str, Any]]:
    if comparison is None:
        return []
    figures = [(curves.changes(comparison), "Change against the reference; the bar is the 95 % interval.")]
    text = "Policies are compared on the same episodes, pair by pair. A change whose interval leaves out zero is more than chance."
    return [
        _part(
            "Comparison over episodes",
            text=text,
            tables=[tables.overview_table(comparison)],
            figures=figures if comparison["change"].count() else [],
            folded=("Metric by metric: differences, share of episodes won, mean ranks", tables.comparison_tables(comparison)),
        )
    ]


def _section_part(section: Section) -> dict[str, Any]:
    given = [item if isinstance(item, tables.Table) else tables.frame_table(*item) for item in section.tables]
    return _part(section.title, text=section.text, tables=given, figures=section.figures)


def _priced(
    days: Sequence[operator.JudgedDays], summaries: Mapping[str, Mapping[str, float | int]], reference: str, prices: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """For whoever runs the cluster, of judged days and of runs. EscalaError for a price, or CO2, of what is no energy."""
    for_days = [_part(judged.title, tables=found) for judged in days if (found := operator.tables_of_days(judged, **prices)) is not None]
    for_runs = _operator_part(summaries, reference, prices)
    if not for_days and not for_runs and (prices["price"] is not None or prices["carbon"] is not None):
        raise EscalaError(
            "there is no energy by state that a price of a kWh, or its CO2, could be told for: give runs or an evaluation (an old "
            "one judged anew) on a platform with a power profile (--power), or leave the price and the CO2 out"
        )
    return for_days, for_runs


def _operator_part(summaries: Mapping[str, Mapping[str, float | int]], reference: str, priced: Mapping[str, Any]) -> list[dict[str, Any]]:
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
    parts = [_part("Metrics", tables=[tables.metrics_table(summaries, reference=reference), tables.counts_table(summaries)])]
    shown = dict(list(results.items())[:LINES_SHOWN])
    rest = "" if len(shown) == len(results) else f"Drawn for the first {len(shown)} of {len(results)} policies."
    jobs = {name: r.jobs for name, r in shown.items()}
    cores = int(next(iter(summaries.values()))["cores"])
    energy = _energetic(summaries)
    if energy:
        figures = [
            (
                plots.energy_by_state(summaries),
                "Energy by node state. A computing node draws its idle power for its free cores too, so that computing energy depends on "
                "the policy as well: jobs that share nodes need less of it than jobs spread over partly busy ones.",
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
        missing = [f"Not drawn for {name}: its tables of nodes were too large to keep." for name in of_nodes if name not in kept]
        figure = plots.power_over_time(
            {name: nodes for name, (nodes, _) in kept.items()}, {name: power for name, (_, power) in kept.items()}
        )
        caption = "Mean over equal intervals, so areas are energies."
        parts.append(_part("Power over time", text=" ".join([rest, *missing]), figures=[(figure, caption)] if kept else []))
    if any(float(s["n_completed"]) + float(s["n_killed"]) > 0 for s in summaries.values()):
        measured = {name: job_metrics.measures(table) for name, table in jobs.items()}
        panels = {m: {name: table[m] for name, table in measured.items()} for m in ("wait_s", "bounded_slowdown")}
        note = (
            "The share of finished jobs above a value; the height at the left edge is the share of jobs that waited (were slowed) at all."
        )
        parts.append(_part("How waits and slowdowns are distributed", text=rest, figures=[(plots.distributions(panels), note)]))
    return parts


def _charts(results: Mapping[str, Run], summaries: Mapping[str, Mapping[str, float | int]], job_limit: int) -> list[dict[str, Any]]:
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
    """The tables of nodes and power; None for a run so large that it keeps none (a Result then refuses them by name)."""
    try:
        return result.nodes, result.power
    except EscalaError:
        return None


def _manifest(result: Run) -> str:
    about = without_places(dict(result.manifest))
    if files := about.get("policy_files"):
        about["policy_files"] = {Path(path).name: digest for path, digest in files.items()}
    return json.dumps(about, indent=2, ensure_ascii=False, default=str)
