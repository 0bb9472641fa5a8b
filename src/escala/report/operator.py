"""What an operator of a cluster asks: energy by state, waits, and what a year under each policy costs or saves; of runs
over the same jobs, or of days that were judged one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from escala.errors import EscalaError
from escala.report.quantities import Quantity, among, count, number, quantity, scale
from escala.report.tables import Cell, Table

Summary = Mapping[str, float | int]
STATES = ("computing", "idle", "switching_off", "switching_on", "off")
WAITS = ("mean_wait_s", "mean_stretch", "mean_delay_s")
OF_DAYS = ("energy_j", *WAITS, *(f"{state}_j" for state in STATES), "waste_j", "transitions")
UNSTARTED = "unstarted_share"
DID_NOT_START = Quantity("Did not start", "%", "less", "share of the jobs that did not start in the measured time")
DAY_S = 86400.0
YEAR_S = 365.25 * DAY_S
J_PER_KWH = 3.6e6


@dataclass(frozen=True)
class JudgedDays:
    """Policies judged over the same days.

    rows: one for each policy, day and run: policy, day (NAME#k, k the number of the day in its log) and the columns
    `OF_DAYS`; jobs and unstarted tell the share of jobs that did not start. reference: what is saved is saved against
    this policy, the first by default. cut: days end at midnight, so that policies may leave jobs undone. title: of the
    part of the page. power: whose watts the energies rest on, in one line.
    """

    rows: pl.DataFrame
    reference: str | None = None
    cut: bool = False
    title: str = "For the operator: energy, waits, and a year of such days"
    power: str = ""

    @property
    def whole(self) -> bool:
        """Are all columns there? Evaluations of earlier versions kept no energy by state."""
        return not {"policy", "day", *OF_DAYS} - set(self.rows.columns)

    @property
    def judged(self) -> int:
        """Number of days."""
        return self.rows["day"].n_unique()

    @property
    def calendar(self) -> int:
        """Days from the first to the last of them, those between that were not judged too; as many as were judged where
        names do not tell."""
        numbers = self.rows["day"].unique().str.extract(r"#(-?\d+)$").cast(pl.Int64).to_list()
        return self.judged if None in numbers or not numbers else max(numbers) - min(numbers) + 1

    def summaries(self) -> dict[str, dict[str, float]]:
        """Policy -> means over days and runs, and the span (`window_s`) that the energy of a mean day stands for: more
        than a day where days between were not judged."""
        out = {}
        for (name,), rows in self.rows.group_by("policy", maintain_order=True):
            means = rows.select(pl.col(metric).cast(pl.Float64).mean() for metric in OF_DAYS)
            summary = {metric: float(mean or 0.0) for metric, mean in means.row(0, named=True).items()}
            if {"jobs", "unstarted"} <= set(rows.columns):
                summary[UNSTARTED] = float(rows["unstarted"].sum()) / max(float(rows["jobs"].sum()), 1.0)
            out[str(name)] = summary | {"window_s": DAY_S * self.calendar / self.judged}
        return out


def year(
    summary: Summary, reference: Summary, *, price: float | None = None, carbon: float | None = None
) -> dict[str, float]:
    """A year at this run's load: energy, and what is saved against the reference.

    The runs are of the same jobs, so that their energies are compared as they are, and scaled by the reference's
    measured span: a policy that takes longer for the jobs must not look better for it. price: of a kWh, in any
    currency. carbon: g CO2 of a kWh. NaN where nothing was measured. Gives kwh, saved_kwh and, as far as given,
    saved_money, saved_co2_kg.
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


def energy_table(summaries: Mapping[str, Summary], *, exact: bool = True, caption: str = "") -> Table:
    """Energy by state, waste, switches and waits of each policy, and the share of jobs that did not start where it is
    known. exact: counts are whole; False for means of counts."""
    headers, columns = [("Policy", "", "")], [[Cell(name, plain=True) for name in summaries]]
    told = all(UNSTARTED in s for s in summaries.values())
    for metric in (*OF_DAYS, *([UNSTARTED] if told else [])):
        values = [float(s[metric]) for s in summaries.values()]
        what = DID_NOT_START if metric == UNSTARTED else quantity(metric)
        divisor, unit = scale(what.kind, max((abs(v) for v in values if math.isfinite(v)), default=0.0))
        headers.append((what.name, unit, what.meaning))
        columns.append([Cell(count(v) if what.kind == "n" and exact else among(what.kind, v, divisor)) for v in values])
    return Table(headers, list(zip(*columns, strict=True)), caption)


def year_table(
    summaries: Mapping[str, Summary],
    reference: str,
    *,
    price: float | None = None,
    carbon: float | None = None,
    currency: str = "",
    caption: str | None = None,
) -> Table:
    """A year under each policy, against the reference; see `year`. caption: how the year came to be, by default from
    one span."""
    base = summaries[reference]
    found = {name: year(s, base, price=price, carbon=carbon) for name, s in summaries.items()}
    span = float(base["window_s"]) / 86400.0
    headers = [("Policy", "", ""), ("Energy a year", "kWh", ""), ("Saved a year", "kWh", f"against {reference}")]
    if price is not None:
        headers.append(("Saved a year", currency or "money", f"at {price:g} {currency or 'a unit of money'} a kWh"))
    if carbon is not None:
        headers.append(("Saved a year", "kg CO2", f"at {carbon:g} g CO2 a kWh"))
    rows = [
        [
            Cell(name, "reference" if name == reference else "", plain=True),
            *(Cell(number(value)) for value in figures.values()),
        ]
        for name, figures in found.items()
    ]
    scaled = f"The measured {number(span)} days scaled to 365.25; the same jobs under every policy."
    return Table(headers, rows, f"{scaled if caption is None else caption} Nodes only: no cooling, no network.")


def tables_of_days(
    days: JudgedDays, *, price: float | None = None, carbon: float | None = None, currency: str = ""
) -> tuple[Table, Table] | None:
    """A mean day and a year of each policy; None where no energy was counted."""
    summaries = days.summaries() if days.whole else {}
    if not any(s["energy_j"] > 0.0 for s in summaries.values()):
        return None
    drawn = days.rows["seed"].n_unique() if "seed" in days.rows.columns else 1
    runs = f", and over {drawn} runs where actions are drawn" if drawn > 1 else ""
    mean = f"A mean day: means over {days.judged} days{runs}. Waits are of jobs that started."
    between = f" (on the other {days.calendar - days.judged} nothing is counted)" if days.calendar > days.judged else ""
    same = (
        "Days end at midnight, and jobs that run or wait then are cut: a policy that does less work needs less."
        if days.cut
        else "Each day runs to its last job under the slowest policy, the same jobs under each; nothing is counted "
        "before its first job or after that."
    )
    told = (
        f"{days.judged} days judged of the {days.calendar} from the first to the last of them{between}, scaled to "
        f"365.25. {same}"
    )
    reference = next(iter(summaries)) if days.reference is None else days.reference
    yearly = year_table(summaries, reference, price=price, carbon=carbon, currency=currency, caption=told)
    return energy_table(summaries, exact=False, caption=mean), yearly
