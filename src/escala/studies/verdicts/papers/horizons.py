"""The sweep of horizons as a table of a paper's page."""

from __future__ import annotations

import polars as pl

from escala.studies.lab.open_end import LIGHT
from escala.studies.verdicts.figures import NONE, number, span
from escala.studies.verdicts.kept import Kept
from escala.studies.verdicts.row import CHANGE, Table
from escala.studies.verdicts.rule import Found

SAYS = (
    "Arrivals go on for longer, or shorter, than in training, and all jobs run to completion. Figures are the agent's "
    "mean slowdown against the best of three rules there: greedy SJF, strict SJF, and hold-back tuned for that load "
    "and horizon. These rules see nearly the whole queue (32 slots for each 100 steps), whatever the agent sees. None "
    "of them knows the end, nor does an agent whose name begins with open; the other agents are shown when arrivals "
    "end. Endless are the longest lists with their end not shown: for an agent that knows no end, the same runs. One "
    "training seed, greedy actions, intervals over lists. A figure above nothing says that a rule is better there."
)


def swept(kept: Kept, unit: str, says: str = SAYS) -> list[Table]:
    """One row an agent and load, a column a horizon; nothing where the sweep was not done. says: what stands before
    it."""
    table = kept.table("horizons")
    if table is None:
        return []
    horizons = table["horizon"].cast(str).unique(maintain_order=True).to_list()
    cells = []
    for name, load in table.select("agent", "load").unique(maintain_order=True).iter_rows():
        found = [_cell(kept, name, load, horizon) for horizon in horizons]
        cells.append([f"`{name}`", f"{load:g}{unit}", *found])
    return [Table("Shorter and longer horizons", says, ["agent", "load", *(f"{one}" for one in horizons)], cells)]


def _cell(kept: Kept, name: str, load: float, horizon: str) -> str:
    row = kept.row("horizons", agent=name, load=load, horizon=horizon)
    if row.get("excess") is None:
        return f"{row.get('unfinished', 0)} runs did not end"
    return span(Found(row["excess"], row["low"], row["high"]), CHANGE)


def told(kept: Kept, ident: str, others: str, least: float = 0.0) -> dict[str, str]:
    """Values of a page's text: of the agent that knows no end its name, the largest excess (the claim `ident`) and
    where it is, in how many cells from the load `least` on it is below every rule by the whole interval, and in how
    many above the best; of the `others`, whose names begin so, the largest excess, and the largest of greedy SJF in
    their slots. light, mark: the largest excess at loads below `least` of the agents of these loads (own: the first of
    them), and the aim there; unlearnt: that of the agent for all loads. Endless lists are no cells of an agent that
    knows no end."""
    found = {"open": "", "horizon": number(kept.claim(ident).ours, CHANGE)} | dict.fromkeys(
        ("where", "below", "above", "cells", "others", "seen"), NONE
    )
    found |= {
        "own": NONE,
        "unlearnt": NONE,
        "light": span(kept.claim(ident.replace("worst", "light")), CHANGE),
        "mark": number(LIGHT, CHANGE),
    }
    table = kept.table("horizons")
    if table is None:
        return found
    table = table.with_columns(pl.col("horizon").cast(pl.String)).drop_nulls("excess")
    light = table.filter(pl.col("agent").str.starts_with("open-") & (pl.col("load") < least))
    ours, rest = (table.filter(pl.col("agent").str.starts_with(kind)) for kind in ("open-", others))
    ours = ours.filter(pl.col("load") >= least).unique(("load", "steps"), keep="first", maintain_order=True)
    if len(ours):
        at = ours.row(int(ours["excess"].arg_max() or 0), named=True)
        found |= {
            "open": at["agent"],
            "where": f"load {at['load']:g}, horizon {at['horizon']}",
            "cells": str(len(ours)),
        }
        found |= {"below": str(int((ours["high"] < 0).sum())), "above": str(int((ours["low"] > 0).sum()))}
    for row in light.sort("excess").iter_rows(named=True):
        if row["agent"] == found["open"]:
            found["unlearnt"] = span(Found(row["excess"], row["low"], row["high"]), CHANGE)
        else:
            found["own"] = row["agent"]
    if len(rest):
        found["others"] = number(float(rest["excess"].max()), CHANGE)  # type: ignore[arg-type]
    if len(rest) and "sjf-seen" in rest.columns:
        best = pl.col("mean_slowdown") / (1.0 + pl.col("excess"))
        seen = rest.select(pl.col("sjf-seen") / best - 1.0).max().item()
        found["seen"] = number(float(seen), CHANGE)
    return found


def lost(kept: Kept, other: str, steps: int) -> str:
    """What not being told the end costs the agent that knows none, at a horizon where the agents whose names begin with
    `other` are at home: points of the head-room at each load, where the best schedules found are kept, else the largest
    relative change of mean slowdown."""
    table, room = kept.table("horizons"), kept.table("headroom")
    if table is None:
        return NONE
    at = table.filter(pl.col("horizon").cast(pl.String) == str(steps))
    told = at.filter(pl.col("agent").str.starts_with(other)).unique("load", keep="first", maintain_order=True)
    ours = at.filter(pl.col("agent").str.starts_with("open-")).select("load", mine="mean_slowdown")
    both = told.join(ours, on="load").sort("load").to_dicts()
    if not both or room is None:
        changes = [one["mine"] / one["mean_slowdown"] - 1.0 for one in both]
        return number(max(changes), CHANGE) if changes else NONE
    found = []
    for one in both:
        means = dict(room.filter(load=one["load"]).select("policy", "mean_slowdown").iter_rows())
        points = 100.0 * (one["mine"] - one["mean_slowdown"]) / (means["sjf"] - means["best found"])
        found.append(f"{round(points)}")
    loads = ", ".join(f"{one['load']:g}" for one in both)
    return f"{', '.join(found)} points at {loads} %"


def looked(kept: Kept) -> dict[str, str]:
    """Values of a page's text, from the table of looks at the agent that knows no end: decisions after which it is
    kept, and those of its whole training; its largest excess after either, on the lists kept for that choice."""
    table = kept.table("open")
    if table is None or not len(table):
        return dict.fromkeys(("after", "whole", "then", "last"), NONE)
    chosen = table.row(by_predicate=pl.col("chosen"), named=True)
    last = table.filter(seed=chosen["seed"]).sort("decisions").row(-1, named=True)
    return {
        "after": f"{chosen['decisions']:,}".replace(",", " "),
        "whole": f"{last['decisions']:,}".replace(",", " "),
        "then": number(chosen["worst"], CHANGE),
        "last": number(last["worst"], CHANGE),
    }
