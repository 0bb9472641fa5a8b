"""From a replay to a page: what the metrics and the report read is what Results hold, saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from synthetic import run
from test_report_gantt import unpack

import escala
from escala.errors import EscalaError
from escala.metrics import compare, energy, machine
from escala.metrics import jobs as jm
from escala.report import gantt, plots, render, write_report


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    made = run(300, nodes=12, per_node=4, gap=250.0).jobs  # jobs that fit 12 nodes of 4 cores
    log = escala.Workload.from_jobs(made.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user"))
    machine_ = escala.Platform.uniform(nodes=12, cores=4, power=escala.power.GRID5000)
    return dict(
        escala.compare(log, machine_, schedulers=["easy"], shutdowns=["never", "timeout:60", "hold:0.25"]).results
    )


def test_metrics_agree_with_the_tables_of_nodes(results: Mapping[str, Any]) -> None:
    for result in results.values():
        summary = result.summary()
        assert energy.total_j(result.power) == pytest.approx(summary["energy_j"], rel=1e-9)
        assert energy.transitions(result.power) == summary["transitions"]
        assert sum(energy.node_seconds(result.power).values()) == pytest.approx(12 * summary["window_s"], rel=1e-9)
        count = machine.nodes_by_state(result.nodes)
        assert set(count.select(pl.sum_horizontal(pl.exclude("time_s")))[:-1].to_series()) == {12}
        used = machine.used_cores(result.jobs)
        assert used["value"].max() <= 48 and used["value"].min() == 0
        window = result.manifest["window"]
        edges = np.linspace(window["start_s"], window["end_s"], 50)
        power = machine.mean_power_by_state(result.nodes, result.power, edges)
        joules = (
            power.select(pl.sum_horizontal(pl.exclude("from_s", "to_s")) * (pl.col("to_s") - pl.col("from_s")))
            .sum()
            .item()
        )
        assert joules == pytest.approx(summary["energy_j"], rel=1e-9)


def test_comparison_of_replays(results: Mapping[str, Any]) -> None:
    summaries = {name: r.summary() for name, r in results.items()}
    assert compare.check(summaries) == []
    table = compare.table(summaries)
    change = table["waste_j_change"].to_list()
    assert change[0] == 0.0 and change[1] < 0.0 and change[2] < 0.0


def test_chart_holds_every_job_of_a_replay(results: Mapping[str, Any]) -> None:
    for name, result in results.items():
        chart = gantt.pack(name, result.jobs, result.nodes, n_nodes=12)
        assert chart["notes"] == []
        got = unpack(chart)
        assert len(got["ids"]) == result.jobs.height
        core_s = (got["finish_s"] - got["start_s"]) * got["cores"]
        assert core_s.sum() == pytest.approx(
            (jm.measures(result.jobs)["runtime_s"] * result.jobs["cores"]).sum(), rel=1e-6
        )


def test_saved_results_give_the_same_page(results: Mapping[str, Any], tmp_path: Path) -> None:
    loaded = {}
    for i, (name, result) in enumerate(results.items()):
        result.save(tmp_path / f"run{i}")
        loaded[name] = escala.Result.load(tmp_path / f"run{i}")
    page = write_report(tmp_path / "page.html", loaded, title="12 nodes").read_text()
    assert "easy + hold:0.25" in page
    before, after = (render(r, title="12 nodes").split("How to run it again")[0] for r in (results, loaded))
    assert before == after


class Giant:
    """A run whose tables of nodes were too large to keep."""

    def __init__(self) -> None:
        self._run = run(30)
        self.jobs = self._run.jobs
        self.manifest: dict[str, Any] = {}

    @property
    def nodes(self) -> pl.DataFrame:
        raise EscalaError("the table 'nodes' was too large to keep")

    @property
    def power(self) -> pl.DataFrame:
        raise EscalaError("the table 'power' was too large to keep")

    def summary(self) -> Mapping[str, float | int]:
        return self._run.summary()


def test_a_run_without_tables_of_nodes_says_so() -> None:
    page = render({"giant": Giant(), "small": run(30)}, title="t")
    assert "Not drawn for giant: its tables of nodes were too large to keep." in page
    assert "Node states are not drawn: that table was too large to keep." in page
    assert "Not drawn for giant" in render({"giant": Giant()}, title="t")


def test_the_load_of_a_cut_run_ends_at_the_cut() -> None:
    """Two cores; a job of 100 s on both comes every 50 s for hours; cut at 420 s."""
    n = 200
    times = {"submit_s": [50 * i for i in range(n)], "runtime_s": [100] * n, "walltime_s": [200] * n}
    log = escala.Workload.from_jobs(times | {"cores": [2] * n})
    result = escala.simulate(log, "2x1:grid5000", scheduler="fcfs", until_s=420.0)
    page = render({"cut": result}, title="t")
    assert "196 of 200 jobs unfinished" in page  # four ended at 100, 200, 300, 400 s
    assert "Time (min)" in page and "Time (h)" not in page
    figure = plots.load_over_time({"cut": result.jobs}, 2, {"cut": (0.0, 420.0)})
    used, queue = figure.axes[0].patches[0], figure.axes[1].lines[0]
    assert figure.axes[1].get_xlim()[1] == pytest.approx(7.0)
    assert max(queue.get_xdata()) == pytest.approx(7.0)
    # nine jobs have come (0, 50, .. 400 s), five have started (0, 100, .. 400 s)
    assert queue.get_ydata()[-1] == max(queue.get_ydata()) == 4
    assert used.get_data().values == pytest.approx(100.0), "busy from the first second to the cut"


def test_computing_energy_depends_on_the_policy() -> None:
    """One node of two cores; jobs of 1, 2, 1 cores: first-fit lets the two small ones share, fcfs runs each by itself,
    for 100 s more."""
    log = escala.Workload.from_jobs(
        {"submit_s": [0, 0, 0], "runtime_s": [100] * 3, "walltime_s": [100] * 3, "cores": [1, 2, 1]}
    )
    platform = escala.Platform.uniform(nodes=1, cores=2, power=escala.power.GRID5000)
    runs = {name: escala.simulate(log, platform, scheduler=name) for name in ("fcfs", "first-fit")}
    alone, shared = (float(run.summary()["computing_j"]) for run in runs.values())
    assert alone - shared == pytest.approx(100.0 * platform.profiles[0].idle_w)
    assert "computing energy depends on the policy" in render(runs, title="t")
