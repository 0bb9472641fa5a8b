"""What a report says first: what was compared, who did best, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from escala.metrics.compare import change
from escala.report import marks
from escala.report.operator import year
from escala.report.quantities import amount, count, number, percent, quantity
from escala.report.tables import between, outcome

Summary = Mapping[str, float | int]

HEADLINES = ("energy_j", "mean_wait_s", "mean_bounded_slowdown")
ON = "never"
"""The shutdown policy that most clusters run today: all nodes stay on."""
ENOUGH = 10
"""Episodes; bootstrap intervals over fewer leave out the truth much more often than they say."""
_SUPERLATIVE = {"less": "Lowest", "more": "Highest", "": "Lowest"}


@dataclass(frozen=True)
class Card:
    """One headline: a label, who, the value, and what stands under it."""

    label: str
    who: str
    value: str
    note: str


def subject(summaries: Mapping[str, Summary]) -> str:
    """One line: how many policies, jobs, nodes, cores, over what time."""
    if not summaries:
        return ""
    first = next(iter(summaries.values()))
    policies = f"{len(summaries)} policies" if len(summaries) > 1 else "1 policy"
    size = f"{count(first['nodes'])} nodes with {count(first['cores'])} cores"
    spans = [float(s["window_s"]) for s in summaries.values()]
    return f"{policies} · {count(first['n_jobs'])} jobs · {size} · {amount('window_s', max(spans))}"


def today(names: Sequence[str]) -> str:
    """What runs ("scheduler + shutdown") are judged against where nobody says: the first one that keeps all nodes on,
    else the first."""
    return next((name for name in names if name.rpartition(" + ")[2] == ON), next(iter(names), ""))


def answers(summaries: Mapping[str, Summary], reference: str, recorded_s: float | None = None) -> list[str]:
    """What an operator asks, in plain sentences: the energy and the wait under the reference, who takes less, who waits
    less, and a year. Nothing of energy where none was counted. recorded_s: the mean wait that the log itself
    recorded."""
    if not summaries or not math.isfinite(float(summaries[reference]["mean_wait_s"])):
        return []
    counted = all(float(s.get("energy_j", 0.0)) > 0.0 for s in summaries.values())
    told, base = ("energy_j", "mean_wait_s") if counted else ("mean_wait_s",), summaries[reference]
    on = " (all nodes stay on)" if marks.plain(reference).rpartition(" + ")[2] == ON and counted else ""
    spent = (
        f"the nodes take {amount('energy_j', base['energy_j'])} in {amount('window_s', base['window_s'])}; "
        if counted
        else ""
    )
    logged = "" if recorded_s is None else f"; in the log itself they waited {amount('mean_wait_s', recorded_s)}"
    out = [f"Under {reference}{on} {spent}jobs wait {amount('mean_wait_s', base['mean_wait_s'])} in the mean{logged}."]
    others = {name: s for name, s in summaries.items() if name != reference}
    waits = [float(s["mean_wait_s"]) for s in summaries.values()]
    if others and math.isclose(min(waits), max(waits), rel_tol=1e-9, abs_tol=1e-6):
        out.append("Jobs wait alike under every policy: this load cannot tell their waits apart.")
    judged = _to_be_had(summaries)
    for metric, word in (("energy_j", "Least energy"), ("mean_wait_s", "Shortest wait")):
        best = min(judged, key=lambda name: float(summaries[name].get(metric, math.nan)))
        if metric in told and change(float(summaries[best][metric]), float(base[metric])) not in (None, 0.0):
            figures = [
                f"{_low(m)} {amount(m, float(summaries[best][m]))}{_than(summaries[best], base, m)}"
                for m in _first(metric, told)
            ]
            out.append(f"{word}: {best}: {', '.join(figures)}.")
    return out + (_year({name: summaries[name] for name in judged}, base, reference) if counted else [])


def _to_be_had(names: Iterable[str]) -> list[str]:
    """Those that a headline may call the best: honest policies; all where none is."""
    every = list(names)
    return [name for name in every if marks.plain(name) == name] or every


def _first(metric: str, told: Sequence[str]) -> list[str]:
    return [metric, *(name for name in told if name != metric)]


def _than(summary: Summary, base: Summary, metric: str) -> str:
    """The change against the reference, in brackets; nothing where the reference is 0."""
    share = change(float(summary[metric]), float(base[metric]))
    return "" if share is None else f" ({percent(share)})"


def _year(summaries: Mapping[str, Summary], base: Summary, reference: str) -> list[str]:
    """A year of such a load, in one sentence. base: of the reference."""
    if float(base["window_s"]) <= 0.0:
        return []
    years = {name: year(s, base) for name, s in summaries.items()}
    best = min(years, key=lambda name: years[name]["kwh"])
    less = f", under {best} {number(years[best]['saved_kwh'])} kWh less" if years[best]["saved_kwh"] > 0.0 else ""
    return [
        f"A year of this load, at the watts named above: {number(year(base, base)['kwh'])} kWh under {reference}{less}."
    ]


def cards(summaries: Mapping[str, Summary], *, reference: str, metrics: Sequence[str] = HEADLINES) -> list[Card]:
    """The best honest policy in each headline metric, against the reference; for a single policy its values. Metrics
    without a value, or all zero, are left out.
    """
    out = []
    for metric in metrics:
        values = {
            name: float(s[metric]) for name, s in summaries.items() if math.isfinite(float(s.get(metric, math.nan)))
        }
        against = values.get(reference)
        values = {name: values[name] for name in _to_be_had(values)}
        if not values or not any(values.values()):
            continue
        what = quantity(metric)
        top = (max if what.better == "more" else min)(values.values())
        winners = [name for name, v in values.items() if math.isclose(v, top, rel_tol=1e-9, abs_tol=1e-12)]
        if len(summaries) == 1:
            out.append(Card(what.name, "", amount(metric, top), what.meaning))
        elif len(winners) == len(summaries):
            out.append(Card(what.name, "all policies alike", amount(metric, top), ""))
        else:
            label = f"{_SUPERLATIVE[what.better]} {what.name[:1].lower()}{what.name[1:]}"
            out.append(Card(label, _listed(winners), amount(metric, top), _gap(top, against, reference, winners)))
    return out


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} equal to it"


def _gap(top: float, against: float | None, reference: str, winners: Sequence[str]) -> str:
    if reference in winners:
        return "the reference itself"
    share = None if against is None else change(top, against)
    return f"{percent(share)} against {reference}" if share is not None else ""


def held_out(comparison: pl.DataFrame | None) -> list[str]:
    """`metrics.compare.episodes` in two sentences about its first metric: who is better and worse beyond chance, and
    what the best honest one changes in the other metrics. The figures behind it are in `tables.overview_table`.
    """
    rows = [] if comparison is None else comparison.filter(pl.col("change").is_not_null()).rows(named=True)
    if comparison is None or not rows:
        return []
    metric, what = rows[0]["metric"], quantity(rows[0]["metric"])
    about = sorted(
        (row for row in rows if row["metric"] == metric), key=lambda row: row["change"], reverse=what.better == "more"
    )
    seeds = f" and {max(row['seeds'] for row in about)} seeds" if max(row["seeds"] for row in about) > 1 else ""
    groups = {
        word: [row for row in about if outcome(row, what.better) == word] for word in ("better", "worse", "undecided")
    }
    said = "; ".join(f"{word} under {_named(group)}" for word, group in groups.items() if group)
    out = [f"{what.name}{_against(comparison)}, over {about[0]['episodes']} paired episodes{seeds}: {said}."]
    honest = _to_be_had(comparison["policy"])
    better = [row["policy"] for row in groups["better"] if row["policy"] in honest]
    if not better:
        who = "No honest policy" if groups["better"] else "No policy"
        return [*out, f"{who} is better in {_low(metric)} beyond chance."]
    best = better[0]
    others = [row for row in rows if row["policy"] == best and row["metric"] != metric]
    return [*out, *_price(best, metric, others)]


def _price(policy: str, metric: str, others: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the policy that is best in a metric does to the others."""
    parts = []
    for word in ("worse", "better", "undecided"):
        group = [row for row in others if outcome(row, quantity(row["metric"]).better) == word]
        if group:
            changes = _series([f"{_low(row['metric'])} ({percent(row['change'])})" for row in group])
            parts.append(f"{word} in {changes}")
    return [f"{policy}, the best in {_low(metric)}, is {'; '.join(parts)}."] if parts else []


def _named(group: Sequence[Mapping[str, Any]]) -> str:
    """Policies with their changes, the first with its interval."""
    intervals = [f" {between(group[0]['change_low'], group[0]['change_high'], 0.01, signed=True)}", *[""] * len(group)]
    return _series([f"{row['policy']} ({percent(row['change'])}{interval})" for row, interval in zip(group, intervals)])


def _series(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _low(metric: str) -> str:
    return quantity(metric).name.lower()


def _change(row: Mapping[str, Any]) -> str:
    low, high = row["change_low"], row["change_high"]
    undecided = ", undecided" if low <= 0.0 <= high else ""
    return (
        f"{quantity(row['metric']).name.lower()} {percent(row['change'])} "
        f"{between(low, high, 0.01, signed=True)}{undecided}"
    )


def _against(comparison: pl.DataFrame) -> str:
    reference = comparison.filter(pl.col("difference").is_null())["policy"].to_list()
    return f" against {reference[0]}" if reference else ""


def held_out_cards(comparison: pl.DataFrame) -> list[Card]:
    """The best honest policy by mean over episodes for each headline metric (for each metric where none is a headline),
    with its change against the reference and the interval.
    """
    headlines = comparison.filter(pl.col("metric").is_in(HEADLINES))
    out = []
    for (metric,), rows in (comparison if headlines.is_empty() else headlines).group_by("metric", maintain_order=True):
        what = quantity(str(metric))
        best = (
            rows.filter(pl.col("policy").is_in(_to_be_had(rows["policy"])))
            .sort("mean", descending=what.better == "more", maintain_order=True)
            .row(0, named=True)
        )
        note = (
            "the reference itself"
            if best["change"] is None
            else f"{_change(best).removeprefix(what.name.lower())}{_against(comparison)}"
        )
        label = f"{_SUPERLATIVE[what.better]} {what.name[:1].lower()}{what.name[1:]}, mean over episodes"
        mean = number(best["mean"]) if what.kind == "n" else amount(str(metric), best["mean"])
        out.append(Card(label, best["policy"], mean, note.strip()))
    return out


def caution(summaries: Mapping[str, Summary], comparison: pl.DataFrame | None) -> str:
    """What the figures of single runs, or of few episodes, cannot say."""
    if comparison is not None:
        few = max(comparison["episodes"], default=0)
        return (
            f"{few} episodes are few: intervals that rest on fewer than {ENOUGH} are too narrow."
            if few < ENOUGH
            else ""
        )
    if len(summaries) < 2:
        return ""
    return (
        "Each policy ran once on one workload: these differences carry no interval, and another workload may rank "
        "the policies otherwise."
    )
