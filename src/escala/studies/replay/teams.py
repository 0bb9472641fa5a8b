"""Teams of `marl2024` on lists of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from escala.agents import load_team
from escala.studies.marl2024 import cells as work
from escala.studies.marl2024.values import KINDS, plain
from escala.studies.replay.figures import OTHER, PRINTED, Figure, NotAtHand, Study, wide

NAME = re.compile(r"(?P<kind>[a-z]+(-[a-z]+)*(-\d+)?)-(?P<shape>\d+x\d+)-(?P<seed>\d+)")


def marl2024(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """KIND-SHAPE-SEED: the mean slowdown by greedy actions at every load of its rows."""
    found = NAME.fullmatch(agent)
    if found is None or plain(found["kind"]) not in KINDS:
        raise NotAtHand(f"{agent}: no row of its own in the tables")
    kind, shape = found["kind"], found["shape"]
    rows = study.rows("seeds", agent, kind=KINDS[plain(kind)], shape=shape, seed=found["seed"], acting="likeliest")
    made = load_team(study.folder / "agents" / agent)
    own = kind.removeprefix(plain(kind)).strip("-")
    agents, machines = (int(n) for n in shape.split("x"))
    drawn = work.TEST if seed is None else OTHER + seed
    for row in rows:
        if own and row["load"] != int(own):
            continue
        lists = work.lists_of(agents * machines, row["load"], study.settings["test"], drawn)
        values = np.array(work.by_greedy(made, lists)["slowdown"], np.float64)
        near = PRINTED if seed is None else wide(values)
        yield Figure(agent, f"load {row['load']}", "seeds", row["mean_slowdown"], float(values.mean()), near)
