"""R4 (Gergely, ICAART 2024): do several PPO agents, who share a queue and own machines, schedule as well as the
heuristics?

One team is trained for all loads of a configuration (K agents x N machines) and judged on fresh lists of each: 200
units of arrivals, then run to completion, every job counted; the paper's fixed window stands in a table of its own,
with the jobs left. "tuned" teams begin by imitating our rule `dense` (SJF that prefers large demands), so they are
compared with that rule and with themselves before PPO too; others imitate look-ahead over sampled futures
(`escala.envs.slots.team.lookahead`) first and know when arrivals end, which R4's agents and rules do not. Teams that
learn from nothing stand apart, as do R4's own settings. All keep the weights that do best on lists of their own. Where
a shape has both kinds that imitate first, the claims against heuristics are of the one that is better on validation
lists. Loads are plain (arrivals x mean demand x mean length / capacity); above 70 % no policy keeps up, and such rows
measure the window: they are labelled overload. Headline figures are of greedy actions (after a unit of silence on idle
machines the no-op is taken away); sampled ones stand beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import finished, scale_of
from escala.studies.lab.horizons import HORIZONS
from escala.studies.marl2024 import cells as work
from escala.studies.marl2024 import headroom as room
from escala.studies.marl2024 import horizons, learning
from escala.studies.marl2024.report import write_all
from escala.studies.marl2024.values import APART

NAME = "marl2024"
LOADS = (10, 30, 50, 70, 90, 110, 120)


@dataclass(frozen=True)
class Scale:
    """How much is done. steps: decisions of all agents to train on; shapes: (agents, machines); imitated: seeds of the
    same teams before they learn by PPO; local: seeds of 3 x 1 teams with local information; printed: seeds of R4's own
    settings, of `printed_steps` decisions; void: seeds of teams whose turns last until the no-op; growth: agents of one
    machine each that learn with shared parameters from nothing, from `growth_steps` decisions a load, beside one
    central learner of as many machines, all until the no-op;
    ahead: shapes of teams that imitate look-ahead first, of `ahead_seeds` seeds; nothing: seeds of 3 x 1 teams that
    learn from nothing, from `nothing_steps` decisions a load: in turns with global and with local information, with
    shared parameters, and all at once;
    test, sampled, validation: lists to judge on; horizons: units of arrivals of the sweep."""

    shapes: tuple[tuple[int, int], ...] = ((3, 1), (2, 1), (2, 2), (3, 2))
    loads: tuple[int, ...] = LOADS
    seeds: int = 3
    steps: int = 100_000
    imitated: int = 3
    local: int = 3
    printed: int = 3
    printed_steps: int = 300_000
    void: int = 3
    growth: tuple[int, ...] = (2, 3, 5, 8)
    growth_seeds: int = 3
    growth_steps: int = 300_000
    ahead: tuple[tuple[int, int], ...] = ((2, 1), (3, 1))
    ahead_seeds: int = 3
    nothing: int = 3
    nothing_steps: int = 500_000
    test: int = 200
    sampled: int = 200
    validation: int = 100
    horizons: tuple[int, ...] = HORIZONS


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        shapes=((2, 1),), loads=(50, 90), seeds=1, steps=4096, imitated=1, local=0, printed=0, void=1, growth=(),
        ahead=(), nothing=0, test=10, sampled=5, validation=5, horizons=(50,),
    ),
    "short": Scale(),
    "paper": Scale(
        loads=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120), seeds=5, steps=3_000_000, imitated=5, local=5,
        printed=5, printed_steps=3_000_000, void=5, growth_seeds=5, growth_steps=1_000_000,
        ahead_seeds=5, nothing=5, nothing_steps=3_000_000, test=500, sampled=500, validation=300,
    ),
}  # fmt: skip


def cells_of(scale: Scale, out: Path) -> list[Cell]:
    """Everything that the study does, piece by piece: what counts most first."""
    rules: list[Cell] = []
    teams: list[Cell] = []
    further: list[Cell] = []
    growing: list[Cell] = []
    for agents, machines in dict.fromkeys([*scale.shapes, *((agents, 1) for agents in scale.growth)]):
        asked = (agents, machines) in scale.shapes
        for load in scale.loads if asked else [load for load in scale.loads if load in (50, 90)]:
            given = {"agents": agents, "machines": machines, "load": load, "test": scale.test}
            (rules if asked else growing).append(Cell(f"rules/{agents}x{machines}/{load}", work.rules, given, 3))

    def team(agents: int, machines: int, mode: str, information: str, seed: int, name: str, **more: Any) -> Cell:
        given: dict[str, Any] = {"agents": agents, "machines": machines, "mode": mode, "seed": seed}
        given |= {"information": information}
        steps = more.pop("steps", scale.steps)
        judged = {"loads": list(scale.loads), "steps": steps, "test": scale.test}
        judged |= {"sampled": scale.sampled, "validation": scale.validation}
        keep = {"keep": str(out / "agents" / name.replace("/", "-"))}
        return Cell(name, work.team, given | judged | keep | more, steps / 500 + 60)

    for seed in range(scale.seeds):
        for agents, machines in scale.shapes:
            shape = f"{agents}x{machines}"
            teams.append(team(agents, machines, "turns", "global", seed, f"team/{shape}/{seed}"))
            if seed < scale.imitated:
                teams.append(team(agents, machines, "turns", "global", seed, f"imitated/{shape}/{seed}", steps=0))
    for seed in range(scale.ahead_seeds):
        for agents, machines in scale.ahead:
            name = f"ahead/{agents}x{machines}/{seed}"
            further.append(team(agents, machines, "turns", "global", seed, name, preset="look-ahead"))
    for seed in range(scale.void):
        for agents, machines in scale.shapes:
            further.append(
                team(agents, machines, "turns", "global", seed, f"void/{agents}x{machines}/{seed}", turns="until-void")
            )
    apart = [load for load in APART if load in scale.loads]
    for seed, load in product(range(scale.nothing), apart):
        more = {"steps": scale.nothing_steps, "preset": "from-nothing", "loads": [load]}
        for kind, (mode, information, _) in learning.KINDS.items():
            further.append(team(3, 1, mode, information, seed, f"{kind}-{load}/3x1/{seed}", **more))
    for seed in range(scale.local):
        further.append(team(3, 1, "turns", "local", seed, f"local/3x1/{seed}"))
    for seed in range(scale.printed):
        further.append(
            team(3, 1, "turns", "global", seed, f"printed/3x1/{seed}", preset="printed", steps=scale.printed_steps)
        )
    for seed, load in product(range(scale.growth_seeds), apart):
        for agents in scale.growth:
            few = {"loads": [load], "preset": "from-nothing", "steps": scale.growth_steps, "turns": "until-void"}
            growing.append(team(agents, 1, "shared", "global", seed, f"growth-{load}/{agents}/{seed}", **few))
            growing.append(team(1, agents, "shared", "global", seed, f"central-{load}/{agents}/{seed}", **few))
    return rules + teams + room.cells_of(scale) + further + growing


def run(
    scale: str,
    out: Path,
    *,
    jobs: int | str = 2,
    minutes: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, teams, manifest. Interrupted, the same call goes
    on.

    jobs: processes side by side, or an engine, as `run_cells` takes it.
    minutes: begin nothing more after so long; the claims then tell how many seeds they rest on, and the
    manifest what is missing.
    """
    chosen = scale_of(SCALES, scale, jobs)
    settings = {"scale": scale, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    cells = cells_of(chosen, out)
    done: dict[str, Any] = {}
    if minutes is None:
        done = run_cells(out, cells, settings, jobs, progress)
    else:
        end = time.monotonic() + 60.0 * minutes
        for k, cell in enumerate(cells):
            if time.monotonic() < end or (out / "cells" / f"{cell.name.replace('/', '_')}.json").exists():
                done |= run_cells(out, [cell], settings, 1)
            if progress is not None:
                progress((k + 1) / len(cells))
    if minutes is None:
        done |= run_cells(out, horizons.cells_of(out / "agents", chosen.horizons, chosen.loads), settings, jobs)
    missing = [f"not done: {cell.name}" for cell in cells if cell.name not in done]
    claims = write_all(out, chosen, done, scale)
    return finished(out, NAME, scale, settings, claims, missing)
