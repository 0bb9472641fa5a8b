"""How long jobs are expected to run: what is refused, in one line; what a run says of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.foresight import known_by_name, known_to
from escala.policies.compose import scheduler

JOBS = {
    "submit_s": [0.0, 1.0, 30.0],
    "runtime_s": [20.0, 5.0, 9.0],
    "walltime_s": [50.0] * 3,
    "cores": [1, 2, 1],
    "user": ["a", "a", "a"],
}
LOG = escala.Workload.from_jobs(JOBS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"estimate": "lastt2"},
            r"option estimate='lastt2' is not known: did you mean last2\? use walltime, runtime, last2, a column",
        ),
        ({"order_estimate": 3}, "option order_estimate=3 is not known"),
        ({"estimate": "estimate_gbm_s"}, "estimate 'estimate_gbm_s': the log lacks this column: it has no column"),
        ({"scheduler": "sjf", "order_estimate": "estimate_x"}, "estimate 'estimate_x': the log lacks this column"),
        ({"scheduler": "easy:estimate=guess"}, "option estimate='guess' is not known"),
        ({"scheduler": "easy:estimate=last2:estimate=last2"}, "estimate= is given twice"),
        ({"scheduler": "easie:estimate=last2"}, "unknown scheduler 'easie'"),
        *(
            ({"corrections_s": bad}, "corrections_s.*give seconds above 0")
            for bad in ((0,), (-5,), (math.nan,), "60", 60, ("x",), [1] * 1001)
        ),
    ],
)
def test_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(EscalaError, match=said) as caught:
        escala.simulate(LOG, "2x1", **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan, math.inf, None])
def test_an_estimate_of_the_log_is_a_time(value: Any) -> None:
    with pytest.raises(EscalaError, match=r"job '2' \(row 2\) has estimate_s = "):
        escala.Workload.from_jobs({**JOBS, "estimate_s": [1.0, value, 3.0]})


def test_an_estimate_beyond_the_request_is_the_request() -> None:
    log = escala.Workload.from_jobs({**JOBS, "estimate_s": [1.0, 1e6, 1e-9]})
    assert escala.simulate(log, "2x1", estimate="estimate_s").jobs["estimate_s"].to_list() == [1.0, 50.0, 1e-6]


def test_the_table_says_what_was_expected() -> None:
    for name in ("walltime", "runtime"):
        assert "estimate_s" not in escala.simulate(LOG, "2x1", estimate=name).jobs.columns
    found = escala.simulate(LOG, "2x1", "easy+", until_s=29.0)
    assert found.jobs["estimate_s"].to_list() == [50.0, 50.0, None]
    assert escala.simulate(LOG, "2x1", "easy+").jobs["estimate_s"].to_list() == [50.0, 50.0, 12.5]


def test_it_is_the_same_in_every_place_of_a_batch_and_again() -> None:
    first = escala.simulate(LOG, "2x1", estimate="last2")
    assert first.jobs.equals(escala.rerun(first, LOG).jobs)
    options = first.manifest["options"]
    assert options["estimate"] == "last2" and options["order_estimate"] is None
    names = ["easy", "easy+", "easy++", "easy:queue=saf:guard=1h:estimate=last2"]
    both = escala.compare(LOG, "2x1", names).results
    assert ["estimate_s" in both[f"{name} + never"].jobs.columns for name in names] == [False, True, True, True]


def test_known_runtimes_are_marked_in_names_too() -> None:
    for name in (
        "easy:estimate=runtime",
        "easy-sjf:order_estimate=runtime",
        "easy:queue=sjf:guard=3h:estimate=runtime",
    ):
        assert (
            known_to(name, "never")
            == known_by_name(f"{name} + never")
            == escala.simulate(LOG, "2x1", name).knows
            == "runtimes"
        )
    for name in ("easy", "easy+", "easy++", "easy:estimate=last2"):
        assert (
            known_to(name, "never") == known_by_name(f"{name} + never") == escala.simulate(LOG, "2x1", name).knows == ""
        )
    assert known_to("easy", "never", "walltime", "runtime") == "runtimes"
    assert escala.simulate(LOG, "2x1", order_estimate="runtime").knows == "runtimes"


def test_names_say_the_same_as_options() -> None:
    assert scheduler("easy+") == scheduler("easy:estimate=last2")
    assert scheduler("easy++") == scheduler("easy-sjf:estimate=last2")
    draw = np.random.default_rng(1)
    n = 200
    columns = {"submit_s": np.sort(draw.uniform(0, 5000, n)), "walltime_s": draw.integers(100, 1000, n).astype(float)}
    columns |= {
        "runtime_s": columns["walltime_s"] * draw.uniform(0.05, 1.0, n),
        "cores": draw.integers(1, 6, n),
        "user": draw.choice(list("abc"), n),
    }
    log = escala.Workload.from_jobs(columns)
    for name, parts, options in (
        ("easy-sjf", "estimate=last2", {"estimate": "last2"}),
        ("easy:queue=saf", "order_estimate=last2", {"order_estimate": "last2"}),
        (
            "easy:queue=xfactor",
            "estimate=last2:order_estimate=walltime",
            {"estimate": "last2", "order_estimate": "walltime"},
        ),
    ):
        by_name = escala.simulate(log, "2x4", f"{name}:{parts}").jobs
        assert by_name.equals(escala.simulate(log, "2x4", name, **options).jobs)
        assert not by_name.select("start_s").equals(escala.simulate(log, "2x4", name).jobs.select("start_s"))


def test_a_column_of_requests_is_the_requests() -> None:
    log = LOG.with_jobs(LOG.jobs.with_columns(estimate_s=pl.col("walltime_s")))
    for name in ("easy", "easy-sjf", "conservative", "easy:queue=f3", "tetris"):
        by_column = escala.simulate(log, "2x1", name, estimate="estimate_s").jobs.drop("estimate_s")
        assert by_column.equals(escala.simulate(LOG, "2x1", name).jobs)


@pytest.mark.parametrize("name", ["easy", "conservative"])
def test_a_column_that_is_the_run_times_is_marked_whatever_its_name(name: str) -> None:
    log = LOG.with_jobs(LOG.jobs.with_columns(estimate_mine=pl.col("runtime_s"), estimate_asked=pl.col("walltime_s")))
    assert (log.jobs["runtime_s"] != log.jobs["walltime_s"]).any()
    assert escala.simulate(log, "2x1", f"{name}:estimate=estimate_mine").knows == "runtimes"
    assert escala.simulate(log, "2x1", name, order_estimate="estimate_mine").knows == "runtimes"
    assert (
        escala.simulate(log, "2x1", name, estimate="estimate_asked").knows
        == escala.simulate(log, "2x1", name).knows
        == ""
    )
    near = log.with_jobs(log.jobs.with_columns(estimate_mine=pl.col("runtime_s") + 1.0))
    assert escala.simulate(near, "2x1", name, estimate="estimate_mine").knows == ""


def test_a_score_of_such_a_column_is_marked_too(tmp_path: Path) -> None:
    log = LOG.with_jobs(LOG.jobs.with_columns(estimate_mine=pl.col("runtime_s")))
    file = tmp_path / "score.toml"
    file.write_text('form = "linear"\ncolumn = "estimate_mine"\n[weights]\ncolumn = 1.0\n')
    assert escala.simulate(log, "2x1", f"easy:queue=score:{file}").knows == "runtimes"
