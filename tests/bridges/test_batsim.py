"""Inside Batsim: the schedule is that of Escala's own simulation, and every message of a real Batsim is answered as its
scheduler did."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.bridges.batsim.process import Process
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.fake_batsim import FakeBatsim, platform_file
from tests.bridges.recorded import decided, exchanges
from tests.bridges.served import errors
from tests.golden.compare import job_differences as golden_differences
from tests.golden.runs import RUNS, read_jobs, read_platform, read_workload, rows_of, text_of, totals
from tests.laws.laws import rows
from tests.live.twin import RUN_ONLY, Case, case_of, platform_of, table_differences, world
from tests.oracle.engines import run_kernel

SCHEDULERS = ("easy", "easy-sjf", "conservative", "fcfs")
SHUTDOWNS = ("never", "timeout:0", "timeout:3", "timeout:1+2", "hold:0.5", "hold:0.5:if-busy")
FURTHER = (
    ("saf", "proportional:0.5"),
    ("easy-fast", "off-reservation:1"),
    ("easy++", "hold:1:2"),
    ("unicep-fit", "inertial"),
)
PATIENCE_S = 60.0


def _process(case: Case) -> Process:
    options = {name: value for name, value in case.options.items() if name not in RUN_ONLY}
    return Process(lambda platform: Desk(platform, **options), platform_of(case))


def _differences(case: Case, seed: int = 0) -> list[str]:
    """What the fake Batsim ends with, otherwise than `escala.simulate`."""
    fake = FakeBatsim(case.platform, case.jobs, seed, start_off=case.options.get("start_off", False))
    process = _process(case)
    fake.run(process.answer)
    assert process.over and process.started == len(case.jobs) and process.messages == len(fake.transcript)
    return table_differences(fake.tables(), run_kernel(case))


def _of_hosts(case: Case | None) -> Case | None:
    """The world with hosts of one core; None where jobs need what Batsim does not know."""
    if case is None or case.platform.get("resources") or any(job["single_node"] for job in case.jobs):
        return None
    n = len(case.platform["cores"])
    most = n - int(case.options["shutdown"].partition("off-reservation:")[2] or 0)
    jobs = [{**job, "cores": min(job["cores"], most)} for job in case.jobs]
    return replace(case, platform={**case.platform, "cores": [1] * n}, jobs=jobs)


@pytest.mark.parametrize("shutdown", SHUTDOWNS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedules_are_those_of_the_simulation(scheduler: str, shutdown: str) -> None:
    assert _differences(case_of(scheduler, shutdown, "one-core", 60)) == []


@pytest.mark.parametrize(("scheduler", "shutdown"), FURTHER)
def test_policies_that_remember_or_change_with_time(scheduler: str, shutdown: str) -> None:
    assert _differences(case_of(scheduler, shutdown, "one-core", 60), seed=1) == []


def _random_worlds(first: int, worlds: int) -> tuple[int, list[str]]:
    asked, found = 0, list[str]()
    for number in range(first, first + worlds):
        case = _of_hosts(world(11, number))
        if case is None:
            continue
        try:
            other = _differences(case, seed=number)
        except escala.EscalaError as error:
            assert "fair_share" in str(error), number
            continue
        asked += 1
        if other:
            found.append(f"world {number}, {case.options['scheduler']} + {case.options['shutdown']}: {other[0]}")
    return asked, found


def test_random_worlds() -> None:
    """Any named policy, several kinds of hosts, ties, nodes off at the start, switches of no time."""
    asked, found = _random_worlds(0, 80)
    assert not found and asked > 40


@pytest.mark.long
def test_more_random_worlds() -> None:
    asked, found = _random_worlds(1000, 1000)
    assert not found and asked > 500


GOLDEN = (
    "ties1-fcfs_fast",
    "ties1-easy_bf",
    "ties1-easy_bf_fast",
    "ties2-easy_bf",
    "ties5-easy_bf",
    "ties5-easy_bf_fast",
    "ties6-easy_bf",
)
SWITCHING = ("power-timeout0", "power-timeout60", "power-timeout300-stock")
LARGE = ("kth-easy_bf", "cerit-easy_bf", "theta22-easy_bf_fast")


def _replayed(name: str, traces: Path) -> tuple[int, list[str]]:
    """How many messages of a real run, and those that are answered otherwise; after the last job nobody is asked."""
    (run,) = [run for run in RUNS if run.name == name]
    folder = traces / "batsim" / "golden-runs" / name
    options = {"rules": run.rules, "plan_margin_s": run.plan_margin_s}
    platform = escala.read_platform(str(folder / "platform.xml.gz"))
    process = Process(lambda nodes: Desk(nodes, run.scheduler, run.shutdown, **options), platform)
    said, wrong = 0, []
    for exchange in exchanges(folder):
        starts, states = decided(process.answer(json.dumps({"now": exchange.now_s, "events": exchange.told}).encode()))
        # its scheduler decides at once, ours as soon as jobs of time 0 would be there
        if exchange.told[0]["type"] == "SIMULATION_BEGINS":
            call = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "REQUESTED_CALL", "data": {}}]}
            starts, states = decided(process.answer(json.dumps(call).encode()))
        said += 1
        alive = process.coming or (process._machine is not None and process._machine.jobs)
        if alive and (starts, states) != (exchange.starts, exchange.states):
            wrong.append(
                f"message {said} of {exchange.now_s} s: {starts} {states} and not {exchange.starts} {exchange.states}"
            )
    assert process.over and process.started == len(read_jobs(folder / "out_jobs.csv.gz"))
    return said, wrong


@pytest.mark.parametrize("name", SWITCHING)
def test_every_decision_of_a_real_run_with_switches(name: str, traces: Path) -> None:
    said, wrong = _replayed(name, traces)
    assert wrong == [] and said > 1500


@pytest.mark.parametrize("name", GOLDEN)
def test_every_decision_of_a_real_run(name: str, traces: Path) -> None:
    said, wrong = _replayed(name, traces)
    assert wrong == [] and said > 500


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_every_decision_of_a_large_real_run(name: str, traces: Path) -> None:
    said, wrong = _replayed(name, traces)
    assert wrong == [] and said > 1500


def test_the_published_run(traces: Path) -> None:
    """medium_late: 801 jobs on 32 hosts, all starts and allocations as published."""
    folder = traces / "batsim" / "golden-medium_late"
    hosts = int(totals(folder / "easy" / "out_schedule.csv")["nb_computing_machines"])
    platform = read_platform(folder / "platform.xml.gz", hosts)
    jobs = [{**job, "single_node": False} for job in read_workload(folder / "medium_late.json", platform["speed"])]
    case = Case(platform, jobs, {"scheduler": "easy", "shutdown": "never", "rules": "batsched"})
    fake = FakeBatsim(platform, jobs)
    fake.run(_process(case).answer)
    import polars as pl

    gold = read_jobs(folder / "easy" / "out_jobs.csv")
    assert golden_differences(pl.DataFrame(fake.tables()[0]), gold, states=True) == [] and len(gold) == 801
    assert table_differences(fake.tables(), run_kernel(case)) == []


@contextmanager
def _running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`escala batsim`, and its address; it has ended at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "escala", "batsim", "--endpoint", address, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = threading.Timer(2 * PATIENCE_S, process.kill)
    watch.start()
    assert process.stdout is not None
    try:
        assert f"listening at {address}" in process.stdout.readline()
        yield process, address
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        watch.cancel()


@contextmanager
def _asking(address: str) -> Iterator[Any]:
    """A function that sends a message there, and gives the reply."""
    zmq = pytest.importorskip("zmq", reason="the extra [batsim] is not installed")
    context = zmq.Context()
    there = context.socket(zmq.REQ)
    there.setsockopt(zmq.LINGER, 0)
    there.connect(address)

    def ask(data: bytes) -> bytes:
        there.send(data)
        assert there.poll(PATIENCE_S * 1000), "no reply"
        return there.recv()

    try:
        yield ask
    finally:
        there.close()
        context.term()


def test_a_whole_simulation_over_zeromq(tmp_path: Path) -> None:
    case = case_of("easy-sjf", "timeout:3", "one-core", 60)
    profile = case.platform["profiles"][0]
    (tmp_path / "platform.xml").write_text(platform_file(20, profile["switch_off_s"], profile["switch_on_s"]))
    fake = FakeBatsim(case.platform, case.jobs)
    with _running(
        "--scheduler", "easy-sjf", "--shutdown", "timeout:3", "--platform", str(tmp_path / "platform.xml")
    ) as (process, address):
        with _asking(address) as ask:
            fake.run(ask)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (
        (process.returncode, errors(err)) == (0, "")
        and "ended: messages" in out
        and "jobs started 60, rejected 0" in out
    )
    assert table_differences(fake.tables(), run_kernel(case)) == []


def test_a_message_that_makes_no_sense_ends_both() -> None:
    with _running() as (process, address):
        with _asking(address) as ask:
            reply = json.loads(ask(b"garbage"))
        _, err = process.communicate(timeout=PATIENCE_S)
    assert reply["events"][0]["type"] == "REFUSED_BY_ESCALA", "Batsim stops at an event that it does not know"
    assert process.returncode == 2 and errors(err).startswith("error: Batsim: ") and errors(err).count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--shutdown", "timeout:3"], "give its --platform FILE too"),
        (["--scheduler", "conservative"], "give rebuild=True"),
        (["--scheduler", "random"], "a machine has no log"),
        (["--endpoint", "nonsense"], "--endpoint nonsense: cannot be had"),
        (["--endpoint", "tcp://256.0.0.1:28000"], "cannot be had"),
        (["--platform", "none.xml"], "none.xml"),
    ],
)
def test_bad_calls_are_one_line(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("zmq", reason="the extra [batsim] is not installed")
    from escala.cli.app import run

    assert run(["batsim", *options]) == 2
    told = capsys.readouterr()
    assert words in told.err and told.err.splitlines()[-1].startswith("error: ") and told.out == ""


def test_no_file_and_no_socket_that_is_in_use_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What has died leaves a socket, which is taken over."""
    from escala.bridges.batsim.listen import listen
    from escala.bridges.place import listening

    done = Process(lambda platform: Desk(platform, "easy", "never"), None)
    done.over = True
    file, there = tmp_path / "notes.txt", tmp_path / "dead"
    file.write_text("mine")
    with pytest.raises(EscalaError, match=r"notes\.txt: stands there already, and is no socket: name another one"):
        listen(f"ipc://{file}", done, lambda: None)
    assert file.read_text() == "mine"
    with listening(tmp_path / "lives"), pytest.raises(EscalaError, match="a server that lives listens there"):
        listen(f"ipc://{tmp_path / 'lives'}", done, lambda: None)
    with pytest.raises(EscalaError, match="there is no folder"):
        listen(f"ipc://{tmp_path / 'none' / 'a'}", done, lambda: None)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(there))
    for endpoint in (f"ipc://{there}", "ipc://@escala-test", "ipc://*"):
        listen(endpoint, done, lambda: None)


REAL = [
    ("golden-medium_late", 32, "easy", "never", "batsched"),
    ("golden-medium_late", 32, "easy", "timeout:300", "batsched"),
    ("golden-medium_late", 32, "easy-sjf", "hold:0.25", "batsched"),
    ("golden-medium_late", 32, "conservative", "timeout:60", "batsched"),
    ("golden-runs/power-timeout60", 24, "fcfs", "timeout:60", "escala"),
    ("golden-runs/ties5-easy_bf", 40, "easy", "timeout:10", "batsched"),
]
"""Inputs, hosts, policies and rules of runs inside a real Batsim."""


def _real(
    tmp_path: Path, folder: Path, hosts: int, *options: str
) -> tuple[subprocess.CompletedProcess[str], int, str, Path, str]:
    """Batsim and this process on the files of a folder. What Batsim did, our status and errors, the log, the
    platform."""
    program = shutil.which("batsim")
    if program is None:
        pytest.skip("no program batsim on the PATH: the recorded runs above stand for it")
    (log,) = (path for path in folder.iterdir() if path.name in ("medium_late.json", "workload.json.gz"))
    workload, platform = tmp_path / "workload.json", tmp_path / "platform.xml"
    workload.write_text(text_of(log))
    # names that SimGrid no longer knows
    text = re.sub(r"<config.*?</config>", "", text_of(folder / "platform.xml.gz"), flags=re.DOTALL)
    platform.write_text(text.replace('"watt_per_state"', '"wattage_per_state"').replace('"watt_off"', '"wattage_off"'))
    spec = f"{platform}#{hosts}"
    with _running("--platform", spec, *options) as (process, address):
        command = [
            program,
            "-p",
            str(platform),
            "-w",
            str(workload),
            "-E",
            "--mmax",
            str(hosts),
            "-e",
            str(tmp_path / "out"),
            "-q",
        ]
        done = subprocess.run([*command, "-s", address], capture_output=True, text=True, timeout=PATIENCE_S)
        _, err = process.communicate(timeout=PATIENCE_S)
    return done, process.returncode, errors(err), workload, spec


@pytest.mark.parametrize(("folder", "hosts", "scheduler", "shutdown", "rules"), REAL)
def test_the_real_batsim(
    tmp_path: Path, traces: Path, *, folder: str, hosts: int, scheduler: str, shutdown: str, rules: str
) -> None:
    """Where it is installed: all starts, hosts and joules as in Escala's own simulation."""
    more = ["--rebuild"] if scheduler == "conservative" else []
    given = ("--scheduler", scheduler, "--shutdown", shutdown, "--rules", rules, *more)
    done, status, err, workload, spec = _real(tmp_path, traces / "batsim" / folder, hosts, *given)
    assert (done.returncode, status, err) == (0, 0, ""), done.stderr[-2000:]
    log = escala.read_workload(workload, speed=1e8)
    expected = escala.simulate(log, spec, scheduler, shutdown, rules=rules, rebuild=bool(more))
    theirs = {
        row["job_id"]: (float(row["starting_time"]), row["allocated_resources"])
        for row in rows_of(tmp_path / "out_jobs.csv")
    }
    for row in rows(expected.jobs):
        start_s, allocated = theirs.pop(row["job_id"])
        assert abs(start_s - row["start_s"]) < 2e-6 and allocated == row["nodes"], row["job_id"]
    consumed = totals(tmp_path / "out_schedule.csv")["consumed_joules"]
    assert theirs == {} and float(expected.power["joules"].sum()) == pytest.approx(consumed, rel=1e-9)


def test_the_real_batsim_stops_where_we_do(tmp_path: Path, traces: Path) -> None:
    """Jobs need all hosts, and some are kept off: neither waits for the other for ever."""
    done, status, err, *_ = _real(
        tmp_path, traces / "batsim" / "golden-runs" / "ties5-easy_bf", 40, "--shutdown", "off-reservation:5"
    )
    assert status == 2 and "15 jobs wait, and nothing will ever happen" in err and err.count("\n") == 1
    assert done.returncode != 0 and "REFUSED_BY_ESCALA" in done.stderr
