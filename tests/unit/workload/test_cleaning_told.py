"""What cleaning did is told: which rule, how many records, and the first of them by job and line; or the log is
refused."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.workload import CleaningRules, read_pack, read_workload
from escala.workload.clean import remarks
from escala.workload.pieces import Pieces

GOOD = "{id} 0 -1 100 2 -1 -1 2 200 -1 1 7 -1 -1 -1 -1 -1 -1"
HEADER = "JobID|Submit|Start|End|State|AllocCPUS|Elapsed|Timelimit"
SACCT = "{id}|2022-01-01T00:00:00|2022-01-01T00:00:00|2022-01-01T00:01:00|COMPLETED|1|00:01:00|00:10:00"


def swf(folder: Path, *changes: tuple[int, str]) -> Path:
    """A log of a comment, a good job and job 2 with some fields (numbers from 1) changed."""
    fields = GOOD.format(id=2).split()
    for number, value in changes:
        fields[number - 1] = value
    path = folder / "log.swf"
    path.write_text("\n".join(["; MaxProcs: 4", GOOD.format(id=1), " ".join(fields), ""]))
    return path


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ((4, "-1"), "negative runtime"),
        ((4, "nan"), "no runtime"),
        ((4, "inf"), "absurd runtime"),
        ((4, "1e300"), "absurd runtime"),
        ((2, "-5"), "no submission time"),
        ((5, "99999999999"), "absurd processors"),
    ],
)
def test_a_job_that_is_left_out_is_named_by_its_line(tmp_path: Path, change: tuple[int, str], rule: str) -> None:
    path = swf(tmp_path, change)
    workload = read_workload(path)
    assert (len(workload), workload.cleaning, workload.first_cleaned) == (1, {rule: 1}, {rule: "job '2', line 3"})
    assert remarks(workload.cleaning, workload.first_cleaned) == [f"{rule}: 1 record left out (first: job '2', line 3)"]
    with pytest.raises(EscalaError, match=rf"log.swf: {rule}: 1 record left out \(first: job '2', line 3\).*--strict"):
        read_workload(path, strict=True)


def test_a_table_tells_an_empty_runtime_from_a_negative_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    pl.DataFrame({"submit_s": [0.0] * 4, "runtime_s": [5.0, None, -1.0, math.nan], "cores": [1] * 4}).write_parquet(
        path
    )
    counts = {"no runtime": 2, "negative runtime": 1, "no request": 1}
    workload = read_workload(path)
    assert workload.cleaning == counts and workload.first_cleaned["no runtime"] == "job '2'"
    assert "no runtime: 2 records left out (first: job '2')" in remarks(workload.cleaning, workload.first_cleaned)
    pieces = Pieces(path, 10)
    assert [len(piece) for piece in pieces] == [1]
    assert (pieces.cleaning, pieces.firsts) == (counts, workload.first_cleaned)


def test_strict_takes_a_log_that_needs_no_change(tmp_path: Path) -> None:
    for change in ((9, "200"), (9, "50"), (9, "-1")):  # as it is; over its request; without a request
        assert len(read_workload(swf(tmp_path, change), strict=True)) == 2
    with pytest.raises(EscalaError, match=r"zero runtime: 1 record run 1.0 s"):
        read_workload(swf(tmp_path, (4, "0")), strict=True)


def test_a_log_without_requests_says_what_policies_see(tmp_path: Path) -> None:
    workload = read_workload(swf(tmp_path, (9, "-1")))
    (line,) = remarks(workload.cleaning, workload.first_cleaned)
    assert "policies see the actual runtime as walltime" in line and "job '2', line 3" in line
    rules = CleaningRules(no_request=3600)
    limited = read_workload(swf(tmp_path, (9, "-1")), rules=rules)
    assert "limited to 3600 s" in remarks(limited.cleaning, limited.first_cleaned, rules)[0]


def test_lines_go_on_counting_over_the_pieces_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 100)
    lines = [GOOD.format(id=k) for k in range(1, 50)]
    lines[41] = lines[41].replace(" 100 ", " -1 ")
    path = tmp_path / "log.swf"
    path.write_text("; one comment\n" + "\n".join(lines) + "\n")
    assert read_workload(path).first_cleaned == {"negative runtime": "job '42', line 43"}


def test_partial_executions_name_the_first(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(
        "\n".join([GOOD.format(id=1), GOOD.format(id=2).replace("-1 1 7", "-1 2 7"), GOOD.format(id=2), ""])
    )
    workload = read_workload(path, strict=True)
    assert (len(workload), workload.first_cleaned) == (2, {"partial execution": "job '2', line 2"})


def test_sacct_records_are_named_by_their_lines(tmp_path: Path) -> None:
    rows = [
        SACCT.format(id=1),
        SACCT.format(id="1.batch"),
        SACCT.format(id=1),
        SACCT.format(id=2).replace("COMPLETED", "RUNNING"),
    ]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([HEADER, *rows, "3|torn", ""]))
    assert read_workload(path).first_cleaned == {
        "job step rows": "job '1.batch', line 3",
        "broken record": "line 6",
        "repeated record": "job '1', line 4",
        "still running": "job '2', line 5",
    }


def test_packs_tell_for_each_day(tmp_path: Path) -> None:
    path = tmp_path / "pack.csv"
    path.write_text(
        "set,file,id,subtime,res,walltime,runtime,user,type\na,1,x,0,1,5,3,u,t\na,1,y,0,1,5,-1,u,t\na,2,z,0,1,5,3,u,t\n"
    )
    days = read_pack(path, unit="s")
    assert [day.first_cleaned for day in days.values()] == [{"negative runtime": "job 'y'"}, {}]


def test_what_is_told_lasts_as_long_as_its_counts(tmp_path: Path) -> None:
    workload = read_workload(swf(tmp_path, (4, "0")))
    assert workload.head(2).first_cleaned == workload.first_cleaned == {"zero runtime": "job '2', line 3"}
    assert workload.window(0.0, 1.0).first_cleaned == {}
