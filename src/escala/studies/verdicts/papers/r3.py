"""What both studies of R3 (Casagrande, dissertation 2020) share: its clusters, and what stands in for their days."""

from __future__ import annotations

import polars as pl

from escala.studies.deepshutdown2020.paper import TABLE5
from escala.studies.verdicts.figures import NONE, span
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.row import Table

CLUSTERS = {"g5k": "Taurus", "orion": "Orion", "graphite": "Graphite", "econome": "Econome"}
"""Input -> the cluster whose days it has (g5k), or is like."""
AUTHOR = "g5k"
GENERATED = "this cluster's days are not public: days generated to be like them stand in"
CUT, DRAIN = "cut at 24 h", "run to completion"
ABOUT = (
    "Held-out days. Taurus: the author's own days, of an earlier split than the dissertation's; like Orion's, "
    "Graphite's or Econome's: days that are generated to be so. Cut: a day ends after 24 h; run to completion: when "
    "all of its jobs have ended."
)
WASTE, SWITCHES, STRETCH = 4, 8, 12
"""Places of the means in a row of table 5; each is followed by deviation, least and most."""


def stands_in(name: str) -> str:
    """Why an input's days are not the paper's; empty for the author's own."""
    return "" if name == AUTHOR else GENERATED


def printed(name: str, policy: str, quantity: int) -> float:
    """A mean of table 5 for an input's cluster."""
    return TABLE5[CLUSTERS[name], policy][quantity]


def printed_change(name: str, policy: str, reference: str, quantity: int) -> float:
    """The relative change between two policies that table 5 prints."""
    return printed(name, policy, quantity) / printed(name, reference, quantity) - 1.0


TENTH, SEEDS = 0.1, 3
"""Share of the paper's budget, and trainings, that would be worth having."""


def tenth(kept: Kept, table: str, budget: int) -> str:
    """Hours by the clock that so many trainings of a tenth of the budget take at the pace of the printed network that
    is kept; table: where its decisions and seconds stand."""
    rows = kept.table(table)
    if rows is None:
        return NONE
    rows = rows.filter(pl.col("setting" if "setting" in rows.columns else "preset") == "printed")
    if not len(rows):
        return NONE
    pace = float(rows["decisions"][0]) / float(rows["seconds"][0])
    return f"{SEEDS * TENTH * budget / pace / 3600:.0f} hours at its pace by the clock, {pace:.0f} decisions a second"


LENGTHS = (
    "The held-out part of each log, cut into episodes of so many days (whole: one episode, the whole part), nodes off "
    "at each start, every episode run to completion. The agents were searched on single days; they see the time of "
    "day, and nothing shows them how long an episode is. Rules play the same jobs. One seed, sampled actions; "
    "intervals over episodes, where there are five or more."
)


def swept(kept: Kept, says: str, shown: list[tuple[str, str, str, str]]) -> list[Table]:
    """One row an input and figure, a column a length of episodes; nothing where the sweep was not done. shown: policy,
    column of the table and its unit, and the figure in words."""
    table = kept.table("lengths")
    if table is None:
        return []
    lengths = table["days"].cast(str).unique(maintain_order=True).to_list()
    cells = []
    for name in table["input"].unique(maintain_order=True).to_list():
        for policy, column, unit, words in shown:
            found = [kept.cell("lengths", column, input=name, days=length, policy=policy) for length in lengths]
            cells.append([name, words, *(span(one, unit) if one.ours is not None else NONE for one in found)])
    head = ["input", "figure", *(f"{days} days" if days != "whole" else days for days in lengths)]
    return [Table("Shorter and longer episodes", f"{LENGTHS} {says}", head, cells)]
