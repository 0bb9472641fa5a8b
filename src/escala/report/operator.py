"""What an operator of a cluster asks: energy by state, waits, and what a year under each policy costs or saves."""

from __future__ import annotations

import math
from collections.abc import Mapping

from escala.errors import EscalaError
from escala.report.quantities import count, number, quantity, scale
from escala.report.tables import Cell, Table

Summary = Mapping[str, float | int]
STATES = ("computing", "idle", "switching_off", "switching_on", "off")
WAITS = ("mean_wait_s", "mean_stretch", "mean_delay_s")
YEAR_S = 365.25 * 86400.0
J_PER_KWH = 3.6e6


def year(summary: Summary, reference: Summary, *, price: float | None = None, carbon: float | None = None) -> dict[str, float]:
    """A year at this run's load: energy, and what is saved against the reference.

    The runs are of the same jobs, so that their energies are compared as they are, and scaled by the reference's measured span: a policy
    that takes longer for the jobs must not look better for it. price: of a kWh, in any currency. carbon: g CO2 of a kWh. NaN where
    nothing was measured. Gives kwh, saved_kwh and, as far as given, saved_money, saved_co2_kg.
    """
    for name, value in (("price", price), ("carbon", carbon)):
        if value is not None and not 0.0 <= value < math.inf:
            raise EscalaError(f"{name}={value}: give a number of at least 0")
    span = float(reference["window_s"])
    years = span / YEAR_S if span > 0.0 else math.nan
    kwh = float(summary["energy_j"]) / J_PER_KWH / years
    saved = float(reference["energy_j"]) / J_PER_KWH / years - kwh
    out = {"kwh": kwh, "saved_kwh": saved}
    if price is not None:
        out["saved_money"] = saved * price
    if carbon is not None:
        out["saved_co2_kg"] = saved * carbon / 1000.0
    return out


def energy_table(summaries: Mapping[str, Summary]) -> Table:
    """Energy by state, waste, switches and waits of each policy."""
    headers, columns = [("Policy", "", "")], [[Cell(name, plain=True) for name in summaries]]
    for metric in (*(f"{state}_j" for state in STATES), "energy_j", "waste_j", "transitions", *WAITS):
        values, what = [float(s[metric]) for s in summaries.values()], quantity(metric)
        divisor, unit = scale(what.kind, max((abs(v) for v in values if math.isfinite(v)), default=0.0))
        headers.append((what.name, unit, what.meaning))
        columns.append([Cell(count(v) if what.kind == "n" else number(v / divisor)) for v in values])
    return Table(headers, list(zip(*columns, strict=True)))


def year_table(
    summaries: Mapping[str, Summary], reference: str, *, price: float | None = None, carbon: float | None = None, currency: str = ""
) -> Table:
    """A year under each policy, against the reference; see `year`."""
    base = summaries[reference]
    found = {name: year(s, base, price=price, carbon=carbon) for name, s in summaries.items()}
    span = float(base["window_s"]) / 86400.0
    headers = [("Policy", "", ""), ("Energy a year", "kWh", ""), ("Saved a year", "kWh", f"against {reference}")]
    if price is not None:
        headers.append(("Saved a year", currency or "money", f"at {price:g} {currency or 'a unit of money'} a kWh"))
    if carbon is not None:
        headers.append(("Saved a year", "kg CO2", f"at {carbon:g} g CO2 a kWh"))
    rows = [
        [Cell(name, "reference" if name == reference else "", plain=True), *(Cell(number(value)) for value in figures.values())]
        for name, figures in found.items()
    ]
    caption = f"The measured {number(span)} days scaled to 365.25; the same jobs under every policy. Nodes only: no cooling, no network."
    return Table(headers, rows, caption)
