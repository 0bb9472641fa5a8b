"""EASY as the author of R1 ran it, start by start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.envs.slots.playing import FIGURES
from escala.studies.grid2019.messages import LATENCY, EasyByMessages
from escala.studies.grid2019.published import LOADS, folder_of_author, published_lists, published_table
from escala.studies.grid2019.whole_queue import easy_sent


@pytest.fixture(scope="module")
def author() -> Path:
    found = folder_of_author()
    if found is None:
        pytest.skip("the author's lists are not at hand")
    return found


def _played(author: Path, load: int, latency: int) -> Any:
    jobs = published_lists(author).part([LOADS.index(load)]).workload(0)
    return escala.simulate(jobs, "10x1", EasyByMessages(len(jobs), latency))


@pytest.mark.parametrize("load", LOADS)
def test_every_start_and_node_is_the_authors(author: Path, load: int) -> None:
    run = _played(author, load, LATENCY)
    his = pl.read_csv(author / "results" / "easy_bf_jobs.csv.gz").filter(pl.col("load") == load)
    both = run.jobs.join(his.with_columns(pl.col("job_id").cast(pl.String)), on="job_id")
    assert len(both) == len(his) == len(run.jobs)
    assert both["start_s"].to_list() == pytest.approx(both["starting_time"].to_list(), abs=0.6e-6)
    assert both["nodes"].to_list() == both["allocated_processors"].to_list()
    printed = published_table(author).filter((pl.col("load") == load) & (pl.col("policy") == "EASY"))["mean_slowdown"][
        0
    ]
    assert run.summary()["mean_slowdown"] == pytest.approx(printed, abs=1e-5)


@pytest.mark.parametrize("load", [70, 190])
def test_without_a_latency_it_is_another_schedule(author: Path, load: int) -> None:
    """In whole units, as EASY over the whole queue of the kept page is: not the author's figure."""
    run = _played(author, load, 0)
    assert (run.jobs["start_s"] % 1.0 == 0.0).all()
    kept = pl.read_csv(Path(__file__).parents[3] / "docs" / "studies" / "grid2019" / "tables" / "published.csv")
    ours = kept.filter((pl.col("load") == load) & (pl.col("policy") == "easy, whole queue"))["mean_slowdown"].item()
    printed = published_table(author).filter((pl.col("load") == load) & (pl.col("policy") == "EASY"))["mean_slowdown"][
        0
    ]
    found = run.summary()["mean_slowdown"]
    assert found == pytest.approx(ours, rel=0.02) and abs(found - printed) > 0.1


def test_the_kept_table_and_so_figure_2_has_his_easy_in_four_figures() -> None:
    kept = pl.read_csv(Path(__file__).parents[3] / "docs" / "studies" / "grid2019" / "tables" / "published.csv")
    ours, his = (kept.filter(policy=policy).sort("load") for policy in ("easy, messages of 15 us", "author's EASY"))
    assert ours["load"].to_list() == [10, 40, 70, 100, 130, 160, 190]
    for figure in ("mean_slowdown", "makespan_s", "mean_turnaround_s", "mean_wait_s"):
        assert ours[figure].to_list() == pytest.approx(his[figure].to_list(), abs=2e-6)


def test_what_the_table_has_of_it_is_what_a_play_gives(author: Path) -> None:
    lists = published_lists(author).part([LOADS.index(70)])
    found = easy_sent(lists)
    assert found["slowdown"] == [_played(author, 70, LATENCY).summary()["mean_slowdown"]]
    assert set(found) == {*FIGURES, "finished"} - {"longest_wait"} and found["finished"] == [True]
