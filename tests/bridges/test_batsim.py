"""Inside Batsim: the schedule is that of Escala's own simulation, and every message of a real Batsim is answered as its scheduler did."""

from __future__ import annotations

import json
import random
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
from escala.bridges.batsim.messages import intervals
from escala.bridges.batsim.messages import numbers as numbers_of
from escala.bridges.batsim.process import Process
from escala.live import Desk
from tests.bridges.fake_batsim import FakeBatsim, numbers
from tests.bridges.recorded import decided, exchanges
from tests.bridges.served import errors
from tests.golden.compare import job_differences as golden_differences
from tests.golden.runs import RUNS, read_jobs, read_platform, read_workload, rows_of, text_of, totals
from tests.laws.laws import rows
from tests.live.twin import RUN_ONLY, Case, case_of, platform_of, world
from tests.oracle.engines import job_differences, place_differences, power_differences, run_kernel, state_differences

SCHEDULERS = ("easy", "easy-sjf", "conservative", "fcfs")
SHUTDOWNS = ("never", "timeout:0", "timeout:3", "timeout:1+2", "hold:0.5", "hold:0.5:if-busy")
FURTHER = (("saf", "proportional:0.5"), ("easy-fast", "off-reservation:1"), ("easy++", "hold:1:2"), ("unicep-fit", "inertial"))
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
    return _compared(case, fake)


def _compared(case: Case, fake: FakeBatsim) -> list[str]:
    expected = run_kernel(case)
    jobs, allocations, nodes, power = fake.tables()
    table = [{name: value for name, value in row.items() if name != "estimate_s"} for row in rows(expected.jobs)]
    return (
        job_differences(jobs, table)
        + place_differences(allocations, rows(expected.allocations))
        + state_differences(nodes, rows(expected.nodes))
        + power_differences(power, rows(expected.power))
    )


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


GOLDEN = ("ties1-fcfs_fast", "ties1-easy_bf", "ties1-easy_bf_fast", "ties2-easy_bf", "ties5-easy_bf", "ties5-easy_bf_fast", "ties6-easy_bf")
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
        if exchange.told[0]["type"] == "SIMULATION_BEGINS":  # its scheduler decides at once, ours as soon as jobs of time 0 would be there
            call = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "REQUESTED_CALL", "data": {}}]}
            starts, states = decided(process.answer(json.dumps(call).encode()))
        said += 1
        alive = process.coming or (process._machine is not None and process._machine.jobs)
        if alive and (starts, states) != (exchange.starts, exchange.states):
            wrong.append(f"message {said} of {exchange.now_s} s: {starts} {states} and not {exchange.starts} {exchange.states}")
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
    assert _compared(case, fake) == []


def test_sets_of_resources() -> None:
    rng = random.Random(1)
    for _ in range(200):
        found = sorted(rng.sample(range(40), rng.randint(0, 20)))
        assert numbers(intervals(found)) == found == numbers_of(intervals(found))
    assert intervals([7, 0, 2, 1]) == "0-2 7" and numbers_of("") == []
    for wrong in ("a", "3-1", "1,2", "0-99999999999"):
        with pytest.raises(escala.EscalaError, match="is no set of resources"):
            numbers_of(wrong)


def _says(process: Process, now: float, *events: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    told = {"now": now, "events": [{"timestamp": now, "type": kind, "data": data} for kind, data in events]}
    reply = json.loads(process.answer(json.dumps(told).encode()))
    assert reply["now"] == now
    return [(event["type"], event["data"]) for event in reply["events"]]


def _hosts(n: int = 2, **more: Any) -> dict[str, Any]:
    properties = {"wattage_per_state": "95:95:190, 9:9:9, 100:100:100, 125:125:125", "sleep_pstates": "1:2:3"}
    resources = [{"id": k, "name": f"host{k}", "state": "idle", "properties": properties} for k in range(n)]
    return {"compute_resources": resources, "config": {}} | more


def _job(name: str, res: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return "JOB_SUBMITTED", {"job_id": name, "job": {"id": name, "res": res, "profile": "p", **more}}


WATTS = "computing=190,idle=95,off=9,switching_off=100,switching_on=125,switch_off_s=6.1,switch_on_s=151.52"


def _small(shutdown: str = "timeout:10", **options: Any) -> Process:
    return Process(lambda nodes: Desk(nodes, "easy", shutdown, **options), escala.read_platform("2x1", WATTS))


def test_an_exchange_by_hand() -> None:
    """Two hosts, off after 10 s. a needs one at 5 s and runs 20 s; b needs both at 30 s; c needs three, which nobody has."""
    process = _small()
    assert _says(process, 0.0, ("SIMULATION_BEGINS", _hosts())) == [("CALL_ME_LATER", {"timestamp": 1e-7})]
    assert _says(process, 0.0, ("REQUESTED_CALL", {})) == [("CALL_ME_LATER", {"timestamp": 10.0})]
    assert _says(process, 5.0, _job("a", 1, walltime=100)) == [("EXECUTE_JOB", {"job_id": "a", "alloc": "0"})]
    assert _says(process, 10.0, ("REQUESTED_CALL", {})) == [("SET_RESOURCE_STATE", {"resources": "1", "state": "1"})]
    assert _says(process, 12.0, _job("c", 3)) == [("REJECT_JOB", {"job_id": "c"})]
    assert _says(process, 16.1, ("RESOURCE_STATE_CHANGED", {"resources": "1", "state": "1"})) == []
    done = ("JOB_COMPLETED", {"job_id": "a", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0"})
    assert _says(process, 25.0, done) == [("CALL_ME_LATER", {"timestamp": 35.0})]
    assert _says(process, 30.0, _job("b", 2, walltime=30)) == [("SET_RESOURCE_STATE", {"resources": "1", "state": "0"})]
    assert _says(process, 30.0, ("NOTIFY", {"type": "no_more_static_job_to_submit"})) == []
    assert _says(process, 35.0, ("REQUESTED_CALL", {})) == [], "host 0 waits for b: the call is void"
    woken = ("RESOURCE_STATE_CHANGED", {"resources": "1", "state": "0"})
    assert _says(process, 181.52, woken) == [("EXECUTE_JOB", {"job_id": "b", "alloc": "0-1"})]
    killed = ("JOB_COMPLETED", {"job_id": "b", "job_state": "COMPLETED_WALLTIME_REACHED", "return_code": -1, "alloc": "0-1"})
    assert _says(process, 211.52, killed) == [], "after the last job nobody is asked"
    assert _says(process, 211.52, ("SIMULATION_ENDS", {})) == [] and process.over
    assert (process.started, process.rejected, process.switches, process.messages) == (2, 1, 2, 13)


def test_hosts_that_are_unavailable() -> None:
    process = _small("never")
    _says(process, 0.0, ("SIMULATION_BEGINS", _hosts(config={"dynamic-jobs-enabled": True})))
    assert _says(process, 1.0, ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0"})) == []
    assert _says(process, 2.0, _job("a", 1, walltime=5)) == [("EXECUTE_JOB", {"job_id": "a", "alloc": "1"})]
    assert _says(process, 3.0, _job("b", 1)) == []
    back = ("NOTIFY", {"type": "event_machine_available", "resources": "0-1"})
    assert _says(process, 4.0, back) == [("EXECUTE_JOB", {"job_id": "b", "alloc": "0"})]
    progress = {"a": {"profile": "p", "progress": 0.4}}
    assert _says(process, 5.0, ("JOB_KILLED", {"job_ids": ["a", "gone"], "job_progress": progress}), _job("c", 1)) == [
        ("EXECUTE_JOB", {"job_id": "c", "alloc": "1"})
    ]


def test_hosts_that_take_longer_are_asked_for_apart() -> None:
    """Batsim tells once, when the last host of a request is ready: quick hosts would seem to be as slow as the slowest."""
    quick = escala.read_platform("2x1", WATTS).profiles[0]
    slow = replace(quick, name="slow", switch_on_s=1000.0)
    platform = escala.Platform(name="p", cores=[1, 1, 1], profiles=(quick, slow), profile_of=[0, 1, 0])
    process = Process(lambda nodes: Desk(nodes, "easy", "timeout:10"), platform)
    asleep = _hosts(3)
    for host in asleep["compute_resources"]:
        host["state"] = "sleeping"
    _says(process, 0.0, ("SIMULATION_BEGINS", asleep))
    assert _says(process, 5.0, _job("a", 3, walltime=100)) == [
        ("SET_RESOURCE_STATE", {"resources": "0 2", "state": "0"}),
        ("SET_RESOURCE_STATE", {"resources": "1", "state": "0"}),
    ]


def test_jobs_that_will_never_run_are_told_of() -> None:
    """One of two hosts is kept off for good, and a job needs both."""
    process = _small("off-reservation:1")
    _says(process, 0.0, BEGUN)
    _says(process, 0.0, ("REQUESTED_CALL", {}))
    _says(process, 7.0, ("RESOURCE_STATE_CHANGED", {"resources": "1", "state": "1"}))
    assert _says(process, 8.0, _job("a", 2, walltime=5)) == []
    with pytest.raises(escala.EscalaError, match="1 jobs wait, and nothing will ever happen"):
        _says(process, 8.0, ("NOTIFY", {"type": "no_more_static_job_to_submit"}))


def test_notices_and_void_calls_are_no_decisions() -> None:
    asked = []

    def policy(view: Any, act: Any) -> None:
        asked.append(view.now_s)
        act.call_at(100.0)

    process = Process(lambda nodes: Desk(nodes, policy), None)
    _says(process, 0.0, BEGUN)
    assert _says(process, 3.0, _job("a", 1, walltime=5)) == [("CALL_ME_LATER", {"timestamp": 100.0})]
    for now in (3.0, 4.0):
        assert _says(process, now, ("NOTIFY", {"type": "no_more_external_event_to_occur"})) == []
        assert _says(process, now, ("REQUESTED_CALL", {})) == []
    assert _says(process, 100.0, ("REQUESTED_CALL", {})) == [] and asked == [3.0, 100.0]


def test_dynamic_jobs_are_said_to_be_over() -> None:
    reply = _says(_small("never"), 0.0, ("SIMULATION_BEGINS", _hosts(config={"dynamic-jobs-enabled": True})))
    assert reply[0] == ("NOTIFY", {"type": "registration_finished"})


def test_a_job_without_a_walltime_is_passed_by_nobody_who_would_delay_it() -> None:
    """a runs, for how long nobody knows; b needs both hosts and has a reservation after a year: c may pass it with any walltime below."""
    process = _small("never")
    _says(process, 0.0, ("SIMULATION_BEGINS", _hosts()))
    assert _says(process, 0.0, _job("a", 1)) == [("EXECUTE_JOB", {"job_id": "a", "alloc": "0"})]
    assert _says(process, 1.0, _job("b", 2, walltime=10)) == []
    assert _says(process, 2.0, _job("d", 1)) == [], "nor does d: it would end after a"
    assert _says(process, 3.0, _job("c", 1, walltime=-1)) == []
    assert _says(process, 4.0, _job("e", 1, walltime=86400)) == [("EXECUTE_JOB", {"job_id": "e", "alloc": "1"})]


BEGUN = ("SIMULATION_BEGINS", _hosts())
WRONG = [
    (b"\x08\x00\x00\x00garbage", "Batsim 5 speaks another protocol"),
    (b"[" * 100_000, "is not JSON"),
    (b"[]", "is no message with now and events"),
    ({"now": "soon", "events": []}, "now is 'soon'"),
    ({"now": float("nan"), "events": []}, "now is nan"),
    ({"now": 5.0, "events": [5]}, "5 is no event"),
    ({"now": 5.0, "events": [{"timestamp": 6.0, "type": "REQUESTED_CALL"}]}, "REQUESTED_CALL of 6.0 s after 0.0 s, in a message of 5.0 s"),
    ({"now": 4.0, "events": []}, "a message of 4.0 s came after one of 5.0 s: time goes backwards"),
    (("JOB_EXPLODED", {}), "'JOB_EXPLODED' is an event that is not known here"),
    (("QUERY", {"requests": {}}), "'QUERY' is an event that is not known here"),
    (("NOTIFY", {"type": "lunch"}), "it notifies of 'lunch'"),
    (("NOTIFY", {}), "NOTIFY has type None"),
    (BEGUN, "SIMULATION_BEGINS came twice"),
    (_job("a", 0), "job 'a' has res 0"),
    (_job("a", True), "job 'a' has res True"),
    (_job("a", 1, walltime="1 h"), "job 'a' has walltime '1 h'"),
    (("JOB_SUBMITTED", {"job_id": "a"}), "JOB_SUBMITTED has job None"),
    (("JOB_COMPLETED", {"job_id": "z"}), "job 'z' has ended, and was not running"),
    (("JOB_KILLED", {}), "JOB_KILLED has job_ids None"),
    (("RESOURCE_STATE_CHANGED", {"resources": "7", "state": "0"}), "names resource 7, which is no host"),
    (("RESOURCE_STATE_CHANGED", {"resources": "x", "state": "0"}), "'x' is no set of resources"),
    (("RESOURCE_STATE_CHANGED", {"resources": "0", "state": "2"}), "host 'host0' has no state '2'"),
]


@pytest.mark.parametrize(("told", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_makes_no_sense_is_one_line(told: Any, words: str) -> None:
    process = _small()
    _says(process, 0.0, BEGUN)
    _says(process, 5.0, ("REQUESTED_CALL", {}))
    with pytest.raises(escala.EscalaError) as caught:
        if isinstance(told, tuple):
            _says(process, 5.0, told)
        else:
            process.answer(told if isinstance(told, bytes) else json.dumps(told).encode())
    assert str(caught.value).startswith("Batsim: ") and words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "SIMULATION_BEGINS has compute_resources None"),
        (_hosts(0), "the platform has no compute resource"),
        (_hosts(3), "3 hosts compute, platform '2x1' has 2 nodes: give 2x1#3"),
        (_hosts(config={"redis-enabled": True}), "without --enable-redis"),
        ({"compute_resources": [{"name": "a"}] * 2}, "is no compute resource"),
        ({"compute_resources": [{"id": k, "name": f"h{k}", "properties": {}} for k in range(2)]}, "host 'h0' cannot sleep, not so in the"),
        ({"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "1:2"}}]}, "no list of triples"),
        ({"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "0:1:2"}}]}, "it cannot compute"),
        ({"compute_resources": [{"id": 0, "state": "computing"}]}, "begin with hosts that are idle or asleep"),
    ],
)
def test_beginnings_that_make_no_sense_are_one_line(told: dict[str, Any], words: str) -> None:
    with pytest.raises(escala.EscalaError, match=re.escape(words)):
        _says(_small(), 0.0, ("SIMULATION_BEGINS", told))


def test_without_a_platform_nodes_stay_on() -> None:
    process = Process(lambda nodes: Desk(nodes, "fcfs"), None)
    _says(process, 0.0, BEGUN)
    assert _says(process, 0.0, _job("a", 2, walltime=9)) == [("EXECUTE_JOB", {"job_id": "a", "alloc": "0-1"})]
    asleep = _hosts()
    asleep["compute_resources"][0]["state"] = "sleeping"
    with pytest.raises(escala.EscalaError, match="hosts sleep at the beginning"):
        _says(Process(lambda nodes: Desk(nodes, "fcfs"), None), 0.0, ("SIMULATION_BEGINS", asleep))
    with pytest.raises(escala.EscalaError, match="came before SIMULATION_BEGINS"):
        _says(Process(lambda nodes: Desk(nodes, "fcfs"), None), 0.0, ("REQUESTED_CALL", {}))


def test_names_of_hosts_must_be_those_of_the_platform(tmp_path: Path) -> None:
    (tmp_path / "platform.xml").write_text(_xml(2, 1.0, 2.0, names="other"))
    process = Process(lambda nodes: Desk(nodes, "fcfs"), escala.read_platform(str(tmp_path / "platform.xml")))
    with pytest.raises(escala.EscalaError, match="host 0 is 'host0', in the platform 'other000': give the same file to both"):
        _says(process, 0.0, BEGUN)


def _xml(n: int, off_s: float, on_s: float, names: str = "host") -> str:
    """A platform file for Batsim."""
    speeds = f"100Mf, 1f, {1 / off_s!r}f, {1 / on_s!r}f"
    props = '<prop id="wattage_per_state" value="95:95:190, 9:9:9, 100:100:100, 125:125:125"/><prop id="sleep_pstates" value="1:2:3"/>'
    hosts = "".join(f'<host id="{names}{k:03d}" speed="{speeds}">{props}</host>' for k in range(n))
    return f'<platform version="4.1"><zone id="z" routing="None"><host id="master_host" speed="100Mf"/>{hosts}</zone></platform>'


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
    (tmp_path / "platform.xml").write_text(_xml(20, profile["switch_off_s"], profile["switch_on_s"]))
    fake = FakeBatsim(case.platform, case.jobs)
    with _running("--scheduler", "easy-sjf", "--shutdown", "timeout:3", "--platform", str(tmp_path / "platform.xml")) as (process, address):
        with _asking(address) as ask:
            fake.run(ask)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors(err)) == (0, "") and "ended: messages" in out and "jobs started 60, rejected 0" in out
    assert _compared(case, fake) == []


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


REAL = [
    ("golden-medium_late", 32, "easy", "never", "batsched"),
    ("golden-medium_late", 32, "easy", "timeout:300", "batsched"),
    ("golden-medium_late", 32, "easy-sjf", "hold:0.25", "batsched"),
    ("golden-medium_late", 32, "conservative", "timeout:60", "batsched"),
    ("golden-runs/power-timeout60", 24, "fcfs", "timeout:60", "escala"),
    ("golden-runs/ties5-easy_bf", 40, "easy", "timeout:10", "batsched"),
]
"""Inputs, hosts, policies and rules of runs inside a real Batsim."""


def _real(tmp_path: Path, folder: Path, hosts: int, *options: str) -> tuple[subprocess.CompletedProcess[str], int, str, Path, str]:
    """Batsim and this process on the files of a folder. What Batsim did, our status and errors, the log, the platform."""
    program = shutil.which("batsim")
    if program is None:
        pytest.skip("no program batsim on the PATH: the recorded runs above stand for it")
    (log,) = (path for path in folder.iterdir() if path.name in ("medium_late.json", "workload.json.gz"))
    workload, platform = tmp_path / "workload.json", tmp_path / "platform.xml"
    workload.write_text(text_of(log))
    text = re.sub(r"<config.*?</config>", "", text_of(folder / "platform.xml.gz"), flags=re.DOTALL)  # names that SimGrid no longer knows
    platform.write_text(text.replace('"watt_per_state"', '"wattage_per_state"').replace('"watt_off"', '"wattage_off"'))
    spec = f"{platform}#{hosts}"
    with _running("--platform", spec, *options) as (process, address):
        command = [program, "-p", str(platform), "-w", str(workload), "-E", "--mmax", str(hosts), "-e", str(tmp_path / "out"), "-q"]
        done = subprocess.run([*command, "-s", address], capture_output=True, text=True, timeout=PATIENCE_S)
        _, err = process.communicate(timeout=PATIENCE_S)
    return done, process.returncode, errors(err), workload, spec


@pytest.mark.parametrize(("folder", "hosts", "scheduler", "shutdown", "rules"), REAL)
def test_the_real_batsim(tmp_path: Path, traces: Path, *, folder: str, hosts: int, scheduler: str, shutdown: str, rules: str) -> None:
    """Where it is installed: all starts, hosts and joules as in Escala's own simulation."""
    more = ["--rebuild"] if scheduler == "conservative" else []
    given = ("--scheduler", scheduler, "--shutdown", shutdown, "--rules", rules, *more)
    done, status, err, workload, spec = _real(tmp_path, traces / "batsim" / folder, hosts, *given)
    assert (done.returncode, status, err) == (0, 0, ""), done.stderr[-2000:]
    log = escala.read_workload(workload, speed=1e8)
    expected = escala.simulate(log, spec, scheduler, shutdown, rules=rules, rebuild=bool(more))
    theirs = {row["job_id"]: (float(row["starting_time"]), row["allocated_resources"]) for row in rows_of(tmp_path / "out_jobs.csv")}
    for row in rows(expected.jobs):
        start_s, allocated = theirs.pop(row["job_id"])
        assert abs(start_s - row["start_s"]) < 2e-6 and allocated == row["nodes"], row["job_id"]
    consumed = totals(tmp_path / "out_schedule.csv")["consumed_joules"]
    assert theirs == {} and float(expected.power["joules"].sum()) == pytest.approx(consumed, rel=1e-9)


def test_the_real_batsim_stops_where_we_do(tmp_path: Path, traces: Path) -> None:
    """Jobs need all hosts, and some are kept off: neither waits for the other for ever."""
    done, status, err, *_ = _real(tmp_path, traces / "batsim" / "golden-runs" / "ties5-easy_bf", 40, "--shutdown", "off-reservation:5")
    assert status == 2 and "15 jobs wait, and nothing will ever happen" in err and err.count("\n") == 1
    assert done.returncode != 0 and "REFUSED_BY_ESCALA" in done.stderr
