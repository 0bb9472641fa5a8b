"""How much of what is possible do the teams of `marl2024` gain? Over SJF as a team, on the first test lists of loads 50
and 90 %.

Clairvoyant, and without R4's window of five jobs: what waits outside the window is out of every team's reach, and at 90
% that is most of the room. So SJF that sees every job stands beside. The truth lies between the share of the best
schedule found (it keeps each machine's capacities) and that of the proved bound (of the machines as a pool, see
`escala.optimum.machines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from escala.envs.slots.team.playing import play
from escala.metrics import headroom
from escala.optimum import Instance, bound, on_machines, pool, unless_interrupted
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim
from escala.studies.marl2024.cells import lists_of

KIND = "optimum"
LOADS = (50, 90)
LIMIT_S = 60.0
Cells = Mapping[str, Any]


def cells_of(scale: Any) -> list[Cell]:
    """One a shape and load."""
    cells = []
    for agents, machines in scale.shapes:
        for load in [load for load in LOADS if load in scale.loads]:
            given = {
                "agents": agents,
                "machines": machines,
                "load": load,
                "test": scale.test,
                "first": max(2, scale.test // 10),
            }
            cells.append(
                Cell(f"{KIND}/{agents}x{machines}/{load}", optimum, given, given["first"] * (agents * machines) ** 1.5)
            )
    return cells


def optimum(agents: int, machines: int, load: int, test: int, first: int) -> dict[str, list[float]]:
    """Mean slowdown on the first of `test` lists: the best schedule found, the proved bound, and SJF as a team that
    sees every job."""
    owned = agents * machines
    lists = lists_of(owned, load, test).part(range(first))
    most = int(lists.jobs_of.max())
    seen = play(lists, "sjf", agents=agents, machines=machines, slots=most)["slowdown"].to_list()
    out: dict[str, list[float]] = {"found": [], "lower": [], "seen": seen}
    for e in range(first):
        rows = slice(int(lists.first[e]), int(lists.first[e + 1]))
        job = lists.job[rows]
        demand = np.column_stack([job["cores"], lists.demand[rows]]).astype(np.int64)
        one = Instance(job["submit"] // 1_000_000, job["walltime"] // 1_000_000, demand, lists.capacity)
        best = on_machines(one, owned)
        proved = unless_interrupted(
            bound(pool(one, owned), steps=("wspt", "lagrange"), known=best.starts, limit_s=LIMIT_S)
        )
        assert proved.lower is not None
        out["found"].append(best.value)
        out["lower"].append(proved.lower)
    return out


def claims(
    shape: str, load: int, best: Mapping[str, Any], ours: np.ndarray, sjf: np.ndarray, about: str
) -> list[Claim]:
    """The two ends of a team's share. ours: [seeds, lists]; sjf: [lists]; best: what `optimum` gave, of the first
    lists."""
    found, lower, seen = (np.array(best[name], np.float64) for name in ("found", "lower", "seen"))
    n = len(found)
    ours, sjf = ours[:, :n], sjf[:n]
    told = (
        f"SJF {sjf.mean():.3f}, team {ours.mean():.3f}, SJF that sees every job {seen.mean():.3f}, best found "
        f"{found.mean():.3f}, bound "
    )
    note = f"{told}{lower.mean():.3f}; clairvoyant and without the window of jobs{about}"
    out = []
    for key, least, text in (
        ("headroom", found, "the best schedule found (the true share is no further from 0)"),
        ("headroom_proved", lower, "the proved bound (the true share is no nearer to 0)"),
    ):
        said = f"share of the way from SJF as a team to {text}, teams {shape}, load {load} %"
        value, low, high = None, None, None
        if np.isfinite(ours).all() and sjf.sum() > least.sum():
            share = headroom(ours, sjf, least, resamples=4000)
            value, low, high = share.value, share.low, share.high
        out.append(Claim(f"r4.{key}.{shape}.{load}", said, None, value, low, high, "share", len(ours), n, None, note))
    return out


def frame(found: Cells, means: Mapping[str, Mapping[str, np.ndarray]]) -> pl.DataFrame:
    """One row a shape, load and policy on the lists whose optimum was searched for. means: cell -> policy -> [...,
    lists]."""
    schema = {"shape": pl.String, "load": pl.Int64, "policy": pl.String, "mean_slowdown": pl.Float64, "lists": pl.Int64}
    rows = []
    for name, best in found.items():
        _, shape, load = name.split("/")
        n = len(best["found"])
        values = {policy: x[..., :n] for policy, x in means.get(name, {}).items()}
        values |= {
            "sjf, every job seen": np.array(best["seen"]),
            "best found": np.array(best["found"]),
            "bound": np.array(best["lower"]),
        }
        rows += [
            {"shape": shape, "load": int(load), "policy": p, "mean_slowdown": float(x.mean()), "lists": n}
            for p, x in values.items()
        ]
    return pl.DataFrame(rows, schema=schema)
