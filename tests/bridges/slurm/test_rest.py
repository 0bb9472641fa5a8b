"""Looks through slurmrestd: recorded answers of two versions, faults, and the real one where it is installed."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from escala.bridges.slurm import json_output
from escala.bridges.slurm.commands import Clients
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.rest import Rest, RestReader
from escala.bridges.slurm.seen import Reservation
from escala.cli.app import run
from escala.errors import EscalaError
from tests.bridges.slurm.lab import Lab, lab
from tests.bridges.slurm.restd import Answer, from_recorded, recorded, restd

APIS = {"22.05": "v0.0.38", "24.11": "v0.0.42"}


@pytest.fixture(params=APIS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_was_recorded_is_read(version: str, tmp_path: Path) -> None:
    with restd(tmp_path / "r", APIS[version], from_recorded(version)) as asked:
        reader = RestReader(Rest(tmp_path / "r"), clock=lambda: 5.0)
        assert (reader.api, "{}.{:02}".format(*reader.version), reader.known) == (APIS[version], version, True)
        asked.clear()
        seen = reader.read()
        assert asked == [f"/slurm/{reader.api}/{what}" for what in ("jobs", "nodes", "reservations")]
    jobs, parts = json_output.jobs(recorded(version)["jobs"].decode())
    assert seen.jobs == jobs and seen.parts == parts and seen.now_s == 5.0
    assert seen.nodes == json_output.nodes(recorded(version)["nodes"].decode()) and "maint" in seen.reservations


def test_the_answers_of_22_05_by_hand(tmp_path: Path) -> None:
    with restd(tmp_path / "r", "v0.0.38", from_recorded("22.05")):
        seen = RestReader(Rest(tmp_path / "r")).read()
    assert seen.reservations["escala_n8"] == Reservation("escala_n8", ("n8",), 1795624419.0, 1795625019.0, ("root",))
    assert seen.jobs["1"].hosts == ("n1", "n2", "n3") and seen.parts["2"] == (("n4", 4), ("n5", 2))
    assert seen.jobs["3"].nice == 50 and seen.jobs["5"].priority == 0 and seen.jobs["4_3"].reason == "JobArrayTaskLimit"
    assert {"POWERED_DOWN", "RESERVED"} <= seen.nodes["n8"].state and seen.nodes["n6"].allocated == 2


def test_a_whole_run_reads_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Slurm's clients; modes that act need them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with restd(tmp_path / "r", "v0.0.42", from_recorded("24.11")):
        options = ["beside", "slurm", "--read", f"rest:{tmp_path / 'r'}", "--folder", str(tmp_path / "beside")]
        assert run([*options, "--period", "0.5", "--looks", "2"]) == 0
        assert "ended: looks 2, missed 0" in capsys.readouterr().out
        assert run([*options, "--mode", "advise"]) == 2
        assert "squeue: no such program on the PATH" in capsys.readouterr().err


def _failing(what: str, status: int, body: bytes) -> Answer:
    told = from_recorded("22.05")
    return lambda asked: (status, body) if asked == what else told(asked)


ERRORS = json.dumps({"errors": [{"error_number": 1, "description": "Unable to contact slurm controller"}]}).encode()


@pytest.mark.parametrize(
    ("what", "status", "body", "said"),
    [
        ("jobs", 500, ERRORS, "slurmrestd: jobs: status 500: Unable to contact slurm controller"),
        ("jobs", 401, b"Authentication failure", "status 401: Authentication failure"),
        ("jobs", 200, b"{}", "slurmrestd v0.0.38 jobs: its JSON has no list of jobs"),
        ("jobs", 200, b"[" * 100_000, "slurmrestd v0.0.38 jobs: its output is no JSON"),
        ("nodes", 200, b'{"nodes": []}', "slurmrestd: it names no node"),
        ("reservations", 200, b'{"reservations": [{"name": "x"}]}', "reservations: 'x' has no start_time"),
    ],
)
def test_answers_that_are_none(what: str, status: int, body: bytes, said: str, tmp_path: Path) -> None:
    with restd(tmp_path / "r", "v0.0.38", _failing(what, status, body)):
        reader = RestReader(Rest(tmp_path / "r"))
        with pytest.raises(EscalaError) as raised:
            reader.read()
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_nobody_there_another_server_and_half_an_answer(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="see whether it runs and lets this user ask"):
        RestReader(Rest(tmp_path / "none"))
    with (
        restd(tmp_path / "a", "v0.0.37", from_recorded("22.05")),
        pytest.raises(EscalaError, match=r"it answers to none of v0\.0\.38 to"),
    ):
        RestReader(Rest(tmp_path / "a"))
    with (
        restd(tmp_path / "b", "v0.0.38", lambda what: (200, b"{}")),
        pytest.raises(EscalaError, match="names no release of Slurm"),
    ):
        RestReader(Rest(tmp_path / "b"))
    told = from_recorded("22.05")
    with restd(tmp_path / "c", "v0.0.38", lambda what: None if what == "jobs" else told(what)):
        reader = RestReader(Rest(tmp_path / "c", limit_s=2.0))
        with pytest.raises(EscalaError, match="slurmrestd"):
            reader.read()


def test_damaged_answers_are_one_line_or_a_look(tmp_path: Path) -> None:
    """Bytes of real answers are cut out, doubled and changed: a look, or a line, and nothing else."""
    drawn, told, refused = random.Random(7), recorded("22.05"), 0

    def damaged(what: str) -> tuple[int, bytes]:
        body = bytearray(told[what])
        for _ in range(drawn.randint(0, 2)):
            at, size = drawn.randrange(len(body)), drawn.randint(1, 40)
            body[at : at + size] = drawn.choice((b"", b"null", b'"x"', bytes(body[at : at + size]) * 2))
        return 200, bytes(body)

    with restd(tmp_path / "r", "v0.0.38", lambda what: (200, told[what]) if what == "ping" else damaged(what)):
        reader = RestReader(Rest(tmp_path / "r"))
        for _ in range(150):
            try:
                reader.read()
            except EscalaError as error:
                assert "\n" not in str(error)
                refused += 1
    assert 30 < refused < 150


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """A small Slurm with the real slurmrestd beside it, and the socket of that."""
    program = shutil.which("slurmrestd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None:
        pytest.skip("no slurmrestd here (Debian: slurmrestd)")
    with lab(tmp_path_factory.mktemp("lab"), 4, 4) as found:
        path = found.folder / "r.sock"
        environment = found.environment | {"SLURMRESTD_SECURITY": "disable_user_check"}
        release = found.run("squeue", "--version").split()[1]
        plugin = "v0.0.38" if release < "23.11" else "slurmctld"  # all of them want slurmdbd
        command = [program, "-s", plugin, "-a", "rest_auth/local", f"unix:{path}"]
        process = subprocess.Popen(
            command, env=environment, cwd=found.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            end = time.monotonic() + 10
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.1)
            yield found, path
        finally:
            process.kill()
            process.wait(10)


@pytest.mark.slurm
@pytest.mark.slow
def test_the_real_one_says_what_the_clients_say(real: tuple[Lab, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found, path = real
    monkeypatch.setenv("SLURM_CONF", found.environment["SLURM_CONF"])
    for options in (
        ("-N2", "--exclusive", "-t9"),
        ("-n5", "-t3"),
        ("-N4", "--exclusive"),
        ("--array=1-3", "-n2"),
        ("-H",),
    ):
        found.submit(*options, seconds=60)
    time.sleep(4)
    for _ in range(5):  # a reason may change between two looks
        by_rest, by_text = RestReader(Rest(path)).read(), Reader(Clients()).read()
        if by_rest.jobs == by_text.jobs:
            break
    assert (
        by_rest.jobs == by_text.jobs and by_rest.nodes == by_text.nodes and by_rest.reservations == by_text.reservations
    )
    assert len(by_rest.jobs) == 7 and any(job.state == "running" for job in by_rest.jobs.values())
