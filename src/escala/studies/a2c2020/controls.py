"""Of `a2c2020` the positive controls: other learners on the same image, with the same network and the same lists as A2C
as printed, at one rate. Where one of them comes below SJF, image and network are enough and the algorithm is at fault;
where none does, it may be either.

A2C with a mask is masked PPO with a single pass over each whole rollout, no clipping that is felt, and advantages as
they are: the same update (Huang et al., 2022). Its entropy is held up by five times the usual weight, not by a floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from escala.studies.a2c2020.cells import CHOSEN, trained
from escala.studies.a2c2020.curves import best_way
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim
from escala.studies.lab.slotted import Cells, arrays_of, claim, matrix, row_of

SJF = [[0, 0, 0]]
"""Hold-back that holds nothing back."""
UPDATES = 2_000
"""Of the network while it imitates, at most; one for each 150 decisions that follow in a control."""
CONTROLS: dict[str, dict[str, Any]] = {
    "ppo": {
        "algorithm": "maskable-ppo",
        "num_envs": 16,
        "learn": {"n_steps": 64, "batch_size": 128, "n_epochs": 4, "clip_range": 0.2, "ent_coef": 0.005},
    },
    "masked": {
        "algorithm": "maskable-ppo",
        "learn": {"batch_size": 80, "n_epochs": 1, "clip_range": 1e6, "normalize_advantage": False, "ent_coef": 0.01},
    },
    "imitated": {"algorithm": "a2c", "taught": True, "steps": 0},
    "taught": {"algorithm": "a2c", "taught": True},
    "one-step": {"algorithm": "a2c", "learn": {"n_steps": 1, "gae_lambda": 0.0}},
}
"""Name -> what is asked otherwise than of A2C as printed; taught: by SJF first."""
ABOUT = {
    "ppo": "masked PPO, Conv3-16 on the image, from nothing",
    "masked": "A2C with a mask and five times the weight of entropy, Conv3-16 on the image, from nothing",
    "imitated": "SJF imitated by Conv3-16 on the image, no reward",
    "taught": "A2C, Conv3-16 on the image, after imitating SJF",
    "one-step": "A2C by the error of one step (algorithm 1; sixteen simulations side by side), Conv3-16 on the image, "
    "from nothing",
}
COST = {"ppo": 3.0, "masked": 1.0, "imitated": 0.3, "taught": 1.3, "one-step": 1.5}


def cells_of(scale: Any, sizes: Mapping[str, int]) -> list[Cell]:
    """One training a control; none at a scale without."""
    asked = {"rate": scale.network_rate, "seed": 0, "preset": CHOSEN, "steps": scale.controls}
    teacher = {"hold-back": SJF, "updates": [max(1, min(UPDATES, scale.controls // 150))]}
    found = []
    for name, control in CONTROLS.items() if scale.controls else ():
        given = {**sizes, **asked, **control}
        given["teacher"] = teacher if given.pop("taught", False) else None
        found.append(Cell(f"control/{name}", trained, given, COST[name] * scale.controls / 1_400))
    return found


def names_of(cells: Cells) -> list[str]:
    """The controls that were trained."""
    return [name for name in CONTROLS if f"control/{name}" in cells]


def claims(rate: float, cells: Cells) -> list[Claim]:
    """Each control against SJF; nothing is held against them."""
    sjf = np.array(cells[f"rules/{rate}"]["sjf"]["slowdown"], np.float64)
    found = []
    for name in names_of(cells):
        cell = f"control/{name}"
        how = best_way(cells, [cell])
        note = f"a positive control; {cells[cell]['steps']} decisions, {how} actions; a finding, no test"
        text = f"{ABOUT[name]}: mean slowdown against SJF, rate {rate}"
        found.append(claim(f"r2.control.{name}", text, None, matrix(cells, [cell], how, "slowdown"), sjf, None, note))
    return found


def frame(rate: float, cells: Cells) -> pl.DataFrame:
    """One row a control and way of acting; `chosen`: by validation lists."""
    rows = []
    for name in names_of(cells):
        cell = f"control/{name}"
        for how in ("sampled", "likeliest"):
            about = {
                "control": name,
                "acting": how,
                "chosen": how == best_way(cells, [cell]),
                "decisions": cells[cell]["steps"],
            }
            tried = matrix(cells, [cell], "validation", how)
            about["validation"] = None if np.isnan(tried).any() else float(tried.mean())
            judged = row_of(round(100 * rate), name, arrays_of(cells[cell][how]))
            rows.append(about | {key: value for key, value in judged.items() if key not in ("load", "policy")})
    return pl.DataFrame(rows, infer_schema_length=None)
