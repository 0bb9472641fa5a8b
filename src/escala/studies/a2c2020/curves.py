"""Of `a2c2020` what happens in training: figures 3 and 4, and when the networks of table 3 had converged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.a2c2020.cells import TEST, lists_of, log_lists
from escala.studies.lab.claims import write_table
from escala.studies.lab.slotted import Cells, matrix, unfinished

ALONE, A2C, PRINTED = "PPO alone", "A2C, slot scorer", "A2C, Conv3-16 on the image"
BASELINES = ("random", "tetris", "sjf")
Lines = Mapping[str, list[list[str]]]
"""Learner -> for each budget the cells of its seeds."""
SHOWN = {"return": "Mean return of an episode", "slowdown": "Mean slowdown", "turnaround": "Mean completion (units)",
         "wait": "Mean wait (units)"}  # fmt: skip
"""The four curves of the paper's figures 3 and 4, by column."""
MARGIN, SMOOTH, LAST = 0.1, 5, 10
"""A training has converged once the mean of SMOOTH points of its return stays within MARGIN of its level, the mean of
the LAST points."""
WAYS = ("sampled", "likeliest")
SCHEMA = {"line": pl.String, "acting": pl.String, "chosen": pl.Boolean, "step": pl.Int64, "seed": pl.Int64,
          "unfinished": pl.Int64, **dict.fromkeys(SHOWN, pl.Float64)}  # fmt: skip


def best_way(cells: Cells, names: list[str]) -> str:
    """Sampled or greedy actions, by the mean on validation lists."""
    mean = {how: float(matrix(cells, names, "validation", how).mean()) for how in WAYS}
    return min(mean, key=lambda how: np.inf if np.isnan(mean[how]) else mean[how])


def converged_at(returns: list[list[float]]) -> int | None:
    """Decisions from which on a training's return stays within MARGIN of its final level. None: not before the points
    that make that level, or too few points to tell."""
    if len(returns) < SMOOTH + LAST:
        return None
    steps, values = np.array(returns, np.float64).T
    level = values[-LAST:].mean()
    means = np.convolve(values, np.full(SMOOTH, 1.0 / SMOOTH), "valid")  # of a point and the SMOOTH - 1 before it
    away = np.flatnonzero(np.abs(means - level) > MARGIN * abs(level))
    first = SMOOTH - 1 + (int(away[-1]) + 1 if away.size else 0)
    return int(steps[first]) if first < len(steps) - LAST else None


def training_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """What each network of table 3 earned while it learnt: the mean return of its last hundred episodes (windows of 50
    and 200 steps)."""
    rows = [
        {"line": name, "step": int(step), "seed": seed, "value": float(value)}
        for name in scale.networks
        for seed in range(scale.network_seeds)
        for step, value in cells[f"network/{name}/{seed}"]["returns"]
    ]
    return pl.DataFrame(rows, schema={"line": pl.String, "step": pl.Int64, "seed": pl.Int64, "value": pl.Float64})


def _point(cells: Cells, name: str, how: str, jobs: np.ndarray) -> dict[str, Any]:
    """One training judged by one way of acting; null where a run was not finished. jobs: in each list played."""
    values = {metric: matrix(cells, [name], how, metric)[0] for metric in ("slowdown", "turnaround", "wait")}
    left = unfinished(values["slowdown"])
    means: dict[str, float | None] = {metric: None if left else float(value.mean()) for metric, value in values.items()}
    means["return"] = None if left else float(-(jobs * values["slowdown"]).mean())
    return {"acting": how, "step": int(cells[name]["steps"]), "unfinished": left, **means}


def points_of(cells: Cells, lines: Lines, jobs: np.ndarray) -> pl.DataFrame:
    """Both ways of acting; `chosen`: the one that does better on validation lists, of all seeds of a budget together
    (null: there are none)."""
    rows = []
    for line, budgets in lines.items():
        for names in budgets:
            best = best_way(cells, names) if all("validation" in cells[name] for name in names) else None
            for how in WAYS:
                about = {"line": line, "chosen": None if best is None else how == best}
                rows += [_point(cells, name, how, jobs) | about | {"seed": seed} for seed, name in enumerate(names)]
    return pl.DataFrame(rows, schema=SCHEMA).sort("line", "acting", "step", "seed", maintain_order=True)


def _budgets(scale: Any, kind: str, budgets: tuple[int, ...]) -> list[list[str]]:
    return [[f"{kind}/{budget}/{seed}" for seed in range(scale.curve_seeds)] for budget in budgets]


def rate_points(scale: Any, cells: Cells, longest: Mapping[str, list[str]]) -> pl.DataFrame:
    """Figure 3: trainings of several budgets, on the test lists of one rate. longest: learner -> its cells that trained
    longest, which the tables have too."""
    kinds = {
        ALONE: ("curve-alone", scale.curve),
        A2C: ("curve-a2c", scale.curve),
        PRINTED: ("curve-image", scale.curve_image),
    }
    lines = {line: [*_budgets(scale, *kinds[line]), names] for line, names in longest.items() if line in kinds}
    return points_of(cells, lines, lists_of(scale.network_rate, scale.test, TEST).jobs_of)


def log_points(scale: Any, cells: Cells, log: Path | None) -> pl.DataFrame:
    """Figure 4: A2C from nothing, trained and tested on the log's jobs; there are no other lists to choose a way of
    acting on."""
    jobs = log_lists(None if log is None else str(log)).jobs_of[0]
    return points_of(cells, {A2C: _budgets(scale, "log-curve", scale.curve)}, np.full(scale.episodes, jobs))


def levels(rules: Mapping[str, Any], jobs: np.ndarray, chosen: Mapping[str, str]) -> pl.DataFrame:
    """The four figures of rules on the same lists, one row each. chosen: rule -> its name."""
    rows = []
    for rule, name in chosen.items():
        values = {metric: np.array(rules[rule][metric], np.float64) for metric in ("slowdown", "turnaround", "wait")}
        means = {metric: float(value.mean()) for metric, value in values.items()}
        rows.append({"policy": name, "return": float(-(jobs * values["slowdown"]).mean()), **means})
    return pl.DataFrame(rows)


def write_curves(out: Path, scale: Any, cells: Cells, longest: Mapping[str, list[str]], log: Path | None) -> None:
    """Figures 3 and 4, and the training of table 3's networks, as data and as pictures."""
    from escala.report import curves, save

    figures, rules = out / "figures", {rule: rule for rule in BASELINES}
    jobs = lists_of(scale.network_rate, scale.test, TEST).jobs_of
    points, lines = rate_points(scale, cells, longest), levels(cells[f"rules/{scale.network_rate}"], jobs, rules)
    write_table(out, "fig3", points)
    save(curves.learning_panels(points.filter("chosen"), lines, SHOWN, more_is_better=("return",)), figures / "fig3")
    points = log_points(scale, cells, log)
    sixty = int(log_lists(None if log is None else str(log)).jobs_of[0])
    lines = levels(cells["log/rules"], np.array([sixty]), rules)
    write_table(out, "fig4", points)
    both = points.with_columns(line=pl.format("{}, {}", "line", "acting"))
    save(curves.learning_panels(both, lines, SHOWN, more_is_better=("return",)), figures / "fig4")
    if scale.networks:
        training = training_frame(scale, cells)
        write_table(out, "training", training)
        if training.is_empty():  # too short for a single episode
            return
        label = "Mean return of the last hundred episodes (windows of 50 and 200 steps)"
        save(curves.learning_curve(curves.Training(training, {}, label)), figures / "training")
