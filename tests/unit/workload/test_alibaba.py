"""Pods of Alibaba's GPU trace keep their thousandths of a core: in memory, in pieces, and written as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

import escala
from escala.cli.app import run
from escala.workload import read_workload
from tests.unit.streaming.alike import same

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
HEADER += "scheduled_time\n"
PODS = [500, 500, 1500, 1500]
"""Thousandths of a core: four pods that fill a machine of four cores, and need six when rounded up."""


def _pod(name: str, milli: object, submit: int = 0, ran: int = 60) -> str:
    return f"{name},{milli},1024,0,0,,LS,Succeeded,{submit},{submit + ran},{submit}\n"


def _log(folder: Path, *pods: str) -> Path:
    (folder / "pods.csv").write_text(HEADER + "".join(pods))
    return folder / "pods.csv"


def _machine(folder: Path, cores: int) -> Path:
    (folder / "machine.yaml").write_text(
        f"name: m\nnodes:\n  - {{count: 1, cores: {cores}, resources: {{memory: 65536}}}}\n"
    )
    return folder / "machine.yaml"


def test_pods_that_fill_a_machine_in_thousandths_run_at_once(tmp_path: Path) -> None:
    log = read_workload(_log(tmp_path, *(_pod(f"p{k}", milli) for k, milli in enumerate(PODS))))
    assert log.jobs["cores"].to_list() == PODS and "fractional processors" not in log.cleaning
    assert log.source == "pods.csv: Alibaba GPU cluster 2023, cores in thousandths"
    done = escala.simulate(log, _machine(tmp_path, 4000), "fcfs")
    assert done.jobs["start_s"].to_list() == [0.0] * 4
    assert escala.simulate(log, _machine(tmp_path, 3999), "fcfs").jobs["start_s"].to_list() == [0.0] * 3 + [60.0]


@pytest.mark.parametrize(
    ("milli", "cores", "rule"),
    [
        (0, 1, None),
        ("0.2", 1, None),
        ("1500.5", 1501, "fractional processors"),
        ("", None, "no processors"),
        ("many", None, "no processors"),
        (-1, None, "no processors"),
        (2**31, None, "absurd processors"),
    ],
)
def test_odd_demands_are_counted(tmp_path: Path, milli: object, cores: int | None, rule: str | None) -> None:
    log = read_workload(_log(tmp_path, _pod("fine", 1000), _pod("odd", milli, 5)))
    assert log.jobs["cores"].to_list() == ([1000] if cores is None else [1000, cores])
    assert {name: count for name, count in log.cleaning.items() if "processors" in name} == ({rule: 1} if rule else {})


def _many(folder: Path) -> Path:
    """Pods of a tenth of a core to four, on a machine where they wait when they are taken whole."""
    return _log(folder, *(_pod(f"p{k}", 100 + 739 * k % 3900, 10 * k, 45 + k % 7) for k in range(300)))


def test_streamed_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 4000)
    rows = same(_many(tmp_path), escala.read_platform(str(_machine(tmp_path, 12_500))), "never")
    assert set(rows["cores"] % 100) != {0} and rows["cores"].min() == 100
    assert 0.0 < rows["wait_s"].mean() < 20.0  # type: ignore[operator]


def test_converted_and_simulated_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, machine, table = _many(tmp_path), _machine(tmp_path, 12_500), tmp_path / "pods.parquet"
    assert run(["workload", "convert", str(log), "--out", str(table)]) == 0
    assert read_workload(table).jobs["cores"].equals(read_workload(log).jobs["cores"])
    assert read_workload(table).jobs["cores"][1] == 839
    waits = []
    for name, path, more in (("whole", log, []), ("streamed", log, ["--stream"]), ("table", table, ["--stream"])):
        out = tmp_path / name
        words = ["simulate", str(path), "--platform", str(machine), "--scheduler", "easy", "--out", str(out), *more]
        assert run(words) == 0
        waits.append(escala.Result.load(out).jobs.sort("job_id")["wait_s"].to_list())
    assert waits[0] == waits[1] == waits[2] and sum(waits[0]) > 0
