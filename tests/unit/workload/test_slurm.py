"""sacct text, small listings by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from escala.errors import EscalaError
from escala.workload import Workload, read_workload

HEADER = "JobID|User|Partition|State|Submit|Eligible|Start|End|Elapsed|Timelimit|AllocCPUS|ReqCPUS|NodeList|JobName"


def row(job: str = "1", **change: str) -> str:
    values = {
        "JobID": job,
        "User": "ua",
        "Partition": "batch",
        "State": "COMPLETED",
        "Submit": "2024-03-01T10:00:00",
        "Eligible": "2024-03-01T10:01:00",
        "Start": "2024-03-01T10:02:00",
        "End": "2024-03-01T10:03:30",
        "Elapsed": "00:01:30",
        "Timelimit": "01:00:00",
        "AllocCPUS": "8",
        "ReqCPUS": "6",
        "NodeList": "n1",
        "JobName": "name",
        **change,
    }
    return "|".join(values[name] for name in HEADER.split("|"))


def read(tmp_path: Path, *lines: str, header: str | None = HEADER, **options: Any) -> Workload:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(([header] if header else []) + list(lines)) + "\n")
    return read_workload(path, **options)


def test_fields_by_hand(tmp_path: Path) -> None:
    workload = read(tmp_path, row("5"))
    assert workload.jobs.row(0, named=True) == {
        "job_id": "5",
        "submit_s": 0.0,
        "runtime_s": 90.0,
        "walltime_s": 3600.0,
        "cores": 8,
        "user": "ua",
        "load": 1.0,
        "single_node": False,
        "status": "COMPLETED",
        "wait_s": 120.0,
        "queue": "batch",
        "job_name": "name",
    }
    assert workload.origin_s == 1709287200.0  # 2024-03-01 10:00:00 UTC


def test_options(tmp_path: Path) -> None:
    assert read(tmp_path, row(), cores="requested").jobs["cores"][0] == 6
    eligible = read(tmp_path, row(), submission="eligible")
    assert (eligible.origin_s, eligible.jobs["wait_s"][0]) == (1709287260.0, 60.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("05:30", 330.0), ("02:00:00", 7200.0), ("1-00:00:01", 86401.0), ("10-12:00:00", 907200.0), ("00:00:01.500", 1.5)],
)
def test_durations(tmp_path: Path, text: str, seconds: float) -> None:
    assert read(tmp_path, row(Timelimit=text)).jobs["walltime_s"][0] == seconds
    assert read(tmp_path, row(Elapsed=text)).jobs["runtime_s"][0] == seconds


@pytest.mark.parametrize("text", ["UNLIMITED", "Partition_Limit", "", "INVALID"])
def test_no_limit(tmp_path: Path, text: str) -> None:
    workload = read(tmp_path, row(Timelimit=text))
    assert (workload.jobs["walltime_s"][0], workload.cleaning) == (90.0, {"no request": 1})


def test_raw_fields_and_trailing_bars(tmp_path: Path) -> None:
    header = "JobIDRaw|UID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|"
    line = "7|1001|TIMEOUT|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:10:05|605|10|"
    line += "billing=9,cpu=12,mem=3G|cpu=4|"
    job = read(tmp_path, line, header=header).jobs.row(0, named=True)
    assert (job["job_id"], job["user"], job["runtime_s"], job["walltime_s"], job["cores"]) == (
        "7",
        "1001",
        605.0,
        600.0,
        12,
    )
    assert job["status"] == "TIMEOUT"
    assert read(tmp_path, line, header=header, cores="requested").jobs["cores"][0] == 4


def test_epoch_times(tmp_path: Path) -> None:
    line = row(Submit="1709287200", Eligible="1709287200", Start="1709287260", End="1709287350")
    assert read(tmp_path, line).jobs["wait_s"][0] == 60.0


@pytest.mark.parametrize(
    ("state", "status"),
    [
        *(
            ("CANCELLED by 1000", "CANCELLED"),
            ("CANCELLED+", "CANCELLED"),
            ("CA", "CANCELLED"),
            ("PREEMPTED", "CANCELLED"),
        ),
        *(
            ("NODE_FAIL", "FAILED"),
            ("OUT_OF_MEMORY", "FAILED"),
            ("FAILED", "FAILED"),
            ("DEADLINE", "TIMEOUT"),
            ("UNHEARD_OF", None),
        ),
    ],
)
def test_states(tmp_path: Path, state: str, status: str | None) -> None:
    assert read(tmp_path, row(State=state)).jobs["status"][0] == status


def test_steps_and_jobs_that_did_not_run(tmp_path: Path) -> None:
    never = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "NodeList": "None assigned"}
    workload = read(
        tmp_path,
        row("1"),
        *(row(f"1.{step}") for step in ("batch", "extern", "0")),
        row("2_[5-9%2]", State="PENDING", **never),
        row("2_4"),
        row("3", State="CANCELLED by 5", **{**never, "Start": "None", "End": "2024-03-01T10:02:00"}),
        row("4", State="CANCELLED by 5", **{**never, "Start": "2024-03-01T10:02:00", "End": "2024-03-01T10:02:00"}),
        row("5", State="RUNNING", End="Unknown"),
        row("6+0"),
    )
    assert workload.jobs["job_id"].to_list() == ["1", "2_4", "6+0"]
    assert workload.cleaning == {"job step rows": 3, "never started": 3, "still running": 1}


def test_a_heterogeneous_job_is_one_job(tmp_path: Path) -> None:
    """Slurm starts all components or none. One alone, a requeued one and an array task stay what they are."""
    later = {"Start": "2024-03-01T11:00:00", "End": "2024-03-01T11:00:10", "Elapsed": "00:00:10"}
    workload = read(
        tmp_path,
        row("6+0", AllocCPUS="8", Elapsed="00:01:30"),
        row("7"),
        row(
            "6+1",
            AllocCPUS="64",
            Elapsed="00:02:00",
            Timelimit="02:00:00",
            Partition="gpu",
            Start="2024-03-01T10:02:01",
        ),
        row(
            "6+1",
            AllocCPUS="64",
            Elapsed="00:02:00",
            Timelimit="02:00:00",
            Partition="gpu",
            Start="2024-03-01T10:02:01",
        ),
        row("8+0"),
        row("6+0", **later),
        row("9+0", Start="2024-03-01T10:02:00"),
        row("9+1", Start="2024-03-01T10:03:00", Elapsed="00:00:30"),
        strict=True,
    )
    jobs = workload.jobs.select("job_id", "cores", "runtime_s", "walltime_s", "wait_s", "queue").rows()
    assert jobs == [
        ("6", 72, 121.0, 7200.0, 120.0, "batch"),
        ("7", 8, 90.0, 3600.0, 120.0, "batch"),
        ("8+0", 8, 90.0, 3600.0, 120.0, "batch"),
        ("6+0", 8, 10.0, 3600.0, 3600.0, "batch"),
        ("9+0", 8, 90.0, 3600.0, 120.0, "batch"),
        ("9+1", 8, 30.0, 3600.0, 180.0, "batch"),
    ]
    assert workload.cleaning == {"repeated record": 1, "component of a heterogeneous job": 1}
    assert workload.first_cleaned["component of a heterogeneous job"] == "job '6', line 2"
    alone = read_workload(tmp_path / "sacct.txt", partition="gpu")
    assert alone.jobs["job_id"].to_list() == ["6+1"]


def test_what_no_replay_looks_at_is_counted_of_heterogeneous_jobs_too(tmp_path: Path) -> None:
    fields = "JobID|State|Submit|Eligible|Start|End|AllocCPUS|AllocTRES|Priority|Constraints"
    times = "2024-03-01T10:00:00|2024-03-01T10:01:00|2024-03-01T10:02:00|2024-03-01T10:03:00"
    records = [
        f"6+0|COMPLETED|{times}|8|cpu=8|200|",
        f"6+1|COMPLETED|{times}|4|cpu=4,gres/gpu=1|200|skylake",
        f"7|COMPLETED|{times}|1||9|",
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([fields, *records, ""]))
    log = read_workload(tmp_path / "sacct.txt")
    assert log.jobs["cores"].to_list() == [12, 1]
    one, both = {"jobs": 1}, {"jobs": 2}
    assert log.ignored == {
        "GPUs": one,
        "features of nodes": one,
        "dependencies or begin times": both,
        "priorities": {**both, "values": 2},
    }


def test_submit_lines_tell_of_dependencies_and_limits_of_arrays(tmp_path: Path) -> None:
    header, at = HEADER + "|SubmitLine", {"Eligible": "2024-03-01T10:00:00"}
    lines = [
        "sbatch -d afterok:5 a.sh",
        "sbatch --dependency=singleton a",
        "sbatch --array=1-9%2 b",
        "sbatch --day-report x",
        "",
    ]
    read_ = read(tmp_path, *(f"{row(str(k), **at)}|{line}" for k, line in enumerate(lines)), header=header)
    assert read_.ignored == {"dependencies or begin times": {"jobs": 2}, "limits of arrays": {"jobs": 1}}
    assert read(tmp_path, row()).ignored == {"dependencies or begin times": {"jobs": 1}}, (
        "eligible a minute after submission"
    )
    assert read(tmp_path, row(), submission="eligible").ignored == {}


def test_cancelled_at_once_without_nodelist(tmp_path: Path) -> None:
    header = "JobID|State|Submit|Start|End|ElapsedRaw|AllocCPUS"
    lines = ["1|CANCELLED by 7|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:00|0|4"]
    lines += ["2|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|5|4"]
    workload = read(tmp_path, *lines, header=header)
    assert (workload.jobs["job_id"].to_list(), workload.cleaning) == (["2"], {"never started": 1, "no request": 1})


def test_the_same_job_twice(tmp_path: Path) -> None:
    again = row(
        "1",
        Submit="2024-03-01T12:00:00",
        Eligible="2024-03-01T12:00:00",
        Start="2024-03-01T12:00:00",
        End="2024-03-01T12:01:30",
    )
    workload = read(tmp_path, row("1"), row("2"), row("1"), again, HEADER)
    assert workload.jobs["job_id"].to_list() == ["1", "2", "1#2"]  # the requeued run is another one
    assert workload.cleaning == {"repeated record": 1, "repeated id": 1}


def test_bars_and_line_breaks_in_free_text(tmp_path: Path) -> None:
    header = HEADER.replace("JobName", "JobName|SubmitLine|AllocNodes")
    lines = [
        row("1", JobName="a|b|") + "|sbatch x|1",
        row("2") + "|sbatch <<E\necho | wc\n|\nE|1",
        row("3") + "|srun|2",
    ]
    assert read(tmp_path, *lines, header=header).jobs["job_id"].to_list() == ["1", "2", "3"]


def test_pieces_of_records_are_counted(tmp_path: Path) -> None:
    workload = read(tmp_path, row("1"), "||1|n1|", row("2"))
    assert (workload.jobs["job_id"].to_list(), workload.cleaning) == (["1", "2"], {"broken record": 1})
    with pytest.raises(EscalaError, match="most lines"):
        read(tmp_path, row("1"), *["a|b|c"] * 100)


def test_without_header(tmp_path: Path) -> None:
    workload = read(tmp_path, row("1"), header=None, columns=HEADER.split("|"))
    assert workload.jobs["cores"].to_list() == [8]
    with pytest.raises(EscalaError, match="columns="):
        read(tmp_path, row("1"), header=None)
    with pytest.raises(EscalaError, match="list of its fields"):
        read(tmp_path, row("1"), columns={"submit_s": "Submit"})


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"Submit": "yesterday"}, "submit"),
        ({"Elapsed": "soon"}, "elapsed"),
        ({"Timelimit": "5 min"}, "timelimit"),
        ({"Start": "12.3.2024"}, "start"),
    ],
)
def test_unreadable_values_name_the_line(tmp_path: Path, change: dict[str, str], word: str) -> None:
    with pytest.raises(EscalaError, match=f"line 3: {word} of job '2'"):
        read(tmp_path, row("1"), row("2", **change))


def test_missing_fields(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="submit or eligible"):
        read(tmp_path, "1|COMPLETED", header="JobID|State")
    with pytest.raises(EscalaError, match="no job records"):
        read(tmp_path)
