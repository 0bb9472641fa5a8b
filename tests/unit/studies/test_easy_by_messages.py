"""EASY as the author of R1 ran it, start by start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.studies.grid2019.messages import LATENCY, EasyByMessages
from escala.studies.grid2019.published import LOADS, folder_of_author, published_lists, published_table


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
