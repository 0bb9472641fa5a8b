"""CSV and Parquet with given and known columns, packs of days, PBS accounting."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.workload import Workload, read_pack, read_workload, write_parquet
from escala.workload.pieces import Pieces
from escala.workload.to_parquet import convert

PACK = """set,file,id,subtime,res,walltime,runtime,user,type
a,day_1,1,5,12,60,4,0,parallel_homogeneous
a,day_1,2,3,24,60,61,,parallel_homogeneous
b,day_1,1,0,1,10,0,2,msg_par_hg
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return path


def test_given_columns_and_units(tmp_path: Path) -> None:
    path = write(tmp_path, "arrived;ran;n;limit;who\n1;90;2;3;x\n0;30;1;;y\n")
    columns = {"submit_s": "arrived", "runtime_s": "ran", "cores": "n", "walltime_s": "limit", "user": "who"}
    workload = read_workload(path, columns=columns, units={"limit": "min", "arrived": 3600})
    assert workload.jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "user").rows() == [
        ("2", 0, 30, 30, "y"),
        ("1", 3600, 90, 180, "x"),
    ]
    assert workload.cleaning == {"no request": 1}


def test_start_and_end_in_place_of_a_runtime(tmp_path: Path) -> None:
    path = write(tmp_path, "s,b,e,c\n2019-01-01 08:00:00,2019-01-01T08:00:10Z,2019-01-01 08:01:10.5,4\n")
    workload = read_workload(path, columns={"submit_s": "s", "start_s": "b", "end_s": "e", "cores": "c"})
    assert workload.jobs.select("submit_s", "runtime_s", "wait_s").row(0) == (0.0, 60.5, 10.0)
    assert workload.origin_s == 1546329600.0


def test_parquet_with_real_times(tmp_path: Path) -> None:
    path = tmp_path / "x"
    start = datetime(2022, 10, 7)
    pl.DataFrame({"id": [1], "submission_time": [start], "duration": [27930000], "cpu_count": [16]}).write_parquet(path)
    workload = read_workload(path)
    assert workload.jobs.select("runtime_s", "cores").row(0) == (27930.0, 16)
    assert workload.origin_s == 1665100800.0


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_own_tables_come_back(tmp_path: Path, form: str) -> None:
    rows = {
        "submit_s": [5.5, 2.25],
        "runtime_s": [1.1, 2],
        "cores": [1, 2],
        "user": ["a", None],
        "single_node": [True, False],
        "demand_gpu": [3, 0],
    }
    workload = Workload.from_jobs({**rows, "load": [0.0, 0.5], "status": ["FAILED", None], "wait_s": [0.5, None]})
    path = tmp_path / "own"
    getattr(workload.jobs, f"write_{form}")(path)
    assert read_workload(path).jobs.equals(workload.jobs)


TRUTH = "submit_s,runtime_s,walltime_s,cores,{}\n"


@pytest.mark.parametrize("name", ["exclusive", "single_node", "limited"])
def test_truth_values_as_they_are_written(tmp_path: Path, name: str) -> None:
    words = ["true", "TRUE", "1", "Yes", " true ", "false", "False", "0", "no", "1.0", "0.0"]
    path = write(tmp_path, TRUTH.format(name) + "".join(f"{k},1,2,1,{word}\n" for k, word in enumerate(words)))
    assert read_workload(path).jobs[name].to_list() == [True] * 5 + [False] * 4 + [True, False]


def test_an_empty_truth_value_is_null(tmp_path: Path) -> None:
    path = write(tmp_path, TRUTH.format("exclusive") + '0,1,2,1,\n1,1,2,1,yes\n2,1,2,1, \n3,1,2,1,""\n')
    assert read_workload(path).jobs["exclusive"].to_list() == [None, True, None, None]


@pytest.mark.parametrize("word", ["maybe", "2", "ja", "ture", "-1"])
@pytest.mark.parametrize("name", ["exclusive", "single_node", "limited"])
def test_what_is_neither_true_nor_false_is_refused(tmp_path: Path, name: str, word: str) -> None:
    path = write(tmp_path, TRUTH.format(name) + f"0,1,2,1,no\n1,1,2,1,{word}\n")
    with pytest.raises(EscalaError) as caught:
        read_workload(path)
    said = f"line 3: column '{name}' (for {name}) is '{word}': true or false (or 1/0, yes/no) is needed"
    assert said in str(caught.value)


def test_truth_values_of_parquet(tmp_path: Path) -> None:
    jobs = pl.DataFrame(
        {"submit_s": [0.0, 1.0, 2.0], "runtime_s": [1.0] * 3, "walltime_s": [2.0] * 3, "cores": [1] * 3}
    )
    path = tmp_path / "jobs"
    for values in ([1, 0, None], [1.0, 0.0, None], [True, False, None]):
        jobs.with_columns(exclusive=pl.Series(values)).write_parquet(path)
        assert read_workload(path).jobs["exclusive"].to_list() == [True, False, None]
    for values, said in (([1, 7, None], "'7': true or false"), ([[True]] * 3, "true or false are needed")):
        jobs.with_columns(exclusive=pl.Series(values)).write_parquet(path)
        with pytest.raises(EscalaError, match=said):
            read_workload(path)


def test_own_table_with_work(tmp_path: Path) -> None:
    workload = Workload.from_jobs({"submit_s": [0, 1], "flops": [1e9, None], "runtime_s": [None, 4.0], "cores": [1, 1]})
    workload.jobs.write_parquet(tmp_path / "own")
    again = read_workload(tmp_path / "own")
    assert again.at_speed(1e8).jobs.equals(workload.at_speed(1e8).jobs)


def test_pack_of_days(tmp_path: Path) -> None:
    path = write(tmp_path, PACK)
    days = read_pack(path, unit="min")
    assert list(days) == [("a", "day_1"), ("b", "day_1")]
    day = days["a", "day_1"]
    assert day.jobs.select("job_id", "submit_s", "cores", "walltime_s", "runtime_s", "user").rows() == [
        ("2", 180.0, 24, 3600.0, 3660.0, None),
        ("1", 300.0, 12, 3600.0, 240.0, "0"),
    ]
    assert (day.name, day.cleaning) == ("a/day_1", {"over request": 1})
    assert days["b", "day_1"].jobs["runtime_s"][0] == 1.0
    steps = read_workload(path, select={"set": "a"}, unit="step")
    assert steps.jobs["submit_s"].to_list() == [3.0, 5.0]  # kept: times count from the start of the day
    assert steps.jobs.equals(read_pack(path, unit="s")["a", "day_1"].jobs)


def test_pack_needs_a_choice_and_a_unit(tmp_path: Path) -> None:
    path = write(tmp_path, PACK)
    for options, words in (
        ({"unit": "min"}, ["holds 2 workloads", "select={'set': 'a', 'file': 'day_1'}", "read_pack"]),
        ({"select": {"set": "a"}}, ["unit="]),
        ({"select": {"set": "a"}, "unit": "week"}, ["'week'", "min"]),
        ({"select": {"set": "c"}, "unit": "min"}, ["'c'", "a, b"]),
        ({"select": {"day": 1}, "unit": "min"}, ["no column 'day'"]),
    ):
        with pytest.raises(EscalaError) as caught:
            read_workload(path, **options)  # type: ignore[arg-type]
        assert all(word in str(caught.value) for word in [*words, "jobs.csv"]), str(caught.value)
    with pytest.raises(EscalaError, match="not a pack"):
        read_pack(write(tmp_path, "a,b\n1,2\n"), unit="min")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b\n1,2\n", {}, ["columns a, b", "columns="]),
        ("s,r,c\n1,2,3\n1,x,3\n", {}, ["line 3", "'r'", "'x'"]),
        ("s,r,c\n1,2,3\n1,2,3,4\n", {}, ["line 3", "not a readable table"]),
        ("s,r,c\n2019-01-01 00:00:00,2,3\nnow,2,3\n", {}, ["line 3", "'now'"]),
        ("s,r,c\n1,2,3\n", {"units": {"q": 60}}, ["'q'"]),
        ("s,r,c\n1,2,3\n", {"units": {"s": -1}}, ["positive"]),
        ("s,r,c\n1,2,3\n", {"columns": {"submit_s": "s", "cores": "c"}}, ["runtime_s"]),
        ("s,r,c\n1,2,3\n", {"columns": {"submit_s": "s", "cores": "c", "runtime_s": "zz"}}, ["'zz'"]),
        ("s,r,c\n1,2,3\n", {"columns": {"submit": "s"}}, ["'submit'"]),
        ("s,r,c\n1,2,3\n", {"columns": ["s"]}, ["columns={", "--column submit_s=subtime"]),
        ("s,r,c\n1,-1,3\n", {}, ["no job is left", "negative runtime: 1"]),
        ("s,r,s,c\n1,2,9,3\n", {}, ["two columns", "'s'"]),
        ("submit_s,submit_s,runtime_s,cores\n1,2,9,3\n", {}, ["two columns", "'submit_s'"]),
        ('s;"r";r;c\n1;2;9;3\n', {}, ["two columns", "'r'"]),
        ("s,r,c\n1660000000000,5,3\n", {}, ["no job is left", "absurd submission: 1"]),
        ('s,"' + 140_000 * "r" + ",c\n1,5,3\n", {}, ["not a readable table (field larger than field limit"]),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, options: dict[str, Any], words: list[str]) -> None:
    if "columns" not in options and text.startswith(("s,", "s;")):
        options = {**options, "columns": {"submit_s": "s", "runtime_s": "r", "cores": "c"}}
    with pytest.raises(EscalaError) as caught:
        read_workload(write(tmp_path, text), **options)
    assert all(word in str(caught.value) for word in [*words, "jobs.csv"]), str(caught.value)
    assert "\n" not in str(caught.value)


RECORD = (
    "10/01/2017 00:01:38;E;{job}.m1;user=u1 queue=batch ctime=1000 qtime=1005 etime=1010 start=1060 owner=u1@x "
    "exec_host=c3/30 Resource_List.nodes={nodes} Resource_List.walltime=08:00:00 {slots}end={end} Exit_status={code} "
    "resources_used.walltime=00:00:02\n"
)


def pbs(tmp_path: Path, text: str, **options: Any) -> Workload:
    path = tmp_path / "20171001"
    path.write_text("10/01/2017 00:00:16;Q;5.m1;queue=batch\n" + text)
    return read_workload(path, **options)


def test_pbs_fields_by_hand(tmp_path: Path) -> None:
    text = RECORD.format(job=5, nodes="2:ppn=8+1:ppn=4:dc2", slots="total_execution_slots=24 ", end=1160, code=0)
    job = pbs(tmp_path, text).jobs.row(0, named=True)
    assert (job["job_id"], job["runtime_s"], job["walltime_s"], job["wait_s"], job["cores"]) == (
        "5.m1",
        100.0,
        28800.0,
        60.0,
        24,
    )
    assert (job["user"], job["queue"], job["status"]) == ("u1", "batch", "COMPLETED")
    asked = pbs(tmp_path, text, cores="requested", submission="eligible")
    assert asked.jobs.select("cores", "wait_s").row(0) == (20, 50.0)
    assert asked.origin_s == 1010.0


@pytest.mark.parametrize(
    ("nodes", "cores"), [("1", 1), ("3", 3), ("node7:ppn=2", 2), ("a+b:ppn=3", 4), ("2:ppn=16:x", 32), ("ppn=6", 6)]
)
def test_pbs_shapes(tmp_path: Path, nodes: str, cores: int) -> None:
    assert pbs(tmp_path, RECORD.format(job=1, nodes=nodes, slots="", end=1100, code=0)).jobs["cores"][0] == cores


@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        (1100, 0, "COMPLETED"),
        (1100, 1, "FAILED"),
        (1100, 271, "CANCELLED"),
        (29859, 271, "CANCELLED"),
        (29860, 271, "TIMEOUT"),
        (29861, -11, "TIMEOUT"),
    ],
)
def test_pbs_endings(tmp_path: Path, end: int, code: int, status: str) -> None:
    assert pbs(tmp_path, RECORD.format(job=1, nodes="1", slots="", end=end, code=code)).jobs["status"][0] == status


def test_pbs_without_ends(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="no E"):
        pbs(tmp_path, "")


def test_a_column_of_estimates_can_be_named(tmp_path: Path) -> None:
    columns = {"submit_s": "s", "runtime_s": "r", "cores": "c", "estimate_s": "guess"}
    log = read_workload(write(tmp_path, "s,r,c,guess\n0,100,1,2\n5,50,1,1.5\n"), columns=columns, unit="min")
    assert log.jobs["estimate_s"].to_list() == [120.0, 90.0]
    for bad in ("", "-1", "nan", "soon"):
        with pytest.raises(EscalaError, match="estimate_s"):
            read_workload(write(tmp_path, f"s,r,c,guess\n0,100,1,{bad}\n"), columns=columns)


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_features_of_nodes_in_a_table_are_what_its_jobs_ask_for(tmp_path: Path, end: str) -> None:
    asked = ["x&(y|z)", None, "x"]
    rows = [{"submit_s": float(k), "runtime_s": 9.0, "cores": 1, "features": one} for k, one in enumerate(asked)]
    log = Workload.from_jobs(rows)
    if end == "parquet":
        write_parquet(log, tmp_path / "jobs.parquet")
    else:
        log.jobs.write_csv(tmp_path / "jobs.csv")
    again = read_workload(tmp_path / f"jobs.{end}")
    assert again.jobs["features"].to_list() == asked and again.ignored == {}
    convert(tmp_path / f"jobs.{end}", tmp_path / "converted.parquet")
    assert read_workload(tmp_path / "converted.parquet").jobs["features"].to_list() == asked
    assert [one.jobs["features"].to_list() for one in Pieces(tmp_path / f"jobs.{end}")] == [asked]


def test_features_in_the_words_of_other_tables_are_counted_alone(tmp_path: Path) -> None:
    text = "s,r,c,features\n0,1,1,x\n1,1,1,\n"
    named = {"submit_s": "s", "runtime_s": "r", "cores": "c"}
    assert read_workload(write(tmp_path, text), columns=named).ignored == {"features of nodes": {"jobs": 1}}
    kept = read_workload(tmp_path / "jobs.csv", columns={**named, "features": "features"})
    assert kept.ignored == {} and kept.jobs["features"].to_list() == ["x", None]
