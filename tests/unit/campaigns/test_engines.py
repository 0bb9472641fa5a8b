"""Engines: where there is no Ray, or no cluster, that is one line within seconds; where there is, the table is the same
as elsewhere."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.campaigns.campaign import RUNS
from escala.campaigns.definition import read_definition
from escala.campaigns.runs import Run, runs_of
from escala.engines import checked, engine_of, on_ray
from escala.engines.there import there
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.horizons import rules
from tests.cli.program import LOG

SPEC: dict[str, Any] = {
    "logs": ["small.swf", {"generator": "lublin", "jobs": 60, "cores": 16, "load": 0.9}],
    "platforms": ["16x1:grid5000"],
    "schedulers": ["easy", "random"],
    "shutdowns": ["never", "timeout:0"],
    "seeds": [0, 1],
    "options": {"oversized": "drop"},
}

OTHER = "import json, sys, escala; escala.campaign(*json.loads(sys.argv[1]))"
"""A campaign in a process of its own."""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A log named by a relative path, and a generated one: fourteen runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    Path("small.swf").write_text(LOG)
    return SPEC


def test_a_token_that_is_at_hand_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ray start` leaves one in the home folder; without one, and where the user has chosen, nothing changes."""
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    for name in names:
        monkeypatch.setenv(name, "")  # so that the test's own changes are taken back
        monkeypatch.delenv(name)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    on_ray.use_token()
    assert "RAY_AUTH_MODE" not in os.environ
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    on_ray.use_token()
    assert os.environ["RAY_AUTH_MODE"] == "token"
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    on_ray.use_token()
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_without_ray_its_extra_is_named(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(escala.EscalaError, match=r"--on ray needs the extra \[ray\]"):
        escala.campaign(spec, "out", "ray")
    assert not Path("out").exists()
    with pytest.raises(escala.EscalaError, match=r"--on ray needs the extra \[ray\]"):
        checked("ray")  # as verbs do before they make a folder


def test_an_address_without_ray_behind_it_is_one_line_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{free.getsockname()[1]}"
    web = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        for address, said in (
            (closed, "no Ray cluster answers at"),
            ("127.0.0.1:99999", "no Ray cluster answers at"),
            (f"127.0.0.1:{web.server_port}", "is no Ray cluster"),
            (f"127.0.0.1:{silent.getsockname()[1]}", "no Ray cluster answers at"),
        ):
            begin = time.monotonic()
            with pytest.raises(escala.EscalaError) as told:
                on_ray.check_answer(address)
            assert said in str(told.value) and address in str(told.value) and "\n" not in str(told.value)
            assert time.monotonic() - begin < 2 * on_ray.ANSWER_S
    finally:
        web.shutdown()
        web.server_close()
        silent.close()


def test_what_speaks_as_ray_does_and_is_none_is_one_line_in_time(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A service that begins as gRPC does, and then says no more; nothing of what Ray writes of it is seen."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.setattr(on_ray, "CONNECT_S", 15.0)
    server = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{server.getsockname()[1]}"

    def answer() -> None:
        with suppress(OSError):
            while True:
                lines.append(server.accept()[0])
                lines[-1].sendall(b"\0\0\0\4\0\0\0\0\0")

    lines: list[socket.socket] = []
    threading.Thread(target=answer, daemon=True).start()
    try:
        with pytest.raises(escala.EscalaError) as told, on_ray.cluster(address):
            pass
        assert address in str(told.value) and "--on ray" in str(told.value) and "\n" not in str(told.value)
        assert capfd.readouterr() == ("", "")
    finally:
        for one in (server, *lines):
            one.close()


def test_the_address_of_the_environment_is_as_ray_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(on_ray, "cluster", lambda address: asked.append(address))
    for named in ("", "local", "auto", "here:6379"):
        monkeypatch.setenv("RAY_ADDRESS", named)
        engine_of("ray", Path())
        engine_of("ray:there:1", Path())
    assert asked == [None, "there:1", None, "there:1", "auto", "there:1", "here:6379", "there:1"]
    for named in ("ray://here:10001", "here", "here:x"):
        monkeypatch.setenv("RAY_ADDRESS", named)
        with pytest.raises(
            escala.EscalaError, match=r"^RAY_ADDRESS='.*' .--on ray.: give HOST:PORT .*, auto, or local$"
        ):
            engine_of("ray", Path())


def test_a_node_with_another_escala_is_named(spec: dict[str, Any]) -> None:
    (run, *_) = runs_of(read_definition(spec))
    told = there(run, lambda run: {"found": run.key}, os.getcwd(), "0.0 of another state")
    assert "has another version or state of Escala" in told["error"] and "install 0.0" in told["error"]


@pytest.mark.slow
def test_ray_gives_the_same_table_on_this_machine_and_by_address(spec: dict[str, Any]) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    escala.campaign(spec, "local", "local:1")
    found = escala.campaign(spec, "ray", "ray")
    assert (found.done, found.failed) == (14, 0) and Path("ray", RUNS).read_bytes() == Path("local", RUNS).read_bytes()
    assert not ray.is_initialized(), "what the campaign began it ends"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        again = escala.campaign(spec, "within", "ray")
        assert ray.is_initialized() and again.done == 14, "a script's own Ray stays"
        address = ray.get_runtime_context().gcs_address
        call = [sys.executable, "-c", OTHER, json.dumps([spec, "other", f"ray:{address}"])]
        assert subprocess.run(call, timeout=120).returncode == 0
        assert Path("other", RUNS).read_bytes() == Path("local", RUNS).read_bytes()
        assert Path("within", RUNS).read_bytes() == Path("local", RUNS).read_bytes()
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_a_run_that_ends_its_process_on_ray_is_named_and_the_others_go_on(spec: dict[str, Any]) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    runs = runs_of(read_definition(spec))

    def job(run: Run) -> dict[str, Any]:
        if run.scheduler == "random":
            os._exit(1)
        return {"found": run.key}

    with engine_of("ray", Path()) as each:
        found = {run.key: told for run, told in each(runs, job)}
    assert len(found) == len(runs) and all(
        found[run.key] == {"found": run.key} for run in runs if run.scheduler == "easy"
    )
    assert {found[run.key]["error"] for run in runs if run.scheduler == "random"} == {on_ray.ENDED}


@pytest.mark.slow
def test_cells_of_a_study_are_the_same_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    cells = [Cell(f"rules/{seed}", rules, {"world": "pool", "load": 40, "steps": 10, "seed": seed}) for seed in (1, 2)]
    here, there_ = (run_cells(tmp_path / on, cells, {}, on) for on in ("local:1", "ray"))
    assert here == there_ and here["rules/1"] != here["rules/2"]
    assert all(
        len({(tmp_path / on / "cells" / f"rules_{k}.json").read_bytes() for on in ("local:1", "ray")}) == 1
        for k in (1, 2)
    )
