"""R1's figure 5: a trained agent at work, four looks at its world one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import JobLists
from escala.envs.slots.options import shaping
from escala.envs.slots.picture import middles, picture_of
from escala.envs.slots.slots import SlotsBatch
from escala.kernel import codes
from escala.studies.grid2019.cells import PATIENCE, TEST, lists_of
from escala.studies.grid2019.published import LOADS, published_lists

LOOKS = SLOTS = 4
"""As many as the paper shows."""
LOAD = 100
COLUMNS = {"look": pl.Int64, "time": pl.Int64, "chosen": pl.String, "where": pl.String, "job": pl.Int64,
           "cores": pl.Int64, "length": pl.Int64, "submitted": pl.Int64, "start": pl.Int64}  # fmt: skip


def shown_agent(out: Path, scale: Any, author: Path | None) -> tuple[Any, JobLists, str]:
    """(agent, the list that it plays, which agent it is): the one kept of the author's list of load 100 %, or of the
    load next to it; without his lists the agent for all loads on a test list."""
    import escala

    load = min(scale.loads, key=lambda one: abs(one - LOAD))
    name = f"published-{load}-0" if author is not None else "fresh-all-0"
    lists = lists_of(load, 1, TEST) if author is None else published_lists(author).part([LOADS.index(load)])
    return escala.load_agent(out / "agents" / name), lists, name


def looks(agent: Any, lists: JobLists, patience: int = PATIENCE) -> Iterator[tuple[dict[str, Any], SlotsBatch]]:
    """Every decision of an agent on a list, by sampled actions: what it has before it and does, and the world before
    that."""
    batch = SlotsBatch(1, lists, **shaping(agent.env_options))
    turn, row, random = new_turn(batch), np.zeros(1, np.int64), np.random.default_rng([0, 0x9A])
    batch.restart(row, turn, {"list": row})
    for _ in range(patience):
        action = agent.act(turn.observation, turn.mask, random)
        job = int(batch.games.slots[0, action[0] - 1]) if action[0] > 0 else codes.NONE
        time = int(batch.games.memory["row"][0])
        busy = int(batch.worlds.world.s[0, 0]["n_ends"]) > 0
        yield {"time": time, "busy": busy, "job": job, "held": job == codes.NONE and bool(turn.mask[0, 1:].any()),
               "fresh": job != codes.NONE and int(lists.job["submit"][job]) // 1_000_000 == time}, batch  # fmt: skip
        batch.step(action, turn)
        if turn.terminated[0]:
            return


def telling(seen: list[dict[str, Any]]) -> int:
    """Where four looks begin that show what the paper's do: a job is placed, the others are held back though something
    fits (beside jobs that run, at best), a job that has just come is placed, and again the others are held back. The
    first place with most of these."""

    def told(k: int) -> int:
        first, second, third, fourth = seen[k : k + LOOKS]
        return (
            (first["job"] != codes.NONE)
            + third["fresh"]
            + sum(one["held"] * (1 + one["busy"]) for one in (second, fourth))
        )

    return max(range(len(seen) - LOOKS + 1), key=told, default=0)


Names = list[list[tuple[float, str]]]
"""Of each picture where to write which name."""


def agent_frames(agent: Any, lists: JobLists) -> tuple[list[NDArray[np.uint8]], list[str], Names, pl.DataFrame]:
    """(pictures, titles, names in them, table) of the telling looks; the table has every job that is drawn. start: null
    of jobs in slots."""
    begin = telling([seen for seen, _ in looks(agent, lists)])
    pictures, titles, rows = [], [], []
    names: Names = []
    for k, (seen, batch) in enumerate(looks(agent, lists, begin + LOOKS)):
        if k < begin:
            continue
        chosen = (
            f"places job {seen['job']}"
            if seen["job"] != codes.NONE
            else "lets time pass" + ", though a job fits" * seen["held"]
        )
        pictures.append(picture_of(batch, 0, SLOTS))
        titles.append(f"time {seen['time']}: {chosen}")
        about = {"look": k, "time": seen["time"], "chosen": chosen}
        drawn = _drawn(batch)
        rows += [about | {"where": where, **_job(lists, job), "start": start} for where, job, start in drawn]
        in_slot = {where: f"{where}: job {job}" for where, job, start in drawn if start is None}
        words = ["chart", *(in_slot.get(f"slot {k}", f"slot {k}: empty") for k in range(1, SLOTS + 1))]
        names.append(list(zip(middles(batch, SLOTS), words, strict=True)))
    return pictures, titles, names, pl.DataFrame(rows, schema=COLUMNS)


def _drawn(batch: SlotsBatch) -> list[tuple[str, int, int | None]]:
    """(where, job, start) of every job in a picture."""
    run, unit = batch.worlds.world.run[0], int(batch.games.settings["unit_us"])
    running = np.flatnonzero(run["state"][: len(batch.lists.job)] == codes.RUNNING)
    out: list[tuple[str, int, int | None]] = [("running", int(j), int(run["start"][j]) // unit) for j in running]
    out += [
        ("reserved", int(b["job"]), int(b["row"]))
        for b in batch.games.booked[0, : int(batch.games.memory["booked"][0])]
    ]
    taken = [(k, int(j)) for k, j in enumerate(batch.games.slots[0, :SLOTS], start=1) if j != codes.NONE]
    return out + [(f"slot {k}", j, None) for k, j in taken]


def _job(lists: JobLists, j: int) -> dict[str, int]:
    job = lists.job[j]
    return {
        "job": j,
        "cores": int(job["cores"]),
        "length": int(job["walltime"]) // 1_000_000,
        "submitted": int(job["submit"]) // 1_000_000,
    }
