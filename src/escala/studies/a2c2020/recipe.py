"""R2 (Liang et al., A2cScheduler, 2020): can A2C schedule jobs with CPU and memory demands better than SJF, Tetris and
chance?

The text prints no demand, runtime, capacity, slot number, window or setting of the learner, and its tables contradict
themselves (completion minus wait differs between policies of one row): order and size can be reproduced, digits cannot.
Our reading: two resources of 10, one dominant with 3..5, the other 1; runtimes 80 % 1..3, else 10..15; 5 slots, horizon
20; 50 steps of arrivals, then run to completion, and every job counts. Separate lists for training, validation and
test.

Compared: the rules; the recommended agent: masked PPO with a network that scores slots and sees when arrivals end,
which imitates the rule hold-back first; the same kind of PPO alone (half of its training lists are windows of 200
steps, cut there: short windows alone teach it to hold long jobs until arrivals end); A2C with that network; and A2C
with the networks of table 3 on the image (its chosen one, Conv3-16, at all rates), and positive controls beside it
(`a2c2020.controls`). Of each, the way of acting (sampled or greedy actions) is chosen on validation lists. Table 4's
log: 60 jobs of a log that the user gives (`log`), by default generated; the agent of the table begins with a plan of
it, A2C from nothing stands beside it. Where real logs are at hand (`traces`), the same on windows of theirs, and on
jobs that were not learnt from (`a2c2020.real_logs`).

No end: one agent for all rates that is not told when arrivals end (preset "open", see `lab.open_end`). It and the
recommended agents are then played where arrivals go on for shorter and longer (`lab.horizons`), beside rules that see
nearly the whole queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from escala.studies.a2c2020 import cells as work
from escala.studies.a2c2020 import controls, real_logs
from escala.studies.a2c2020.report import write_all
from escala.studies.lab import horizons, open_end
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import finished, scale_of
from escala.studies.lab.r3_inputs import folder_of_traces

NAME = "a2c2020"
NETWORKS = ("fc", "conv3-16", "conv3-32", "conv3-16-pool", "conv3-32-pool")
RELATIVE_COST = {"fc": 1.0, "conv3-16": 10.0, "conv3-32": 20.0, "conv3-16-pool": 10.0, "conv3-32-pool": 14.0}


@dataclass(frozen=True)
class Scale:
    """How much is done. agent, alone, a2c, printed, network, log: decisions to train on, for the recommended agent
    (after its teacher), PPO alone, A2C with the slot scorer, A2C with Conv3-16 on the image, each network of table 3
    (at `network_rate`), and the log (after `rounds` of search for a plan); real: of A2C on each of `real_windows`
    windows of a real log, and in `real_seeds` seeds for unseen ones;
    controls: of each positive control; printed_seeds: where A2C has a mark, see `printed_cells`; curve: budgets of
    figures 3 and 4 (a rollout of PPO is 16 384 decisions), curve_image: of Conv3-16 on the image; best: test lists a
    rate whose optimum is searched for, `limit_s` seconds each; open: of the agents that know no end."""

    rates: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9)
    seeds: int = 5
    agent: int = 600_000
    alone: int = 600_000
    alone_seeds: int = 2
    a2c: int = 500_000
    a2c_seeds: int = 5
    printed: int = 500_000
    printed_seeds: int = 3
    networks: tuple[str, ...] = NETWORKS
    network: int = 500_000
    network_seeds: int = 3
    network_rate: float = 0.7
    controls: int = 300_000
    curve: tuple[int, ...] = (32_768, 65_536, 262_144)
    curve_image: tuple[int, ...] = (16_384, 65_536, 262_144)
    curve_seeds: int = 3
    log: int = 100_000
    rounds: int = 200
    log_seeds: int = 3
    real: int = 262_144
    real_windows: int = 5
    real_seeds: int = 2
    pool: int = 4096
    validation: int = 200
    test: int = 500
    episodes: int = 100
    best: int = 40
    limit_s: float = 1.0
    open: open_end.Budget = open_end.SHORT
    horizons: tuple[int, ...] = horizons.HORIZONS


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        rates=(0.7,), seeds=1, agent=32_768, alone=16_384, alone_seeds=1, a2c=8_192, a2c_seeds=1, printed=1_024,
        printed_seeds=1,
        networks=("fc", "conv3-16-pool"), network=1_024, network_seeds=1, controls=512, curve=(1_024,),
        curve_image=(512,), curve_seeds=1,
        log=1_024, rounds=3, log_seeds=1, real=1_024, real_windows=1, real_seeds=1, pool=64, validation=10, test=30,
        episodes=10, best=2, limit_s=0.5, open=open_end.SMOKE, horizons=(50,),
    ),
    "short": Scale(),
    "paper": Scale(
        agent=3_000_000, alone=3_000_000, alone_seeds=5, a2c=3_000_000, printed_seeds=5, controls=10_000_000,
        curve=(32_768, 65_536, 262_144, 1_000_000), curve_seeds=5, log=1_000_000, rounds=2000, log_seeds=5,
        real=1_000_000, real_seeds=5, test=1000, best=200, limit_s=20.0,
    ),
}  # fmt: skip


def cells_of(scale: Scale, out: Path, log: str | None) -> list[Cell]:
    """Everything that the study does, seed by seed."""
    sizes = {"pool": scale.pool, "validation": scale.validation, "test": scale.test}
    cells = [
        Cell(f"rules/{rate}", work.rules, {"rate": rate, "validation": scale.validation, "test": scale.test}, 2)
        for rate in scale.rates
    ]
    for rate in scale.rates:
        best = {"rate": rate, "test": scale.test, "count": scale.best, "limit_s": scale.limit_s}
        cells.append(Cell(f"optimum/{rate}", work.optimum, best, scale.best * scale.limit_s))
    cells.append(Cell("log/rules", work.log_rules, {"log": log}, 1))
    for seed in range(
        max(
            scale.seeds,
            scale.alone_seeds,
            scale.a2c_seeds,
            scale.printed_seeds,
            scale.network_seeds,
            scale.curve_seeds,
            scale.log_seeds,
        )
    ):
        for rate in scale.rates:
            ask = sizes | {"rate": rate, "seed": seed}
            if seed < scale.seeds:
                given = ask | {
                    "steps": scale.agent,
                    "preset": "cpu-memory-taught",
                    "algorithm": "maskable-ppo",
                    "taught": True,
                }
                given["keep"] = str(out / "agents" / f"agent-{rate}-{seed}")
                cells.append(Cell(f"agent/{rate}/{seed}", work.trained, given, 10 + scale.agent / 4e4))
            if seed < scale.alone_seeds:
                given = ask | {"steps": scale.alone, "preset": "cpu-memory", "algorithm": "maskable-ppo"}
                cells.append(Cell(f"alone/{rate}/{seed}", work.trained, given, 3 + scale.alone / 4e4))
            if seed < scale.a2c_seeds:
                given = ask | {"steps": scale.a2c, "preset": "a2c", "algorithm": "a2c"}
                cells.append(Cell(f"a2c/{rate}/{seed}", work.trained, given, 3 + scale.a2c / 5e4))
        if seed < scale.log_seeds:
            cells.append(
                Cell(
                    f"log/{seed}",
                    work.log_agent,
                    {"log": log, "steps": scale.log, "seed": seed, "episodes": scale.episodes, "rounds": scale.rounds},
                    scale.log / 4e4,
                )
            )
        cells += _curves(scale, seed, sizes, log)
    return cells + _images(scale, sizes) + controls.cells_of(scale, sizes) + open_end.rule_cells(open_world(scale))


def open_world(scale: Scale) -> open_end.World:
    """Where agents that know no end are judged, and the sweep of horizons."""
    return open_end.World("cpu-memory", scale.rates, scale.horizons, work.PILE)


def horizon_cells(scale: Scale, out: Path, done: Mapping[str, Any]) -> list[Cell]:
    """On shorter and longer lists: the chosen one of the agents that know no end, and the recommended agents of the
    first seed, each at its rate."""
    agents, seed = out / "agents", open_end.chosen_seed(done)
    found: dict[str, tuple[str, Sequence[float]]] = {}
    if seed is not None:
        found[open_end.name_of(seed)] = str(agents / open_end.name_of(seed)), scale.rates
    found |= {f"agent-{rate}-0": (str(agents / f"agent-{rate}-0"), [rate]) for rate in scale.rates if scale.seeds}
    return horizons.cells_of(found, "cpu-memory", scale.horizons)


def _images(scale: Scale, sizes: Mapping[str, int]) -> list[Cell]:
    """A2C on the image: table 3 at one rate, and the chosen network at all rates (at that of table 3 the same
    trainings)."""
    asked: dict[str, dict[str, Any]] = {
        f"network/{name}/{seed}": {"rate": scale.network_rate, "seed": seed, "steps": scale.network, "preset": name}
        for seed in range(scale.network_seeds)
        for name in scale.networks
    }
    for rate in scale.rates:
        for seed, name in enumerate(work.printed_cells(scale, rate)):
            asked[name] = {"rate": rate, "seed": seed, "steps": scale.printed, "preset": work.CHOSEN}
    return [
        Cell(
            name,
            work.trained,
            {**sizes, **given, "algorithm": "a2c"},
            RELATIVE_COST[given["preset"]] * given["steps"] / 14_000,
        )
        for name, given in asked.items()
    ]


def _curves(scale: Scale, seed: int, sizes: Mapping[str, int], log: str | None) -> list[Cell]:
    """Figures 3 (at one rate) and 4 (on the log's jobs): whole trainings of several budgets."""
    cells: list[Cell] = []
    if seed >= scale.curve_seeds:
        return cells
    ask = {**sizes, "rate": scale.network_rate, "seed": seed}
    for kind, preset, algorithm, budgets, speed in (
        ("curve-alone", "cpu-memory", "maskable-ppo", scale.curve, 4e4),
        ("curve-a2c", "a2c", "a2c", scale.curve, 5e4),
        ("curve-image", work.CHOSEN, "a2c", scale.curve_image, 1.4e3),
    ):
        for budget in budgets:
            given = ask | {"steps": budget, "preset": preset, "algorithm": algorithm}
            cells.append(Cell(f"{kind}/{budget}/{seed}", work.trained, given, 2 + budget / speed))
    for budget in scale.curve:
        given = {"log": log, "steps": budget, "seed": seed, "episodes": scale.episodes}
        cells.append(Cell(f"log-curve/{budget}/{seed}", work.log_alone, given, 2 + budget / 5e4))
    return cells


def run(
    scale: str,
    out: Path,
    *,
    jobs: int | str = 2,
    log: Path | None = None,
    traces: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Do the study and write it into `out`: claims, tables, figures, agents, manifest. Interrupted, the same call goes
    on.

    jobs: processes side by side, or an engine, as `run_cells` takes it.
    log: a log whose 60 middle jobs table 4 takes; by default 60 jobs are generated, and the manifest says so.
    traces: the folder of real logs, on which table 4 is done too; by default $ESCALA_TRACES, or the one beside the
    repository.
    """
    chosen, logs = scale_of(SCALES, scale, jobs), real_logs.at_hand(folder_of_traces(traces))
    work.log_lists(None if log is None else str(log))  # a log that does not suit is refused before the work
    settings: Mapping[str, Any] = {
        "scale": scale,
        "log_file": None if log is None else str(log),
        "logs": list(logs),
        **asdict(chosen),
    }
    out.mkdir(parents=True, exist_ok=True)
    cells = cells_of(chosen, out, None if log is None else str(log)) + real_logs.cells_of(chosen, logs)
    done = run_cells(out, cells, settings, jobs, progress)
    done |= run_cells(out, open_end.agent_cells(open_world(chosen), chosen.open, out / "agents", done), settings, jobs)
    done |= run_cells(out, horizon_cells(chosen, out, done), settings, jobs)
    missing = (
        []
        if log is not None or logs
        else ["table 4 on a real log: none was at hand; 60 generated jobs stand in for it"]
    )
    claims = write_all(out, chosen, done, scale, log)
    return finished(out, NAME, scale, settings, claims, missing)
