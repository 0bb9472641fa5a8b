"""Files with random damage: a workload, a platform or one clear line, never another error (see
`tests.attacks.mutations`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import escala.workload.read as read
from escala.errors import EscalaError
from escala.workload import read_workload
from tests.attacks import mutations
from tests.attacks.undamaged import LOGS, TABLES


def attempt(path: Path, unit: str | None) -> None:
    try:
        workload = read_workload(path, unit=unit)
    except EscalaError as error:
        assert "\n" not in str(error) and len(str(error)) < len(str(path)) + 400
    else:
        assert len(workload) > 0


@pytest.mark.parametrize("name", LOGS)
def test_the_undamaged_logs_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "log").write_text(LOGS[name])
    assert len(read_workload(tmp_path / "log", unit="min" if name == "pack" else None)) > 0


def test_the_undamaged_tables_are_read(tmp_path: Path) -> None:
    for name, content in TABLES.items():
        (tmp_path / "file").write_bytes(content)
        assert mutations.attempt(name, tmp_path / "file") == ("read", "")


def test_damaged_files() -> None:
    """500 of the inputs of `python -m tests.attacks.mutations`, which `make fuzz` reads 10 000 of."""
    found = mutations.tried(500)
    assert found["finds"] == [] and found["held"] == 500
    assert len(found["files"]) == 2 * len(mutations.CONTENTS) and found["outcomes"]["read"] > 50


CHILD = """
import json, os, signal, sys
for number in range(int(sys.argv[1]), 4):
    print(json.dumps([number]), flush=True)
    if number in (1, 2):
        os.kill(os.getpid(), signal.SIGPROF if number == 1 else signal.SIGKILL)
    print(json.dumps([number, "swf", "read", ""]), flush=True)
"""


def test_a_hang_and_a_crash_are_finds_and_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "command", lambda seed, first, last: [sys.executable, "-c", CHILD, str(first)])
    found = mutations.tried(4)
    assert [(find["number"], find["outcome"]) for find in found["finds"]] == [(1, "hang"), (2, "died")]
    assert (found["held"], found["outcomes"]) == (2, {"read": 2, "hang": 1, "died": 1})


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(KeyError("k"), "unforeseen"), (TypeError("t"), "another error"), (EscalaError("x"), "refused")],
)
def test_errors_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, outcome: str) -> None:
    def broken(path: Path, options: object) -> None:
        raise error

    monkeypatch.setitem(read.READERS, "swf", broken)
    (tmp_path / "log").write_text(LOGS["swf"])
    assert mutations.attempt("swf", tmp_path / "log")[0] == outcome


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    attempt(tmp_path / "log", None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["swf", "batsim", "slurm", "pbs", "oar", "csv", "parquet"]), st.sampled_from(sorted(LOGS)))
def test_any_log_as_any_format(tmp_path: Path, form: str, name: str) -> None:
    (tmp_path / "log").write_text(LOGS[name])
    try:
        read_workload(tmp_path / "log", format=form)
    except EscalaError as error:
        assert "\n" not in str(error)
