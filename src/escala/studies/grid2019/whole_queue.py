"""R1's lists in the event-driven simulator: schedulers that see the whole queue, for what a longer look is worth beside
the author's PPO, EASY as its author ran it, and the agents of these lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import escala
from escala.envs.slots.lists import JobLists
from escala.envs.slots.playing import play
from escala.metrics.bootstrap import paired
from escala.studies.grid2019.messages import LATENCY, EasyByMessages
from escala.studies.grid2019.published import LOADS, PAPER_OF, published_lists, published_table
from escala.studies.lab.slotted import METRICS

POOL = "10x1"
GREEDY, STRICT, STRICT_32, ROLLOUT = (
    "sjf, whole queue",
    "strict sjf, whole queue",
    "strict sjf, 32 slots",
    "rollout, whole queue",
)
EASY_SENT = f"easy, messages of {LATENCY} us"
SLOTS = 32
EVENTS, RUNS = "our agent, event-driven", 100
"""The agent of a list, by drawn choices as in the paper, in the simulator that runs by events as the paper's does;
runs."""
BUSY = 100
"""Load from which look-ahead is played: below it takes long and changes little."""


def on_list(folder: str, load: int, seeds: int, futures: int) -> dict[str, list[float]]:
    """Mean slowdowns on the author's list of a load; look-ahead, which has not seen the list, for each of some
    seeds."""
    lists = published_lists(Path(folder)).part([LOADS.index(load)])
    jobs = lists.workload(0)

    def played(scheduler: str | EasyByMessages, seed: int = 0) -> float:
        return float(escala.simulate(jobs, POOL, scheduler, seed=seed).summary()["mean_slowdown"])

    found = {
        GREEDY: [played("sjf-fit")],
        STRICT: [played("sjf")],
        STRICT_32: [float(play(lists, "sjf-strict", slots=SLOTS)["slowdown"][0])],
        EASY_SENT: [played(EasyByMessages(len(jobs)))],
    }
    if load >= BUSY:
        found[ROLLOUT] = [played(f"rollout:{futures}:objective=slowdown", seed) for seed in range(seeds)]
    return found


def easy_sent(lists: JobLists) -> dict[str, list[Any]]:
    """EASY as its author ran it on a single list: what a play is judged by, as `escala.envs.slots.playing.play` has
    it."""
    jobs = lists.workload(0)
    found = escala.simulate(jobs, POOL, EasyByMessages(len(jobs))).summary()
    return {figure: [float(found[column])] for figure, column in METRICS.items()} | {"finished": [True]}


def by_agent(folder: str, load: int, keep: str, runs: int) -> list[float]:
    """Mean slowdowns of so many runs of an agent on the author's list of a load, in the event-driven simulator."""
    jobs, agent = published_lists(Path(folder)).part([LOADS.index(load)]).workload(0), escala.load_agent(keep)
    drawn = (
        escala.simulate(jobs, POOL, agent.policy(sampled=True, seed=seed), seed=seed).summary() for seed in range(runs)
    )
    return [float(summary["mean_slowdown"]) for summary in drawn]


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """The 95 % interval of a mean over runs."""
    x = np.array([values], np.float64)
    found = paired(x, np.zeros_like(x[0]), statistic="difference", resamples=2000)
    return {"low": float(found.low), "high": float(found.high)}


def frame(cells: Mapping[str, Any], author: Path) -> pl.DataFrame:
    """One row a load and policy: the mean over seeds (or runs), the least and the most of them, and of an agent's runs
    the interval of the mean (low, high); the author's PPO and SJF beside."""
    table, rows = published_table(author), []
    for load in LOADS:
        name = f"published/queue/{load}"
        if name not in cells:
            continue
        told = {
            f"author's {who}": table.filter((pl.col("load") == load) & (pl.col("policy") == who))
            for who in ("PPO", PAPER_OF["sjf"])
        }
        found = {who: [float(row["mean_slowdown"][0])] for who, row in told.items()} | cells[name]
        found |= {EVENTS: cells[f"published/events/{load}"]} if f"published/events/{load}" in cells else {}
        for policy, values in found.items():
            row = {"load": load, "policy": policy, "seeds": len(values), "mean_slowdown": float(np.mean(values)),
                   "least": min(values), "most": max(values)}  # fmt: skip
            rows.append(row | dict.fromkeys(("low", "high")) | (spread_of(values) if policy == EVENTS else {}))
    return pl.DataFrame(rows, infer_schema_length=None)
