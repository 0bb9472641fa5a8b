"""Do teams of `marl2024` learn from nothing, as R4's do? And does it help to see all machines (R4's figures 2 and 3)?

Each load has a team of its own (R4 does not say how it was there); R4's own settings learn all loads at once. While
they learn, teams are judged on validation lists: sampled actions, run to completion, against SJF on the same lists.
What they are paid cannot be compared: rewards of global and local information are sums over different jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from escala.studies.lab.claims import Claim
from escala.studies.marl2024.values import APART, Cells, best_of, claim, kept, label, seeds_of, values

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
ASKED = [*((kind, load) for kind in KINDS for load in APART), (PRINTED, None)]
"""Every kind of cells with its load; None: all."""
NEAR = 1.05  # of SJF's mean slowdown


def cells_of(cells: Cells, kind: str, load: int | None) -> list[str]:
    """The trainings of a kind: teams of one load, or (None) R4's settings, of which one team learns all loads."""
    return seeds_of(cells, f"{kind}/{SHAPE}" if load is None else f"{kind}-{load}/{SHAPE}")


def judged_table(cells: Cells) -> pl.DataFrame:
    """One row a look: how many decisions a team had learnt from, and its mean slowdown as a multiple of SJF's, on lists
    of its load (none: the mean of loads 50 and 90 %)."""
    schema = {"learns": pl.String, "load": pl.Int64, "seed": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    rows = []
    for kind, load in ASKED:
        for name in cells_of(cells, kind, load):
            seed = int(name.rsplit("/", 1)[1])
            rows += [
                {"learns": TOLD[kind], "load": load, "seed": seed, "step": step, "value": value}
                for step, value in cells[name]["judged"]
            ]
    return pl.DataFrame(rows, schema=schema)


def claims(loads: Sequence[int], cells: Cells) -> list[Claim]:
    """Learnt from nothing against the best of R4's heuristics, local against global information, other ways to learn
    against turns, and how soon each is near SJF."""
    table, out = judged_table(cells), []
    for kind, own in ASKED:
        names, ident = cells_of(cells, kind, own), f"r4.nothing.{IDENTS[kind]}"
        who = "one team for all loads" if own is None else "a team for this load"
        for load in [load for load in loads if names and own in (None, load)]:
            rule, theirs = best_of(cells, SHAPE, load)
            text = (
                f"mean slowdown of 3 x 1 that learnt from nothing, {TOLD[kind]}, against the best heuristic, load "
                f"{load} %"
            )
            note = f"best: {rule}; {who}{kept(cells, names, 'untrained')}{label(load)}"
            ours, drawn = values(cells, names, load, "likeliest"), values(cells, names, load, "sampled")
            out.append(claim(f"{ident}.{load}", text, ours, theirs, 0.02, note))
            out.append(
                claim(
                    f"{ident}.{load}.sampled", f"{text}, sampled actions", drawn, theirs[: drawn.shape[1]], 0.02, note
                )
            )
        points = table.filter((pl.col("learns") == TOLD[kind]) & pl.col("load").eq_missing(own))
        if points.height:
            out += [_after(kind, own, points), _soon(kind, own, points)]
    for kind, ident, note in (
        ("nothing-local", "local_vs_global", "the paper: no large difference at the end; aim: at most 5 % worse"),
        ("nothing-shared", "shared_vs_turns", "beyond the paper; aim: at most 5 % worse"),
        ("nothing-simultaneous", "simultaneous_vs_turns", "beyond the paper; aim: at most 5 % worse"),
    ):
        for load in [load for load in loads if cells_of(cells, kind, load) and cells_of(cells, "nothing", load)]:
            ours, whole = (values(cells, cells_of(cells, which, load), load, "sampled") for which in (kind, "nothing"))
            text = (
                f"mean slowdown of teams that learnt from nothing, {TOLD[kind]} against {TOLD['nothing']}, "
                f"sampled, 3 x 1, load {load} %"
            )
            out.append(claim(f"r4.nothing.{ident}.{load}", text, ours, whole, 0.05, f"{note}{label(load)}"))
    return out


def _where(kind: str, load: int | None) -> tuple[str, str]:
    """(end of a claim's id, on which lists it was looked) of a kind and load."""
    return (IDENTS[kind], "mean of loads 50 and 90 %") if load is None else (f"{IDENTS[kind]}.{load}", f"load {load} %")


def _after(kind: str, load: int | None, points: pl.DataFrame) -> Claim:
    """How far teams are after a fifth of the training: the last look until then, of each seed."""
    until = int(points["step"].to_numpy().max()) // 5
    early = (
        points.filter(pl.col("step") <= until)
        .sort("step")
        .group_by("seed")
        .agg(pl.col("value").last())["value"]
        .to_list()
    )
    ident, where = _where(kind, load)
    text = f"sampled actions after {until} decisions as a multiple of SJF, {where}, {TOLD[kind]}, 3 x 1"
    known = sorted(value for value in early if value is not None)
    told = [f"{value:.2f}" for value in known] + ["does not end"] * (len(early) - len(known))
    note = f"seeds: {', '.join(told)}; the paper: global is faster than local"
    mean, low, high = (float(np.mean(known)), known[0], known[-1]) if len(known) == len(early) else (None, None, None)
    return Claim(f"r4.nothing.early.{ident}", text, None, mean, low, high, "multiple", len(early), 0, None, note)


def _soon(kind: str, load: int | None, points: pl.DataFrame) -> Claim:
    """Decisions of training, of all agents together, until a team is near SJF for the first time."""
    first = points.filter(pl.col("value") <= NEAR).group_by("seed").agg(pl.col("step").min())["step"].sort().to_list()
    seeds = points["seed"].n_unique()
    never = "" if len(first) == seeds else f" ({seeds - len(first)} never)"
    note = f"seeds: {', '.join(map(str, first)) or 'none'}{never}; the paper: global is faster than local"
    ident, where = _where(kind, load)
    text = f"decisions until sampled actions are within 5 % of SJF, {where}, {TOLD[kind]}, 3 x 1"
    mean = None if never else float(np.mean(first))
    return Claim(f"r4.nothing.decisions.{ident}", text, None, mean, None, None, "decisions", seeds, 0, None, note)


def write_figures(out: Path, curve: pl.DataFrame, judged: pl.DataFrame) -> None:
    """R4's figures 2 and 3 (return of each agent while it learns, at the highest load), and every way to learn against
    SJF, by load."""
    from escala.report import curves, save

    for kind, name in (("nothing", "fig2-global"), ("nothing-local", "fig3-local")):
        points = curve.filter((pl.col("kind") == f"{kind}-{APART[-1]}") & (pl.col("shape") == SHAPE)).with_columns(
            line=pl.format("agent {}", "agent")
        )
        if points.height:
            label = "Return per episode\n(weighed by SJF's loss)"
            training = curves.Training(points, {}, label, f"Three agents learning {TOLD[kind]}, load {APART[-1]} %")
            save(curves.learning_curve(training), out / "figures" / name)
    for load in APART:
        points = judged.filter(pl.col("load") == load).rename({"learns": "line"})
        if points.height:
            label = f"Mean slowdown, multiple of SJF's, load {load} %"
            training = curves.Training(
                points, {"SJF": 1.0}, label, "Teams that learn from nothing", less_is_better=True
            )
            save(curves.learning_curve(training), out / "figures" / f"learning-{load}")
