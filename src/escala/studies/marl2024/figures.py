"""The figures of `marl2024`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs import multi
from escala.studies.marl2024.values import APART

FIGURE_4 = ("sjf", "tetris", "tetris-normalised", "packer", "random", "dense")
FAR = ("tetris", "packer", "random")  # left out of the relative figure, in which percents tell


def write_figures(out: Path, scale: Any, table: pl.DataFrame, seeds: pl.DataFrame, kinds: Mapping[str, str]) -> None:
    """Figures 1 and 4, and how teams grow, where there is something to show. seeds: one row a training and load; kinds:
    names of the kinds of teams."""
    from escala.report import curves, save, study_plots

    (out / "figures").mkdir(exist_ok=True)
    sjf = table.filter(pl.col("policy") == "sjf").select("shape", "load", sjf="mean_slowdown")
    every = table.join(sjf, on=["shape", "load"]).with_columns(
        relative_slowdown=pl.col("mean_slowdown") / pl.col("sjf")
    )
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        names = (*FIGURE_4, *(f"{kinds[kind]}, likeliest" for kind in ("team", "ahead")))
        shown = every.filter((pl.col("shape") == shape) & pl.col("policy").is_in(names)).with_columns(
            mean_slowdown_low=pl.col("mean_slowdown") - pl.col("half_interval"),
            mean_slowdown_high=pl.col("mean_slowdown") + pl.col("half_interval"),
        )
        # one look in all
        shown = shown.sort(pl.col("policy").replace_strict(dict(zip(names, range(len(names)), strict=True))), "load")
        near = shown.filter(~pl.col("policy").is_in(FAR))
        if shown.height:
            label = "Offered load, plain (%); overload above 70"
            save(
                curves.against(shown, "load", ["mean_slowdown"], x_label=label, log=True),
                out / "figures" / f"fig4-{shape}",
            )
            figure = curves.against(near, "load", ["relative_slowdown"], x_label=label)
            figure.axes[0].set_ylabel("Mean slowdown,\nmultiple of SJF's")
            save(figure, out / "figures" / f"fig4-{shape}-relative")
    _growth(out, seeds)
    agents, machines = scale.shapes[0]
    game = multi.batch(1, agents=agents, machines=machines, load=0.9, lists=1)
    turn = game.new_turn()
    game.restart(np.zeros(1, np.int64), turn, {"list": 0})
    choice = np.zeros(1, np.int64)
    for _ in range(40 * agents):
        game.decide("sjf", choice)
        game.step(choice, turn)
    parts = [f"agent {a}: its machine{'s' if machines > 1 else ''}, each kind of resource" for a in range(agents)]
    kinds_of = len(game.games.scale)
    parts += [
        f"shared slots, resource kind {k + 1}{'; on the right the backlog' if k == 0 else ''}" for k in range(kinds_of)
    ]
    save(study_plots.frames(np.split(game.frame(0), len(parts)), parts), out / "figures" / "fig1")


def _growth(out: Path, seeds: pl.DataFrame) -> None:
    """Slowdown against that of the best heuristic in the same turns, by the number of machines: mean of the seeds, from
    the best to the worst of them shaded."""
    from escala.report import curves, save

    ratio = pl.col("mean_slowdown") / pl.col("best_slowdown")
    points = (
        seeds.filter(pl.col("kind").is_in(["growth", "central"]) & pl.col("load").is_in(APART))
        .with_columns(machines=pl.col("shape").str.split("x").list.first().cast(pl.Int64), ratio=ratio)
        .group_by("kind", "load", "machines", maintain_order=True)
        .agg(ratio=pl.col("ratio").mean(), ratio_low=pl.col("ratio").min(), ratio_high=pl.col("ratio").max())
        .with_columns(
            policy=pl.col("kind").replace({"growth": "team", "central": "one learner"})
            + pl.format(", load {} %", "load")
        )
        .sort("policy", "machines")
    )
    if points.height:
        figure = curves.against(
            points, "machines", ["ratio"], x_label="Agents of one machine, or machines of one learner"
        )
        figure.axes[0].set_ylabel("Mean slowdown, multiple of the\nbest heuristic's in the same turns")
        save(figure, out / "figures" / "growth")
