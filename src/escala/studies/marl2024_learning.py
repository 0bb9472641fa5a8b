"""Do teams of `marl2024` learn from nothing, as R4's do? And does it help to see all machines (R4's figures 2 and 3)?

While they learn, teams are judged on validation lists of loads 50 and 90 %: sampled actions, run to completion, against SJF on the same
lists. What they are paid cannot be compared: rewards of global and local information are sums over different jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from escala.studies.claims import Claim
from escala.studies.marl2024_values import Cells, best_of, claim, label, seeds_of, values

SHAPE = "3x1"
KINDS = {"global": "nothing", "local": "nothing-local"}  # information -> kind of cells
NEAR = 1.05  # of SJF's mean slowdown


def judged_table(cells: Cells) -> pl.DataFrame:
    """One row a look: how many decisions a team had learnt from, and its mean slowdown as a multiple of SJF's."""
    schema = {"information": pl.String, "seed": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    rows = []
    for information, kind in KINDS.items():
        for name in seeds_of(cells, f"{kind}/{SHAPE}"):
            seed = int(name.rsplit("/", 1)[1])
            rows += [{"information": information, "seed": seed, "step": step, "value": value} for step, value in cells[name]["judged"]]
    return pl.DataFrame(rows, schema=schema)


def claims(loads: Sequence[int], cells: Cells) -> list[Claim]:
    """Learnt from nothing against the best of R4's heuristics, local against global information, and how soon each is near SJF."""
    names = {information: seeds_of(cells, f"{kind}/{SHAPE}") for information, kind in KINDS.items()}
    table, out = judged_table(cells), []
    for information, its in names.items():
        for load in loads if its else ():
            rule, theirs = best_of(cells, SHAPE, load)
            ours = values(cells, its, load, "likeliest")
            text = f"mean slowdown of 3 x 1 that learnt from nothing, {information} information, against the best heuristic, load {load} %"
            out.append(claim(f"r4.nothing.{information}.{load}", text, ours, theirs, 0.02, f"best: {rule}{label(load)}"))
            drawn = values(cells, its, load, "sampled")
            ident = f"r4.nothing.{information}.{load}.sampled"
            out.append(claim(ident, f"{text}, sampled actions", drawn, theirs[: drawn.shape[1]], 0.02, f"best: {rule}{label(load)}"))
        if its:
            out.append(_after(information, table.filter(pl.col("information") == information)))
            out.append(_soon(information, table.filter(pl.col("information") == information)))
    for load in loads if all(names.values()) else ():
        local, whole = (values(cells, names[information], load, "likeliest") for information in ("local", "global"))
        if not np.isnan(whole).any():
            text = f"mean slowdown of teams that learnt from nothing, local information against global, 3 x 1, load {load} %"
            note = f"the paper: no large difference at the end; holds: at most 5 % worse{label(load)}"
            out.append(claim(f"r4.nothing.local_vs_global.{load}", text, local, whole, 0.05, note))
    return out


def _after(information: str, points: pl.DataFrame) -> Claim:
    """How far teams are after a fifth of the training: the last look until then, of each seed."""
    until = int(points["step"].to_numpy().max()) // 5
    early = points.filter(pl.col("step") <= until).sort("step").group_by("seed").agg(pl.col("value").last())["value"].to_numpy()
    text = f"sampled actions after {until} decisions as a multiple of SJF, mean of loads 50 and 90 %, {information} information, 3 x 1"
    note = f"seeds: {', '.join(f'{value:.2f}' for value in sorted(early))}; the paper: global is faster"
    mean, low, high = float(early.mean()), float(early.min()), float(early.max())
    return Claim(f"r4.nothing.early.{information}", text, None, mean, low, high, "multiple", len(early), 0, None, note)


def _soon(information: str, points: pl.DataFrame) -> Claim:
    """Decisions of training, of all agents together, until a team is near SJF for the first time."""
    first = points.filter(pl.col("value") <= NEAR).group_by("seed").agg(pl.col("step").min())["step"].sort().to_list()
    seeds = points["seed"].n_unique()
    never = "" if len(first) == seeds else f" ({seeds - len(first)} never)"
    note = f"seeds: {', '.join(map(str, first)) or 'none'}{never}; the paper: global is faster"
    text = f"decisions until sampled actions are within 5 % of SJF, mean of loads 50 and 90 %, {information} information, 3 x 1"
    mean = None if never else float(np.mean(first))
    return Claim(f"r4.nothing.decisions.{information}", text, None, mean, None, None, "decisions", seeds, 0, None, note)


def write_figures(out: Path, curve: pl.DataFrame, judged: pl.DataFrame) -> None:
    """R4's figures 2 and 3 (return of each agent while it learns), and both kinds of information against SJF."""
    from escala.report import curves, save

    for (information, kind), name in zip(KINDS.items(), ("fig2-global", "fig3-local"), strict=True):
        points = curve.filter((pl.col("kind") == kind) & (pl.col("shape") == SHAPE)).with_columns(line=pl.format("agent {}", "agent"))
        if points.height:
            label = "Return per episode\n(weighed by SJF's loss)"
            training = curves.Training(points, {}, label, f"Three agents learning in turns, {information} information")
            save(curves.learning_curve(training), out / "figures" / name)
    if judged.height:
        points = judged.rename({"information": "line"}).with_columns(line=pl.col("line") + " information")
        training = curves.Training(points, {"SJF": 1.0}, "Mean slowdown, multiple of SJF's", "Teams that learn from nothing")
        save(curves.learning_curve(training), out / "figures" / "learning")
