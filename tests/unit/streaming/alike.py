"""A log streamed and in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.streaming import stream

NAN_IS_NAN = {"rel": 1e-9, "nan_ok": True}


def same(
    path: Path,
    platform: Any = "32x1:grid5000",
    shutdown: str = "timeout:300",
    jobs: int = 64,
    reading: dict[str, Any] | None = None,
    moved: bool = False,
    **options: Any,
) -> pl.DataFrame:
    """The rows of a streamed replay, which are those of the replay in memory, as are its figures and what was run.
    moved: records stand in another order than that of submission, so that others are the first of a rule, or the second
    of an id."""
    log = escala.read_workload(path, **(reading or {}))
    whole = escala.simulate(log, platform, "easy", shutdown, **options)
    with tempfile.TemporaryDirectory() as folder:
        found = stream(
            path, platform, "easy", shutdown, jobs=jobs, out=Path(folder) / "out", **(reading or {}), **options
        )
        rows = escala.Result.load(Path(folder) / "out").jobs.sort("submit_s", "job_id")
    assert found.pieces >= min(log.jobs["submit_s"].n_unique() // jobs, 2)
    assert set(rows.columns) == set(whole.jobs.columns)
    told = whole.jobs.sort("submit_s", "job_id")
    if moved:
        plain = pl.col("job_id").str.replace(r"#\d+$", "")
        rows, told = (
            table.with_columns(plain).sort("submit_s", "job_id", "start_s", "cores", "runtime_s")
            for table in (rows, told)
        )
    assert [name for name in rows.columns if not rows[name].equals(told[name])] == []
    summary = whole.summary()
    both = {name: value for name, value in found.summary.items() if name in summary}
    assert both == pytest.approx({name: summary[name] for name in both}, **NAN_IS_NAN)
    assert found.manifest["window"] == whole.manifest["window"]
    about = whole.manifest["workload"]
    alike = ("name", "source", "jobs", "cleaning", "ignored", "read_as")
    assert {name: found.manifest["workload"][name] for name in alike} == {name: about[name] for name in alike}
    assert set(found.first_cleaned) == set(log.first_cleaned)
    assert moved or found.first_cleaned == log.first_cleaned
    return rows
