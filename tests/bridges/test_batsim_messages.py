"""Messages of Batsim by hand: what each is answered, and one line for what makes no sense."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.bridges.batsim.messages import intervals
from escala.bridges.batsim.messages import numbers as numbers_of
from escala.bridges.batsim.process import Process
from escala.live import Desk
from tests.bridges.fake_batsim import numbers, platform_file


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
    """Two hosts, off after 10 s. a needs one at 5 s and runs 20 s; b needs both at 30 s; c needs three, which nobody
    has."""
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
    killed = (
        "JOB_COMPLETED",
        {"job_id": "b", "job_state": "COMPLETED_WALLTIME_REACHED", "return_code": -1, "alloc": "0-1"},
    )
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
    """Batsim tells once, when the last host of a request is ready: quick hosts would seem to be as slow as the
    slowest."""
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
    with pytest.raises(escala.EscalaError, match="1 job waits, and nothing will ever happen"):
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


DOWN = ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0"})
LAST = ("NOTIFY", {"type": "no_more_static_job_to_submit"})


def _lossy(lost: str, **config: Any) -> Process:
    process = Process(lambda nodes: Desk(nodes, "easy", "never"), escala.read_platform("2x1", WATTS), lost)
    profiles = {"w0": {"p": {"type": "delay", "delay": 30}}}
    _says(
        process, 0.0, ("SIMULATION_BEGINS", _hosts(config={"dynamic-jobs-enabled": True} | config, profiles=profiles))
    )
    return process


@pytest.mark.parametrize("acknowledged", [False, True])
def test_jobs_of_hosts_that_become_unavailable_are_killed_and_registered_anew(acknowledged: bool) -> None:
    """a runs on host 0, b on host 1. Host 0 is lost at 12 s, host 1 at 20 s: each comes again, and a in the end a third
    time."""
    process = _lossy("requeue", **{"dynamic-jobs-acknowledged": acknowledged})
    jobs = (_job("w0!a", 1, walltime=100, user="ann"), _job("w0!b", 1, walltime=100))
    assert [kind for kind, _ in _says(process, 2.0, *jobs)] == ["EXECUTE_JOB"] * 2
    assert _says(process, 12.0, DOWN, LAST) == [("KILL_JOB", {"job_ids": ["w0!a"]})]
    assert _says(process, 12.0, DOWN) == [], "it is asked for once"
    ended = {"job_id": "w0!a", "job_state": "COMPLETED_KILLED", "return_code": -2, "alloc": "0"}
    reply = _says(process, 12.0, ("JOB_COMPLETED", ended))
    copy = {"id": "w0!a#1", "res": 1, "walltime": 100, "user": "ann", "profile": "p#w0-a#1"}
    assert reply == [
        (
            "REGISTER_PROFILE",
            {"workload_name": "w0", "profile_name": "p#w0-a#1", "profile": {"type": "delay", "delay": 30}},
        ),
        ("REGISTER_JOB", {"job_id": "w0!a#1", "job": copy}),
    ]
    killed = {"job_ids": ["w0!a"], "job_progress": {"w0!a": {"profile": "p", "progress": 0.4}}}
    assert _says(process, 12.0, ("JOB_KILLED", killed)) == [], "host 1 is busy, and host 0 is gone"
    if acknowledged:
        assert _says(process, 12.0, ("JOB_SUBMITTED", {"job_id": "w0!a#1", "job": copy | {"subtime": 12.0}})) == []
    done = ("JOB_COMPLETED", {"job_id": "w0!b", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "1"})
    assert _says(process, 32.0, done) == [("EXECUTE_JOB", {"job_id": "w0!a#1", "alloc": "1"})]
    gone = ("NOTIFY", {"type": "event_machine_unavailable", "resources": "1"})
    assert _says(process, 40.0, gone) == [("KILL_JOB", {"job_ids": ["w0!a#1"]})]
    reply = _says(process, 40.0, ("JOB_COMPLETED", ended | {"job_id": "w0!a#1"}))
    assert [data.get("job_id") for _, data in reply] == [None, "w0!a#2"] and reply[0][1]["profile_name"] == "p#w0-a#2"
    if acknowledged:
        assert _says(process, 40.0, ("JOB_SUBMITTED", {"job_id": "w0!a#2", "job": reply[1][1]["job"]})) == []
    back = ("NOTIFY", {"type": "event_machine_available", "resources": "0-1"})
    assert _says(process, 50.0, back) == [("EXECUTE_JOB", {"job_id": "w0!a#2", "alloc": "0"})]
    last = (
        "JOB_COMPLETED",
        {"job_id": "w0!a#2", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0"},
    )
    assert _says(process, 80.0, last) == [("NOTIFY", {"type": "registration_finished"})]
    assert (process.lost.killed, process.lost.requeued, process.lost.done) == (2, 2, [0.4])


def test_a_job_that_ended_before_its_kill_does_not_come_again() -> None:
    process = _lossy("requeue")
    _says(process, 2.0, _job("w0!a", 1, walltime=100), LAST)
    assert _says(process, 12.0, DOWN) == [("KILL_JOB", {"job_ids": ["w0!a"]})]
    done = ("JOB_COMPLETED", {"job_id": "w0!a", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0"})
    assert _says(process, 12.0, done, ("JOB_KILLED", {"job_ids": ["w0!a"]})) == [
        ("NOTIFY", {"type": "registration_finished"})
    ]
    assert process.lost.killed == process.lost.requeued == 0


def test_jobs_are_killed_and_stay_away_or_run_on() -> None:
    killing, staying = _lossy("kill"), _lossy("stay")
    for process in (killing, staying):
        _says(process, 2.0, _job("w0!a", 1, walltime=100))
    assert _says(staying, 12.0, DOWN) == [] and _says(killing, 12.0, DOWN) == [("KILL_JOB", {"job_ids": ["w0!a"]})]
    inner = {"current_task_index": 1, "current_task": {"profile": "q", "progress": 0.5}}
    assert _says(killing, 12.0, ("JOB_KILLED", {"job_ids": ["w0!a"], "job_progress": {"w0!a": inner}})) == []
    assert (killing.lost.killed, killing.lost.requeued, killing.lost.done) == (1, 0, [])


def test_what_cannot_be_registered_anew_is_one_line() -> None:
    with pytest.raises(escala.EscalaError, match="start Batsim with --enable-dynamic-jobs"):
        _lossy("requeue", **{"dynamic-jobs-enabled": False})
    process = _lossy("requeue")
    _says(process, 2.0, ("JOB_SUBMITTED", {"job_id": "w1!a", "job": {"id": "w1!a", "res": 1, "profile": "new"}}), DOWN)
    _says(process, 3.0, ("NOTIFY", {"type": "event_machine_unavailable", "resources": "1"}))
    with pytest.raises(
        escala.EscalaError, match=r"profile 'new' of job 'w1!a' is not known.*--forward-profiles-on-submission"
    ):
        _says(process, 3.0, ("JOB_KILLED", {"job_ids": ["w1!a"]}))


def test_a_job_without_a_walltime_is_passed_by_nobody_who_would_delay_it() -> None:
    """a runs, for how long nobody knows; b needs both hosts and has a reservation after a year: c may pass it with any
    walltime below."""
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
    (b'{"now": 1' + b"0" * 400 + b', "events": []}', "now is 1000"),
    ({"now": 1e300, "events": []}, "now is 1e+300"),
    ({"now": 5.0, "events": [5]}, "5 is no event"),
    (
        {"now": 5.0, "events": [{"timestamp": 6.0, "type": "REQUESTED_CALL"}]},
        "REQUESTED_CALL of 6.0 s after 0.0 s, in a message of 5.0 s",
    ),
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
        ({"compute_resources": [{"id": True}] * 2}, "is no compute resource"),
        ({"compute_resources": [{"id": 1}] * 2}, "the hosts have the numbers [1, 1]"),
        ({"compute_resources": [{"id": -1}, {"id": 0}]}, "the hosts have the numbers [-1, 0]"),
        (
            {"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "9" * 5000 + ":1:2"}}]},
            "no list of triples",
        ),
        ({"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "3000000000:1:2"}}]}, "no list of triples"),
        (
            {"compute_resources": [{"id": k, "name": f"h{k}", "properties": {}} for k in range(2)]},
            "host 'h0' cannot sleep, not so in the",
        ),
        ({"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "1:2"}}]}, "no list of triples"),
        ({"compute_resources": [{"id": 0, "properties": {"sleep_pstates": "0:1:2"}}]}, "it cannot compute"),
        ({"compute_resources": [{"id": 0, "state": "computing"}]}, "begin with hosts that are idle or asleep"),
    ],
)
def test_beginnings_that_make_no_sense_are_one_line(told: dict[str, Any], words: str) -> None:
    with pytest.raises(escala.EscalaError, match=re.escape(words)):
        _says(_small(), 0.0, ("SIMULATION_BEGINS", told))


def test_a_walltime_beyond_all_time_is_the_longest_that_there_is() -> None:
    for walltime in (10**400, 1e300, float("inf")):
        process = Process(lambda nodes: Desk(nodes, "easy"), None)
        _says(process, 0.0, BEGUN)
        assert _says(process, 0.0, _job("a", 2, walltime=walltime)) == [
            ("EXECUTE_JOB", {"job_id": "a", "alloc": "0-1"})
        ]


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
    (tmp_path / "platform.xml").write_text(platform_file(2, 1.0, 2.0, names="other"))
    process = Process(lambda nodes: Desk(nodes, "fcfs"), escala.read_platform(str(tmp_path / "platform.xml")))
    with pytest.raises(
        escala.EscalaError, match="host 0 is 'host0', in the platform 'other000': give the same file to both"
    ):
        _says(process, 0.0, BEGUN)
