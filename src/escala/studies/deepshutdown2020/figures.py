"""Figures of the study `deepshutdown2020`, with their data as tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from escala.metrics.jobs import boxes_by_class, by_class
from escala.report.marks import named
from escala.studies.deepshutdown2020 import headroom
from escala.studies.deepshutdown2020.cells import LOOKED_AT, RANDOM, SHOWN
from escala.studies.deepshutdown2020.returns import Measure, priced, printed
from escala.studies.deepshutdown2020.tables import AGENT, LEARNERS, Cells, idle_minute_j, learners_of, seeds_of, tables
from escala.studies.lab.claims import by_policy, write_table

EDGES_MIN = (0, 5, 10, 30, 60)
TIMES = {1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 36000.0: "10 h", 86400.0: "1 day"}
"""Ticks of figure 23, s."""
GAPS = "Time since the last submission"
"""Of what the classes of figure 22 are."""


def write_figures(out: Path, cells: Cells, every: list[str], years: pl.DataFrame, frontier: pl.DataFrame) -> None:
    """All of them. years, frontier: the tables of these names."""
    from escala.report import save, study_plots
    from escala.report.frontier_plots import waste_against_stretch

    figures = out / "figures"
    if years.height:
        save(study_plots.yearly_shares(years), figures / "fig11")
    for name in every:
        frame = frontier.filter((pl.col("input") == name) & (pl.col("policy") != "timeout:300"))
        windows = {"Days cut at 24 h": "cut", "Days run to completion": "drain"}
        panels = {title: frame.filter(pl.col("window") == window) for title, window in windows.items()}
        save(waste_against_stretch(panels), figures / f"frontier-{name}")
        _sums(cells, name, out)
        _classes_of_jobs(cells, name, out)
        _curve(cells, name, out)
        if f"headroom/{name}/rules" in cells:
            _possible(cells, name, figures)


def _sums(cells: Cells, name: str, out: Path) -> None:
    """R3 figure 20: waste summed over the training days, then over the held-out days, of each group of days (the
    author's own where there are some); days cut. The agent of the first seed on training days, the mean of all on
    held-out days."""
    from escala.report import save, study_plots

    about, train, test = cells[f"about/{name}"], cells[f"train/{name}"]["cut"], tables(cells, name, "cut")
    seen = {policy: train[policy]["waste_j"] for policy in SHOWN}
    seen[AGENT] = seeds_of(cells, name)[0]["train"]["cut"]["sampled"]["waste_j"]
    waste = {policy: [*values, *test[policy]["waste_j"].mean(axis=0)] for policy, values in seen.items()}
    parts = [about["train_groups"] or about["train"]["group"], about["groups"] or about["test"]["group"]]
    group, held = [*parts[0], *parts[1]], [False] * len(parts[0]) + [True] * len(parts[1])
    table = pl.DataFrame({"group": group, "held_out": held, **waste}).sort("group", "held_out", maintain_order=True)
    write_table(out, f"fig20-{name}", table)
    save(
        study_plots.sums_by_group(table.rename(named), [named(policy) for policy in waste]),
        out / "figures" / f"fig20-{name}",
    )


def _possible(cells: Cells, name: str, figures: Path) -> None:
    """Waste against stretch of each policy, and below it what no policy with the same waits can be below. Days run to
    completion."""
    from escala.report import save
    from escala.report.frontier_plots import waste_above_bound

    rows = headroom.frame(cells, name)
    table = rows.select(
        "policy", "stretch", waste_j=1e3 * pl.col("waste_kJ_a_day"), bound=1e3 * pl.col("bound_kJ_a_day")
    )
    save(waste_above_bound(table, "waste_j"), figures / f"headroom-{name}")


def levels(cells: Cells, name: str, cost: float, every: int = 1) -> dict[str, float]:
    """What every constant choice, OR* and a random off-reservation return a validation day, as a search sees it: in
    idle minutes of the platform, a walltime waited at `cost`; every so many of the days. Of the latter two a job's wait
    in walltimes is counted exactly, of constants minute by minute, as the reward has it."""
    measure, idle_j = priced(cells, name, cost), idle_minute_j(cells, name)
    out = {
        policy: float(measure(columns)[::every].mean()) for policy, columns in cells[f"levels/{name}"]["seen"].items()
    }
    for policy, columns in cells[f"seen/{name}"]["seen"].items():
        returns = -(np.array(columns["waste_j"]) / idle_j + cost * np.array(columns["stretch"]))
        out[policy] = float(returns[::every].mean())
    return out


def levels_of_r3(cells: Cells, name: str, every: int = 1) -> dict[str, float]:
    """The same by R3's own reward, days cut: constant choices, OR*, and a random number of nodes held."""
    measure: Measure = printed(cells, name)
    found = cells[f"levels/{name}"]["cut"] | cells[f"chance/{name}"]
    return {policy: float(measure(columns)[::every].mean()) for policy, columns in found.items()}


def _curve(cells: Cells, name: str, out: Path) -> None:
    """R3 figure 24: the validation days while learning, and the levels of other policies on them: one panel a learner,
    each with its own days and reward."""
    from escala.report import curves, save

    by_search, by_r3 = (
        "Return a validation day\n(idle minutes of the platform)",
        "Return a validation day\n(R3's own reward)",
    )
    searched = seeds_of(cells, name)
    points = [
        (int(step), value, k)
        for k, cell in enumerate(searched)
        for step, _, value in cell["curve"]
        if value is not None
    ]
    found = [("search", "Search by whole days", by_search, points, levels(cells, name, searched[0]["cost"]))]
    for preset, seeds in learners_of(cells, name).items():
        points = [(int(step), value, k) for k, cell in enumerate(seeds) for step, value in cell["curve"]]
        cost = seeds[0]["cost"]
        told = levels(cells, name, cost, LOOKED_AT) if cost else levels_of_r3(cells, name, LOOKED_AT)
        title = f"{LEARNERS[preset]} (every {LOOKED_AT}th validation day{'' if cost else ', cut'})"
        found.append((preset, title, by_search if cost else by_r3, points, told))
    shown, rows, told_rows = [], [], []
    for learner, title, label, points, told in found:
        table = pl.DataFrame(points, schema={"step": pl.Int64, "value": pl.Float64, "seed": pl.Int64}, orient="row")
        rows.append(table.select(pl.lit(learner).alias("learner"), pl.all()))
        told_rows.append(
            pl.DataFrame({"learner": [learner] * len(told), "policy": list(told), "value": list(told.values())})
        )
        shown.append(
            curves.Training(table, {named(policy): value for policy, value in _chosen(told).items()}, label, title)
        )
    write_table(out, f"fig24-{name}", pl.concat(rows))
    write_table(out, f"fig24-levels-{name}", pl.concat(told_rows))
    save(curves.learning_curves(shown), out / "figures" / f"fig24-{name}")


def _chosen(told: dict[str, float]) -> dict[str, float]:
    """The levels that are drawn."""
    best = max((policy for policy in told if policy.startswith("hold:")), key=lambda policy: told[policy])
    shown = {"timeout:0": told["hold:0"], "hold:0.25": told["hold:0.25"], f"{best}, the best constant": told[best]}
    shown |= {"oracle": told["oracle"]} if "oracle" in told else {}
    return shown | {"random off-reservation": told[RANDOM]}


def _classes_of_jobs(cells: Cells, name: str, out: Path) -> None:
    """R3 figures 22 and 23, as distributions: slowdown by inter-arrival class, quartiles and whiskers; runtimes of the
    10 000 most slowed jobs, the share of them above each. Held-out days, cut; a job that did not start has waited until
    the day's end."""
    from escala.report import class_plots, plots, save

    about = cells[f"about/{name}"]
    gap, runtime = np.array(about["gap_s"]) / 60.0, np.array(about["runtime_s"])
    slow = {policy: np.array(values) for policy, values in cells[f"fixed/{name}"]["jobs"].items()}
    slow[AGENT] = np.array(seeds_of(cells, name)[0]["test"]["jobs"])
    names = [f"[{a}, {b}) min" for a, b in pairwise(EDGES_MIN)] + [f">= {EDGES_MIN[-1]} min", "first of the day"]
    place = np.where(gap < 0, len(names) - 1, np.searchsorted(EDGES_MIN, gap, side="right") - 1)
    classes = pl.Series(np.array(names)[place], dtype=pl.Enum(names))
    kinds = ["< 1 min", "1 to 5 min", "5 to 30 min", "30 min to 2 h", "> 2 h"]
    lengths = np.array(kinds)[np.searchsorted([60.0, 300.0, 1800.0, 7200.0], runtime, side="right")]
    by_gap, by_length, boxes, longest = {}, {}, {}, {}
    for policy, values in slow.items():
        boxes[named(policy)] = boxes_by_class(pl.Series(values), classes)
        spread = boxes[named(policy)].select("class", "low", "q1", "q3", "high")
        by_gap[policy] = by_class(pl.Series(values), classes).join(
            spread, on="class", how="left", maintain_order="left"
        )
        worst = np.argsort(-values, kind="stable")[: min(10_000, max(1, len(values) // 4))]
        longest[named(policy)] = pl.Series(runtime[worst])
        by_length[policy] = by_class(pl.Series(values[worst]), pl.Series(lengths[worst], dtype=pl.Enum(kinds)))
    write_table(out, f"fig22-{name}", by_policy(by_gap))
    write_table(out, f"fig23-{name}", by_policy(by_length))
    save(class_plots.boxes(boxes, "bounded_slowdown", x_label=GAPS, log=True), out / "figures" / f"fig22-{name}")
    figure = plots.distributions({"runtime_s": longest})
    axes = figure.axes[0]
    axes.set_xticks(list(TIMES), list(TIMES.values()))
    axes.minorticks_off()
    axes.set(xlabel="Runtime of the job", xlim=(runtime.min() / 1.2, runtime.max() * 1.2))
    save(figure, out / "figures" / f"fig23-{name}")
