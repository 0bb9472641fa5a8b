"""What a log says of its jobs is heeded in a stream as in memory: its clock, limits, demands, waits, and jobs that fit
nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.streaming import stream
from escala.workload import generate
from tests.unit.streaming.alike import same


def _table(**columns: Any) -> pl.DataFrame:
    jobs = generate.lublin(jobs=300, cores=32, load=0.9, seed=1).jobs
    return (
        jobs.with_columns(pl.col("submit_s") - jobs["submit_s"][0], row=pl.int_range(pl.len()))
        .with_columns(**columns)
        .drop("row")
    )


@pytest.mark.parametrize("first_s", [0.0, 12345.5, 1.7e9])
def test_a_table_of_ones_own_keeps_its_clock(first_s: float, tmp_path: Path) -> None:
    _table(submit_s=pl.col("submit_s") + first_s).write_parquet(tmp_path / "log.parquet")
    assert same(tmp_path / "log.parquet")["submit_s"][0] == first_s


@pytest.mark.parametrize("first_s", [0, 777, 1_500_000_000])
def test_swf_counts_from_its_first_submission(first_s: int, tmp_path: Path) -> None:
    """Requests and waits are known of some jobs only, and not in every piece."""
    lines = [
        f"{k + 1} {first_s + 20 * k} {k % 7 if k > 150 else -1} {30 + k % 50 * 10} {1 + k % 8} -1 -1 {1 + k % 8} "
        f"{-1 if k > 200 else 1000} -1 1 {k % 5} 1 -1 {k % 3} -1 -1 -1"
        for k in range(300)
    ]
    (tmp_path / "log.swf").write_text("; UnixStartTime: 1000000000\n" + "\n".join(lines) + "\n")
    rows = same(tmp_path / "log.swf")
    assert rows["submit_s"][0] == 0.0
    assert {"limited", "recorded_wait_s"} < set(rows.columns)


def test_nodes_of_one_core_that_a_piece_begins_with_busy_are_free_again(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text("name: cell\nnodes:\n  - {count: 24, cores: 1, resources: {memory: 4}}\n")
    demand = (pl.col("row") % 5).alias("demand_memory")
    _table(cores=pl.lit(1), single_node=pl.lit(True), demand_memory=demand).write_parquet(tmp_path / "log.parquet")
    same(tmp_path / "log.parquet", str(machine), "never")


def test_memory_of_nodes_is_heeded(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text("name: cell\nnodes:\n  - {count: 6, cores: 4, resources: {memory: 4}}\n")
    small = {"single_node": pl.lit(True), "cores": pl.col("cores").clip(1, 4), "demand_memory": pl.col("row") % 3 + 1}
    _table(**small).write_parquet(tmp_path / "log.parquet")
    rows = same(tmp_path / "log.parquet", escala.read_platform(str(machine)), "never")
    alone = escala.simulate(escala.Workload.from_jobs(_table(**small).drop("demand_memory")), "6x4").jobs.sort(
        "submit_s", "job_id"
    )
    assert not rows["start_s"].equals(alone["start_s"])  # memory matters here


@pytest.mark.parametrize("shutdown", ["never", "timeout:300"])
def test_what_jobs_ask_of_nodes_is_heeded(tmp_path: Path, shutdown: str) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text("name: cell\nnodes:\n  - {count: 6, cores: 8, power: grid5000, resources: {gpu: 4}}\n")
    k = pl.col("row")
    asked = {
        "nodes": pl.when(k % 4 != 0).then(k % 3 + 1),
        "tasks": k % 3 + 1 + k % 2,
        "cores_per_task": k % 2 + 1,
        "cores": (k % 3 + 1 + k % 2) * (k % 2 + 1),
        "gpus_per_node": pl.when(k % 5 == 0).then(2),
        "exclusive": k % 11 == 0,
    }
    _table(**asked).write_parquet(tmp_path / "log.parquet")
    rows = same(tmp_path / "log.parquet", escala.read_platform(str(machine)), shutdown)
    alone = escala.simulate(escala.Workload.from_jobs(_table(cores=asked["cores"])), "6x8").jobs
    assert not rows["start_s"].equals(alone.sort("submit_s", "job_id")["start_s"])  # nodes matter here


def test_whole_nodes_of_several_sizes_are_for_simulate(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text("name: cell\nnodes:\n  - {count: 3, cores: 8}\n  - {count: 3, cores: 4}\n")
    _table(exclusive=pl.col("row") == 250).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(EscalaError, match=r"^stream: a job has nodes of several sizes to itself .exclusive.[^\n]*$"):
        same(tmp_path / "log.parquet", escala.read_platform(str(machine)), "never")


def test_nodes_that_jobs_name_are_heeded(tmp_path: Path) -> None:
    """Sets of nodes are other ones in each piece."""
    site = tmp_path / "site.toml"
    site.write_text(
        'name = "six"\n[[nodes]]\nnames = "n[1-6]"\ncores = 8\n[[partitions]]\nname = "all"\nnodes = "ALL"\n'
    )
    k = pl.col("row")
    left_out = pl.concat_str(pl.lit("n[1-"), k // 60 + 1, pl.lit("]"))
    asked = {"cores": k % 7 + 1, "excluded_nodes": pl.when(k % 3 > 0).then(left_out)}
    table = _table(**asked, single_node=k % 2 == 0)
    table.write_csv(tmp_path / "log.csv")
    rows = same(tmp_path / "log.csv", escala.read_platform(str(site)), "never", jobs=40)
    bound = rows.join(table.select("job_id", "excluded_nodes").drop_nulls(), on="job_id")
    lowest = bound["nodes"].str.extract(r"^(\d+)").cast(pl.Int64)
    assert bound.height == 200 and (lowest >= bound["excluded_nodes"].str.extract(r"-(\d)").cast(pl.Int64)).all()


@pytest.mark.parametrize("too_large", [(0, 99), (100, 250), (230, 300), (0, 300)])
def test_pieces_of_jobs_that_fit_nowhere(too_large: tuple[int, int], tmp_path: Path) -> None:
    cores = pl.when(pl.col("row").is_between(*too_large)).then(40).otherwise(pl.col("cores"))
    _table(cores=cores).write_parquet(tmp_path / "log.parquet")
    rows = same(tmp_path / "log.parquet", oversized="drop")
    assert rows.filter(pl.col("state") == "REJECTED").height >= min(too_large[1] - too_large[0], 300)


@pytest.mark.parametrize("jobs", [1, 200])
def test_one_job_and_jobs_that_are_all_submitted_at_once(jobs: int, tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"submit_s": [5.0] * jobs, "runtime_s": [5.0] * jobs, "cores": [1 + k % 4 for k in range(jobs)]}
    )
    table.write_parquet(tmp_path / "log.parquet")
    same(tmp_path / "log.parquet", jobs=10)


def test_a_begin_time_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    _table(begin_s=pl.col("submit_s") + 500.0).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(EscalaError, match="may begin after its submission"):
        stream(tmp_path / "log.parquet", "32x1")
