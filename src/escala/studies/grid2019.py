"""R1 (Casagrande et al., Computer on the Beach 2019): can PPO schedule a pool of ten better than the heuristics, at seven loads?

Two studies that are never mixed. *As published*: the author trained and tested on one and the same job list a load; so do we, on his
lists, where they are at hand, against his own table. *Fresh lists*: the same generator, with separate lists for training, validation
(where hold-back is tuned, and where the agent of a load is chosen) and test; that is what generalises. Window: 100 steps of arrivals,
then run to completion; every job counts. All agents see the compact observation and may reserve, as the author's did.

Published: a plan of the list is searched (from its clairvoyant schedule), a network of 128 units imitates it and goes on with PPO (preset
"planned"). Beside it PPO from nothing (preset "one-list"), its learning curve, and the printed setting (image, 20 ReLU). Actions are
sampled, as in the paper. Fresh: the network that scores slots, masked PPO (preset "reserve"), one agent for all loads and one for each
load (at the loads `taught` begun with the rule hold-back); sampled and likeliest actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.studies import grid2019_cells as work
from escala.studies.claims import Cell, finished, run_cells, scale_of
from escala.studies.grid2019_report import write_all
from escala.studies.published import LOADS, folder_of_author

NAME = "grid2019"


@dataclass(frozen=True)
class Scale:
    """How much is done. published, alone, fresh_all, fresh_one, variant: decisions to train on; rounds: of the search for a plan.

    own: loads that get fresh agents of their own; taught: those of them that begin with hold-back; curve: budgets of the learning curve at
    load 100; printed: budget of the printed setting; optimum: test lists a load whose optimum is searched for, `limit_s` seconds each.
    """

    loads: tuple[int, ...] = LOADS
    seeds: int = 5
    published: int = 100_000
    rounds: int = 300
    alone: int = 600_000
    alone_loads: tuple[int, ...] = (100, 190)
    alone_seeds: int = 3
    fresh_all: int = 1_500_000
    all_seeds: int = 5
    fresh_one: int = 1_000_000
    own: tuple[int, ...] = (10, 40, 70, 100)
    taught: tuple[int, ...] = (10, 40, 70, 100)
    curve: tuple[int, ...] = (25_000, 50_000, 100_000, 250_000, 1_000_000)
    curve_seeds: int = 3
    printed: int = 100_000
    printed_loads: tuple[int, ...] = (100,)
    printed_seeds: int = 1
    pool: int = 8192
    validation: int = 200
    test: int = 500
    episodes: int = 300
    optimum: int = 8
    limit_s: float = 2.0
    variants: bool = True
    variant: int = 200_000
    variant_seeds: int = 1


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        loads=(40, 100), seeds=1, published=4096, rounds=20, alone=16_384, alone_loads=(100,), alone_seeds=1, fresh_all=16_384, all_seeds=1,
        fresh_one=16_384, own=(40,), taught=(40,), curve=(), printed_loads=(), pool=256, validation=20, test=40, episodes=20, optimum=2,
        limit_s=1.0, variants=False,
    ),
    "short": Scale(),
    "paper": Scale(
        published=1_000_000, rounds=3000, alone=9_000_000, alone_loads=LOADS, alone_seeds=5, fresh_all=20_000_000, own=LOADS,
        fresh_one=3_000_000, curve=(25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000), curve_seeds=5,
        printed=9_000_000, printed_loads=LOADS, printed_seeds=5, test=1000, optimum=100, limit_s=20.0, variant=3_000_000, variant_seeds=5,
    ),
}  # fmt: skip


def first_cells(scale: Scale, author: Path | None) -> list[Cell]:
    """What the others build on: rules, plans, optima."""
    cells = []
    if author is not None:
        cells.append(Cell("published/rules", work.published_rules, {"folder": str(author)}, 4))
        for load in scale.loads:
            given = {"folder": str(author), "load": load, "limit_s": 2 * scale.limit_s, "rounds": scale.rounds}
            cells.append(Cell(f"published/plan/{load}", work.published_plan, given, 10 + scale.rounds / 40))
    for load in scale.loads:
        cells.append(Cell(f"rules/{load}", work.fresh_rules, {"load": load, "validation": scale.validation, "test": scale.test}, 4))
        optimum = {"load": load, "test": scale.test, "count": scale.optimum, "limit_s": scale.limit_s}
        cells.append(Cell(f"optimum/{load}", work.optimum, optimum, scale.optimum * scale.limit_s))
    return cells


def agent_cells(scale: Scale, author: Path | None, out: Path, done: Mapping[str, Any]) -> list[Cell]:
    """All training. done: what the first cells gave."""
    agents, cells = out / "agents", []
    judged = {"pool": scale.pool, "validation": scale.validation, "test": scale.test}
    for seed in range(max(scale.seeds, scale.all_seeds)):
        if author is not None:
            cells += _published(scale, str(author), agents, seed, done)
        for load in scale.own if seed < scale.seeds else ():
            own = {"loads": [load], "judged": [load], "steps": scale.fresh_one, "seed": seed, "taught": load in scale.taught, **judged}
            cells.append(Cell(f"fresh/{load}/{seed}", work.fresh_agent, own | {"keep": str(agents / f"fresh-{load}-{seed}")},
                              5 + scale.fresh_one / 3e4))  # fmt: skip
        if seed < scale.all_seeds:
            every = {"loads": list(scale.loads), "judged": list(scale.loads), "steps": scale.fresh_all, "seed": seed, **judged}
            cells.append(Cell(f"fresh/all/{seed}", work.fresh_agent, every | {"keep": str(agents / f"fresh-all-{seed}")},
                              10 + scale.fresh_all / 3e4))  # fmt: skip
    for seed in range(scale.variant_seeds if scale.variants else 0):
        cells += _variants(scale, seed, judged)
    return cells


def _variants(scale: Scale, seed: int, judged: Mapping[str, int]) -> list[Cell]:
    """Other windows and demands: the rules (once), and agents of their own."""
    cells = []
    for load in (100, 190):
        for window, demand in ((50, "author"), (200, "author"), (100, "clip10"), (50, "clip10")):
            name = f"{load}/{window}/{demand}"
            if seed == 0:
                rules: dict[str, Any] = {
                    "load": load,
                    "demand": demand,
                    "steps": window,
                    "validation": scale.validation,
                    "test": scale.test,
                }
                cells.append(Cell(f"variant/{name}", work.fresh_rules, rules, 4))
            agent = {"loads": [load], "judged": [load], "steps": scale.variant, "seed": seed, "window": window, "demand": demand, **judged}
            cells.append(Cell(f"variant-agent/{name}/{seed}", work.fresh_agent, agent, 5 + scale.variant / 3e4))
    return cells


def _published(scale: Scale, author: str, agents: Path, seed: int, done: Mapping[str, Any]) -> list[Cell]:
    """One seed of everything on the author's lists."""
    cells = []
    given = {"folder": author, "seed": seed, "episodes": scale.episodes}
    for load in scale.loads if seed < scale.seeds else ():
        ask = given | {"load": load, "steps": scale.published, "plan": done[f"published/plan/{load}"], "preset": "planned",
                       "algorithm": "maskable-ppo", "keep": str(agents / f"published-{load}-{seed}")}  # fmt: skip
        cells.append(Cell(f"published/{load}/{seed}", work.published_agent, ask, 10 + scale.published / 3e4))
    for load in scale.alone_loads if seed < scale.alone_seeds else ():
        ask = given | {"load": load, "steps": scale.alone}
        cells.append(Cell(f"alone/{load}/{seed}", work.published_agent, ask, 2 + scale.alone / 6e4))
    for load in scale.printed_loads if seed < scale.printed_seeds else ():
        ask = given | {"load": load, "steps": scale.printed, "preset": "printed"}
        cells.append(Cell(f"printed/{load}/{seed}", work.published_agent, ask, scale.printed / 8e3))
    for budget in scale.curve if seed < scale.curve_seeds else ():
        cells.append(Cell(f"curve/{budget}/{seed}", work.published_agent, given | {"load": 100, "steps": budget}, 2 + budget / 6e4))
    return cells


def run(
    scale: str, out: Path, *, jobs: int = 2, author: Path | None = None, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, agents, manifest. Interrupted, the same call goes on.

    jobs: processes side by side. author: the folder with the author's lists and tables (`workloads.csv.gz`, `results/paper.csv`); by
    default found in the traces. Without it the part "as published" is left out, and the manifest says so.
    """
    chosen, found = scale_of(SCALES, scale, jobs), folder_of_author(author)
    settings: Mapping[str, Any] = {"scale": scale, "author": found is not None, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    first = first_cells(chosen, found)
    done = run_cells(out, first, settings, jobs)
    done |= run_cells(out, first + agent_cells(chosen, found, out, done), settings, jobs, progress)
    missing = [] if found is not None else ["as published: the author's lists and table are not at hand (set ESCALA_TRACES)"]
    claims = write_all(out, chosen, done, found, scale)
    return finished(out, NAME, scale, settings, claims, missing)
