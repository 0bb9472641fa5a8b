"""The figures of `marl2024`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs import multi


def write_figures(out: Path, scale: Any, table: pl.DataFrame, kinds: Mapping[str, str]) -> None:
    """Figures 1 and 4 where there is something to show. kinds: names of the kinds of teams."""
    from escala.report import curves, save, study_plots

    (out / "figures").mkdir(exist_ok=True)
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        names: tuple[str, ...] = (
            "dense",
            "packer",
            "random",
            "sjf",
            "tetris-normalised",
            f"{kinds['team']}, likeliest",
        )
        if (agents, machines) in scale.ahead:
            names = ("dense", "random", "sjf", "tetris-normalised", *(f"{kinds[kind]}, likeliest" for kind in ("team", "ahead")))
        shown = table.filter((pl.col("shape") == shape) & pl.col("policy").is_in(names))
        if shown.height:
            save(curves.against(shown, "load", ["mean_slowdown"], x_label="Offered load, plain (%)"), out / "figures" / f"fig4-{shape}")
    agents, machines = scale.shapes[0]
    game = multi.batch(1, agents=agents, machines=machines, load=0.9, lists=1)
    turn = game.new_turn()
    game.restart(np.zeros(1, np.int64), turn, {"list": 0})
    choice = np.zeros(1, np.int64)
    for _ in range(40 * agents):
        game.decide("sjf", choice)
        game.step(choice, turn)
    title = f"{agents} agents x {machines} machines: each agent's machines, the shared slots and the backlog"
    save(study_plots.frames([game.frame(0)], [title]), out / "figures" / "fig1")
