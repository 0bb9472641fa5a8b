"""SWF as it occurs, the compiled scanner against Python's own numbers, and the round trip."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import escala.workload.lines as lines
from escala.errors import EscalaError
from escala.workload import Workload, read_header, read_workload, write_swf
from escala.workload.swf_scan import scan_text

TAIL = "-1 -1 -1 -1"


def line(
    job: object,
    submit: object,
    runtime: object = 10,
    alloc: object = 4,
    asked: object = 4,
    walltime: object = 60,
    wait: object = 0,
) -> str:
    return f"{job} {submit} {wait} {runtime} {alloc} -1 -1 {asked} {walltime} -1 1 7 3 -1 2 -1 -1 -1"


def read(tmp_path: Path, text: str, **options: object) -> Workload:
    path = tmp_path / "log.swf"
    path.write_text(text)
    return read_workload(path, **options)  # type: ignore[arg-type]


def test_fields_by_hand(tmp_path: Path) -> None:
    text = (
        "; UnixStartTime: 1000\n; MaxProcs: 1,152 (of all)\n; Version: 2.2\n"
        + line(1, 50, wait=3)
        + "\n"
        + line(2, 70, runtime=0)
        + "\n"
    )
    workload = read(tmp_path, text)
    assert workload.jobs.row(0, named=True) == {
        "job_id": "1",
        "submit_s": 0.0,
        "runtime_s": 10.0,
        "walltime_s": 60.0,
        "cores": 4,
        "user": "7",
        "load": 1.0,
        "single_node": False,
        "status": "COMPLETED",
        "wait_s": 3.0,
        "queue": "2",
        "group": "3",
    }
    assert (workload.origin_s, workload.max_cores, workload.name) == (1050.0, 1152, "log")
    assert workload.cleaning == {"zero runtime": 1}
    assert "2.2" in workload.source


def test_tabs_indents_comments_blank_lines_and_more_columns(tmp_path: Path) -> None:
    text = (
        "\n   ; MaxNodes: 16\n\t;\tindented\n"
        + line(1, 0).replace(" ", "\t")
        + "\n  # note\n   "
        + line(2, 5)
        + " 99 {1,2} q_1d:x\r\n \t \n\n"
    )
    workload = read(tmp_path, text)
    assert workload.jobs["job_id"].to_list() == ["1", "2"]
    assert workload.max_cores == 16


def test_text_ids_and_fractions(tmp_path: Path) -> None:
    text = "job_12 0.5 2.0 10.25 4.0 0.0 0.0 4.0 60.0 0.0 1.0 57.0 alice -1.0 batch -1.0 -1.0 -1.0\n"
    job = read(tmp_path, text).jobs.row(0, named=True)
    assert (job["job_id"], job["runtime_s"], job["cores"], job["user"], job["queue"]) == (
        "job_12",
        10.25,
        4,
        "57",
        "batch",
    )


def test_ids_keep_their_text(tmp_path: Path) -> None:
    ids = ["007", "-3", "1.50", "12", str(2**60 + 1), "a;b"]
    workload = read(tmp_path, "\n".join(line(job, k) for k, job in enumerate(ids)))
    assert workload.jobs["job_id"].to_list() == ids


def test_absolute_times_and_no_header(tmp_path: Path) -> None:
    workload = read(tmp_path, line(2, 1356996695) + "\n" + line(1, 1356996147))
    assert workload.jobs["submit_s"].to_list() == [0.0, 548.0]
    assert (workload.origin_s, workload.max_cores) == (1356996147.0, None)
    assert read(tmp_path, line(1, 1356996147), shift=False).jobs["submit_s"].to_list() == [1356996147.0]


@pytest.mark.parametrize(("first_s", "origin_s"), [(499_999_999, 1_499_999_999.0), (500_000_000, 500_000_000.0)])
def test_times_that_are_unix_times_already_are_not_counted_from_the_start_once_more(
    tmp_path: Path, first_s: int, origin_s: float
) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 1000000000\n" + line(1, first_s) + "\n")
    assert read_workload(path).origin_s == origin_s


def test_allocated_or_requested_processors(tmp_path: Path) -> None:
    text = line(1, 0, alloc=8, asked=6) + "\n" + line(2, 1, alloc=-1, asked=6) + "\n" + line(3, 2, alloc=8, asked=-1)
    text += "\n" + line(4, 3, alloc=0, asked=5)
    assert read(tmp_path, text).jobs["cores"].to_list() == [8, 6, 8, 5]
    assert read(tmp_path, text, cores="requested").jobs["cores"].to_list() == [6, 6, 8, 5]


def test_partial_executions_go_where_the_whole_job_is_there(tmp_path: Path) -> None:
    def with_status(job: int, submit: int, code: int) -> str:
        return line(job, submit).replace("-1 1 7", f"-1 {code} 7")

    text = "\n".join(
        [
            with_status(1, 0, 1),
            with_status(1, 0, 2),
            with_status(1, 0, 3),
            with_status(2, 5, 4),
            with_status(3, 6, 0),
            with_status(4, 7, 5),
        ]
    )
    workload = read(tmp_path, text)
    assert workload.jobs["job_id"].to_list() == ["1", "2", "3", "4"]
    assert workload.jobs["status"].to_list() == ["COMPLETED", "CANCELLED", "FAILED", "CANCELLED"]
    assert workload.cleaning == {"partial execution": 2}


def test_queue_falls_back_to_the_partition(tmp_path: Path) -> None:
    text = f"1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 -1 9 -1 -1\n2 0 0 10 4 -1 -1 4 60 -1 1 7 3 {TAIL} -1\n"
    assert read(tmp_path, text).jobs["queue"].to_list() == ["9", None]


def test_zero_is_a_user_and_a_queue(tmp_path: Path) -> None:
    """Only what is negative is not known."""
    text = "1 0 0 10 4 -1 -1 4 60 -1 1 0 0 0 0 0 0 -1\n2 0 0 10 4 -1 -1 4 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
    jobs = read(tmp_path, text).jobs
    assert [jobs[name].to_list() for name in ("user", "group", "queue")] == [["0", None]] * 3


def test_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(
        "; Version: 2.2\n; Note: one\n;Note: two: three\n;\n; Queue:  0 batch \n" + line(1, 0) + "\n; Note: late\n"
    )
    assert read_header(path) == {"Version": ["2.2"], "Note": ["one", "two: three"], "Queue": ["0 batch"]}


@pytest.mark.parametrize("size", [1, 50, 97, 1000])
def test_chunks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    text = (
        "; MaxProcs: 64\n"
        + "".join(line(k, 3 * k, runtime=k + 0.125, wait=-1) + "\n" for k in range(1, 60))
        + line(60, 999)
    )
    whole = read(tmp_path, text)
    monkeypatch.setattr(lines, "CHUNK_BYTES", size)
    again = read(tmp_path, text)
    assert again.jobs.equals(whole.jobs) and again.max_cores == 64
    with pytest.raises(EscalaError, match="line 41: field 4 \\(run time\\) is 'x1'"):
        read(tmp_path, text.replace(line(40, 120, runtime=40.125, wait=-1), line(40, 120, runtime="x1")))


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**10), max_value=10**10).map(
        lambda x: f"{x:f}"
    ),
    st.from_regex(r"[-+]?[0-9]{1,25}(\.[0-9]{0,25})?", fullmatch=True),
    st.from_regex(r"[-+]?\.[0-9]{1,20}", fullmatch=True),
)


@given(NUMBERS)
def test_scanner_reads_a_number_as_python_does_or_leaves_it(token: str) -> None:
    scanned = scan_text(line(1, 0, runtime=token).encode() + b"\n")
    value = scanned.numbers[3, 0]
    assert scanned.short == -1
    assert value != value or value == float(token)
    plain = token.lstrip("+-").replace(".", "")
    if plain.isdigit() and len(plain) <= 15:
        assert value == float(token)  # not left to the slow way


TIMES = st.one_of(st.integers(1, 10**8).map(float), st.floats(1e-3, 1e8))
LABELS = st.one_of(st.none(), st.integers(0, 10**6).map(str))
JOB = st.fixed_dictionaries(
    {
        "submit_s": st.one_of(st.integers(0, 10**8).map(float), st.floats(0, 4e8)),
        **dict.fromkeys(("runtime_s", "walltime_s"), TIMES),
        "cores": st.integers(1, 10**6),
        **dict.fromkeys(("user", "queue"), LABELS),
        "status": st.sampled_from([None, "COMPLETED", "FAILED", "CANCELLED"]),
        "wait_s": st.one_of(st.none(), st.floats(0, 1e7), st.just(0.0)),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(JOB, min_size=1, max_size=12), st.booleans(), st.integers(1, 10**7))
def test_round_trip(tmp_path: Path, rows: list[dict[str, object]], packed: bool, max_cores: int) -> None:
    workload = Workload.from_jobs(rows, origin_s=1234.0, max_cores=max_cores)
    path = tmp_path / ("out.swf.gz" if packed else "out.swf")
    write_swf(workload, path)
    again = read_workload(path, shift=False)
    assert again.jobs.equals(workload.jobs)
    assert (again.origin_s, again.max_cores) == (1234.0, max_cores)
    shifted = read_workload(path)
    first = workload.jobs["submit_s"][0]
    assert shifted.jobs["submit_s"].equals(workload.jobs["submit_s"] - first)
    assert shifted.origin_s == 1234.0 + first


def test_names_are_numbered_and_loads_noted(tmp_path: Path) -> None:
    rows = [
        {"job_id": job, "submit_s": k, "runtime_s": 1, "cores": 1, "user": user, "load": 0.0}
        for k, (job, user) in enumerate(zip("xyz", "bab"))
    ]
    path = tmp_path / "out.swf"
    write_swf(Workload.from_jobs(rows), path)
    jobs = read_workload(path).jobs
    assert jobs["job_id"].to_list() == ["1", "2", "3"]
    assert jobs["user"].to_list() == ["1", "2", "1"]
    assert "load" in path.read_text()


def test_negative_submissions_move_the_origin(tmp_path: Path) -> None:
    workload = Workload.from_jobs({"submit_s": [-50.0, 10.0], "runtime_s": [1, 1], "cores": [1, 1]}, origin_s=1000.0)
    write_swf(workload, tmp_path / "out.swf")
    again = read_workload(tmp_path / "out.swf")
    assert (again.jobs["submit_s"].to_list(), again.origin_s) == ([0.0, 60.0], 950.0)


def test_refused_to_write(tmp_path: Path) -> None:
    single = Workload.from_jobs(
        {"submit_s": [0], "runtime_s": [1], "cores": [1], "single_node": [True], "demand_gpu": [2]}
    )
    work = Workload.from_jobs({"submit_s": [0], "flops": [1e9], "cores": [1]})
    for workload, word in ((single, "demand_gpu"), (work, "at_speed")):
        with pytest.raises(EscalaError, match=word):
            write_swf(workload, tmp_path / "out.swf")
    with pytest.raises(EscalaError, match="cannot be written"):
        write_swf(work.at_speed(1.0), tmp_path / "missing" / "out.swf")
    assert list(tmp_path.iterdir()) == []


def test_same_bytes_every_time(tmp_path: Path) -> None:
    workload = Workload.from_jobs({"submit_s": [0, 1], "runtime_s": [1, 2.5], "cores": [1, 2]})
    for name in ("a.swf.gz", "b.swf.gz"):
        write_swf(workload, tmp_path / name)
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.swf.gz").read_bytes()).startswith(b"; Version: 2.2\n")


def test_own_filters_keep_the_table(tmp_path: Path) -> None:
    workload = read(tmp_path, "\n".join(line(k, k) for k in range(1, 10)))
    assert len(workload.filter(pl.col("queue") == "2")) == 9
