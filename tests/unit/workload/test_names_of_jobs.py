"""Names that are known when a job is submitted (group, account, partition, QOS, job name, executable): read, kept,
written, hashed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.workload import read_workload, write_batsim, write_swf
from escala.workload.columns import NAMED
from escala.workload.table import Workload

SWF = """; UnixStartTime: 1709251200
1 0 5 60 2 -1 -1 2 600 -1 1 7 3 12 1 4 -1 -1
2 9 5 60 2 -1 -1 2 600 -1 1 8 -1 13 2 5 -1 -1
"""
SACCT = """JobID|User|Group|Account|Partition|QOS|JobName|Submit|Start|End|State|AllocCPUS|Timelimit
1|ann|staff|bio|cpu|high|a b|2024-03-01T00:00:00|2024-03-01T00:01:00|2024-03-01T00:11:00|COMPLETED|2|01:00:00
2|bob||chem|gpu||run.sh|2024-03-01T00:00:09|2024-03-01T00:01:00|2024-03-01T00:11:00|COMPLETED|2|01:00:00
"""
PBS = """03/01/2024 00:11:00;E;1.m;user=ann group=staff account=bio jobname=a queue=cpu ctime=1709251200 start=1709251260 end=1709251860 Resource_List.nodes=1:ppn=2 Resource_List.walltime=01:00:00
03/01/2024 00:11:00;E;2.m;user=bob group=visitors jobname=run.sh queue=gpu ctime=1709251209 start=1709251260 end=1709251860 Resource_List.nodes=1:ppn=2 Resource_List.walltime=01:00:00
"""  # noqa: E501
OAR = """{"1": {"owner": "ann", "project": "bio", "name": "a", "queue": "cpu", "state": "Terminated", "submissionTime": 1709251200,
"startTime": 1709251260, "stopTime": 1709251860, "walltime": 3600, "assigned_resources": [1, 2]},
"2": {"user": "bob", "group": "staff", "project": "chem", "name": null, "queue_name": "cpu", "state": "Terminated",
"submission_time": 1709251209, "start_time": 1709251260, "stop_time": 1709251860, "walltime": 3600, "resources": [{"id": 1}]}}
"""  # noqa: E501
BATSIM = """{"jobs": [
{"id": 1, "subtime": 0, "res": 1, "profile": "p", "walltime": 9, "account": "bio", "Job Name": "a", "group": "staff"},
{"id": 2, "subtime": 1, "res": 1, "profile": "p", "walltime": 9, "qos": "high", "executable": "x"}],
"profiles": {"p": {"type": "delay", "delay": 5}}}
"""
CSV = (
    "submit_s,runtime_s,cores,user,account,group,qos,job_name,executable,partition\n"
    "0,9,1,ann,bio,staff,high,a,x,cpu\n5,9,1,bob,,,,,y,gpu\n"
)
NAMES = {
    "swf": (SWF, {"group": ["3", None], "partition": ["4", "5"], "executable": ["12", "13"]}),
    "sacct": (
        SACCT,
        {"group": ["staff", None], "account": ["bio", "chem"], "qos": ["high", None], "job_name": ["a b", "run.sh"]},
    ),
    "pbs": (PBS, {"group": ["staff", "visitors"], "account": ["bio", "visitors"], "job_name": ["a", "run.sh"]}),
    "oar": (OAR, {"group": [None, "staff"], "account": ["bio", "chem"], "job_name": ["a", None]}),
    "batsim": (
        BATSIM,
        {
            "group": ["staff", None],
            "account": ["bio", None],
            "qos": [None, "high"],
            "job_name": ["a", None],
            "executable": [None, "x"],
        },
    ),
    "csv": (
        CSV,
        {"group": ["staff", None], "account": ["bio", None], "partition": ["cpu", "gpu"], "qos": ["high", None]}
        | {"job_name": ["a", None], "executable": ["x", "y"]},
    ),
}


def log(folder: Path, form: str) -> Workload:
    path = folder / f"log.{form}"
    path.write_text(NAMES[form][0])
    return read_workload(path)


def names(workload: Workload) -> dict[str, list[str | None]]:
    return {name: workload.jobs[name].to_list() for name in NAMED if name in workload.jobs.columns}


@pytest.mark.parametrize("form", NAMES)
def test_readers_keep_what_their_formats_have(tmp_path: Path, form: str) -> None:
    found = log(tmp_path, form)
    assert names(found) == NAMES[form][1]
    assert found.digest() == found.with_jobs(found.jobs.drop(*NAMED, strict=False)).digest()


@pytest.mark.parametrize("form", NAMES)
def test_they_survive_parts_and_tables(tmp_path: Path, form: str) -> None:
    found = log(tmp_path, form)
    second = {name: values[1:] for name, values in names(found).items()}
    assert names(found.filter(pl.col("job_id") == found.jobs["job_id"][1])) == names(found.window(1.0, 100.0)) == second
    found.jobs.write_csv(tmp_path / "own.csv")
    found.jobs.write_parquet(tmp_path / "own.parquet")
    for own in ("own.csv", "own.parquet"):
        again = read_workload(tmp_path / own).jobs
        assert again.select(sorted(again.columns)).equals(found.jobs.select(sorted(found.jobs.columns)))


@pytest.mark.parametrize("form", NAMES)
def test_they_survive_batsims_json(tmp_path: Path, form: str) -> None:
    found = log(tmp_path, form)
    write_batsim(found, tmp_path / "own.json", speed=1.0)
    assert names(read_workload(tmp_path / "own.json", speed=1.0)) == names(found)


def test_swf_has_three_numbers_for_them(tmp_path: Path) -> None:
    found = log(tmp_path, "swf")
    write_swf(found, tmp_path / "own.swf")
    assert read_workload(tmp_path / "own.swf").jobs.equals(found.jobs)
    write_swf(log(tmp_path, "sacct"), tmp_path / "sacct.swf")
    assert names(read_workload(tmp_path / "sacct.swf")) == {"group": ["1", None], "executable": ["1", "2"]}
    nobody = log(tmp_path, "sacct")
    write_swf(nobody.with_jobs(nobody.jobs.drop("group", "job_name")), tmp_path / "bare.swf")
    assert names(read_workload(tmp_path / "bare.swf")) == {"group": ["1", "2"]}, "accounts stand in"


def test_a_partition_that_is_the_queue_is_kept_once(tmp_path: Path) -> None:
    found = log(tmp_path, "sacct")
    assert "partition" not in found.jobs.columns and found.jobs["queue"].to_list() == ["cpu", "gpu"]


def test_names_are_hashed_by_a_key(tmp_path: Path) -> None:
    found = log(tmp_path, "sacct")
    once, again, other = found.hash_names("key"), found.hash_names("key"), found.hash_names()
    assert once.jobs.equals(again.jobs) and not once.jobs.equals(other.jobs)
    for name in ("user", "group", "account", "job_name"):
        for before, after in zip(found.jobs[name], once.jobs[name], strict=True):
            assert (before is None) == (after is None) and (after is None or (len(after) == 12 and before not in after))
    assert (
        once.jobs.select("queue", "qos").equals(found.jobs.select("queue", "qos")) and once.digest() == found.digest()
    )
    twins = Workload.from_jobs(
        {"submit_s": [0.0] * 3, "runtime_s": [1.0] * 3, "cores": [1] * 3, "user": ["a", "b", "a"], "account": ["a"] * 3}
    )
    hashed = twins.hash_names("key").jobs
    assert hashed["user"][0] == hashed["user"][2] != hashed["user"][1] and hashed["account"][0] != hashed["user"][0]


def test_convert_hashes_names(tmp_path: Path) -> None:
    log(tmp_path, "sacct")
    out = tmp_path / "own.json"
    assert (
        run(["workload", "convert", str(tmp_path / "log.sacct"), "--hash-names", "--speed", "1", "--out", str(out)])
        == 0
    )
    text = out.read_text()
    assert not any(name in text for name in ("ann", "bob", "staff", "chem", "run.sh")) and '"qos": "high"' in text


def test_a_qos_can_be_a_priority(tmp_path: Path) -> None:
    """What was read only to be named orders a queue by Slurm's priorities now."""
    found = log(tmp_path, "sacct")
    score = tmp_path / "today.toml"
    score.write_text('form = "multifactor"\n[weights]\nqos = 10\n[qos]\nhigh = 1\n', encoding="utf-8")
    assert len(escala.simulate(found, "1x2", f"easy:queue=score:{score}").jobs) == 2
    with pytest.raises(EscalaError, match="tells no qos"):
        escala.simulate(found.with_jobs(found.jobs.drop("qos")), "1x2", f"easy:queue=score:{score}")
