"""The pieces of the study `a2c2020`: rules and agents on lists of jobs with CPU and memory demands, and on a log of 60
jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs.slots.lists import JobLists, draw_lists, given_lists, machine_of
from escala.envs.slots.options import RESCUE, shaping
from escala.envs.slots.plan import search_plan
from escala.envs.slots.playing import FIGURES, play, tune_hold_back
from escala.errors import EscalaError
from escala.studies.lab.slotted import HOLD_END, QUIETS, SHARES, best_found
from escala.workload import Workload, read_workload
from escala.workload.generate_slots import cpu_memory_model

SLOTS, WINDOW, CAPACITY, LONGEST = 5, 50, 10, 15
RULES = ("sjf", "sjf-strict", "tetris", "tetris-normalised", "packer", "easy", "fcfs", "random")
TRAINING, VALIDATION, TEST = 1, 2, 3  # seeds of the job lists; no list of one set is in another
PATIENCE = 4000
LOG_JOBS = 60
PILE = (
    2.134, -0.262, -0.018, 0.077, 0.072, -0.466, 8.045, 0.471,
    -1.605, 0.911, 1.039, -0.350, 0.747, -0.165, 3.668, 0.210,
)  # fmt: skip
"""Numbers of the rule hold-pile on these lists, see `envs.slots.pile`: set by hand, then searched as
bench/fit_hold_pile.py does (CMA-ES, five minutes), on lists of their own."""
CHOSEN = "conv3-16"  # the paper's network
A2C_LIMITS = {0.7: 0.10, 0.9: 0.20}
"""How far above SJF A2C may be, tuned (the slot scorer on the compact observation, preset "a2c") and as printed (on the
image); at other rates no mark is set: findings."""


def lists_of(rate: float, count: int, seed: int) -> JobLists:
    """Windows of 50 steps, to be run to completion."""
    return draw_lists(cpu_memory_model(rate, WINDOW), count, seed)


def figures_of(frame: Any) -> dict[str, Any]:
    """What a play is judged by, list by list."""
    return {name: frame[name].to_list() for name in (*FIGURES, "finished")}


def rules_on(lists: JobLists, hold: tuple[int, int, int]) -> dict[str, Any]:
    """Every rule on every list."""
    out: dict[str, Any] = {rule: figures_of(play(lists, rule, slots=SLOTS)) for rule in RULES}
    return out | {"hold-back": figures_of(play(lists, "hold-back", hold=hold, slots=SLOTS)), "hold": list(hold)}


def rules(rate: float, validation: int, test: int) -> dict[str, Any]:
    """The rules on test lists; hold-back is tuned on validation lists, with and without knowing the end of arrivals."""
    tried, lists = lists_of(rate, validation, VALIDATION), lists_of(rate, test, TEST)
    out = rules_on(lists, tune_hold_back(tried, QUIETS, SHARES, slots=SLOTS))
    known: dict[str, Any] = {"slots": SLOTS, "arrivals_end": WINDOW}
    hold = tune_hold_back(tried, QUIETS, SHARES, **known)
    return out | {HOLD_END: figures_of(play(lists, "hold-back", hold=hold, **known)), "hold_end": list(hold)}


def optimum(rate: float, test: int, count: int, limit_s: float) -> dict[str, list[Any]]:
    """Best schedule found and lower bound of the mean slowdown, clairvoyant, of the first `count` of `test` test
    lists."""
    return best_found(lists_of(rate, test, TEST).part(range(count)), limit_s)[0]


def judge(agent: Any, lists: JobLists, seed: int, greedy: bool = True) -> dict[str, Any]:
    """An agent on every list: sampled actions, and greedy ones; decisions and seconds by the clock of its training, and
    what it earned in it."""
    shaped = shaping(agent.env_options)
    random = np.random.default_rng([seed, 0xA2C])
    out: dict[str, Any] = {
        "sampled": figures_of(
            play(lists, lambda seen, mask: agent.act(seen, mask, random), patience=PATIENCE, **shaped)
        ),
        "steps": int(agent.manifest["steps_done"]),
        "seconds": float(agent.manifest["elapsed_s"]),
        "returns": agent.manifest["returns"],
    }
    if greedy:
        played = play(lists, lambda seen, mask: agent.act(seen, mask, None), patience=PATIENCE, rescue=RESCUE, **shaped)
        out["likeliest"] = figures_of(played)
    return out


def trained(
    *,
    rate: float,
    steps: int,
    seed: int,
    pool: int,
    validation: int,
    test: int,
    preset: str,
    algorithm: str,
    taught: bool = False,
    keep: str | None = None,
    teacher: Any = None,
    num_envs: int | None = None,
    learn: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train on lists of one rate; judge on test and validation lists. taught: imitate hold-back first, tuned on
    training lists; or teacher, num_envs, learn: as `escala.train` takes them."""
    import escala
    from escala.agents.checkpoint import ended

    if ended(keep):
        agent = escala.load_agent(keep)
    else:
        unfinished = keep is not None and (Path(keep) / "checkpoint.npz").is_file()
        if taught:
            teacher = [list(tune_hold_back(lists_of(rate, validation, TRAINING), slots=SLOTS))]
        agent = escala.train("escala/Slots-v0", steps=steps, seed=seed, preset=preset, algorithm=algorithm, out=keep,
                             resume=unfinished,
                             rate=rate, lists=pool, lists_seed=TRAINING, teacher=teacher, num_envs=num_envs,
                             learn=learn)  # fmt: skip
    out = judge(agent, lists_of(rate, test, TEST), seed)
    tried = judge(agent, lists_of(rate, validation, VALIDATION), seed)
    return out | {"validation": {how: tried[how]["slowdown"] for how in ("sampled", "likeliest")}}


def printed_cells(scale: Any, rate: float) -> list[str]:
    """Names of the cells of A2C as printed (the chosen network on the image) at a rate: one a seed, and those of table
    3 where they are the same trainings. Rates with a mark for A2C have `printed_seeds` seeds, others one."""
    if rate == scale.network_rate and CHOSEN in scale.networks and scale.network == scale.printed:
        return [f"network/{CHOSEN}/{seed}" for seed in range(scale.network_seeds)]
    return [
        f"printed/{rate}/{seed}"
        for seed in range(scale.printed_seeds if rate in A2C_LIMITS else min(scale.printed_seeds, 1))
    ]


def log_lists(log: str | None, part: tuple[int, int] = (0, 1)) -> JobLists:
    """60 consecutive jobs in units: of a log, or generated. part: (k, n), the middle ones of the k-th of n parts of the
    log."""
    if log is None:
        model = cpu_memory_model(0.7, 4 * LOG_JOBS)
        whole = draw_lists(model, 1, 2020).workload(0).jobs.head(LOG_JOBS)
        return given_lists([Workload.from_jobs(whole, name="generated log")], machine_of(model), 1.0, "runtime")
    jobs, (k, n) = log_jobs(log), part
    return in_units([jobs.slice((jobs.height - LOG_JOBS) * (2 * k + 1) // (2 * n), LOG_JOBS)], Path(log).name)


def log_jobs(log: str) -> pl.DataFrame:
    """The jobs of a log, with the memory that they asked for where it says so. EscalaError where it has fewer than
    60."""
    jobs = read_workload(log, shapes=True).jobs
    if jobs.height < LOG_JOBS:
        raise EscalaError(f"{log}: holds {jobs.height} jobs; the study takes {LOG_JOBS} consecutive ones")
    return jobs


def in_units(parts: Sequence[pl.DataFrame], name: str) -> JobLists:
    """Parts of a log as job lists. In each a unit is the 90th percentile of its runtimes / 15, lengths are rounded up
    and cut at 15; CPU is the share of the largest request among its jobs, in tenths, rounded up; so is memory, 1 of 10
    where a job names none."""
    lists = []
    for part in parts:
        runtime, submit = part["runtime_s"].to_numpy(), part["submit_s"].to_numpy()
        unit = max(float(np.percentile(runtime, 90)) / LONGEST, 1e-6)
        columns = {
            "submit_s": np.floor((submit - submit[0]) / unit),
            "runtime_s": np.clip(np.ceil(runtime / unit), 1, LONGEST),
            "cores": _tenths(part["cores"].to_numpy().astype(np.float64)),
            "demand_memory": _tenths(_memory(part)),
            "single_node": np.ones(part.height, bool),
        }
        lists.append(Workload.from_jobs(columns, name=name))
    return given_lists(lists, machine_of(cpu_memory_model()), 1.0, "runtime")


def _tenths(asked: np.ndarray) -> np.ndarray:
    """Shares of the largest, in tenths, rounded up: 1 to 10."""
    return np.ceil(CAPACITY * asked / max(float(asked.max()), 1e-9)).clip(1, CAPACITY).astype(np.int64)


def _memory(part: pl.DataFrame) -> np.ndarray:
    """Memory that each job asked for in all, MB; 0 where it is not said."""
    found = np.zeros(part.height)
    for column, times in (("memory_mb_per_core", "cores"), ("memory_mb_per_node", "nodes")):
        if column in part.columns:
            count = part[times].fill_null(1).to_numpy() if times in part.columns else 1
            found = np.maximum(found, part[column].fill_null(0).to_numpy() * count)
    return found


def log_rules(log: str | None, part: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """The rules on the 60 jobs; random 20 times."""
    lists = log_lists(log, part)
    out = rules_on(lists, tune_hold_back(lists, QUIETS, SHARES, slots=SLOTS))
    return out | {"random": figures_of(play(lists.part([0] * 20), "random", slots=SLOTS))}


def log_agent(
    log: str | None, steps: int, seed: int, episodes: int, rounds: int, part: tuple[int, int] = (0, 1)
) -> dict[str, Any]:
    """Train on the 60 jobs and play them `episodes` times, as R2 did; this agent begins by imitating a plan searched
    for these jobs."""
    import escala

    lists = log_lists(log, part)
    plan = search_plan(lists, lists.job["submit"] / 1e6, rounds, 0, slots=SLOTS)
    agent = escala.train("escala/Slots-v0", [lists.workload(0)], lists.platform, steps=steps, seed=seed,
                         preset="planned", slots=SLOTS,
                         placement="start-now", teacher={"plan": plan.wanted.tolist()})  # fmt: skip
    return judge(agent, lists.part([0] * episodes), seed) | {"planned": plan.slowdown}


def log_alone(log: str | None, steps: int, seed: int, episodes: int, part: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """A2C with the slot scorer, trained on the 60 jobs from nothing, as R2's was."""
    import escala

    lists = log_lists(log, part)
    agent = escala.train(
        "escala/Slots-v0",
        [lists.workload(0)],
        lists.platform,
        steps=steps,
        seed=seed,
        preset="a2c-list",
        algorithm="a2c",
    )
    return judge(agent, lists.part([0] * episodes), seed)
