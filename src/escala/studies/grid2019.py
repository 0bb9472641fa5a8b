"""R1 (Casagrande et al., Computer on the Beach 2019): can PPO schedule a pool of ten better than the heuristics, at seven loads?

Two studies that are never mixed. *As published*: the author trained and tested on one and the same job list a load; so do we, on his
lists, where they are at hand, against his own table. *Fresh lists*: the same generator, with separate lists for training, validation
(where hold-back is tuned) and test; that is what generalises. Window: 100 steps of arrivals, then run to completion; every job counts.
Placement start-now, compact observation, the network that scores slots (preset "taught"), which begins by imitating the rule hold-back
(tuned on the training list, or on validation lists). Beside it: the printed setting (image, reservations, 20 ReLU), and a learning curve
of agents without such a start (preset "tuned"). Actions are sampled, as in the paper; the likeliest actions are in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.studies import grid2019_cells as work
from escala.studies.claims import Cell, run_cells, write_study_manifest
from escala.studies.grid2019_report import write_all
from escala.studies.published import LOADS, folder_of_author

NAME = "grid2019"


@dataclass(frozen=True)
class Scale:
    """How much is done. published, fresh_all, fresh_one: decisions to train on; own: loads that also get fresh agents of their own;
    curve: budgets of the learning curve at load 100; printed: budgets of the printed setting; optimum: test lists a load whose optimum is
    searched for, at most `limit_s` seconds each."""

    loads: tuple[int, ...] = LOADS
    seeds: int = 5
    published: int = 500_000
    fresh_all: int = 3_000_000
    fresh_one: int = 1_500_000
    own: tuple[int, ...] = (100, 190)
    curve: tuple[int, ...] = (25_000, 50_000, 100_000, 250_000)
    curve_seeds: int = 3
    printed: int = 250_000
    printed_loads: tuple[int, ...] = (100,)
    printed_seeds: int = 2
    pool: int = 8192
    validation: int = 200
    test: int = 500
    episodes: int = 300
    optimum: int = 20
    limit_s: float = 5.0
    variants: bool = True


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        loads=(40, 100), seeds=1, published=16_384, fresh_all=16_384, fresh_one=16_384, own=(), curve=(), printed=3_072, printed_loads=(),
        pool=256, validation=20, test=40, episodes=20, optimum=2, limit_s=1.0, variants=False,
    ),
    "short": Scale(),
    "paper": Scale(
        published=3_000_000, fresh_all=20_000_000, fresh_one=8_000_000, own=LOADS,
        curve=(25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000), curve_seeds=5,
        printed=3_000_000, printed_loads=LOADS, printed_seeds=5, test=1000, optimum=100, limit_s=20.0,
    ),
}  # fmt: skip


def cells_of(scale: Scale, author: Path | None, out: Path) -> list[Cell]:
    """Everything that the study does, piece by piece."""
    agents = out / "agents"
    cells = []
    if author is not None:
        cells += _published(scale, str(author), agents)
    for load in scale.loads:
        cells.append(Cell(f"rules/{load}", work.fresh_rules, {"load": load, "validation": scale.validation, "test": scale.test}, 20))
        given = {"folder": None, "load": load, "test": scale.test, "count": scale.optimum, "limit_s": scale.limit_s}
        cells.append(Cell(f"optimum/{load}", work.optimum, given, 2 * scale.optimum))
    judged = {"pool": scale.pool, "validation": scale.validation, "test": scale.test}
    for seed in range(scale.seeds):
        every = {"loads": list(scale.loads), "judged": list(scale.loads), "steps": scale.fresh_all, "seed": seed, **judged}
        cells.append(
            Cell(f"fresh/all/{seed}", work.fresh_agent, every | {"keep": str(agents / f"fresh-all-{seed}")}, scale.fresh_all / 3e4)
        )
        for load in scale.own:
            own = {"loads": [load], "judged": [load], "steps": scale.fresh_one, "seed": seed, **judged}
            keep = {"keep": str(agents / f"fresh-{load}-{seed}")}
            cells.append(Cell(f"fresh/{load}/{seed}", work.fresh_agent, own | keep, scale.fresh_one / 3e4))
    if scale.variants:
        for load in (100, 190):
            for steps, demand in ((50, "author"), (200, "author"), (100, "clip10"), (50, "clip10")):
                variant: dict[str, Any] = {
                    "load": load,
                    "validation": scale.validation,
                    "test": scale.test,
                    "steps": steps,
                    "demand": demand,
                }
                cells.append(Cell(f"variant/{load}/{steps}/{demand}", work.fresh_rules, variant, 20))
    return cells


def _published(scale: Scale, author: str, agents: Path) -> list[Cell]:
    cells = [Cell("published/rules", work.published_rules, {"folder": author}, 20)]
    for load in scale.loads:
        given = {"folder": author, "load": load, "test": 0, "count": 1, "limit_s": max(10.0, scale.limit_s)}
        cells.append(Cell(f"published/optimum/{load}", work.optimum, given, 10))
        for seed in range(scale.seeds):
            ask = {"folder": author, "load": load, "steps": scale.published, "seed": seed, "episodes": scale.episodes}
            keep = {"keep": str(agents / f"published-{load}-{seed}")}
            cells.append(Cell(f"published/{load}/{seed}", work.published_agent, ask | keep, scale.published / 3e4))
    for load in scale.printed_loads:
        for seed in range(scale.printed_seeds):
            ask = {"folder": author, "load": load, "steps": scale.printed, "seed": seed, "episodes": scale.episodes}
            cells.append(
                Cell(f"printed/{load}/{seed}", work.published_agent, ask | {"preset": "printed", "algorithm": "ppo"}, scale.printed / 8e3)
            )
    for budget in scale.curve:
        for seed in range(scale.curve_seeds):
            ask = {"folder": author, "load": 100, "steps": budget, "seed": seed, "episodes": scale.episodes}
            cells.append(Cell(f"curve/{budget}/{seed}", work.published_agent, ask | {"preset": "tuned"}, budget / 3e4))
    return cells


def run(
    scale: str, out: Path, *, jobs: int = 2, author: Path | None = None, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, agents, manifest. Interrupted, the same call goes on.

    jobs: processes side by side. author: the folder with the author's lists and tables (`workloads.csv.gz`, `results/paper.csv`); by
    default found in the traces. Without it the part "as published" is left out, and the manifest says so.
    """
    if scale not in SCALES:
        raise EscalaError(f"scale {scale!r} is not known: use one of {', '.join(SCALES)}")
    if jobs < 1:
        raise EscalaError(f"jobs={jobs}: give at least 1")
    chosen, found = SCALES[scale], folder_of_author(author)
    settings: Mapping[str, Any] = {"scale": scale, "author": found is not None, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    done = run_cells(out, cells_of(chosen, found, out), settings, jobs, progress)
    missing = [] if found is not None else ["as published: the author's lists and table are not at hand (set ESCALA_TRACES)"]
    claims = write_all(out, chosen, done, found, scale)
    write_study_manifest(out, NAME, settings, missing)
    return {"study": NAME, "scale": scale, "out": str(out), "claims": [asdict(claim) for claim in claims], "missing": missing}
