"""The sweep of horizons as a table of a paper's page."""

from __future__ import annotations

from escala.studies.verdicts.figures import number, span
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.row import CHANGE, Table
from escala.studies.verdicts.rule import Found

SAYS = (
    "Arrivals go on for longer, or shorter, than in training, and all jobs run to completion. Figures are the agent's mean slowdown "
    "against the best of three rules there: greedy SJF, strict SJF, and hold-back tuned for that load and horizon. None of the rules "
    "knows the end. The agent is shown when arrivals end; endless are the longest lists with their end not shown. One training seed, "
    "greedy actions, intervals over lists. A figure above nothing says that a rule is better there."
)


def swept(kept: Kept, unit: str) -> list[Table]:
    """One row an agent and load, a column a horizon; nothing where the sweep was not done."""
    table = kept.table("horizons")
    if table is None:
        return []
    horizons = table["horizon"].cast(str).unique(maintain_order=True).to_list()
    cells = []
    for name, load in table.select("agent", "load").unique(maintain_order=True).iter_rows():
        found = [_cell(kept, name, load, horizon) for horizon in horizons]
        cells.append([f"`{name}`", f"{load:g}{unit}", *found])
    return [Table("Shorter and longer horizons", SAYS, ["agent", "load", *(f"{one}" for one in horizons)], cells)]


def _cell(kept: Kept, name: str, load: float, horizon: str) -> str:
    row = kept.row("horizons", agent=name, load=load, horizon=horizon)
    if row.get("excess") is None:
        return f"{row.get('unfinished', 0)} runs did not end"
    return span(Found(row["excess"], row["low"], row["high"]), CHANGE)


def worst(kept: Kept, ident: str) -> str:
    """The claim of the largest excess, in words."""
    found = kept.claim(ident)
    return number(found.ours, CHANGE)
