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
KINDS = {
    "nothing": ("turns", "global", "in turns, global information"),
    "nothing-local": ("turns", "local", "in turns, local information"),
    "nothing-shared": ("shared", "global", "shared parameters"),
    "nothing-simultaneous": ("simultaneous", "global", "all at once"),
}
"""Kind of cells -> mode, information, and how such teams learn in words."""
PRINTED = "printed"
TOLD = {kind: told for kind, (_, _, told) in KINDS.items()} | {PRINTED: "R4's own settings"}
IDENTS = {
    "nothing": "global",
    "nothing-local": "local",
    "nothing-shared": "shared",
    "nothing-simultaneous": "simultaneous",
    PRINTED: "printed",
}
"""Kind of cells -> its word in the ids of claims."""
NEAR = 1.05  # of SJF's mean slowdown


def judged_table(cells: Cells) -> pl.DataFrame:
    """One row a look: how many decisions a team had learnt from, and its mean slowdown as a multiple of SJF's."""
    schema = {"learns": pl.String, "seed": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    rows = []
    for kind, told in TOLD.items():
        for name in seeds_of(cells, f"{kind}/{SHAPE}"):
            seed = int(name.rsplit("/", 1)[1])
            rows += [{"learns": told, "seed": seed, "step": step, "value": value} for step, value in cells[name]["judged"]]
    return pl.DataFrame(rows, schema=schema)


def claims(loads: Sequence[int], cells: Cells) -> list[Claim]:
    """Learnt from nothing against the best of R4's heuristics, local against global information, other ways to learn against turns, and how
    soon each is near SJF."""
    names = {kind: seeds_of(cells, f"{kind}/{SHAPE}") for kind in TOLD}
    table, out = judged_table(cells), []
    for kind, its in names.items():
        ident = f"r4.nothing.{IDENTS[kind]}"
        for load in loads if its else ():
            rule, theirs = best_of(cells, SHAPE, load)
            text = f"mean slowdown of 3 x 1 that learnt from nothing, {TOLD[kind]}, against the best heuristic, load {load} %"
            note = f"best: {rule}{label(load)}"
            ours, drawn = values(cells, its, load, "likeliest"), values(cells, its, load, "sampled")
            out.append(claim(f"{ident}.{load}", text, ours, theirs, 0.02, note))
            out.append(claim(f"{ident}.{load}.sampled", f"{text}, sampled actions", drawn, theirs[: drawn.shape[1]], 0.02, note))
        points = table.filter(pl.col("learns") == TOLD[kind])
        if points.height:
            out += [_after(kind, points), _soon(kind, points)]
    for kind, ident, note in (
        ("nothing-local", "local_vs_global", "the paper: no large difference at the end; holds: at most 5 % worse"),
        ("nothing-shared", "shared_vs_turns", "beyond the paper; holds: at most 5 % worse"),
        ("nothing-simultaneous", "simultaneous_vs_turns", "beyond the paper; holds: at most 5 % worse"),
    ):
        for load in loads if names[kind] and names["nothing"] else ():
            ours, whole = (values(cells, names[which], load, "sampled") for which in (kind, "nothing"))
            text = f"mean slowdown of teams that learnt from nothing, {TOLD[kind]} against {TOLD['nothing']}, sampled, 3 x 1, load {load} %"
            out.append(claim(f"r4.nothing.{ident}.{load}", text, ours, whole, 0.05, f"{note}{label(load)}"))
    return out


def _after(kind: str, points: pl.DataFrame) -> Claim:
    """How far teams are after a fifth of the training: the last look until then, of each seed."""
    until = int(points["step"].to_numpy().max()) // 5
    early = points.filter(pl.col("step") <= until).sort("step").group_by("seed").agg(pl.col("value").last())["value"].to_list()
    text = f"sampled actions after {until} decisions as a multiple of SJF, mean of loads 50 and 90 %, {TOLD[kind]}, 3 x 1"
    known = sorted(value for value in early if value is not None)
    told = [f"{value:.2f}" for value in known] + ["does not end"] * (len(early) - len(known))
    note = f"seeds: {', '.join(told)}; the paper: global is faster than local"
    mean, low, high = (float(np.mean(known)), known[0], known[-1]) if len(known) == len(early) else (None, None, None)
    return Claim(f"r4.nothing.early.{IDENTS[kind]}", text, None, mean, low, high, "multiple", len(early), 0, None, note)


def _soon(kind: str, points: pl.DataFrame) -> Claim:
    """Decisions of training, of all agents together, until a team is near SJF for the first time."""
    first = points.filter(pl.col("value") <= NEAR).group_by("seed").agg(pl.col("step").min())["step"].sort().to_list()
    seeds = points["seed"].n_unique()
    never = "" if len(first) == seeds else f" ({seeds - len(first)} never)"
    note = f"seeds: {', '.join(map(str, first)) or 'none'}{never}; the paper: global is faster than local"
    text = f"decisions until sampled actions are within 5 % of SJF, mean of loads 50 and 90 %, {TOLD[kind]}, 3 x 1"
    mean = None if never else float(np.mean(first))
    return Claim(f"r4.nothing.decisions.{IDENTS[kind]}", text, None, mean, None, None, "decisions", seeds, 0, None, note)


def write_figures(out: Path, curve: pl.DataFrame, judged: pl.DataFrame) -> None:
    """R4's figures 2 and 3 (return of each agent while it learns), and every way to learn against SJF."""
    from escala.report import curves, save

    for kind, name in (("nothing", "fig2-global"), ("nothing-local", "fig3-local")):
        points = curve.filter((pl.col("kind") == kind) & (pl.col("shape") == SHAPE)).with_columns(line=pl.format("agent {}", "agent"))
        if points.height:
            label = "Return per episode\n(weighed by SJF's loss)"
            training = curves.Training(points, {}, label, f"Three agents learning {TOLD[kind]}")
            save(curves.learning_curve(training), out / "figures" / name)
    if judged.height:
        points = judged.rename({"learns": "line"})
        label, title = "Mean slowdown, multiple of SJF's", "Teams that learn from nothing"
        training = curves.Training(points, {"SJF": 1.0}, label, title, less_is_better=True)
        save(curves.learning_curve(training), out / "figures" / "learning")
