"""R3 (Casagrande, dissertation 2020), DeepScheduler: can a learnt scheduler waste less energy without longer waits?

The same days as in `deepshutdown2020`; nodes go off after 5 idle minutes under every scheduler; each day once cut at
its end, once run to completion. First-Fit, EASY, SAF and, beyond the paper, the shortest walltime first (which waits
least of all) against agents that choose which waiting job starts, or that none does. The agents are two linear scores
for every waiting job, searched by whole days (`escala.agents.search_scheduler`) that are cut at their end, for the
least waste with a mean wait below a limit, at several limits; which limit counts is decided on validation days: the
least waste with a mean wait not above First-Fit's, on cut days and on days run to completion. Agents that are searched,
chosen and judged on the author's days run to completion alone stand in `completed`: over nodes that go off after 5 idle
minutes and at once, beside every pair of a rule and a shutdown policy. Beside them, as evidence of what was tried:
MaskablePPO in the printed setting (three GRUs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.studies.deepscheduler2020 import cells as work
from escala.studies.deepscheduler2020 import completed, longer
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import finished, scale_of
from escala.studies.lab.lengths import LENGTHS

NAME = "deepscheduler2020"


@dataclass(frozen=True)
class Scale:
    """How much is done. limits: of the mean wait, as shares of First-Fit's; seeds: training seeds of every limit on the
    author's days;
    stratified: limits that one seed keeps in each of so many `strata` of the author's days; other_*: on the other
    inputs; printed: decisions of MaskablePPO on the author's days; completed: limits of the agents of `completed`, on
    the author's days, in so many seeds and generations; lengths: days of an episode in the sweep."""

    inputs: tuple[str, ...] | None = None
    most: int | None = None
    generated_days: int = 300
    limits: tuple[float, ...] = (0.9, 0.95)
    stratified: tuple[float, ...] = (0.95, 1.0)
    strata: int = 3
    seeds: int = 5
    generations: int = 18
    population: int = 30
    days_each: int = 1000
    other_limits: tuple[float, ...] = (0.95,)
    other_generations: int = 12
    other_days_each: int = 1000
    printed: int = 200_000
    printed_seeds: int = 1
    completed: tuple[float, ...] = (1.0,)
    completed_seeds: int = 1
    completed_generations: int = 8
    lengths: tuple[float, ...] = LENGTHS


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        inputs=(inputs.AUTHOR, "orion"), most=8, generated_days=40, limits=(1.0,), stratified=(), seeds=1,
        generations=2, population=4, days_each=8,
        other_generations=1, other_days_each=8, printed=0, completed=(1.0,), completed_generations=1, lengths=(1.0,),
    ),
    "short": Scale(),
    "paper": Scale(
        generated_days=2000, limits=(0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05), seeds=5, generations=60, population=60,
        days_each=2000, other_days_each=2000,
        other_limits=(0.8, 0.9, 1.0), other_generations=60, printed=25_000_000, printed_seeds=5,
        completed=(0.85, 0.95, 1.05, 1.2), completed_seeds=5, completed_generations=40,
    ),
}  # fmt: skip


def cells_of(scale: Scale, traces: Path | None, out: Path) -> list[Cell]:
    """Everything that the study does, piece by piece; the author's days first."""
    at_hand = inputs.names(traces)
    cells: list[Cell] = []
    for name in at_hand if scale.inputs is None else [n for n in scale.inputs if n in at_hand]:
        author = name == inputs.AUTHOR
        one: dict[str, Any] = {"source": _source(scale, name, traces)}
        cells += [Cell(f"fixed/{name}/{part}", work.fixed, one | {"part": part}, 30) for part in ("validation", "test")]
        few = {"part": "train", "schedulers": work.SHOWN, "windows": ("cut",)}
        cells.append(Cell(f"fixed/{name}/train", work.fixed, one | few, 60))
        cells.append(Cell(f"rules/{name}", work.rules_on, one, 60))
        cells.append(Cell(f"atonce/{name}", work.at_once, one, 15))
        search = {
            "population": scale.population,
            "generations": scale.generations if author else scale.other_generations,
        }
        search["days_each"] = scale.days_each if author else scale.other_days_each
        cost = 1e-3 * search["population"] * search["generations"] * search["days_each"]
        tried = {
            f"{limit:g}": (limit, 1, scale.seeds if author else 1)
            for limit in (scale.limits if author else scale.other_limits)
        }
        tried |= {
            f"{limit:g}x{scale.strata}": (limit, scale.strata, 1) for limit in (scale.stratified if author else ())
        }
        for key, (limit, strata, seeds) in tried.items():
            kept = {"limit": limit, "strata": strata}
            cells.append(Cell(f"rule/{name}/{key}", work.rule, one | kept, 60))
            for seed in range(seeds):
                keep = str(out / "agents" / f"{name}-{key}-{seed}")
                parts = ("validation", "test", "train") if seed == 0 else ("validation", "test")
                given = one | search | kept | {"seed": seed, "keep": keep, "parts": parts}
                cells.append(Cell(f"search/{name}/{key}/{seed}", work.searched, given, cost))
        if author:
            cells += completed.cells_of(
                scale, name, one, search | {"generations": scale.completed_generations}, out / "agents"
            )
        for seed in range(scale.printed_seeds if author and scale.printed else 0):
            keep = str(out / "agents" / f"{name}-printed-{seed}")
            given = one | {
                "preset": "printed",
                "steps": scale.printed,
                "seed": seed,
                "keep": keep,
                "parts": ("validation", "test"),
            }
            cells.append(Cell(f"ppo/{name}/printed/{seed}", work.learnt, given, scale.printed / 1e3))
    return cells


def length_cells(scale: Scale, traces: Path | None, out: Path) -> list[Cell]:
    """The sweep over lengths of episodes, by the agents that lie in `out`."""
    return longer.cells_of(
        {name: _source(scale, name, traces) for name in inputs.names(traces)}, out / "agents", scale.lengths
    )


def _source(scale: Scale, name: str, traces: Path | None) -> dict[str, Any]:
    place = str(traces) if traces is not None and name not in inputs.GENERATED else None
    return {"name": name, "traces": place, "generated_days": scale.generated_days, "most": scale.most}


def run(
    scale: str,
    out: Path,
    *,
    jobs: int | str = 2,
    traces: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, agents, manifest. Interrupted, the same call goes
    on.

    jobs: processes side by side, or an engine, as `run_cells` takes it.
    traces: the folder of real logs; by default $ESCALA_TRACES, or the one beside the repository.
    """
    from escala.studies.deepscheduler2020.report import write_all

    chosen, found = scale_of(SCALES, scale, jobs), inputs.folder_of_traces(traces)
    settings = {"scale": scale, "traces": found is not None, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    done = run_cells(out, cells_of(chosen, found, out), settings, jobs, progress)
    done |= run_cells(out, length_cells(chosen, found, out), settings, jobs)
    missing = [] if found is not None else ["the author's days and the real logs are not at hand (set ESCALA_TRACES)"]
    claims = write_all(out, chosen, done, scale)
    return finished(out, NAME, scale, settings, claims, missing)
