"""The promise test: by hand, on lists of exact run times, and with a backfilling that breaks promises."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.metrics import promises

JOBS = [  # job, submit, start, walltime, cores
    ("a", 0.0, 0.0, 10.0, 2),
    ("b", 1.0, 12.0, 5.0, 3),
    ("c", 2.0, 2.0, 10.0, 1),
]


def table(rows: list[tuple[str, float, float | None, float, int]], ran_s: float | None = None) -> pl.DataFrame:
    columns = ("job_id", "submit_s", "start_s", "walltime_s", "cores")
    ran = pl.lit(ran_s) if ran_s is not None else pl.col("walltime_s")
    return pl.DataFrame(rows, schema=list(columns), orient="row").with_columns(
        state=pl.lit("KILLED"), runtime_s=ran, finish_s=pl.col("start_s") + ran
    )


def test_by_hand() -> None:
    """On three cores b is blocked by a from 1 on and promised 10; c passes it and holds it up until 12."""
    found = promises(table(JOBS), 3)
    assert (found.blocked, found.late, found.worst_s) == (1, 1, 2.0)
    assert found.jobs.rows() == [("b", 1.0, 10.0, 12.0, 2.0)]
    assert promises(table(JOBS), 3, margin_s=2.0).late == 0
    assert promises(table(JOBS, 9.0), 3).worst_s == 2.0
    assert promises(table(JOBS, 9.0), 3, ends="runtime").worst_s == 3.0


def test_a_later_job_started_at_the_same_instant_is_no_excuse() -> None:
    """c starts in the instant in which b is blocked, behind its back."""
    found = promises(table([("a", 0.0, 0.0, 10.0, 2), ("b", 1.0, 11.0, 5.0, 3), ("c", 1.0, 1.0, 10.0, 1)]), 3)
    assert found.jobs.rows() == [("b", 1.0, 10.0, 11.0, 1.0)]


def test_none_waits_behind_a_job_that_never_started() -> None:
    found = promises(table([("a", 0.0, 0.0, 10.0, 2), ("b", 1.0, None, 5.0, 3), ("c", 1.0, 11.0, 10.0, 1)]), 3)
    assert (found.blocked, found.late, found.worst_s) == (0, 0, 0.0)
    assert promises(table(JOBS).clear(), 3).blocked == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(EscalaError, match="whole machine"):
        promises(table(JOBS), 2)
    with pytest.raises(EscalaError, match="'walltime' or 'runtime'"):
        promises(table(JOBS), 3, ends="true")  # type: ignore[arg-type]
    for cores, more, what in (
        ("x", {}, "cores='x'"), (None, {}, "cores=None"), (math.nan, {}, "cores=nan"), (0, {}, "cores=0"),
        (3, {"margin_s": math.nan}, "margin_s=nan"), (3, {"margin_s": 1e300}, "margin_s=1e"),
        (3, {"margin_s": "1"}, "margin_s='1'"),
    ):  # fmt: skip
        with pytest.raises(EscalaError, match=what):
            promises(table(JOBS), cores, **more)  # type: ignore[arg-type]
    with pytest.raises(EscalaError, match="the table `jobs` of a Result"):
        promises("x", 3)  # type: ignore[arg-type]
    with pytest.raises(EscalaError, match="finish_s"):
        promises(table(JOBS).drop("finish_s"), 3)


def listed(number: int, nodes: int, seed: int) -> escala.Workload:
    """Jobs of 1, 2, 4 ... nodes with exact run times, at 0.9 of what the nodes do."""
    random = np.random.default_rng(seed)
    cores = 2 ** random.integers(0, int(np.log2(nodes)) + 1, number)
    seconds = np.round(np.exp(random.normal(6.0, 1.2, number))).clip(10, 20_000)
    submit = np.round(np.cumsum(random.exponential((cores * seconds).mean() / nodes / 0.9, number)))
    return escala.Workload.from_jobs(
        [
            {"job_id": str(k), "submit_s": float(a), "runtime_s": float(b), "walltime_s": float(b), "cores": int(c)}
            for k, (a, b, c) in enumerate(zip(submit, seconds, cores, strict=True))
        ]
    )


@pytest.mark.parametrize(("number", "nodes", "seed", "least"), [(300, 16, 1, 80), (1000, 64, 2, 150)])
def test_easy_keeps_every_promise_and_first_fit_does_not(number: int, nodes: int, seed: int, least: int) -> None:
    jobs = listed(number, nodes, seed)
    kept = promises(escala.simulate(jobs, f"{nodes}x1", scheduler="easy").jobs, nodes)
    assert kept.blocked >= least and kept.late == 0 and kept.worst_s == 0.0
    broken = promises(escala.simulate(jobs, f"{nodes}x1", scheduler="first-fit").jobs, nodes)
    assert broken.late > 0 and broken.worst_s > 0.0
