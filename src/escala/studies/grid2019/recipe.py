"""R1 (Casagrande et al., Computer on the Beach 2019): can PPO schedule a pool of ten better than the heuristics, at
seven loads?

Two studies that are never mixed. *As published*: the author trained and tested on one and the same job list a load; so
do we, on his lists, where they are at hand, against his own table. *Fresh lists*: the same generator, with separate
lists for training, validation (where hold-back is tuned, and where the agent of a load is chosen) and test; that is
what generalises. Window: 100 steps of arrivals, then run to completion; every job counts. All agents but those of the
printed setting see the compact observation.

Published: a plan of the list is searched (from its clairvoyant schedule), a network of 128 units imitates it and goes
on with PPO (preset "planned"). Beside it PPO from nothing: the printed setting (image, 20 ReLU) with its learning
curve, and in `paper` the preset "one-list". These agents see ten slots and may reserve, as the author's did; actions
are sampled, as in the paper.

Fresh: the scheduler `rollout` looks ahead on training lists (greedy SJF plays them at a load where it is better); the
network that scores slots imitates it (preset "look-ahead"), one agent for each load and one for all, and at the highest
load goes on with PPO. Agents and the rules beside them see 32 slots, nearly the whole queue; agents and look-ahead know
when arrivals end. Beside them R1's own window: rules and PPO alone with ten slots (preset "reserve"). Agents are judged
sampled and by greedy actions.

No end: one agent for all loads from 40 % that is not told when arrivals end (preset "open", see `lab.open_end`), and
one for 10 %. All agents of the first seed, and these, are then played where arrivals go on for shorter and longer
(`lab.horizons`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.envs.slots.state import HOLD_PILE
from escala.studies.grid2019 import cells as work
from escala.studies.grid2019 import whole_queue
from escala.studies.grid2019.cells import LEAST_LOAD
from escala.studies.grid2019.published import LOADS, folder_of_author
from escala.studies.grid2019.report import write_all
from escala.studies.lab import horizons, open_end
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import finished, scale_of
from escala.studies.lab.slotted import queue_slots

NAME = "grid2019"
VARIANTS = tuple(
    (load, *other)
    for load in (100, 190)
    for other in ((50, "author"), (200, "author"), (100, "clip10"), (50, "clip10"))
)
"""Other windows and demands: (load, window, demand)."""


@dataclass(frozen=True)
class Scale:
    """How much is done. published, fresh_all, fresh_one, ten, variant: decisions to train on; rounds: of the search for
    a plan; alone: PPO from nothing (preset "one-list") on the author's lists, (load, decisions), in `paper` as many as
    he trained for.

    updates: of each imitation, at most (0: as many as it takes). own: loads whose agents go on with PPO after
    imitation; lessons: training lists a load on which look-ahead over `futures` futures teaches (variant_lessons: of a
    window of 100 steps); imitated_seeds: agents of one load that only imitate (published_imitated_seeds: of those on
    the author's lists); ten_seeds: PPO alone with ten slots; printed: budget of the printed setting; curve: decisions
    after which its agents of load 100 are judged, too; best: test lists a load whose optimum is searched for, `limit_s`
    seconds each, and that look-ahead over `ahead` futures plays. variants: (load, window, demand).
    longer: updates of the imitation of a variant that needs more than usual. open: of the agents that know no end.
    more: (load, how many times as many lists of it, of every kind): with few jobs in a list, little can be told from
    one.
    """

    loads: tuple[int, ...] = LOADS
    seeds: int = 5
    published: int = 100_000
    rounds: int = 600
    alone: tuple[tuple[int, int], ...] = ()
    alone_seeds: int = 1
    lessons: int = 120
    futures: int = 16
    fresh_all: int = 0
    all_seeds: int = 5
    fresh_one: int = 700_000
    own: tuple[int, ...] = (190,)
    imitated_seeds: int = 5
    published_imitated_seeds: int = 1
    ten: int = 1_000_000
    ten_seeds: int = 1
    curve: tuple[int, ...] = tuple(range(250_000, 2_500_000, 250_000))
    printed: int = 2_500_000
    printed_loads: tuple[int, ...] = (100,)
    printed_seeds: int = 5
    pool: int = 8192
    validation: int = 200
    test: int = 500
    episodes: int = 300
    best: int = 40
    limit_s: float = 1.0
    ahead: int = 32
    more: tuple[tuple[int, int], ...] = ((10, 20),)
    variants: tuple[tuple[int, int, str], ...] = VARIANTS
    longer: tuple[tuple[tuple[int, int, str], int], ...] = (((100, 200, "author"), 6000), ((190, 200, "author"), 9000))
    variant: int = 0
    variant_seeds: int = 5
    variant_lessons: int = 120
    updates: int = 0
    queue_seeds: int = 5
    open: open_end.Budget = open_end.SHORT
    horizons: tuple[int, ...] = horizons.HORIZONS

    def times(self, load: int) -> int:
        """How many times as many lists of a load."""
        return dict(self.more).get(load, 1)

    def imitated(self, load: int) -> int:
        """How many agents of a load only imitate: one beside those that go on with PPO, to show what that adds."""
        return min(self.imitated_seeds, 1) if load in self.own else self.imitated_seeds


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        loads=(40, 100), seeds=1, published=4096, rounds=20, alone=((100, 16_384),), alone_seeds=1, lessons=8,
        futures=8,
        fresh_all=16_384, all_seeds=1, fresh_one=16_384, own=(), imitated_seeds=0, published_imitated_seeds=0,
        ten=16_384,
        curve=(1536, 3072), printed=3072, printed_seeds=1, pool=256, validation=20, test=40, episodes=20, best=2,
        ahead=8, variants=((190, 50, "clip10"),), variant_seeds=1,
        variant_lessons=8, updates=500, queue_seeds=1, open=open_end.SMOKE, horizons=(50,),
    ),
    "short": Scale(),
    "paper": Scale(
        published=1_000_000, rounds=3000, alone=tuple((load, 9_000_000) for load in LOADS), alone_seeds=5, lessons=2000,
        futures=128, fresh_all=10_000_000, fresh_one=3_000_000, own=LOADS, ten=20_000_000, ten_seeds=5,
        printed=9_000_000, printed_loads=LOADS, printed_seeds=5, test=1000, best=200, limit_s=20.0, ahead=128,
        variant=3_000_000, variant_seeds=5, variant_lessons=2000,
    ),
}  # fmt: skip


def first_cells(scale: Scale, author: Path | None, out: Path) -> list[Cell]:
    """What the others build on: rules, plans, optima, look-ahead and its lessons."""
    cells = []
    if author is not None:
        cells.append(Cell("published/rules", work.published_rules, {"folder": str(author)}, 4))
        for load in scale.loads:
            given = {"folder": str(author), "load": load, "rounds": scale.rounds}
            cells.append(Cell(f"published/plan/{load}", work.published_plan, given, 10 + scale.rounds / 40))
            given = {"folder": str(author), "load": load, "seeds": scale.queue_seeds, "futures": scale.ahead}
            cells.append(Cell(f"published/queue/{load}", whole_queue.on_list, given, 1 + load / 10))
    for load in scale.loads:
        n = scale.times(load)
        ten = {"load": load, "validation": n * scale.validation, "test": n * scale.test, "slots": 10}
        cells.append(Cell(f"ten/{load}", work.fresh_rules, ten, 4))
        cells += _fresh_bases(scale, out, f"{load}", {"load": load}, scale.lessons, n)
    for load, window, demand in scale.variants:
        about = {"load": load, "steps": window, "demand": demand}
        cells += _fresh_bases(scale, out, f"{load}/{window}/{demand}", about, scale.variant_lessons)
    return cells + open_end.rule_cells(open_world(scale))


def open_world(scale: Scale) -> open_end.World:
    """Where agents that know no end are judged, and the sweep of horizons."""
    loads = tuple(load for load in scale.loads if load >= LEAST_LOAD)
    return open_end.World("pool", loads, scale.horizons, HOLD_PILE)


def _fresh_bases(scale: Scale, out: Path, name: str, about: dict[str, Any], lessons: int, times: int = 1) -> list[Cell]:
    """Everything on fresh lists of one kind but agents; times: as many lists. Looking ahead takes time as the square of
    the window: longer ones than 100 steps get fewer futures, and somewhat fewer lists to learn from, shorter ones
    more."""
    validation, test, count = (times * n for n in (scale.validation, scale.test, scale.best))
    rules = about | {"validation": validation, "test": test, "slots": queue_slots(about.get("steps", 100))}
    best = about | {"test": test, "count": count}
    short = about.get("steps", 100) / 100
    thin = min(1.0, 1.0 / short)
    enough = short ** (-1.0 if short < 1.0 else -0.5)
    futures, ahead, lists = (
        max(1, int(n)) for n in (scale.futures * thin, scale.ahead * thin**2, times * lessons * enough)
    )
    taught = about | {
        "pool": scale.pool,
        "lists": lists,
        "futures": futures,
        "keep": str(_file(out, name)),
        "validation": validation,
    }
    weight = about["load"] / 100 * short**2 / 64
    return [
        Cell(f"rules/{name}", work.fresh_rules, rules, 4),
        Cell(f"optimum/{name}", work.optimum, best | {"limit_s": scale.limit_s}, scale.best * scale.limit_s),
        Cell(f"ahead/{name}", work.rollout_on, best | {"futures": ahead, "pool": scale.pool}, count * ahead * weight),
        Cell(f"lessons/{name}", work.lessons, taught, lists * futures * weight),
    ]


def _file(out: Path, name: str) -> Path:
    """Where the lessons of a kind of list are kept."""
    return out / "lessons" / f"{name.replace('/', '-')}.npz"


def agent_cells(scale: Scale, author: Path | None, out: Path, done: Mapping[str, Any]) -> list[Cell]:
    """All training. done: what the first cells gave."""
    agents, cells = out / "agents", []
    judged = {
        "pool": scale.pool,
        "validation": scale.validation,
        "test": scale.test,
        "updates": scale.updates,
        "more": {str(load): times for load, times in scale.more},
    }
    every: dict[str, Any] = {"loads": list(scale.loads), "judged": list(scale.loads), **judged}
    for seed in range(max(scale.seeds, scale.all_seeds)):
        if author is not None:
            cells += _published(scale, str(author), agents, seed, done)
        for load in scale.loads:
            own = {"loads": [load], "judged": [load], "seed": seed, "taught": [str(_file(out, f"{load}"))], **judged}
            if load in scale.own and seed < scale.seeds:
                ask = own | {"steps": scale.fresh_one, "keep": str(agents / f"fresh-{load}-{seed}")}
                cells.append(Cell(f"fresh/{load}/{seed}", work.fresh_agent, ask, 30 + scale.fresh_one / 2e4))
            if seed < scale.imitated(load):
                ask = own | {"steps": 0, "keep": str(agents / f"imitated-{load}-{seed}")}
                cells.append(Cell(f"imitated/{load}/{seed}", work.fresh_agent, ask, 30))
        if seed < scale.all_seeds:
            files = [str(_file(out, f"{load}")) for load in scale.loads]
            ask = every | {
                "seed": seed,
                "taught": files,
                "steps": scale.fresh_all,
                "keep": str(agents / f"fresh-all-{seed}"),
            }
            cells.append(Cell(f"fresh/all/{seed}", work.fresh_agent, ask, 60 + scale.fresh_all / 2e4))
        if seed < scale.ten_seeds:
            ask = every | {"seed": seed, "steps": scale.ten, "keep": str(agents / f"ten-all-{seed}")}
            cells.append(Cell(f"ten-agent/all/{seed}", work.fresh_agent, ask, 30 + scale.ten / 3e4))
    for load, window, demand in scale.variants:
        name = f"{load}/{window}/{demand}"
        for seed in range(scale.variant_seeds):
            ask = {
                "loads": [load],
                "judged": [load],
                "steps": scale.variant,
                "seed": seed,
                "window": window,
                "demand": demand,
                **judged,
            }
            ask["updates"] = scale.updates or dict(scale.longer).get((load, window, demand), 0)
            cells.append(Cell(f"fresh/{name}/{seed}", work.fresh_agent, ask | {"taught": [str(_file(out, name))]},
                              30 * window / 100 + scale.variant / 2e4))  # fmt: skip
    world, light = open_world(scale), [load for load in scale.loads if load < LEAST_LOAD]
    return [
        *cells,
        *open_end.agent_cells(world, scale.open, agents, done),
        *open_end.light_cells(world, scale.open, agents, light),
    ]


def horizon_cells(scale: Scale, out: Path, done: Mapping[str, Any]) -> list[Cell]:
    """On shorter and longer lists: the chosen one of those that know no end, at light loads too, and those of light
    loads; of the first seed the one for all loads and those of one load."""
    loads, seed = open_world(scale).loads, open_end.chosen_seed(done)
    kept: dict[str, Sequence[float]] = {} if seed is None else {open_end.name_of(seed): scale.loads}
    kept |= {open_end.light_name(load): [load] for load in scale.loads if load < LEAST_LOAD}
    kept |= {"fresh-all-0": loads} | {f"{kind}-{load}-0": [load] for load in loads for kind in ("fresh", "imitated")}
    found = {
        name: (str(out / "agents" / name), own)
        for name, own in kept.items()
        if (out / "agents" / name / "manifest.json").is_file()
    }
    return horizons.cells_of(found, "pool", scale.horizons)


def event_cells(scale: Scale, author: Path | None, out: Path) -> list[Cell]:
    """The first agent of each of the author's lists, event-driven."""
    kept = {load: out / "agents" / f"published-{load}-0" for load in scale.loads if author is not None}
    given = {"folder": str(author), "runs": min(scale.episodes, whole_queue.RUNS)}
    return [
        Cell(f"published/events/{load}", whole_queue.by_agent, given | {"load": load, "keep": str(keep)}, 20)
        for load, keep in kept.items()
        if (keep / "manifest.json").is_file()
    ]


def _published(scale: Scale, author: str, agents: Path, seed: int, done: Mapping[str, Any]) -> list[Cell]:
    """One seed of everything on the author's lists."""
    cells = []
    given = {"folder": author, "seed": seed, "episodes": scale.episodes}
    for load in scale.loads if seed < scale.seeds else ():
        ask = given | {"load": load, "steps": scale.published, "plan": done[f"published/plan/{load}"],
                       "updates": scale.updates,
                       "preset": "planned", "algorithm": "maskable-ppo",
                       "keep": str(agents / f"published-{load}-{seed}")}  # fmt: skip
        cells.append(Cell(f"published/{load}/{seed}", work.published_agent, ask, 10 + scale.published / 3e4))
        if seed < scale.published_imitated_seeds:
            cells.append(
                Cell(f"published/imitated/{load}/{seed}", work.published_agent, ask | {"steps": 0, "keep": None}, 10)
            )
    for load, steps in scale.alone if seed < scale.alone_seeds else ():
        ask = given | {"load": load, "steps": steps}
        cells.append(Cell(f"alone/{load}/{seed}", work.published_agent, ask, 2 + steps / 6e4))
    for load in scale.printed_loads if seed < scale.printed_seeds else ():
        ask = given | {
            "load": load,
            "steps": scale.printed,
            "preset": "printed",
            "keep": str(agents / f"printed-{load}-{seed}"),
        }
        ask["looks"] = list(scale.curve) if load == work.CURVE else []
        cells.append(Cell(f"printed/{load}/{seed}", work.published_agent, ask, scale.printed / 8e3))
    return cells


def run(
    scale: str,
    out: Path,
    *,
    jobs: int | str = 2,
    author: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, agents, manifest. Interrupted, the same call goes
    on.

    jobs: processes side by side, or an engine, as `run_cells` takes it.
    author: the folder with the author's lists and tables (`workloads.csv.gz`, `results/paper.csv`); by
    default found in the traces. Without it the part "as published" is left out, and the manifest says so.
    """
    chosen, found = scale_of(SCALES, scale, jobs), folder_of_author(author)
    settings: Mapping[str, Any] = {"scale": scale, "author": found is not None, **asdict(chosen)}
    out.mkdir(parents=True, exist_ok=True)
    first = first_cells(chosen, found, out)
    done = run_cells(out, first, settings, jobs)
    done |= run_cells(out, first + agent_cells(chosen, found, out, done), settings, jobs, progress)
    done |= run_cells(out, horizon_cells(chosen, out, done) + event_cells(chosen, found, out), settings, jobs)
    missing = (
        [] if found is not None else ["as published: the author's lists and table are not at hand (set ESCALA_TRACES)"]
    )
    claims = write_all(out, chosen, done, found, scale)
    return finished(out, NAME, scale, settings, claims, missing)
