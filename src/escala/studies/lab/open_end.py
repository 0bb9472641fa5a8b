"""Agents that need not be told when arrivals end: they imitate the rule hold-pile and go on with PPO, on lists of many
horizons. The look whose largest excess over the best of the three rules of `lab.horizons` is least, on lists kept for
that choice, is the agent. Loads at which next to nothing waits have an agent of their own, which imitates greedy SJF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.lab import horizons
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim, write_table

OPEN, PRESET = "open", "open"
"""Of the names of cells and agents; the preset."""
CHOOSING, TAUGHT = 14, 15
"""Seeds of the lists on which an agent is chosen, and of those that it learns from; no list of one set is in
another."""
LIGHT = 0.003
"""How much worse than the best rule an agent may be at loads where next to nothing waits."""
LIGHT_HOLD = (0, 0, 0)
"""Setting of hold-back that is imitated there: greedy SJF. The other that was tried, (3, 2, 8), gives an agent that is
at worst 0.6 % above the best rule on the lists of CHOOSING, this one 0.2 %."""
LIGHT_STEPS = 1
"""Decisions of PPO after it: a single rollout."""
Cells = Mapping[str, Any]


@dataclass(frozen=True)
class Budget:
    """How much is learnt. steps: decisions of PPO; looks: after which an agent is judged, beside the last; seeds:
    trainings; pool: lists to learn from; windows: their steps of arrivals, each its share; updates: of imitation, at
    most (0: as many as it takes)."""

    steps: int = 2_000_000
    looks: tuple[int, ...] = (1, 500_000, 1_000_000)
    seeds: int = 2
    pool: int = 9600
    windows: tuple[int, ...] = (50, 50, 100, 100, 200, 200, 400, 1000)
    updates: int = 0


SHORT, SMOKE = Budget(), Budget(32_768, (), 1, 64, (50,), 300)


@dataclass(frozen=True)
class World:
    """What agents are for. name: see `horizons.lists_of`; loads, horizons: of the cells they are judged in; pile: the
    numbers of the rule hold-pile there."""

    name: str
    loads: tuple[float, ...]
    horizons: tuple[int, ...]
    pile: Sequence[float]


def rule_cells(world: World) -> list[Cell]:
    """The three rules on the lists by which agents are chosen."""
    given = {"world": world.name, "seed": CHOOSING}
    return [
        Cell(f"{OPEN}/rules/{load}/{n}", horizons.rules, given | {"load": load, "steps": n}, n / 50)
        for load in world.loads
        for n in world.horizons
    ]


def agent_cells(world: World, budget: Budget, agents: Path, done: Cells) -> list[Cell]:
    """All trainings. agents: folder of the study's agents; done: what `rule_cells` gave."""
    best = []
    for load in world.loads:
        for n in world.horizons:
            found = done[f"{OPEN}/rules/{load}/{n}"]
            best.append((load, n, min(float(np.mean(found[rule])) for rule in horizons.RULES)))
    given = {"world": world.name, "pile": tuple(world.pile), "best": best, "budget": asdict(budget)}
    return [
        Cell(
            f"{OPEN}/{seed}",
            learn,
            given | {"seed": seed, "keep": str(agents / name_of(seed))},
            60 + budget.steps / 2e4,
        )
        for seed in range(budget.seeds)
    ]


def light_cells(world: World, budget: Budget, agents: Path, loads: Sequence[float]) -> list[Cell]:
    """An agent of its own for each of the light loads."""
    given = {"world": world.name, "budget": asdict(budget)}
    return [
        Cell(f"{OPEN}-light/{load:g}", learn_light, given | {"load": load, "keep": str(agents / light_name(load))}, 60)
        for load in (loads if budget.seeds else ())
    ]


def light_name(load: float) -> str:
    """The folder of a light load's agent."""
    return f"{OPEN}-{load:g}-0"


def learn_light(*, world: str, load: float, budget: Mapping[str, Any], keep: str) -> dict[str, Any]:
    """Train the agent of a light load into the folder `keep`: it imitates greedy SJF, then comes a rollout of PPO."""
    import escala
    from escala.agents.checkpoint import ended

    asked = Budget(**budget)
    if not ended(keep):
        hold: dict[str, Any] = {"hold-back": [list(LIGHT_HOLD)]} | (
            {"updates": [asked.updates]} if asked.updates else {}
        )
        escala.train("escala/Slots-v0", steps=LIGHT_STEPS, seed=0, preset=PRESET, out=keep, teacher=hold,
                     resume=(Path(keep) / "checkpoint.npz").is_file(), window=list(asked.windows), curve=False,
                     lists=asked.pool, lists_seed=TAUGHT, reward="relative", **_drawn(world, [load]))  # fmt: skip
    return {"steps": int(escala.load_agent(keep).manifest["steps_done"])}


def _drawn(world: str, loads: Sequence[float]) -> dict[str, Any]:
    """Options of the lists to learn from."""
    return {"load": [load / 100 for load in loads]} if world == "pool" else {"model": world, "rate": list(loads)}


def excesses(agent: Any, world: str, best: Sequence[tuple[float, int, float]]) -> list[float]:
    """Relative excess of an agent over the best rule in each cell; infinite where a run did not end."""
    found = []
    for load, steps, rule in best:
        ours = np.array(horizons.played(agent, world, load, steps, seed=CHOOSING), np.float64)
        found.append(float("inf") if np.isnan(ours).any() else float(ours.mean() / rule - 1.0))
    return found


def learn(
    *,
    world: str,
    pile: Sequence[float],
    best: Sequence[tuple[float, int, float]],
    budget: Mapping[str, Any],
    seed: int,
    keep: str,
) -> dict[str, Any]:
    """Train an agent, and keep in the folder `keep` that of its looks whose largest excess is least. best: (load,
    steps, mean slowdown of the best rule) of each cell in which it is judged."""
    import escala
    from escala.agents.checkpoint import ended

    asked = Budget(**budget)
    loads = list(dict.fromkeys(load for load, _, _ in best))
    training, looks = f"{keep}-training", sorted({*asked.looks, asked.steps})
    if not ended(training):
        teacher: dict[str, Any] = {"pile": list(pile)} | ({"updates": [asked.updates]} if asked.updates else {})
        escala.train("escala/Slots-v0", steps=asked.steps, seed=seed, preset=PRESET, out=training, teacher=teacher,
                     resume=(Path(training) / "checkpoint.npz").is_file(), snapshots=looks, window=list(asked.windows),
                     lists=asked.pool, lists_seed=TAUGHT, reward="relative", **_drawn(world, loads))  # fmt: skip
    agents = [escala.load_agent(f"{training}/after-{n}") for n in looks]
    seen = [excesses(agent, world, best) for agent in agents]
    chosen = min(range(len(looks)), key=lambda k: max(seen[k]))
    agents[chosen].save(keep)
    told = [
        {"steps": int(made.manifest["steps_done"]), "worst": max(one), "mean": float(np.mean(one))}
        for made, one in zip(agents, seen, strict=True)
    ]
    return {"looks": told, "chosen": chosen, "worst": told[chosen]["worst"]}


def chosen_seed(cells: Cells) -> int | None:
    """The seed whose agent has the least largest excess on the lists kept for that choice; None where none was
    trained."""
    seeds = [
        int(name.removeprefix(f"{OPEN}/")) for name in cells if name.startswith(f"{OPEN}/") and name.count("/") == 1
    ]
    return min(seeds, key=lambda seed: (cells[f"{OPEN}/{seed}"]["worst"], seed), default=None)


def name_of(seed: int) -> str:
    """An agent's folder."""
    return f"{OPEN}-all-{seed}"


def frame(cells: Cells) -> pl.DataFrame:
    """One row a seed and look on the lists kept for the choice; chosen: it is the agent."""
    best = chosen_seed(cells)
    return pl.DataFrame(
        [
            {"seed": seed, "decisions": look["steps"], "worst": look["worst"],
             "mean": look["mean"], "chosen": seed == best and k == cells[name]["chosen"]}
            for name in cells
            if name.startswith(f"{OPEN}/") and name.count("/") == 1
            for seed in [int(name.removeprefix(f"{OPEN}/"))]
            for k, look in enumerate(cells[name]["looks"])
        ]
    )  # fmt: skip


def claims(key: str, out: Path, cells: Cells, least: float = 0.0) -> list[Claim]:
    """The claims of the agent that knows no end, where arrivals go on for shorter and longer: KEY.horizon.worst, and
    KEY.horizon.light at loads below `least`: of the agents of these loads, else of this one, which learns nothing of
    them. Writes the tables `horizons` and `open`."""
    table, seed = horizons.frame(cells), chosen_seed(cells)
    if len(table):
        write_table(out, "horizons", table)
    if seed is None:
        return []
    write_table(out, OPEN, frame(cells))
    usual = table.filter(pl.col("load") >= least)
    about = "one agent for all loads that knows no end of arrivals"
    return [
        *horizons.worst_claim(f"{key}.horizon.worst", usual, [name_of(seed)], about),
        *light_claims(key, table.filter(pl.col("load") < least), name_of(seed)),
    ]


def light_claims(key: str, table: pl.DataFrame, usual: str) -> list[Claim]:
    """KEY.horizon.light from the rows of light loads. usual: the agent for all loads."""
    own = (
        sorted({name for name in table["agent"] if name != usual and name.startswith(f"{OPEN}-")}) if len(table) else []
    )
    about = "an agent of a light load that knows no end of arrivals"
    unlearnt = "one agent for all loads that knows no end of arrivals, at loads that it did not learn"
    return horizons.worst_claim(f"{key}.horizon.light", table, own or [usual], about if own else unlearnt, LIGHT)
