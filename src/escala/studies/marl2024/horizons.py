"""How the teams of `marl2024` hold up where arrivals go on for longer, or shorter, than the 200 units of their
training.

A team is told when arrivals end, if it was trained so; "endless" are the longest lists, whose end it is not shown (it
is told one far away). R4's heuristics as teams of the same shape play the same lists, and know no end. Everything runs
to completion.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.agents import load_team
from escala.envs.slots.heuristics import PUBLISHED
from escala.envs.slots.lists import JobLists
from escala.envs.slots.team.playing import play
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim
from escala.studies.lab.horizons import ENDLESS, FAR, against_best, counts, runs_of, worst_claim
from escala.studies.marl2024.cells import by_greedy, lists_of
from escala.studies.marl2024.values import APART, Cells

TEST = 17
"""Seed of the lists; no list of another set is among them."""
HEADLINE = ("ahead-2x1-0", "ahead-3x1-0", "team-2x2-0", "team-3x2-0", "printed-3x1-0")
"""Teams that are played: of each shape the kind behind its claims, and R4's settings; of the first seed."""
PRINTED = "printed"
Shape = tuple[int, int]


def lists_at(shape: Shape, load: int, steps: int) -> JobLists:
    """Fresh lists with so many units of arrivals."""
    return lists_of(shape[0] * shape[1], load, counts(steps)[0], TEST, steps)


def rules(shape: Shape, load: int, steps: int) -> dict[str, list[Any]]:
    """Mean slowdowns of R4's heuristics as teams on every list of a horizon."""
    lists = lists_at(shape, load, steps)
    team: dict[str, Any] = {"agents": shape[0], "machines": shape[1]}
    return {rule: play(lists, rule, **team)["slowdown"].to_list() for rule in PUBLISHED}


def team(folder: str, shape: Shape, load: int, steps: int, endless: bool) -> list[Any]:
    """Mean slowdowns of a kept team's greedy actions on the same lists, null where a run did not end."""
    made = load_team(folder)
    end = {"arrivals_end": FAR if endless else steps} if made.options.get("arrivals_end", 0) > 0 else {}
    return by_greedy(made, lists_at(shape, load, steps), **end)["slowdown"]


def cells_of(agents: Path, horizons: Sequence[int], loads: Sequence[int]) -> list[Cell]:
    """Everything to do with the teams that a folder keeps."""
    found: dict[str, Cell] = {}
    for name in (name for name in HEADLINE if (agents / name / "manifest.json").is_file()):
        shape = shape_of(name)
        for load in (load for load in APART if load in loads):
            for steps, endless in [*((steps, False) for steps in horizons), (max(horizons), True)] if horizons else ():
                given: dict[str, Any] = {"shape": shape, "load": load, "steps": steps}
                key = f"horizon/rules/{shape[0]}x{shape[1]}/{load}/{steps}"
                found.setdefault(key, Cell(key, rules, given, steps / 20))
                key = f"horizon/{name}/{load}/{ENDLESS if endless else steps}"
                found[key] = Cell(key, team, given | {"folder": str(agents / name), "endless": endless}, steps / 10)
    return list(found.values())


def shape_of(name: str) -> Shape:
    """Agents and machines of a team named KIND-AxM-SEED."""
    agents, _, machines = name.split("-")[1].partition("x")
    return int(agents), int(machines)


def frame(cells: Cells) -> pl.DataFrame:
    """One row a team, load and horizon: means of the heuristics and of the team, and its relative excess over the best
    of them there, with its interval over lists; null where a run did not end."""
    rows = []
    for key, name, load, horizon, steps in runs_of(cells):
        agents, machines = shape_of(name)
        row = against_best(cells[key], cells[f"horizon/rules/{agents}x{machines}/{load}/{steps}"])
        rows.append({"agent": name, "load": float(load), "horizon": horizon, "steps": steps} | row)
    return pl.DataFrame(rows, infer_schema_length=None)


def claims(table: pl.DataFrame) -> list[Claim]:
    """The largest excess of the teams that imitate first, over all shapes, loads and horizons, their end shown or
    not."""
    taught = [name for name in HEADLINE if not name.startswith(PRINTED)]
    about = "teams that imitate first and were trained on 200 units of arrivals"
    return worst_claim("r4.horizon.worst", table, taught, about, rules="R4's heuristics")
