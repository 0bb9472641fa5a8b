"""What became of a saved run since: every damage is one line that names the folder, and none ends the process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala import parquet
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


SIGNED = """
import hashlib, json, sys
from pathlib import Path
import escala
from escala.errors import EscalaError
folder, told = Path(sys.argv[1]), 0
path, manifest = folder / "jobs.parquet", json.loads((folder / "manifest.json").read_text())
content = path.read_bytes()
for at in range(10, 16):
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    manifest["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    try:
        escala.Result.load(folder)
    except EscalaError as error:
        told += "Parquet file is damaged" in str(error) and str(path) in str(error) and "anic" not in str(error)
print("told", told)
"""


def test_who_signs_a_damaged_table_does_not_end_the_process(kept: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _loaded(folder, kept)
    pl.DataFrame({name: [0.5, 1.5, 2.5] for name in ("submit_s", "start_s", "runtime_s")}).write_parquet(
        folder / "jobs.parquet", compression="uncompressed"
    )
    done = subprocess.run([sys.executable, "-c", SIGNED, str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("told") and done.stdout != "told 0\n", (
        done.stdout + done.stderr[-300:]
    )
    assert "panicked" not in done.stderr


def test_what_was_written_or_tried_here_is_not_tried_again(
    kept: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    elsewhere = parquet._try_elsewhere

    def counted(path: Path, *rest: Any) -> bool:
        tried.append(path.name)
        return elsewhere(path, *rest)

    monkeypatch.setenv("ESCALA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(parquet, "_try_elsewhere", counted)
    assert _loaded(tmp_path / "run", kept) is None and tried == [], "written by this process"
    monkeypatch.setattr(parquet, "_noted", set())
    assert _loaded(tmp_path / "run", kept) is None and tried == ["jobs.parquet", "totals.parquet"], "by nobody known"
    monkeypatch.setattr(parquet, "_noted", set())
    assert _loaded(tmp_path / "run", kept) is None and len(tried) == 2, "the cache folder knows"
    monkeypatch.setattr(parquet, "MOST_NOTED", 10)
    escala.Result.load(tmp_path / "run").save(tmp_path / "again")
    assert 0 < next((tmp_path / "cache").iterdir()).stat().st_size < 400, "older ones go"


def test_a_cache_folder_that_takes_nothing_costs_trials_alone(
    kept: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ESCALA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(parquet, "_noted", set())
    assert _loaded(tmp_path / "run", kept) is None


def test_where_no_process_can_be_started_tables_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({name: JOBS[name] for name in ("submit_s", "runtime_s", "cores")}).write_parquet(path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert len(read_workload(path)) == 3
