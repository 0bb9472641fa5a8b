"""R3 (Casagrande, dissertation 2020), DeepShutdown: does a learnt off-reservation policy save energy at bounded delay,
beyond a rule?

The author's real days of one cluster of Grid'5000 with his own training and test days, generated logs of four clusters,
and three real logs. Under SAF, all nodes off at the start of a day; each day once cut at its end, once run to
completion. Fixed policies: T(0), T(1), T(5) minutes, never, OR*, a random off-reservation, T(0) with known arrivals,
and hold(x): nodes are woken for a job only when it has waited x of its walltime; also held only while some job runs, or
so long at most. The frontier of hold(x), waste against stretch, is what a learnt policy has to beat; neither OR* nor
T(0) with known arrivals is a bound.
How much less could have been wasted at a policy's own waits, and its share of that, is proved for the author's days
(`deepshutdown2020.headroom`).

The agents choose x minute by minute (action `hold`). They are searched by whole days (`escala.agents.search`), on
training days only; which generation is kept is decided on validation days, the last part of the training days. Beside
them, as evidence of what was tried: MaskablePPO with ordered choices, and the printed setting (LSTM, number of held
nodes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.studies.deepshutdown2020 import cells as work
from escala.studies.deepshutdown2020 import headroom as room
from escala.studies.deepshutdown2020 import longer
from escala.studies.deepshutdown2020.paper import POLICIES
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import finished, scale_of
from escala.studies.lab.lengths import LENGTHS
from escala.studies.lab.searched import NEVER_LATE, SEEN

NAME = "deepshutdown2020"


@dataclass(frozen=True)
class Scale:
    """How much is done. most: days of each part of an input; analysed_days: of the generated logs that figure 11
    describes; seeds, generations, population, days_each: of the search on the author's days; worths: further costs of
    waiting, in prices; other_*: of the search on the other inputs; ppo, printed: decisions of the other learners, and
    their seeds; lengths: days of an episode in the sweep."""

    inputs: tuple[str, ...] | None = None
    most: int | None = None
    generated_days: int = 300
    analysed_days: int = 1820
    seeds: int = 5
    generations: int = 14
    population: int = 16
    days_each: int = 1000
    worths: tuple[float, ...] = (0.25, 0.5, 2.0, 4.0)
    other_seeds: int = 1
    other_generations: int = 8
    other_days_each: int = 1000
    ppo: int = 300_000
    printed: int = 500_000
    ppo_seeds: int = 1
    lengths: tuple[float, ...] = LENGTHS


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        inputs=(inputs.AUTHOR, "orion"), most=8, generated_days=40, analysed_days=400, seeds=1, generations=2,
        population=4, days_each=8,
        worths=(2.0,), other_generations=1, other_days_each=8, ppo=0, printed=0, lengths=(1.0,),
    ),
    "short": Scale(),
    "paper": Scale(
        generated_days=2000, generations=60, population=40, days_each=2000, other_days_each=2000,
        worths=(0.1, 0.3, 0.6, 2.0, 4.0), other_seeds=5,
        other_generations=40, ppo=20_000_000, printed=50_000_000, ppo_seeds=5,
    ),
}  # fmt: skip


def cells_of(scale: Scale, traces: Path | None, out: Path) -> list[Cell]:
    """Everything that the study does, piece by piece; the author's days first."""
    at_hand = inputs.names(traces)
    cells = []
    for name in at_hand if scale.inputs is None else [n for n in scale.inputs if n in at_hand]:
        cells += _of_input(scale, name, traces, out)
    for name in inputs.ANALYSED if scale.inputs is None else ():
        cells.append(
            Cell(f"years/{name}", work.analysis, {"name": name, "traces": None, "days": scale.analysed_days}, 5)
        )
    return cells


def headroom_cells(scale: Scale, traces: Path | None, out: Path) -> list[Cell]:
    """What was possible on the author's held-out days: for rules, and for the searched agents that lie in `out`."""
    if inputs.AUTHOR not in inputs.names(traces):
        return []
    folders = {seed: out / "agents" / f"{inputs.AUTHOR}-1-{seed}" for seed in range(scale.seeds)}
    at_hand = {seed: folder for seed, folder in folders.items() if (folder / "manifest.json").is_file()}
    return room.cells_of(_source(scale, inputs.AUTHOR, traces), at_hand)


def length_cells(scale: Scale, traces: Path | None, out: Path) -> list[Cell]:
    """The sweep over lengths of episodes, by the agents that lie in `out`."""
    return longer.cells_of(
        {name: _source(scale, name, traces) for name in inputs.names(traces)}, out / "agents", scale.lengths
    )


def _source(scale: Scale, name: str, traces: Path | None) -> dict[str, Any]:
    place = str(traces) if traces is not None and name not in inputs.GENERATED else None
    return {"name": name, "traces": place, "generated_days": scale.generated_days, "most": scale.most}


def _of_input(scale: Scale, name: str, traces: Path | None, out: Path) -> list[Cell]:
    author = name == inputs.AUTHOR
    one: dict[str, Any] = {"source": _source(scale, name, traces)}
    where = {"name": name, "traces": one["source"]["traces"], "days": scale.analysed_days}
    looked = one | {"part": "validation"}
    cells = [
        Cell(f"about/{name}", work.description, one, 5),
        Cell(f"years/{name}", work.analysis, where, 5),
        Cell(f"fixed/{name}", work.fixed, one | {"part": "test", "policies": work.FIXED, "jobs": work.SHOWN}, 30),
        Cell(f"train/{name}", work.fixed, one | {"part": "train", "policies": work.SHOWN, "windows": ("cut",)}, 30),
        Cell(f"variants/{name}", work.fixed, one | {"part": "test", "policies": work.VARIANTS}, 15),
        Cell(f"constants/{name}", work.constants, one | {"part": "test"}, 15),
        Cell(f"levels/{name}", work.constants, looked | {"windows": ("seen", "cut") if author else ("seen",)}, 15),
        Cell(f"seen/{name}", work.fixed, looked | {"policies": ("oracle", work.RANDOM), "windows": ("seen",)}, 15),
    ]
    if author:
        by_chance = one | {"part": "test", "policies": (work.RANDOM,), "windows": ("cut",)}
        classic = [policy for policy in POLICIES if policy != "agent"]
        shown = looked | {"policies": work.SHOWN, "windows": work.WINDOWS}
        cells.append(Cell("random/test", work.fixed, by_chance, 60))
        cells.append(Cell(f"chance/{name}", work.by_r3, one, 30))
        cells.append(Cell(f"delay/{name}", work.delays, one | {"policies": classic}, 60))
        cells.append(Cell("fixed/validation", work.fixed, shown, 60))
    search = {"population": scale.population, "generations": scale.generations if author else scale.other_generations}
    search["days_each"] = scale.days_each if author else scale.other_days_each
    cost = 1e-3 * search["population"] * search["generations"] * search["days_each"]
    seeds = [(1.0, seed) for seed in range(scale.seeds if author else scale.other_seeds)]
    for worth, seed in seeds + ([(worth, 0) for worth in scale.worths] if author else []):
        keep = str(out / "agents" / f"{name}-{worth:g}-{seed}")
        parts = ("validation", "test", "train") if seed == 0 and worth == 1.0 else ("validation", "test")
        given = one | search | {"worth": worth, "seed": seed, "keep": keep, "parts": parts}
        cells.append(Cell(f"search/{name}/{worth:g}/{seed}", work.searched, given, cost))
    if author:
        for preset, steps in (("ordered", scale.ppo), ("printed", scale.printed)):
            for seed in range(scale.ppo_seeds if steps else 0):
                keep = str(out / "agents" / f"{name}-{preset}-{seed}")
                given = one | {"preset": preset, "steps": steps, "seed": seed, "keep": keep}
                given |= {"parts": ("validation", "test")}
                given |= {"options": {"tau": NEVER_LATE, **SEEN} if preset == "ordered" else {}}
                cost = steps / (2e3 if preset == "printed" else 1e4)
                cells.append(Cell(f"ppo/{name}/{preset}/{seed}", work.learnt, given, cost))
    return cells


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
    traces: the folder of real logs; by default $ESCALA_TRACES, or the one beside the repository. Without it
    only the generated clusters are done, and the manifest says so.
    """
    from escala.studies.deepshutdown2020.report import write_all

    chosen, found = scale_of(SCALES, scale, jobs), inputs.folder_of_traces(traces)
    settings = {"scale": scale, "traces": found is not None, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    begun, ended = (
        (None, None) if progress is None else (lambda x: progress(0.97 * x), lambda x: progress(0.97 + 0.03 * x))
    )
    done = run_cells(out, cells_of(chosen, found, out), settings, jobs, begun)
    done |= run_cells(out, headroom_cells(chosen, found, out), settings, jobs, ended)
    done |= run_cells(out, length_cells(chosen, found, out), settings, jobs)
    missing = [] if found is not None else ["the author's days and the real logs are not at hand (set ESCALA_TRACES)"]
    claims = write_all(out, chosen, done, scale)
    return finished(out, NAME, scale, settings, claims, missing)
