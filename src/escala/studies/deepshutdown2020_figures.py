"""Figures of the study `deepshutdown2020`, with their data as tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.metrics.jobs import by_class
from escala.studies import deepshutdown2020_headroom as headroom
from escala.studies.claims import by_policy, write_table
from escala.studies.deepshutdown2020_cells import RANDOM, SHOWN
from escala.studies.deepshutdown2020_claims import AGENT, idle_minute_j, seeds_of, tables

Cells = Mapping[str, Any]
EDGES_MIN = (0, 5, 10, 30, 60)


def write_figures(out: Path, cells: Cells, every: list[str], years: pl.DataFrame, frontier: pl.DataFrame) -> None:
    """All of them. years, frontier: the tables of these names."""
    from escala.report import plots, save, study_plots

    figures = out / "figures"
    if years.height:
        save(study_plots.yearly_shares(years), figures / "fig11")
    for name in every:
        frame = frontier.filter((pl.col("input") == name) & (pl.col("window") == "drain") & (pl.col("policy") != "timeout:300"))
        points = {row["policy"]: (row["stretch"], 1e3 * row["waste_kJ_a_day"]) for row in frame.iter_rows(named=True)}
        save(plots.frontier_of(points, "mean_stretch", "waste_j"), figures / f"frontier-{name}")
        _sums(cells, name, out)
        _classes_of_jobs(cells, name, out)
        _curve(cells, name, out)
        if f"headroom/{name}/rules" in cells:
            _possible(cells, name, figures)


def _sums(cells: Cells, name: str, out: Path) -> None:
    """R3 figure 20: waste summed over the training days, then over the held-out days, of each group of days (the author's own where there
    are some); days cut. The agent of the first seed on training days, the mean of all on held-out days."""
    from escala.report import save, study_plots

    about, train, test = cells[f"about/{name}"], cells[f"train/{name}"]["cut"], tables(cells, name, "cut")
    seen = {policy: train[policy]["waste_j"] for policy in SHOWN}
    seen[AGENT] = seeds_of(cells, name)[0]["train"]["cut"]["sampled"]["waste_j"]
    waste = {policy: [*values, *test[policy]["waste_j"].mean(axis=0)] for policy, values in seen.items()}
    parts = [about["train_groups"] or about["train"]["group"], about["groups"] or about["test"]["group"]]
    group, held = [*parts[0], *parts[1]], [False] * len(parts[0]) + [True] * len(parts[1])
    table = pl.DataFrame({"group": group, "held_out": held, **waste}).sort("group", "held_out", maintain_order=True)
    write_table(out, f"fig20-{name}", table)
    save(study_plots.sums_by_group(table, list(waste)), out / "figures" / f"fig20-{name}")


def _possible(cells: Cells, name: str, figures: Path) -> None:
    """Waste against stretch of each policy, and below it what no policy with the same waits can be below. Days run to completion."""
    from escala.report import plots, save

    rows = headroom.frame(cells, name).to_dicts()
    points = {row["policy"]: (row["stretch"], 1e3 * row["waste_kJ_a_day"]) for row in rows}
    points |= {f"bound at the waits of {row['policy']}": (row["stretch"], 1e3 * row["bound_kJ_a_day"]) for row in rows}
    save(plots.frontier_of(points, "mean_stretch", "waste_j"), figures / f"headroom-{name}")


def levels(cells: Cells, name: str) -> dict[str, float]:
    """What every constant choice, OR* and a random off-reservation return a validation day, as a search sees it: in idle minutes of the
    platform. Of the latter two a job's wait in walltimes is counted exactly, of constants minute by minute, as the reward has it."""
    cost, idle_j = seeds_of(cells, name)[0]["cost"], idle_minute_j(name, cells)
    constant = {p: (c["waste_j"], c["waited"]) for p, c in cells[f"levels/{name}"]["seen"].items()}
    fixed = {p: (c["waste_j"], c["stretch"]) for p, c in cells[f"seen/{name}"]["seen"].items()}
    return {p: float(-np.mean(np.array(waste) / idle_j + cost * np.array(waited))) for p, (waste, waited) in (constant | fixed).items()}


def _curve(cells: Cells, name: str, out: Path) -> None:
    """R3 figure 24: the validation days while searching, and the levels of other policies on them."""
    from escala.report import curves, save

    rows = [
        {"step": int(step), "value": value, "seed": k}
        for k, cell in enumerate(seeds_of(cells, name))
        for step, _, value in cell["curve"]
        if value is not None
    ]
    points = pl.DataFrame(rows)
    write_table(out, f"fig24-{name}", points)
    every = levels(cells, name)
    write_table(out, f"fig24-levels-{name}", pl.DataFrame({"policy": list(every), "value": list(every.values())}))
    best = max((policy for policy in every if policy.startswith("hold:")), key=lambda policy: every[policy])
    shown = {"timeout:0": every["hold:0"], "hold:0.25": every["hold:0.25"], f"{best}, the best constant": every[best]}
    shown |= {"oracle": every["oracle"], "random off-reservation": every[RANDOM]}
    label = "Return a validation day\n(idle minutes of the platform)"
    save(curves.learning_curve(curves.Training(points, shown, label, "Search by whole days")), out / "figures" / f"fig24-{name}")


def _classes_of_jobs(cells: Cells, name: str, out: Path) -> None:
    """R3 figures 22 and 23: slowdown by inter-arrival class; runtimes of the 10 000 most slowed jobs. Held-out days, cut; a job that did
    not start has waited until the day's end."""
    from escala.report import curves, save

    about = cells[f"about/{name}"]
    gap, runtime = np.array(about["gap_s"]) / 60.0, np.array(about["runtime_s"])
    slow = {policy: np.array(values) for policy, values in cells[f"fixed/{name}"]["jobs"].items()}
    slow[AGENT] = np.array(seeds_of(cells, name)[0]["test"]["jobs"])
    names = [f"[{a}, {b}) min" for a, b in pairwise(EDGES_MIN)] + [f">= {EDGES_MIN[-1]} min", "first of the day"]
    place = np.where(gap < 0, len(names) - 1, np.searchsorted(EDGES_MIN, gap, side="right") - 1)
    classes = pl.Series(np.array(names)[place], dtype=pl.Enum(names))
    kinds = ["< 1 min", "1 to 5 min", "5 to 30 min", "30 min to 2 h", "> 2 h"]
    lengths = np.array(kinds)[np.searchsorted([60.0, 300.0, 1800.0, 7200.0], runtime, side="right")]
    by_gap, by_length = {}, {}
    for policy, values in slow.items():
        by_gap[policy] = by_class(pl.Series(values), classes)
        worst = np.argsort(-values, kind="stable")[: min(10_000, max(1, len(values) // 4))]
        by_length[policy] = by_class(pl.Series(values[worst]), pl.Series(lengths[worst], dtype=pl.Enum(kinds)))
    write_table(out, f"fig22-{name}", by_policy(by_gap))
    write_table(out, f"fig23-{name}", by_policy(by_length))
    save(curves.by_class(by_gap, "bounded_slowdown", log=True), out / "figures" / f"fig22-{name}")
    save(curves.by_class(by_length, "bounded_slowdown", share=True), out / "figures" / f"fig23-{name}")
