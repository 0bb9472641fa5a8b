"""The page of a frontier: energy against wait of pairs of policies, what they save at which wait, and what a year of it
is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from escala import unseen
from escala.metrics.bill import COST
from escala.report import marks, operator, recorded
from escala.report.labels import beside
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.plots import _WIDTH
from escala.report.quantities import among, percent, quantity, scale
from escala.report.style import INK, policy_colour, styled
from escala.report.tables import Cell, Table
from escala.tuning.joint import ENERGY, LONGEST, MARGINS, WAITS, Frontier
from escala.tuning.judge import Ratio
from escala.tuning.later import Judged

MARKERS = "osD^vPX*<>p"
"""A form a shutdown policy; where there are more, full, then hollow."""
FEW = 4  # names in a sentence
SHOWN = ("energy_j", "cost", "co2_kg", "mean_wait_s", "p95_wait_s", "max_wait_s")
"""Of these what is known."""
WORDS = {"mean wait": "mean_wait_s", "95th percentile": "p95_wait_s", "longest": "longest_wait_s"}
LESS = {ENERGY: "needs less energy", COST: "costs less"}
RULE = (
    f"A limit is one on the mean wait and on its 95th percentile; the longest wait may be at most {LONGEST:g} "
    "times the reference's."
)
CAUTION = (
    "Chosen and judged on the same log: the best of many pairs on one log gains less on the next (escala frontier "
    "--after judges on later weeks)."
)


def sentences(found: Frontier) -> list[str]:
    """The answer in plain sentences: how much energy can be saved at which waits."""
    least: dict[str, float] = {}
    for margin in MARGINS:
        least.setdefault(found.cheapest(margin), margin)
    told = []
    for name, margin in least.items():
        told.append(f"with {_limit(margin)}, {_saves(found, name)}")
    ahead = found.undominated()
    unlike = [*filter(None, [recorded.sentence(found.waits, found.reference)])]
    if found.later is not None:
        return [*later_sentences(found), f"On the past: {'; '.join(told)}.", *unlike]
    return [
        f"Against {found.reference}: {'; '.join(told)}. {RULE}",
        f"{len(ahead)} of {len(found.summaries)} pairs are on the frontier: no other needs less energy at a shorter "
        f"mean wait. {CAUTION}",
        *_beside(found),
        *unlike,
    ]


def _beside(found: Frontier) -> list[str]:
    """Which pairs are not looked at for the frontier."""
    ahead = [name for name, what in found.knows.items() if what]
    if not ahead:
        return []
    more = f" and {len(ahead) - FEW} more" if len(ahead) > FEW else ""
    return [f"Left out there, since no scheduler of a real machine knows the future: {', '.join(ahead[:FEW])}{more}."]


def later_sentences(found: Frontier) -> list[str]:
    """What the pairs chosen on the past did on the later weeks, in plain sentences."""
    later = found.later
    assert later is not None
    base = later.pairs[found.reference].waits
    chosen = {found.cheapest(margin): margin for margin in reversed(MARGINS)}
    told = []
    for name, margin in reversed(chosen.items()):
        if name != found.reference:
            pair = later.pairs[name]
            waits = ", ".join(f"{word} {_times(pair.waits[key], base[key])}" for word, key in WORDS.items())
            kept = "" if _kept(pair.waits, base, margin) else " The limit on waits was not kept."
            told.append(f"{name}, chosen for {_limit(margin)}: {_drawn(pair)}; {waits}.{kept}")
    if not told:
        told = [f"On the past no pair {LESS[found.least]} than {found.reference} within the limits on waits."]
    until = f"chosen on the first {later.past_days:.0f} days, judged on the {later.days:.0f} after them"
    return [
        *told,
        f"Against {found.reference}; {until}, once, in one replay. Brackets: 95 % over {later.weeks} weeks. {RULE}",
    ]


def _kept(ours: Mapping[str, float], base: Mapping[str, float], margin: float) -> bool:
    """Did the pair keep on the later weeks the limit under which it was chosen?"""
    within = all(ours[wait] <= (1.0 + margin) * base[wait] for wait in WAITS)
    return within and ours["longest_wait_s"] <= LONGEST * base["longest_wait_s"]


def _times(ours: float, base: float) -> str:
    divisor, unit = scale("s", max(ours, base))
    return f"{among('s', ours, divisor)} in place of {among('s', base, divisor, unit)}"


def _drawn(pair: Judged) -> str:
    energy = f"energy {_interval(pair.energy)}"
    return energy if pair.cost is None else f"cost {_interval(pair.cost)}, {energy}"


def _interval(found: Ratio) -> str:
    value, low, high = (percent(float(one) - 1.0) for one in found if one is not None)
    return f"{value} [{low}, {high}]"


def shown(found: Frontier) -> list[str]:
    """The pairs to choose from: the reference, the cheapest within each limit, and those on the frontier."""
    return list(dict.fromkeys([found.reference, *map(found.cheapest, MARGINS), *found.undominated()]))


def _limit(margin: float) -> str:
    return "waits no longer" if margin == 0.0 else f"waits at most {100 * margin:g} % longer"


def _saves(found: Frontier, name: str) -> str:
    if name == found.reference:
        return f"no pair {LESS[found.least]}"
    ours, base = found.summaries[name], found.summaries[found.reference]
    energy = f"the energy by {percent(ours['energy_j'] / base['energy_j'] - 1.0)}"
    if COST not in base or not base[COST]:
        return f"{name} changes {energy}"
    return f"{name} changes the cost by {percent(ours[COST] / base[COST] - 1.0)}, {energy}"


def rows(found: Frontier, names: Sequence[str], currency: str = "") -> Table:
    """Pairs with their energy and waits, the changes against the reference under each value. currency: of costs."""
    base = found.summaries[found.reference]
    columns, headers = [], [("Policy", "", "")]
    notes = {name: "on the hull" if name in found.hull() else "" for name in names}
    least = quantity(found.least).name.lower()
    notes |= {found.cheapest(margin): f"least {least}, {_limit(margin)}" for margin in reversed(MARGINS)}
    notes |= {found.reference: "reference"}
    for metric in (metric for metric in SHOWN if metric in base):
        values = [float(found.summaries[name][metric]) for name in names]
        divisor, unit = scale(quantity(metric).kind, max(map(abs, values)))
        headers.append((quantity(metric).name, currency if metric == COST else unit, quantity(metric).meaning))
        changes = [float(value) / float(base[metric]) - 1.0 if base[metric] else float("nan") for value in values]
        columns.append(
            [
                Cell(among(quantity(metric).kind, value, divisor), percent(change))
                for value, change in zip(values, changes, strict=True)
            ]
        )
    who = [Cell(marks.shown(n, found.knows), notes[n], plain=True) for n in names]
    return Table(
        headers,
        list(zip(who, *columns, strict=True)),
        f"Changes are against {found.reference}. On the hull: no mixture of two is better.",
    )


def _form(k: int, colour: str, edge: str) -> dict[str, Any]:
    """How the k-th shutdown policy is drawn. edge: the colour around a full form."""
    form: dict[str, Any] = {"marker": MARKERS[k % len(MARKERS)], "linestyle": "none", "color": colour, "markersize": 6}
    if k // len(MARKERS) % 2 == 1:
        return form | {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.2}
    return form | {"markeredgecolor": edge, "markeredgewidth": 0.5}


@styled
def picture(found: Frontier, wait: str = "mean_wait_s") -> Figure:
    """Energy against wait: a colour a scheduler, a form a shutdown policy; the line joins the pairs that no other beats
    in both."""
    points = found.points(wait)
    divisor, unit = scale("s", max(x for x, _ in points.values()))
    base = points[found.reference][1]
    at = {name: (x / divisor, 100.0 * (y / base - 1.0)) for name, (x, y) in points.items()}
    parts = {name: name.split(" + ") for name in points}
    schedulers = list(dict.fromkeys(scheduler for scheduler, _ in parts.values()))
    shutdowns = list(dict.fromkeys(shutdown for _, shutdown in parts.values()))
    figure = Figure(figsize=(_WIDTH, 4.6))
    axes = figure.subplots()
    line = np.array(sorted(at[name] for name in found.undominated(wait)))
    axes.step(line[:, 0], line[:, 1], where="post", color=INK, alpha=0.5, linewidth=1.0, zorder=1)
    for name, (scheduler, shutdown) in parts.items():
        form = _form(shutdowns.index(shutdown), policy_colour(schedulers.index(scheduler)), INK)
        axes.plot(*at[name], **form, zorder=3)
    axes.set(xlabel=f"{quantity(wait).name} ({unit})", ylabel=f"Energy against {found.reference} (%)")
    axes.margins(x=0.08, y=0.1)
    names = [Line2D([], [], marker="o", ls="", color=policy_colour(k), label=name) for k, name in enumerate(schedulers)]
    forms = [
        Line2D([], [], **_form(k, "#777777", "#777777"), label=marks.named(name)) for k, name in enumerate(shutdowns)
    ]
    figure.legend(handles=[*names, *forms], loc="outside right upper")
    chosen = {found.cheapest(margin): _limit(margin) for margin in reversed(MARGINS)} | {found.reference: "reference"}
    beside(axes, list(at.values()), [chosen.get(n, "") for n in at], [INK] * len(at), size=7.5, lines=[line.tolist()])
    return figure


def sections(
    found: Frontier, power: str, *, price: float | None = None, carbon: float | None = None, currency: str = ""
) -> list[Section]:
    """The parts of a page, the picture first. power: whose watts; price (of a kWh, in `currency`), carbon (g CO2 of a
    kWh): what a year saves in these as well."""
    chosen, every = shown(found), list(found.summaries)
    yearly = {name: found.summaries[name] for name in chosen}
    waits = {marks.shown(name, found.knows): found.waits[name] for name in chosen if name in found.waits}
    what = "the whole log" if found.later is None else "the past"
    return [
        Section("Energy against wait", "", [], [(picture(found), f"Each point is a replay of {what}; {power}.")]),
        Section("The pairs to choose from", "", [rows(found, chosen, currency)]),
        Section(
            "A year of them",
            "",
            [operator.year_table(yearly, found.reference, price=price, carbon=carbon, currency=currency)],
        ),
        *([Section("Wait: the log's own and its replays'", "", recorded.tables(waits))] if waits else []),
        Section("Against the 95th percentile of the wait", "", [], [(picture(found, WAITS[1]), "The same pairs.")]),
        Section("All pairs", "", [rows(found, every, currency)]),
    ]


def write_page(found: Frontier, path: Path, about: str, power: str, **operator: Any) -> None:
    """Write the page. about: the log and the machine, in a sentence; the rest: see `sections`."""
    best = found.cheapest(MARGINS[-1])
    title = "Energy against wait"
    if found.later is not None:
        least = next((name for name in map(found.cheapest, MARGINS) if name != found.reference), None)
        title += " on later weeks" + ("" if least is None else f": {least}, {_drawn(found.later.pairs[least])}")
    elif best != found.reference:
        title += f": {_saves(found, best)}, with {_limit(MARGINS[-1])}"
    notes = [
        *sentences(found),
        *unseen.sentences(found.unseen),
        about,
        power,
        *filter(None, [marks.legend(found.knows)]),
    ]
    write_report(path, {}, title=title, notes=notes, sections=sections(found, power, **operator))
