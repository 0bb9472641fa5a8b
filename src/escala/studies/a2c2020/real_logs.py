"""Of `a2c2020` table 4 on real logs: what the paper did with one log of its own, and what it did not, jobs that were
not learnt from.

Of each log several windows of 60 consecutive jobs are taken, spread evenly over it, and trained and tested on as the
paper did: A2C from nothing, and a plan that is searched for these very jobs. Unseen: A2C learns from all windows of the
first three fifths of the log; sampled or greedy actions are chosen on those of the next fifth, and windows of the last
are played. Hold-back is tuned where the agent learns. Windows are turned into the study's units as `cells.in_units`
says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs.slots.lists import JobLists
from escala.envs.slots.plan import search_plan
from escala.envs.slots.playing import play, tune_hold_back
from escala.studies.a2c2020.cells import (
    LOG_JOBS,
    RULES,
    SLOTS,
    figures_of,
    in_units,
    judge,
    log_alone,
    log_jobs,
    log_lists,
    log_rules,
)
from escala.studies.a2c2020.curves import best_way
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim
from escala.studies.lab.slotted import QUIETS, SHARES, Cells, claim, matrix, unfinished

LOGS = {
    "buffalo": ("slurm/xdmod-phillips.sacct.log.gz", "a cluster of Buffalo, sacct"),
    "eagle": ("slurm/NREL-Eagle-sample-1000.csv.gz", "NREL's Eagle, Slurm's accounting"),
    "kth": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2, SWF"),
    "sdsc": ("swf/SDSC-SP2-1998-5K-sample.swf.gz", "SDSC-SP2, SWF"),
    "hpc2n": ("swf/HPC2N-2002-2-first3000.swf.gz", "HPC2N, SWF"),
}
"""Log -> its file among the traces, and what it is."""
PARTS = (0.6, 0.8)
"""Shares of a log's windows up to which an agent learns, and up to which its way of acting is chosen; the rest is
played."""
MOST = 40
"""Windows of each part that are judged or tuned on, evenly spread."""
SHOWN = ("sjf", "tetris", "random", "hold-back")
WAYS = {
    "plan": "a plan searched for these very jobs",
    "a2c": "A2C from nothing on these very jobs",
    "unseen": "A2C from nothing, unseen",
}


def at_hand(traces: Path | None) -> dict[str, str]:
    """The logs that are there: name -> file."""
    return (
        {}
        if traces is None
        else {name: str(traces / file) for name, (file, _) in LOGS.items() if (traces / file).is_file()}
    )


def windows_of(log: str) -> tuple[JobLists, JobLists, JobLists]:
    """All windows of a log, one after the other: to learn from, to choose on, and to judge on (of the latter two at
    most MOST)."""
    jobs = log_jobs(log)
    lists = in_units([jobs.slice(LOG_JOBS * k, LOG_JOBS) for k in range(jobs.height // LOG_JOBS)], Path(log).name)
    ends = [0, *(round(share * len(lists)) for share in PARTS), len(lists)]
    learnt, chosen, judged = (list(range(begin, max(end, begin + 1))) for begin, end in pairwise(ends))
    return lists.part(learnt), lists.part(_some(chosen)), lists.part(_some(judged))


def _some(numbers: Sequence[int]) -> list[int]:
    """At most MOST of them, evenly spread."""
    count = min(MOST, len(numbers))
    return [numbers[(2 * k + 1) * len(numbers) // (2 * count)] for k in range(count)]


def planned(log: str, part: tuple[int, int], rounds: int) -> dict[str, Any]:
    """The best plan found for a window: what there is to be had by who knows all of its jobs beforehand."""
    lists = log_lists(log, part)
    return {"sampled": {"slowdown": [search_plan(lists, lists.job["submit"] / 1e6, rounds, 0, slots=SLOTS).slowdown]}}


def unseen_rules(log: str) -> dict[str, Any]:
    """The rules on the windows that are judged on; hold-back is tuned on some of those that are learnt from."""
    learnt, _, judged = windows_of(log)
    hold = tune_hold_back(learnt.part(_some(range(len(learnt)))), QUIETS, SHARES, slots=SLOTS)
    out: dict[str, Any] = {rule: figures_of(play(judged, rule, slots=SLOTS)) for rule in RULES}
    return out | {"hold-back": figures_of(play(judged, "hold-back", hold=hold, slots=SLOTS)), "hold": list(hold)}


def unseen(log: str, steps: int, seed: int) -> dict[str, Any]:
    """A2C with the slot scorer, from nothing, on windows that it did not learn from."""
    import escala

    learnt, chosen, judged = windows_of(log)
    lists = [learnt.workload(k) for k in range(len(learnt))]
    agent = escala.train(
        "escala/Slots-v0", lists, learnt.platform, steps=steps, seed=seed, preset="a2c-list", algorithm="a2c"
    )
    tried = judge(agent, chosen, seed)
    return judge(agent, judged, seed) | {
        "validation": {how: tried[how]["slowdown"] for how in ("sampled", "likeliest")}
    }


def cells_of(scale: Any, logs: Mapping[str, str]) -> list[Cell]:
    """Everything to do. logs: name -> file."""
    found = []
    for name, log in logs.items() if scale.real_windows else ():
        for part in ((k, scale.real_windows) for k in range(scale.real_windows)):
            one: dict[str, Any] = {"log": log, "part": part}
            found.append(Cell(f"real/{name}/{part[0]}/rules", log_rules, one, 1))
            found.append(Cell(f"real/{name}/{part[0]}/plan", planned, one | {"rounds": scale.rounds}, 10))
            learn = one | {"seed": 0, "episodes": scale.episodes, "steps": scale.real}
            found.append(Cell(f"real/{name}/{part[0]}/a2c", log_alone, learn, 3 + scale.real / 2e4))
        found.append(Cell(f"real/{name}/unseen/rules", unseen_rules, {"log": log}, 5))
        for seed in range(scale.real_seeds):
            found.append(
                Cell(
                    f"real/{name}/unseen/{seed}",
                    unseen,
                    {"log": log, "steps": scale.real, "seed": seed},
                    3 + scale.real / 2e4,
                )
            )
    return found


def names_of(cells: Cells) -> list[str]:
    """The logs that were judged on."""
    return [name for name in LOGS if f"real/{name}/unseen/rules" in cells]


def figures(cells: Cells, name: str, way: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Mean slowdowns of a way of learning [seeds, windows], of SJF [windows], and how it acted. Windows learnt by heart
    have one seed."""
    if way == "unseen":
        names = [key for key in cells if key.startswith(f"real/{name}/unseen/") and not key.endswith("/rules")]
        how = best_way(cells, names)
        return (
            matrix(cells, names, how, "slowdown"),
            np.array(cells[f"real/{name}/unseen/rules"]["sjf"]["slowdown"], np.float64),
            how,
        )
    windows = [key.rpartition("/")[0] for key in cells if key.startswith(f"real/{name}/") and key.endswith(f"/{way}")]
    ours = np.array([matrix(cells, [f"{window}/{way}"], "sampled", "slowdown").mean() for window in windows])
    return (
        ours[None],
        np.array([np.mean(cells[f"{window}/rules"]["sjf"]["slowdown"]) for window in windows], np.float64),
        "sampled",
    )


def claims(cells: Cells) -> list[Claim]:
    """Each way of learning against SJF on each log; nothing is held against them."""
    found = []
    for name in names_of(cells):
        for way, about in WAYS.items():
            ours, sjf, how = figures(cells, name, way)
            means = f"{sjf.mean():.3f}" if unfinished(ours) else f"{ours.mean():.3f} against {sjf.mean():.3f}"
            acts = "" if way == "plan" else f", {how} actions"
            note = f"{len(sjf)} windows of 60 jobs{acts}; {means} of SJF; a finding, no test"
            text = f"{about}, {LOGS[name][1]}: mean slowdown against SJF"
            found.append(claim(f"r2.log.{name}_{way}", text, None, ours, sjf, None, note))
    return found


def frame(cells: Cells) -> pl.DataFrame:
    """One row a log, kind of windows (these very jobs, unseen ones) and policy: its mean slowdown."""
    rows = []
    for name in names_of(cells):
        for kind in ("same", "unseen"):
            for rule in SHOWN:
                rows.append(_row(name, kind, rule, _rule(cells, name, kind, rule)))
            for way in WAYS:
                if (way == "unseen") == (kind == "unseen"):
                    rows.append(_row(name, kind, way, figures(cells, name, way)[0]))
    return pl.DataFrame(rows, infer_schema_length=None)


def _rule(cells: Cells, name: str, kind: str, rule: str) -> np.ndarray:
    if kind == "unseen":
        return np.array(cells[f"real/{name}/unseen/rules"][rule]["slowdown"], np.float64)
    own = [key for key in cells if key.startswith(f"real/{name}/") and key.endswith("/rules") and "/unseen/" not in key]
    return np.array([np.mean(cells[key][rule]["slowdown"]) for key in own])


def _row(name: str, kind: str, policy: str, values: np.ndarray) -> dict[str, Any]:
    left = unfinished(values)
    mean = None if left else float(values.mean())
    return {
        "log": name,
        "windows": values.shape[-1],
        "jobs": kind,
        "policy": policy,
        "unfinished": left,
        "mean_slowdown": mean,
    }
