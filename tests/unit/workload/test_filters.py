"""Part of a log: partitions, users, accounts and times, of every format; what it has and no replay looks at is
counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.workload import Workload, read_workload
from escala.workload.ignored import AMOUNTS, NAMES, column_of, ignored_in, told

DAY = 86400.0
DAYS = ("2024-03-01", "2024-03-02", "2024-03-03")
UNIX_S = 1709251200.0  # 2024-03-01
JOBS = [("1", "cpu", "ann", "bio"), ("2", "gpu", "bob", "bio"), ("3", "cpu", "cid", "chem")]
"""Id, partition, user and account; submitted on one of the days each, at midnight."""

SACCT = (
    "JobID|User|Account|Partition|State|Submit|Start|End|AllocCPUS|Timelimit|ReqMem|AllocTRES|QOS|Priority|Reservation\n"
    + "".join(
        f"{job}|{user}|{account}|{partition}|COMPLETED|{day}T00:00:00|{day}T00:01:00|{day}T00:02:00|2|01:00:00|{memory}|cpu=2{gpus}|{job}|9|{hall}\n"
        for (job, partition, user, account), day, gpus, memory, hall in zip(
            JOBS, DAYS, ("", ",gres/gpu:a100=2", ",gres/gpu=0"), ("0", "4Gn", "2000Mc"), ("", "", "maintenance")
        )
    )
)
SWF = "; UnixStartTime: 1709251200\n" + "".join(
    f"{job} {k * 86400} 60 60 2 -1 -1 2 3600 {k * 512} 1 {user} {account} -1 1 {partition} {before} -1\n"
    for k, (job, partition, user, account, before) in enumerate(
        (("1", 1, 7, 1, -1), ("2", 2, 8, 1, 1), ("3", 1, 9, 2, -1))
    )
)
PBS = "".join(
    f"03/0{k + 1}/2024 00:02:00;E;{job}.m;user={user} account={account} queue={partition} ctime={UNIX_S + k * DAY:.0f} "
    f"etime={UNIX_S + k * DAY + 30 * (k == 2):.0f} start={UNIX_S + k * DAY + 60:.0f} "
    f"Resource_List.nodes=1:ppn=2{asked} Resource_List.walltime=01:00:00 end={UNIX_S + k * DAY + 120:.0f} "
    "Exit_status=0\n"
    for k, ((job, partition, user, account), asked) in enumerate(
        zip(JOBS, ("", ":gpus=1", ":bigmem Resource_List.mem=4gb"))
    )
)
BATSIM = json.dumps(
    {
        "nb_res": 4,
        "origin_s": UNIX_S,
        "jobs": [
            {
                "id": job,
                "subtime": k * DAY,
                "res": 2,
                "walltime": 3600,
                "profile": "p",
                "user": user,
                "partition": partition,
            }
            | {"account": account, "mem_req": k, "constraints": []}
            for k, (job, partition, user, account) in enumerate(JOBS)
        ],
        "profiles": {"p": {"type": "delay", "delay": 60}},
    }
)
OAR = json.dumps(
    {
        job: {"Job_Id": job, "owner": user, "project": account, "queue": partition, "state": "Terminated"}
        | {"submissionTime": UNIX_S + k * DAY, "startTime": UNIX_S + k * DAY + 60, "stopTime": UNIX_S + k * DAY + 120}
        | {"walltime": 3600, "assigned_resources": [1, 2], "reservation": "Scheduled" if k == 2 else "None"}
        for k, (job, partition, user, account) in enumerate(JOBS)
    }
)
EAGLE = (
    "job_id,user,account,partition,qos,wallclock_req,processors_req,gpus_req,mem_req,submit_time,start_time,run_time,state\n"
    + "".join(
        f"{job},{user},{account},{partition},normal,3600,2,{k % 2},{k}.0,{day} 00:00:00,{day} 00:01:00,60,COMPLETED\n"
        for k, ((job, partition, user, account), day) in enumerate(zip(JOBS, DAYS))
    )
)
ALIBABA = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "1,2000,9,1,1000,V100,LS,Running,0,70,10\n2,2000,9,0,0,,BE,Running,86400,86500,86410\n"
)
OWN = {"submit_s": [0.0, DAY, 2 * DAY], "runtime_s": [60.0] * 3, "cores": [2] * 3, "job_id": ["1", "2", "3"]}
OWN |= {"user": ["ann", "bob", "cid"], "queue": ["cpu", "gpu", "cpu"]}

IGNORED: dict[str, Any] = {
    "swf": {"memory": {"jobs": 2}, "dependencies or begin times": {"jobs": 1}, "partitions": {"jobs": 3, "values": 2}},
    "slurm": {
        "GPUs": {"jobs": 1},
        "memory": {"jobs": 2},
        "reservations": {"jobs": 1},
        "partitions": {"jobs": 3, "values": 2},
    }
    | {"QOS": {"jobs": 3, "values": 3}},
    "pbs": {
        "GPUs": {"jobs": 1},
        "memory": {"jobs": 1},
        "features of nodes": {"jobs": 1},
        "dependencies or begin times": {"jobs": 1},
    }
    | {"queues": {"jobs": 3, "values": 2}},
    "oar": {"reservations": {"jobs": 1}, "queues": {"jobs": 3, "values": 2}},
    "batsim": {"memory": {"jobs": 2}, "partitions": {"jobs": 3, "values": 2}},
    "csv": {"GPUs": {"jobs": 1}, "memory": {"jobs": 2}, "partitions": {"jobs": 3, "values": 2}},
    "parquet": {"queues": {"jobs": 3, "values": 2}},
}
TEXTS = {"swf": SWF, "slurm": SACCT, "pbs": PBS, "oar": OAR, "batsim": BATSIM, "csv": EAGLE}
FORMATS = (*TEXTS, "parquet")
FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"partition": "cpu"}, ["1", "3"]),
    ({"partition": "gpu, cpu"}, ["1", "2", "3"]),
    ({"user": ["ann", "bob"]}, ["1", "2"]),
    ({"account": "bio"}, ["1", "2"]),
    ({"account": "bio", "partition": "gpu"}, ["2"]),
    ({"since": "2024-03-02"}, ["2", "3"]),
    ({"until": "2024-03-02"}, ["1"]),
    ({"since": "2024-03-01T01:00:00+01:00", "until": "2024-03-02T00:00:01"}, ["1", "2"]),
]
OWN_SAYS = {"partition", "user"}  # the table of a workload has neither accounts nor dates
CASES = [(form, *case) for case in FILTERS for form in FORMATS if form != "parquet" or set(case[0]) <= OWN_SAYS]


def _log(folder: Path, form: str) -> Path:
    path = folder / "log"
    if form == "parquet":
        Workload.from_jobs(OWN).jobs.write_parquet(path)
    else:
        path.write_text(TEXTS[form])
    return path


def _read(folder: Path, form: str, **options: Any) -> Workload:
    """SWF has numbers for names; PBS ids end in the server's name."""
    numbers = {"cpu": "1", "gpu": "2", "ann": "7", "bob": "8", "bio": "1"}
    if form == "swf":
        for name in {"partition", "user", "account"} & set(options):
            given = options[name] if isinstance(options[name], list) else options[name].split(", ")
            options[name] = [numbers[value] for value in given]
    return read_workload(_log(folder, form), **options)


@pytest.mark.parametrize(("form", "filters", "ids"), CASES)
def test_every_format_takes_every_filter(tmp_path: Path, form: str, filters: dict[str, Any], ids: list[str]) -> None:
    part = _read(tmp_path, form, **filters, strict=True)
    assert [job.removesuffix(".m") for job in part.jobs["job_id"]] == ids
    assert part.cleaning.get("filtered out", 0) == 3 - len(ids)
    again = read_workload(**{**part.read_as, "path": str(_log(tmp_path, form))})
    assert again.jobs.equals(part.jobs) and json.loads(json.dumps(part.read_as)) == part.read_as


@pytest.mark.parametrize("form", FORMATS)
def test_times_on_the_clock_of_the_log(tmp_path: Path, form: str) -> None:
    second = DAY if form in ("swf", "batsim", "parquet") else UNIX_S + DAY
    assert len(_read(tmp_path, form, since=second)) == 2 and len(_read(tmp_path, form, since=str(second + 1))) == 1
    part = _read(tmp_path, form, until=second)
    assert len(part) == 1 and part.read_as["until"] == second


@pytest.mark.parametrize("form", FORMATS)
def test_what_no_replay_looks_at_is_counted(tmp_path: Path, form: str) -> None:
    log = _read(tmp_path, form)
    assert log.ignored == IGNORED[form]
    assert not set(log.jobs.columns) & set(AMOUNTS)
    part = _read(tmp_path, form, partition="gpu")
    assert "partitions" not in part.ignored and "queues" not in part.ignored, "one partition tells nothing"


def test_alibaba(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(ALIBABA)
    assert read_workload(path).ignored == {"features of nodes": {"jobs": 1}, "QOS": {"jobs": 2, "values": 2}}
    assert read_workload(path, since=80000).jobs["job_id"].to_list() == ["2"]


@pytest.mark.parametrize(
    ("form", "filters", "words"),
    [
        ("slurm", {"partition": "cpu,gqu"}, ["'gqu'", "--partition", "cpu (2), gpu (1)"]),
        ("slurm", {"user": "dan"}, ["'dan'", "ann (1), bob (1), cid (1)"]),
        ("slurm", {"partition": "gpu", "account": "chem"}, ["no job of partition gpu, of account chem", "3 "]),
        (
            "slurm",
            {"since": "2025-01-01"},
            ["submitted since 2025-01-01", "from 2024-03-01T00:00:00 to 2024-03-03T00:00:00"],
        ),
        ("slurm", {"since": "2025-01-01", "until": "2024-01-01"}, ["--until", "after"]),
        ("slurm", {"since": "tomorrow"}, ["'tomorrow'", "--since", "2026-01-31"]),
        ("slurm", {"until": "nan"}, ["--until", "finite"]),
        ("slurm", {"user": " ,"}, ["--user", "empty"]),
        (
            "parquet",
            {"account": "bio"},
            ["names no accounts", "--account", "partitions cpu (2)", "--column account=NAME"],
        ),
        ("parquet", {"since": "2024-03-01"}, ["has no dates", "seconds"]),
        ("parquet", {"since": "300000"}, ["from 0 s to 172800 s"]),
        ("pbs", {"partition": "x"}, ["cpu (2)"]),
    ],
)
def test_a_filter_without_jobs_is_one_line(
    tmp_path: Path, form: str, filters: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(EscalaError) as error:
        _read(tmp_path, form, **filters)
    message = str(error.value)
    assert message.startswith(str(tmp_path / "log")) and "\n" not in message and len(message) <= 500
    assert all(word in message for word in words), message


@pytest.mark.parametrize("given", [5, 5.0, True, b"gpu", {"gpu": 1}])
def test_a_filter_that_is_no_name_is_one_line(tmp_path: Path, given: Any) -> None:
    with pytest.raises(EscalaError, match=r"partition=.* \(--partition\): give a name, or a list of names"):
        _read(tmp_path, "slurm", partition=given)


def test_filters_go_before_what_readers_leave_out(tmp_path: Path) -> None:
    """A waiting job of another partition, or another user's partial execution, is none of ours."""
    path = tmp_path / "log"
    path.write_text(SACCT + SACCT.splitlines()[2].replace("2|bob", "9|bob").replace("COMPLETED", "PENDING") + "\n")
    assert read_workload(path).cleaning == {"never started": 1}
    assert read_workload(path, partition="cpu", strict=True).cleaning == {"filtered out": 2}
    path.write_text(SWF + SWF.splitlines()[2].replace("3600 512 1", "3600 512 2") + "\n")
    assert read_workload(path).cleaning == {"partial execution": 1}
    assert read_workload(path, user="7").cleaning == {"filtered out": 3}


def test_a_table_says_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("when,len,n,who,class\n0,9,1,ann,a\n5,9,1,bob,b\n")
    columns = {"submit_s": "when", "runtime_s": "len", "cores": "n", "user": "who"}
    part = read_workload(path, columns={**columns, "partition": "class"}, partition="b")
    assert part.jobs["user"].to_list() == ["bob"] and part.jobs["partition"].to_list() == ["b"]
    assert len(read_workload(path, columns={**columns, "account": "class"}, account="a")) == 1
    with pytest.raises(EscalaError, match="users ann"):
        read_workload(path, columns=columns, partition="b")


def test_swf_partition_is_the_queue_where_all_have_one_partition(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(SWF.replace(" 1 1 -1 -1\n", " 5 1 -1 -1\n").replace(" 1 2 1 -1\n", " 6 1 -1 -1\n"))
    assert read_workload(path, partition="6").jobs["job_id"].to_list() == ["2"]
    assert read_workload(path).ignored["queues"] == {"jobs": 3, "values": 2}
    path.write_text(SWF.replace(" -1 -1\n", " 1 -1\n"))
    assert "dependencies or begin times" not in read_workload(path).ignored, "the same job before all: a filler"


def test_rerun_filters_again(tmp_path: Path) -> None:
    log = _read(tmp_path, "slurm", partition="cpu", since="2024-03-01")
    result = escala.simulate(log, "1x4")
    saved = result.save(tmp_path / "run")
    told_of = json.loads((saved / "manifest.json").read_text())["workload"]
    assert told_of["read_as"]["partition"] == ["cpu"] and told_of["read_as"]["since"] == "2024-03-01"
    assert told_of["ignored"] == log.ignored != {}
    assert escala.rerun(saved, tmp_path / "log").jobs.equals(result.jobs)


@pytest.mark.parametrize("written", ["Licenses", "gpus_req", "ReqMem", "QOS", "memory (MiB)", "Constraints"])
def test_names_of_columns(written: str) -> None:
    assert column_of(written) in NAMES.values()


def test_the_sentence() -> None:
    frame = pl.DataFrame({"gpus": ["1", "0", None], "priority": ["5", "5", "5"], "qos": ["a", "b", ""]})
    assert (
        told(ignored_in(frame))
        == "the log has what no replay looks at: GPUs (1 job); and what score files alone look at: 2 QOS (2 jobs)"
    )
    assert told(ignored_in(frame), shapes=True) == (
        "the log has what the scheduler slurm alone looks at, as far as the site describes it: 2 QOS (2 jobs); and "
        "what counts where the platform has it: GPUs (1 job)"
    )
    assert (
        told(ignored_in(frame.select("qos"))) == "the log has what score files alone look at: 2 QOS (2 jobs)"
        and told({}) == ""
    )
