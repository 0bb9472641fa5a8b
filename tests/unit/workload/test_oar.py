"""OAR's exports, written by hand after the forms that its sources print (2.5 and 3), and two real Gantt exports."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.calibration import inferred
from escala.cli.app import run
from escala.errors import EscalaError
from escala.workload import read_workload
from escala.workload.asked_of_oar import alternatives, chosen, conditions, seconds
from escala.workload.oar_json import is_oar_json
from tests.attacks.undamaged import OAR
from tests.unit.streaming.alike import same

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces" / "oar"
T = 1_700_000_000
HOST_OF = {k: f"n{1 + k // 8}.lab" for k in range(32)}  # four hosts of eight cores
VLAN = 99
Told = dict[str, Any]


def told(number: int, resources: list[int], asked: str, **more: Any) -> Told:
    """What there is to know of a job, in no form yet; times after T, a request without its walltime."""
    usual: Told = {
        "user": "ann", "queue": "default", "project": "bio", "name": None, "state": "Terminated", "types": [],
        "times": (0, 60, 160), "limit": 3600, "reservation": "None", "exit": 0, "array": number, "again": 0,
        "properties": "drain='NO'", "events": [],
    }  # fmt: skip
    return {"id": number, "resources": resources, "asked": asked, **usual, **more}


JOBS = [
    told(5, [*range(4), *range(8, 12)], "{type = 'default'}/host=2/core=4", name="first"),
    told(6, [16, 17, 18, 19], "{type = 'default'}/host=1/gpu=1", state="Error", times=(10, 70, 3670), user="bob",
         properties="(gpu='YES' and mem > 64) AND drain='NO'"),
    told(7, [], "{type = 'default'}/core=64", state="Waiting", times=(20, 0, 0)),
    told(8, [20], "{type = 'default'}/core=1", state="Running", times=(25, 90, 0)),
    told(9, [24, 25], "{type = 'default'}/core=2", state="Error", queue="besteffort", exit=None,
         types=["besteffort", "idempotent"], times=(30, 100, 130), events=["BESTEFFORT_KILL", "FRAG_JOB_REQUEST"]),
    told(10, [24, 25], "{type = 'default'}/core=2", queue="besteffort", types=["besteffort", "idempotent"], again=9,
         times=(131, 200, 230)),
    told(11, [*range(16, 32)], "{type = 'default'}/host=2", types=["container"], reservation="Scheduled",
         times=(40, 7240, 10840)),
    told(12, [16], "{type = 'default'}/core=1", types=["inner=11"], times=(7300, 7310, 7400)),
    told(13, [*range(8), VLAN], "{type = 'default'}/host=1+{type = 'kavlan'}/vlan=1", times=(200, 230, 290), exit=256),
    told(14, [1], "{type = 'default'}/core=1", types=["timesharing=user,*"], array=14, times=(210, 230, 290)),
    told(15, [2], "{type = 'default'}/core=1", array=14, times=(210, 230, 290)),
]  # fmt: skip


def _limit(job: Told) -> str:
    return f"{job['limit'] // 3600}:{job['limit'] // 60 % 60}:{job['limit'] % 60}"


def _hosts(job: Told) -> list[str]:
    return sorted({HOST_OF[k] for k in job["resources"] if k != VLAN})


def _times(job: Told) -> list[int]:
    return [T + at if at or not k else 0 for k, at in enumerate(job["times"])]


def _message(job: Told) -> str:
    kind = "R" if job["reservation"] != "None" else "B"
    types = f",T={'|'.join(job['types'])}" if job["types"] else ""
    return f"R={len(job['resources']) or 64},W={_limit(job)},J={kind}{types} (Karma=0.087,quota_ok)"


def two(job: Told) -> Told:
    """`oarstat -f -J` of OAR 2.5."""
    submit, start, stop = _times(job)
    return {
        "Job_Id": str(job["id"]), "array_id": job["array"], "array_index": 1, "name": job["name"], "owner": job["user"],
        "job_user": job["user"], "state": job["state"], "assigned_resources": job["resources"],
        "assigned_network_address": _hosts(job), "queue": job["queue"], "command": "./run", "jobType": "PASSIVE",
        "launchingDirectory": "/home/ann", "properties": job["properties"], "reservation": job["reservation"],
        "walltime": job["limit"], "submissionTime": submit, "startTime": str(start), "stopTime": stop,
        "message": _message(job), "scheduledStart": None, "resubmit_job_id": job["again"],
        "events": [{"type": kind, "job_id": job["id"], "date": stop} for kind in job["events"]],
        "wanted_resources": f'-l "{job["asked"]},walltime={_limit(job)}" ', "project": job["project"],
        "cpuset_name": f"ann_{job['id']}", "types": job["types"], "dependencies": [], "exit_code": job["exit"],
        "initial_request": "",
    }  # fmt: skip


NEW = {
    "Job_Id": "id", "launchingDirectory": "launching_directory", "jobType": "type", "submissionTime": "submission_time",
    "startTime": "start_time", "stopTime": "stop_time", "scheduledStart": "scheduled_start",
}  # fmt: skip


def format_three(job: Told) -> Told:
    """The same with `--format 3`."""
    return {NEW.get(name, name): value for name, value in two(job).items() if name != "job_user"}


def chart(job: Told) -> Told:
    """A job of `oarstat --gantt ... -J` of OAR 2.5: neither the request nor how it ended."""
    submit, start, stop = _times(job)
    return {
        "job_id": job["id"], "job_name": job["name"], "project": job["project"], "job_type": "PASSIVE",
        "state": job["state"], "user": job["user"], "queue_name": job["queue"], "walltime": job["limit"],
        "properties": job["properties"], "launching_directory": "/home/ann", "submission_time": submit,
        "start_time": start, "stop_time": stop, "resource_id": job["resources"], "network_address": _hosts(job),
        "types": job["types"], "array_id": job["array"], "reservation": job["reservation"],
        "resubmit_job_id": job["again"], "message": _message(job), "dependencies": [],
        "events": [{"type": kind} for kind in job["events"]],
    }  # fmt: skip


def three(job: Told, detailed: bool = True) -> Told:
    """OAR 3: a row of its table of jobs, as oarstat prints it; with what the API adds (detailed)."""
    submit, start, stop = _times(job)
    kinds = {name: value or True for name, _, value in (one.partition("=") for one in job["types"])}
    row = {
        "id": job["id"], "array_id": job["array"], "array_index": 1, "type": "PASSIVE", "state": job["state"],
        "initial_request": f"oarsub -l {job['asked']},walltime={_limit(job)} ./run", "name": job["name"],
        "reservation": job["reservation"], "message": _message(job), "user": job["user"], "project": job["project"],
        "group": "", "exit_code": job["exit"], "queue_name": job["queue"], "properties": job["properties"],
        "launching_directory": "/home/ann", "submission_time": submit, "start_time": start, "stop_time": stop,
        "assigned_moldable_job": job["id"] if job["resources"] else 0, "resubmit_job_id": job["again"],
        "suspended": "NO", "last_karma": 0.1,
    }  # fmt: skip
    if not detailed:
        return {**row, "cpuset_name": f"ann_{job['id']}"}
    more = {
        "types": kinds, "walltime": job["limit"], "actual_resources": job["asked"],
        "resources": [{"id": k} for k in job["resources"]], "events": [{"type": kind} for kind in job["events"]],
        "nodes": [{"network_address": host} for host in _hosts(job)],
    }  # fmt: skip
    return {name: value for name, value in (row | more).items() if value is not None}


RESOURCES = [
    {"resource_id": k, "type": "default", "network_address": host, "next_finaud_decision": "NO"}
    for k, host in HOST_OF.items()
] + [{"resource_id": str(VLAN), "type": "kavlan", "network_address": ""}]


def by_id(form: Callable[[Told], Told], jobs: list[Told] = JOBS) -> Any:
    return {str(job["id"]): form(job) for job in jobs}


FORMS: dict[str, Callable[[list[Told]], Any]] = {
    "oarstat of 2.5": lambda jobs: by_id(two, jobs),
    "a list": lambda jobs: [two(job) for job in jobs],
    "format 3": lambda jobs: by_id(format_three, jobs),
    "gantt": lambda jobs: {"jobs": by_id(chart, jobs), "resources": RESOURCES, "dead_resources": {}},
    "gantt, resources first": lambda jobs: {"resources": RESOURCES, "jobs": by_id(chart, jobs), "dead_resources": {}},
    "API of 3": lambda jobs: {"total": len(jobs), "offset": 0, "items": [three(job) for job in jobs]},
    "oarstat of 3": lambda jobs: by_id(lambda job: three(job, detailed=False), jobs),
}


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document, indent=3))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form: str, tmp_path: Path) -> None:
    log = read_workload(write(tmp_path / "jobs.json", FORMS[form](JOBS)))
    assert log.read_as["format"] == "oar" and log.origin_s == T and log.source == "jobs.json: OAR jobs in JSON"
    rows = log.jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user", "wait_s", "queue").rows()
    assert rows == [
        ("5", 0, 100, 3600, 8, "ann", 60, "default"),
        ("6", 10, 3600, 3600, 4, "bob", 60, "default"),
        ("9", 30, 30, 3600, 2, "ann", 70, "besteffort"),
        ("11", 40, 3600, 3600, 16, "ann", 7200, "default"),
        ("10", 131, 30, 3600, 2, "ann", 69, "besteffort"),
        ("13", 200, 60, 3600, 8, "ann", 30, "default"),
        ("14", 210, 60, 3600, 1, "ann", 20, "default"),
        ("15", 210, 60, 3600, 1, "ann", 20, "default"),
    ]
    assert log.cleaning == {
        "never started": 1, "still running": 1, "inside a container job": 1, "note: container job": 1,
        "note: shared cores": 1, "note: submitted again": 1,
    }  # fmt: skip
    assert re.fullmatch(r"job '12', line \d+", log.first_cleaned["inside a container job"])
    ends = dict(log.jobs.select("job_id", "status").rows())
    assert ends["5"] == "COMPLETED" and ends["6"] == "TIMEOUT", "at its walltime a job ends in Error"
    assert ends["9"] == ("FAILED" if form == "oarstat of 3" else "CANCELLED")
    assert ends["13"] == ("COMPLETED" if form.startswith("gantt") else "FAILED")
    assert log.jobs["account"].unique().to_list() == ["bio"] and log.jobs["job_name"].drop_nulls().to_list() == [
        "first"
    ]


def test_what_no_replay_uses_is_named(tmp_path: Path) -> None:
    waits = told(16, [3], "{type = 'default' AND mem > 64}/core=1+{type = 'licence'}/licence=20")
    document = by_id(two) | {"16": two(waits) | {"assigned_resources": [3, *range(100, 120)], "dependencies": [5, "6"]}}
    log = read_workload(write(tmp_path / "jobs.json", document))
    assert log.ignored == {
        "nodes": {"jobs": 4},
        "GPUs": {"jobs": 1}, "licences": {"jobs": 1}, "features of nodes": {"jobs": 2}, "reservations": {"jobs": 1},
        "dependencies or begin times": {"jobs": 1}, "queues": {"jobs": 9, "values": 2},
    }  # fmt: skip
    assert log.jobs.filter(pl.col("job_id") == "16")["cores"].to_list() == [1]


@pytest.mark.parametrize("form", ["oarstat of 2.5", "API of 3"])
def test_shapes(form: str, tmp_path: Path) -> None:
    log = read_workload(write(tmp_path / "jobs.json", FORMS[form](JOBS)), shapes=True)
    names = ("job_id", "nodes", "tasks", "cores_per_task", "tasks_per_node", "gpus_per_node", "exclusive", "array_id")
    assert log.jobs.select(names).rows() == [
        ("5", 2, 8, 1, 4, None, None, None),
        ("6", 1, 1, 4, 1, 1, None, None),
        ("9", None, 2, 1, None, None, None, None),
        ("11", 2, 2, 8, 1, None, True, None),
        ("10", None, 2, 1, None, None, None, None),
        ("13", 1, 1, 8, 1, None, True, None),
        ("14", None, 1, 1, None, None, None, "14"),
        ("15", None, 1, 1, None, None, None, "14"),
    ]
    begin = dict(log.jobs.select("job_id", "begin_s").rows())
    assert begin.pop("11") == 7240 and set(begin.values()) == {None}
    assert log.jobs["hosts"][0] == "n1.lab,n2.lab"
    late = read_workload(tmp_path / "jobs.json", submission="eligible").jobs.filter(pl.col("job_id") == "11")
    assert late.select("submit_s", "wait_s").rows() == [(7240, 0)], "then the reservation comes when it begins"


def test_gpus_of_several_hosts_are_those_of_each(tmp_path: Path) -> None:
    waits = two(told(16, [*range(6)], "{type = 'default'}/host=2/gpu=3/core=1"))
    log = read_workload(write(tmp_path / "jobs.json", by_id(two) | {"16": waits}), shapes=True)
    assert log.jobs.filter(pl.col("job_id") == "16").select("nodes", "tasks", "gpus_per_node").rows() == [(2, 6, 3)]


@pytest.mark.parametrize("form", ["oarstat of 2.5", "gantt", "API of 3"])
def test_a_site_from_where_jobs_ran(form: str, tmp_path: Path) -> None:
    write(tmp_path / "jobs.json", FORMS[form](JOBS))
    assert run(["site", "import", str(tmp_path / "jobs.json"), "--out", str(tmp_path / "site.toml")]) == 0
    site = escala.read_site(tmp_path / "site.toml")
    assert dict(zip(site.names, site.cores.tolist(), strict=True)) == {
        "n1.lab": 10, "n2.lab": 4, "n3.lab": 8, "n4.lab": 8
    }, "13 ran on n1 beside 14 and 15, which share"  # fmt: skip
    assert {one.name for one in site.partitions} == {"default", "besteffort"}


def test_cores_by_host_where_the_resources_are_listed(tmp_path: Path) -> None:
    uneven = told(5, [0, 1, 2, 8], "{type = 'default'}/core=4")
    log = read_workload(write(tmp_path / "jobs.json", FORMS["gantt"]([uneven])), shapes=True)
    assert log.jobs["hosts"].to_list() == ["n1.lab,n1.lab,n1.lab,n2.lab"]
    assert dict(zip(inferred(log).site.names, inferred(log).site.cores.tolist(), strict=True)) == {
        "n1.lab": 3,
        "n2.lab": 1,
    }


def test_requested_cores_come_first_where_asked_for(tmp_path: Path) -> None:
    more = two(JOBS[0]) | {"assigned_resources": list(range(16))}
    path = write(tmp_path / "jobs.json", {"5": more})
    assert read_workload(path).jobs["cores"].to_list() == [16]
    assert read_workload(path, cores="requested").jobs["cores"].to_list() == [8]
    assert read_workload(path, cores="requested").read_as["cores"] == "requested"


def test_a_moldable_job_has_the_alternative_of_its_walltime() -> None:
    text = "-l \"{type = 'default'}/core=8,walltime=1:0:0\" -l \"{type = 'default'}/host=1/core=4,walltime=2:30:0\" "
    assert [(one.units, one.hosts, one.limit_s) for one in alternatives(text)] == [(8, None, 3600), (4, 1, 9000)]
    assert chosen(text, 9000.0) == alternatives(text)[1] and chosen(text, 5.0) is None is chosen(text, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oarsub -l nodes=3/core=2,walltime=2 ./a", (6, 3, 7200.0)),
        ("oarsub --resource=/switch=2/nodes=4,walltime=1:30 -I", (8, 8, 5400.0)),
        ("oarsub -l walltime=10 ./a", (None, None, 36000.0)),
        ("-l host=ALL/core=2", (None, None, None)),
        ("{type = 'default'}/host=1/cpu=2+{type='default'}/host=2/cpu=1", (4, 3, None)),
    ],
)
def test_requests(text: str, expected: tuple[Any, ...]) -> None:
    found = chosen(text, None)
    assert found is not None and (found.units, found.hosts, found.limit_s) == expected


def test_texts_that_ask_nothing() -> None:
    assert alternatives("oarsub ./a -like") == () == alternatives("") == alternatives("{" * 4000)
    assert conditions("(desktop_computing = 'NO') AND drain='NO'", "type = 'default'") is None
    assert conditions("(cluster='a') AND drain='NO'") is not None
    assert seconds("1:2:3") == 3723 and all(seconds(bad) != seconds(bad) for bad in ("", "a", "1:2:3:4", "9" * 20))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"submissionTime": "2026-01-01"}, ["job '5' has submissionTime = '2026-01-01'", "a number is needed"]),
        ({"startTime": [1]}, ["startTime = [1]"]),
        ({"stopTime": True}, ["stopTime = True"]),
        ({"walltime": {"a": 1}}, ["walltime = {'a': 1}"]),
        ({"assigned_resources": "1+2"}, ["assigned_resources = '1+2'", "a list is needed"]),
        ({"types": 7}, ["types = 7", "a list is needed"]),
        ({"submissionTime": 0}, ["no job is left", "no submission time: 1"]),
        ({"submissionTime": -5}, ["no job is left", "no submission time: 1"]),
        ({"submissionTime": 10**400}, ["no job is left", "absurd submission: 1"]),
        ({"startTime": 0}, ["no job is left", "never started: 1"]),
        ({"stopTime": 0}, ["no job is left", "no runtime: 1"]),
        ({"stopTime": T}, ["no job is left", "negative runtime: 1"]),
        ({"stopTime": 1e300}, ["no job is left", "absurd runtime: 1"]),
        ({"startTime": "9" * 200, "stopTime": "9" * 200}, ["no job is left", "no runtime: 1"]),
        ({"assigned_resources": []}, ["no job is left", "never started: 1"]),
        ({"Job_Id": "x" * 5000, "startTime": {"y" * 5000: "z" * 5000}}, ["a number is needed"]),
    ],
)
def test_a_bad_job_is_one_line(change: Told, words: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.json", {"5": two(JOBS[0]) | change})
    with pytest.raises(EscalaError) as caught:
        read_workload(path)
    message = str(caught.value)
    assert message.isprintable() and message.startswith(str(path)) and len(message) < len(str(path)) + 300, message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"5": {"submissionTime": 5,', ["line 1: not valid JSON"]),
        ('{"5": 7}', ["line 1: job '5' is 7, not an object", "oarstat -f -J"]),
        ('[{"submissionTime": 5}]', ["a job without a number"]),
        ('{"jobs": 3, "resources": []}', ["'jobs' is no list of jobs"]),
        ('{"jobs": {}, "resources": []}', ["without jobs by their number"]),
        ("{}", ["without jobs by their number"]),
        ('{"5": {"state": "Hold"}, "5": {"state": "Hold"}}', ["names '5' twice"]),
        (
            '{"total": 1, "items": [{"id": 5, "submission_time": 5, "state": "Terminated"}]}',
            ["job '5' has no start_time"],
        ),
        ('{"jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}]}', ["job '1' has no submission_time"]),
        ('{"5": {"state": "Hold"}} x', ["Extra data"]),
    ],
)
def test_a_bad_document_is_one_line(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text(text)
    with pytest.raises(EscalaError) as caught:
        read_workload(tmp_path / "jobs.json", format="oar")
    assert "\n" not in str(caught.value) and all(word in str(caught.value) for word in words), caught.value


def test_a_job_killed_while_it_waited_never_started(tmp_path: Path) -> None:
    """OAR 3 gives it a start and an end, and no resources (oar3, issue 94)."""
    killed = three(told(7, [], "core=1", state="Error", times=(0, 11, 11)), detailed=False)
    log = read_workload(write(tmp_path / "jobs.json", {"7": killed, "5": three(JOBS[0], detailed=False)}))
    assert log.jobs["job_id"].to_list() == ["5"] and log.cleaning == {"never started": 1}


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_is_the_log_read_whole(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.workload.json_list.CHUNK_BYTES", 3000)
    monkeypatch.setattr("escala.workload.oar.ROWS", 30)
    many = [
        {**job, "id": 100 * k + job["id"], "times": tuple(at and at + 5000 * k for at in job["times"])}
        for k in range(20)
        for job in JOBS
    ]
    path = write(tmp_path / "jobs.json", FORMS[form](many))
    assert same(path, jobs=25, moved=True).height == 160
    part = {"partition": "besteffort", "account": "bio", "user": "ann", "until": T + 60_000}
    assert same(path, jobs=6, moved=True, reading=part).height == 24
    assert same(path, jobs=25, moved=True, reading={"cores": "requested", "submission": "eligible"}).height == 160


def test_converted_to_a_table(tmp_path: Path) -> None:
    path, table = write(tmp_path / "jobs.json", by_id(two)), tmp_path / "jobs.parquet"
    assert run(["workload", "convert", str(path), "--out", str(table)]) == 0
    kept, log = read_workload(table), read_workload(path)
    assert kept.jobs.equals(log.jobs) and kept.ignored == log.ignored and kept.origin_s == log.origin_s


def test_the_seed_of_the_damaged_files_is_what_oarstat_prints() -> None:
    assert is_oar_json(OAR) and not is_oar_json('{"jobs": [{"id": 1, "subtime": 0, "res": 2, "profile": "a"}]}')


@pytest.mark.parametrize("name", ["g5k-graphene-seed1", "g5k-graphene-seed1-run2"])
def test_real_gantt_exports(name: str) -> None:
    """800 jobs on 32 nodes of Grid'5000 in 2016, a resource a node, made from a workload of Batsim."""
    if not (TRACES / name).is_dir():
        pytest.skip("the shared traces are not here")
    log = read_workload(TRACES / name / "oar_gant.json.gz", shapes=True)
    assert len(log) == 800 and log.cleaning == {} == log.ignored
    with (TRACES / name / "job_id_mapping.csv").open() as file:
        number = {row["oar_id"]: row["batsim_id"] for row in csv.DictReader(file)}
    whole = read_workload(TRACES / "g5k-graphene-seed1" / "workload.json").jobs
    both = log.jobs.with_columns(pl.col("job_id").replace(number)).join(whole, on="job_id", suffix="_asked")
    assert both.height == 800
    assert both["cores"].equals(both["cores_asked"], check_names=False)
    assert both["walltime_s"].equals(both["walltime_s_asked"], check_names=False)
    site = inferred(log).site
    assert (site.n_nodes, site.total_cores, [one.name for one in site.partitions]) == (32, 32, ["default"])
