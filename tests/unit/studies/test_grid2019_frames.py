"""R1's figure 5: which looks are shown, and that picture and table say the same."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl

from escala.envs.slots.lists import given_lists
from escala.envs.slots.picture import CELL, EMPTY, GAP, LINE, colour
from escala.kernel import codes
from escala.platform import Platform
from escala.studies.grid2019.frames import agent_frames, looks, telling
from escala.workload import Workload

NONE = codes.NONE


class _ShortOnly:
    """Places the first job of up to 3 units; longer ones only once nothing is to come."""

    env_options: ClassVar = {"slots": 10, "placement": "start-now", "skip": "empty", "lists": 7}

    def act(self, seen: Any, mask: Any, random: Any) -> Any:
        length = np.round(20 * seen[0, :60].reshape(10, 6)[:, 1])
        short = np.flatnonzero(mask[0, 1:] & ((length <= 3) | (seen[0, -4] >= 1.0)))
        return np.array([short[0] + 1 if short.size else 0])


def _lists() -> Any:
    jobs = {"submit_s": [0.0, 0.0, 2.0], "runtime_s": [12.0, 1.0, 3.0], "cores": [4, 2, 5]}
    return given_lists(
        [Workload.from_jobs(jobs, name="three")], Platform.uniform(10, 1, power=None, name="pool"), 1.0, "runtime"
    )


def test_the_looks_that_show_most_of_the_papers_are_taken() -> None:
    idle = {"job": NONE, "held": False, "fresh": False, "busy": False}
    held, placed, fresh = idle | {"held": True}, idle | {"job": 4}, idle | {"job": 5, "fresh": True}
    assert telling([idle, idle, placed, held, fresh, held, idle]) == 2
    assert telling([placed, held, placed, held, placed, held, fresh, held]) == 4
    beside = held | {"busy": True}
    # jobs run while others are held back
    assert telling([placed, held, fresh, held, placed, beside, placed, beside, idle]) == 4
    assert telling([idle] * 9) == 0 and telling([placed, held]) == 0


def test_pictures_and_table_show_what_the_agent_has_before_it() -> None:
    seen = [one for one, _ in looks(_ShortOnly(), _lists(), 5)]
    assert [(one["time"], one["job"], one["held"], one["fresh"]) for one in seen] == [
        (0, 1, False, True), (0, NONE, True, False), (1, NONE, True, False), (2, 2, False, True),
        (2, NONE, True, False),
    ]  # fmt: skip
    pictures, titles, names, table = agent_frames(_ShortOnly(), _lists())
    wait = "lets time pass, though a job fits"
    assert titles == ["time 2: places job 2", *(f"time {time}: {wait}" for time in (2, 3, 4))]
    part = 10 * CELL + 1  # cells, and the line after the last
    assert len(pictures) == 4 and all(
        picture.shape == (20 * CELL + 1 + 2 * GAP, GAP + 5 * (part + GAP), 3) for picture in pictures
    )
    assert [name for _, name in names[0]] == [
        "chart",
        "slot 1: job 0",
        "slot 2: job 2",
        "slot 3: empty",
        "slot 4: empty",
    ]
    assert [column for column, _ in names[0]] == [GAP + part / 2 + k * (part + GAP) for k in range(5)]
    for picture, (_, rows) in zip(pictures, table.group_by("look", maintain_order=True), strict=True):
        shades = {tuple(map(int, one)) for one in np.unique(picture.reshape(-1, 3), axis=0)}
        assert shades == {colour(j) for j in rows["job"]} | {EMPTY, LINE, (255, 255, 255)}
    assert table.filter(pl.col("job") == 0)["where"].to_list() == ["slot 1"] * 4  # held back throughout
    assert table.filter(pl.col("job") == 2)["where"].to_list() == ["slot 2", *["running"] * 3]
    assert table.filter(pl.col("where") == "running")["start"].to_list() == [2] * 3
    row = table.filter(pl.col("job") == 0).row(0, named=True)
    assert (row["cores"], row["length"], row["submitted"], row["start"]) == (4, 12, 0, None)
