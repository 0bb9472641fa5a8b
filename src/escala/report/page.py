"""One self-contained HTML page from saved Results: summary first, then tables with units, then figures, then the chart
of every job. It loads nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from escala.errors import EscalaError
from escala.foresight import known_by_name, known_in
from escala.metrics import compare
from escala.metrics.recorded import recorded_waits
from escala.partitions import describes
from escala.platform import Platform
from escala.report import curves, gantt, marks, operator, recorded, verdict
from escala.report.curves import Training
from escala.report.parts import Run, Section, _charts, _held_out_part, _part, _priced, _section_part, _single_run_parts
from escala.report.quantities import ENERGY_UNITS, QUANTITIES
from escala.report.style import STATE_COLOURS, inline_file, inline_svg
from escala.result import without_places
from escala.unseen import sentences
from escala.workload.ignored import told
from escala.writing import sealed_text, write_whole

SCRIPTS, FIGURES = ("gantt_data.js", "gantt_pane.js", "gantt.js"), "figure.js"


_FOLDERS = re.compile(r"\b((?:score|policy|agent|model):)/(?:[^\s:<>\"'&,/]+/)*([^\s:<>\"'&,/]+)")
"""A policy that is read from an absolute path: its folders tell of somebody's machine."""


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
    """Write the page to `path` (a folder gets report.html) and return where it is. A page is whole or not there: it is
    written aside and moved.

    results: policy -> Result; all over the same jobs (else EscalaError). notes: paragraphs under the title. reference:
    the policy that changes are against, by default the first that keeps all nodes on, else the first. comparison:
    `metrics.compare.episodes` over held-out episodes. training: learning curves.
    sections: further parts, shown after the comparison. days: policies judged day by day, each a part for operators.
    job_limit: jobs drawn in the interactive chart, over all policies. price (of a kWh, in `currency`), carbon (g CO2 of
    a kWh): what a year would save in these as well, see `report.operator`; EscalaError where the page has no part for
    operators.
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
    reference = _reference(summaries, reference)
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
    remarks = compare.check(summaries, cut=True, paced=compare.paced_in(results)) if summaries else []
    said = [*_passed_over(results), recorded.sentence(waits, reference), marks.legend(knows)]
    recorded_s = waits.get(reference, {}).get("mean_recorded_s")
    charts = _charts(results, summaries, job_limit)
    return _template().render(
        title=title,
        subject=verdict.subject(summaries),
        notes=[notes] if isinstance(notes, str) else list(notes),
        power=[line for line in power if line],
        findings=verdict.held_out(comparison) or verdict.answers(summaries, reference, recorded_s),
        cards=_cards(summaries, reference, comparison),
        warnings=[*filter(None, said), *remarks],
        caution=verdict.caution(summaries, comparison),
        parts=parts,
        charts=charts,
        state_colours=STATE_COLOURS,
        meanings=_meanings() if summaries or comparison is not None else [],
        manifests=[(name, _manifest(result)) for name, result in results.items()],
        css=_file("page.css"),
        script=_script(parts, bool(charts)),
    )


def _reference(summaries: Mapping[str, Any], reference: str | None) -> str:
    """What changes are against; EscalaError for one that is not there."""
    reference = verdict.today(list(summaries)) if reference is None else reference
    if summaries and reference not in summaries:
        raise EscalaError(
            f"the reference {reference!r} is not among the policies {', '.join(summaries)}; name one of them"
        )
    return reference


def _cards(
    summaries: Mapping[str, Mapping[str, float | int]], reference: str, comparison: pl.DataFrame | None
) -> list[verdict.Card]:
    """The headlines: of held-out episodes where there are any, else of the runs."""
    return verdict.cards(summaries, reference=reference) if comparison is None else verdict.held_out_cards(comparison)


def _meanings() -> list[tuple[str, str]]:
    """What figures mean, for those whose name does not say it."""
    return [(one.name, one.meaning) for one in QUANTITIES.values() if one.meaning]


def _script(parts: Sequence[dict[str, Any]], charts: bool) -> str:
    """What the page's charts and figures need; "" for a page without."""
    wanted = charts or any(part["figures"] for part in parts)
    return "\n".join(map(_file, [*(SCRIPTS if charts else ()), FIGURES])) if wanted else ""


def _file(name: str) -> str:
    return resources.files("escala.report").joinpath(name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_file("page.html.j2"))


def _known(
    results: Mapping[str, Run],
    comparison: pl.DataFrame | None,
    days: Sequence[operator.JudgedDays],
    training: Sequence[Training],
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


def _passed_over(results: Mapping[str, Any]) -> list[str]:
    """What the runs do not look at, and what their figures do not count."""
    unseen = sentences({name: result.manifest.get("unseen", {}) for name, result in results.items()})
    return [_ignored(results), *unseen, *recorded.lost_runs(results)]


def _ignored(results: Mapping[str, Run]) -> str:
    """What the log of these runs has and no replay looks at, in a sentence; "" for nothing, or runs that do not say."""
    said = [
        told((run.manifest.get("workload") or {}).get("ignored") or {}, parted=describes(run.manifest.get("platform")))
        for run in results.values()
    ]
    sentence = next(filter(None, said), "")
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


def _manifest(result: Run) -> str:
    about = without_places(dict(result.manifest))
    if files := about.get("policy_files"):
        about["policy_files"] = {Path(path).name: digest for path, digest in files.items()}
    return json.dumps(about, indent=2, ensure_ascii=False, default=str)
