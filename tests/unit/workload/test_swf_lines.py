"""Line ends and byte-order marks: the same jobs however a text was saved."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from escala.errors import EscalaError
from escala.workload import read_header, read_workload
from tests.cli.program import LOG

CSV = "job_id,submit_s,runtime_s,walltime_s,cores\na,0,5,9,1\nb,1,5,9,2\nc,2,5,9,3\n"
ENDS = {"unix": "\n", "windows": "\r\n", "old mac": "\r", "doubled": "\r\r\n"}
BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("bom", [b"", BOM], ids=["plain", "bom"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("packed", [False, True], ids=["text", "gzip"])
def test_swf(tmp_path: Path, end: str, bom: bytes, packed: bool) -> None:
    (tmp_path / "plain.swf").write_text(LOG)
    data = bom + LOG.replace("\n", ENDS[end]).encode()
    path = tmp_path / "log.swf"
    path.write_bytes(gzip.compress(data) if packed else data)
    assert read_workload(path).jobs.equals(read_workload(tmp_path / "plain.swf").jobs)
    assert read_header(path) == {"MaxProcs": ["4"], "UnixStartTime": ["1000000000"]}


@pytest.mark.parametrize("end", ENDS)
def test_jobs_after_a_byte_order_mark(tmp_path: Path, end: str) -> None:
    """Without a header the mark stands before the first job's number."""
    lines = LOG.splitlines()[2:]
    path = tmp_path / "log.swf"
    path.write_bytes(BOM + ENDS[end].join(lines).encode())
    assert read_workload(path).jobs["job_id"].to_list() == ["1", "2", "3", "4"]


def test_an_error_names_the_line_that_an_editor_shows(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(LOG.replace("2 10 -1", "2 ten -1").replace("\n", "\r").encode())
    with pytest.raises(EscalaError, match="line 4"):
        read_workload(path)


@pytest.mark.parametrize("bom", [b"", BOM], ids=["plain", "bom"])
@pytest.mark.parametrize("end", ["unix", "windows", "old mac"])
def test_csv(tmp_path: Path, end: str, bom: bytes) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(bom + CSV.replace("\n", ENDS[end]).encode())
    workload = read_workload(path)
    assert workload.jobs["job_id"].to_list() == ["a", "b", "c"] and workload.jobs["cores"].to_list() == [1, 2, 3]
