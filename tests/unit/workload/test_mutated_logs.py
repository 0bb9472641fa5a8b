"""Logs with random damage: a workload or one clear line, never another error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.workload import read_workload

SWF = """; UnixStartTime: 1000
; MaxProcs: 64
1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1
job_2 5.25 0 1e3 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1
"""
BATSIM = """{"nb_res": 4, "jobs": [{"id": "1", "subtime": 0, "res": 2, "walltime": 9, "profile": "a"},
{"id": 2, "subtime": 1.5, "res": 2, "profile": "b", "user": "x"}, {"id": 3, "subtime": 1, "res": 1, "walltime": 5, "profile": "c"}],
"profiles": {"a": {"type": "delay", "delay": 5}, "b": {"type": "composed", "repeat": 2, "seq": ["a", "a"]},
"c": {"type": "parallel", "cpu": [1e9], "com": [0]}}}
"""
SACCT = """JobID|User|State|Submit|Eligible|Start|End|Elapsed|Timelimit|AllocCPUS|AllocTRES|NodeList|JobName
1|u|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:00:10|1-00:00:00|4|cpu=4,mem=2G|n1|a
2_[3-5]|u|PENDING|2024-03-01T10:00:00|2024-03-01T10:00:00|Unknown|Unknown|00:00:00|UNLIMITED|0||None assigned|a|b
3|u|CANCELLED by 5|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:10|05:00|4|cpu=4|n1|c
"""
PBS = """10/01/2017 00:00:16;Q;5.m1;queue=batch
10/01/2017 00:01:38;E;5.m1;user=u queue=batch ctime=1000 qtime=1005 etime=1010 start=1060 exec_host=c3/30 Resource_List.nodes=2:ppn=8+n1 \
Resource_List.walltime=08:00:00 end=1160 Exit_status=0
"""
PACK = """set,file,id,subtime,res,walltime,runtime,user,type
a,d,1,5,12,60,4,0,msg_par_hg
a,d,2,3,24,60,61,,msg_par_hg
"""
EAGLE = """job_id,user,partition,wallclock_req,processors_req,submit_time,start_time,run_time,state
532209,u1,p,172800.0,10,2019-01-01 08:55:55,2019-01-01 08:55:56,99825.0,COMPLETED
"""
LOGS = {"swf": SWF, "batsim": BATSIM, "sacct": SACCT, "pbs": PBS, "pack": PACK, "eagle": EAGLE}
PIECES = [
    b"",
    b"\0",
    b"\n",
    b" ",
    b"|",
    b";",
    b",",
    b"-",
    b"1e999",
    b"nan",
    b"\xff",
    b'"',
    b"{",
    b"}",
    b"[",
    b"null",
    b"true",
    b"9" * 30,
    b"-1",
    b"x",
    b".",
]


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


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_logs(tmp_path: Path, name: str, data: st.DataObject) -> None:
    text = LOGS[name].encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        width = data.draw(st.sampled_from([0, 1, 1, 4, 40]))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + width :]
    (tmp_path / "log").write_bytes(text)
    attempt(tmp_path / "log", "min" if name == "pack" else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    attempt(tmp_path / "log", None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["swf", "batsim", "slurm", "pbs", "csv", "parquet"]), st.sampled_from(sorted(LOGS)))
def test_any_log_as_any_format(tmp_path: Path, form: str, name: str) -> None:
    (tmp_path / "log").write_text(LOGS[name])
    try:
        read_workload(tmp_path / "log", format=form)
    except EscalaError as error:
        assert "\n" not in str(error)
