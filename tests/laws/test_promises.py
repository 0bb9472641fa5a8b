"""EASY starts the oldest waiting job by its promise: a law of the worlds in which jobs take cores of nodes that stay
on."""

from __future__ import annotations

import random

import polars as pl
import pytest

from escala.metrics import promises
from escala.metrics.promises import Promises
from tests.oracle.engines import run_kernel, run_oracle
from tests.oracle.worlds import Case, draw


def world(number: int, scheduler: str) -> Case:
    """A world of many jobs, of any walltimes and margins, without single-node jobs and without switching."""
    case = draw(random.Random(f"promises/{number}"), ("easy",), 40)
    for job in case.jobs:
        job.update({"single_node": False} | {name: 0 for name in job if name.startswith("demand_")})
        job["cores"] = min(job["cores"], sum(case.platform["cores"]))
    kept = {key: case.options[key] for key in ("plan_margin_s", "estimate", "until_s") if key in case.options}
    # a job that may outlive its estimate keeps no promise
    if kept.get("estimate") not in (None, "walltime", "runtime"):
        del kept["estimate"]
    return Case({**case.platform, "resources": {}}, case.jobs, {**kept, "scheduler": scheduler, "shutdown": "never"})


def judged(case: Case, jobs: pl.DataFrame) -> Promises:
    ends = case.options.get("estimate", "walltime")
    return promises(jobs, sum(case.platform["cores"]), ends=ends, margin_s=case.options.get("plan_margin_s", 0.0))


def by_oracle(case: Case) -> pl.DataFrame:
    return pl.DataFrame(run_oracle(case).jobs, infer_schema_length=None).with_columns(
        pl.col("start_s", "finish_s").cast(pl.Float64)
    )


@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
def test_no_promise_is_broken(scheduler: str) -> None:
    blocked = 0
    for number in range(150):
        case = world(number, scheduler)
        found = judged(case, by_oracle(case))
        assert found.late == 0, f"{found.jobs}\n{case.program()}"
        blocked += found.blocked
    assert blocked > 150


def test_the_kernel_breaks_none() -> None:
    for number in range(60):
        case = world(number, "easy")
        found = judged(case, run_kernel(case).jobs)
        assert found.late == 0, f"{found.jobs}\n{case.program()}"


def test_a_backfilling_without_a_reservation_is_noticed() -> None:
    late = sum(judged(case, by_oracle(case)).late for case in (world(number, "first-fit") for number in range(150)))
    assert late > 0
