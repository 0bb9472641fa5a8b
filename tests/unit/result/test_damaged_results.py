"""What became of a saved run since: every damage is one line that names the folder, and none ends the process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import escala
from escala.errors import MOST_CHARACTERS, EscalaError
from escala.workload import Workload, read_workload
from tests.attacks.mutations import mutated

JOBS = {
    "submit_s": [0.0, 1.0, 2.0],
    "runtime_s": [5.0, 7.0, 3.0],
    "walltime_s": [9.0, 9.0, 9.0],
    "cores": [1, 2, 2],
    "user": ["a", "b", "a"],
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a saved run."""
    folder = escala.simulate(Workload.from_jobs(JOBS), "2x1:grid5000", "easy", "never").save(
        tmp_path_factory.mktemp("runs") / "run"
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _loaded(folder: Path, files: dict[str, bytes]) -> str | None:
    """The message of a refusal, None where the run is read and its metrics are there."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        escala.Result.load(folder).summary()
    except EscalaError as error:
        return str(error)
    return None


def test_damaged_manifests(kept: dict[str, bytes], tmp_path: Path) -> None:
    assert _loaded(tmp_path / "run", kept) is None
    chance = random.Random(25)
    refusals = [
        _loaded(tmp_path / "run", kept | {"manifest.json": mutated(chance, kept["manifest.json"])}) for _ in range(60)
    ]
    assert sum(one is not None for one in refusals) > 20
    assert all(str(tmp_path / "run") in one and len(one) <= MOST_CHARACTERS for one in refusals if one is not None)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"format": 1}', '{"format": 1, "platform": 5}', "{", "5", "\udcff"]
)
def test_manifests_that_are_none(kept: dict[str, bytes], tmp_path: Path, content: str) -> None:
    told = _loaded(tmp_path / "run", kept | {"manifest.json": content.encode(errors="surrogateescape")})
    assert told is not None and str(tmp_path / "run") in told


def test_a_table_of_another_run_is_not_whole(kept: dict[str, bytes], tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pl.DataFrame({"job_id": ["1"]}).write_parquet(other)
    told = _loaded(tmp_path / "run", kept | {"jobs.parquet": other.read_bytes()})
    assert told is not None and "not a whole run" in told


DEADLY = """
import sys
from pathlib import Path
from escala.errors import EscalaError
from escala.workload import read_workload
from escala.workload.pieces import Pieces
path, content, told = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes(), 0
for at in range(10, 16):
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    try:
        read_workload(path) if sys.argv[2] == "whole" else list(Pieces(path, 2))
    except EscalaError as error:
        told += "Parquet file is damaged" in str(error) and str(path) in str(error)
print("told", told)
"""


@pytest.mark.parametrize("how", ["whole", "in pieces"])
def test_a_flipped_bit_does_not_end_the_process(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({name: JOBS[name] for name in ("submit_s", "runtime_s", "cores")}).write_parquet(
        path, compression="uncompressed"
    )
    done = subprocess.run([sys.executable, "-c", DEADLY, str(path), how], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("told") and done.stdout != "told 0\n", (
        done.stdout + done.stderr[-300:]
    )


def test_where_no_process_can_be_started_tables_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({name: JOBS[name] for name in ("submit_s", "runtime_s", "cores")}).write_parquet(path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert len(read_workload(path)) == 3
