"""R1's lists by rules that see the whole queue."""

from __future__ import annotations

import polars as pl
import pytest

import escala
from escala.studies.grid2019 import whole_queue
from escala.studies.grid2019.published import LOADS, folder_of_author, published_lists


def test_rules_see_every_job_and_look_ahead_is_played_from_100_per_cent_on() -> None:
    author = folder_of_author()
    if author is None:
        pytest.skip("the author's lists are not at hand")
    quiet = whole_queue.on_list(str(author), 40, 1, 2)
    assert set(quiet) == {whole_queue.GREEDY, whole_queue.STRICT, whole_queue.STRICT_32, whole_queue.EASY_SENT}
    jobs = published_lists(author).part([LOADS.index(160)]).workload(0)
    busy = whole_queue.on_list(str(author), 160, 2, 2)
    assert busy[whole_queue.STRICT] == [escala.simulate(jobs, "10x1", "sjf").summary()["mean_slowdown"]]
    assert len(busy[whole_queue.ROLLOUT]) == 2
    table = whole_queue.frame({"published/queue/160": busy}, author)
    assert (
        table["load"].unique().to_list() == [160]
        and table.filter(pl.col("policy") == "author's PPO")["mean_slowdown"][0] > 2.8
    )
    assert table["low"].null_count() == len(table)
    runs = whole_queue.frame({"published/queue/160": busy, "published/events/160": [2.0, 2.2, 1.8, 2.0]}, author)
    row = runs.row(by_predicate=pl.col("policy") == whole_queue.EVENTS, named=True)
    assert row["least"] <= row["low"] < row["mean_slowdown"] < row["high"] <= row["most"]
    # The plain statement of the page: strict SJF that sees the queue is below his PPO at this load.
    assert busy[whole_queue.STRICT][0] < table.filter(pl.col("policy") == "author's PPO")["mean_slowdown"][0]
