"""What is no log of jobs: one clear line that says what, where, and how to mend it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from escala.errors import EscalaError
from escala.workload import CleaningRules, Workload, read_workload, write_swf
from escala.workload.files import write_atomic

GOOD = "1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1\n"


def refused(path: Path, *words: str, **options: Any) -> str:
    """The message; one line that names the file and holds the words."""
    with pytest.raises(EscalaError) as caught:
        read_workload(path, **options)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message, message
    assert all(word in message for word in words), message
    return message


def file(tmp_path: Path, content: str | bytes, name: str = "log") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_missing_file(tmp_path: Path) -> None:
    refused(tmp_path / "none.swf", "no such file")
    refused(file(tmp_path, "x") / "inside", "cannot be opened")


def test_folder(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_permission(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    path.chmod(0)
    refused(path, "may not be read")


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff\n"])
def test_empty(tmp_path: Path, content: str) -> None:
    refused(file(tmp_path, content), "is empty")
    refused(file(tmp_path, gzip.compress(content.encode())), "is empty")


def test_truncated_and_damaged_gzip(tmp_path: Path) -> None:
    packed = gzip.compress((GOOD * 50_000).encode())
    for cut in (10, len(packed) // 2, len(packed) - 4):
        refused(file(tmp_path, packed[:cut]), "ends too early")
    refused(file(tmp_path, packed[:-8] + b"\0" * 8), "damaged")
    refused(file(tmp_path, b"\x1f\x8b" + b"not gzip at all"), "damaged")


def test_names_do_not_matter(tmp_path: Path) -> None:
    assert len(read_workload(file(tmp_path, GOOD, "log.json.gz"))) == 1
    assert len(read_workload(file(tmp_path, gzip.compress(GOOD.encode()), "log.csv"))) == 1


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("<?xml version='1.0'?><platform/>", "XML"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary"),
        (b"PK\x03\x04....", "zip"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"PAR1 and nothing else", "not a readable table"),
        ("Once upon a time, there was a log.\nIt had no jobs, alas, at all.\n", "no log of jobs"),
        ("; Version: 2.2\n; MaxProcs: 4\n", "comments only"),
        ("-dt 1 -e submit_batch_job | -sim-walltime 5", "Slurm simulator"),
        ("1001;0;-1;15;12;-1;-1;-1;420;-1;-1;user5;account2;-1;normal;normal;;-1;\n", "semicolons"),
        ("a|b|c\n1|2|3\n", "no header of sacct"),
        ('{"dead_resources": {}, "jobs": {}}', "without jobs by their number"),
        ('{"a": 1}', "not a Batsim workload"),
        ("time,energy\n0,0\n", "columns time, energy"),
    ],
)
def test_other_content(tmp_path: Path, content: str | bytes, word: str) -> None:
    refused(file(tmp_path, content), word)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (GOOD.replace(" 10 4", " ten 4"), ["line 3", "field 4 (run time)", "'ten'"]),
        (GOOD.replace("1 0 0", "1 0x10 0"), ["line 3", "field 2 (submit time)"]),
        (GOOD.replace("-1 1 7", "-1 done 7"), ["line 3", "field 11 (status)"]),
        ("1 0 0 10 4 -1 -1\n", ["line 3", "7 fields", "18"]),
        ("garbage\n", ["line 3", "1 fields"]),
        ("1 2e5 0 1-5 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1", ["line 3", "'1-5'"]),
    ],
)
def test_malformed_swf_lines(tmp_path: Path, bad: str, words: list[str]) -> None:
    refused(file(tmp_path, f"; Version: 2.2\n{GOOD}{bad}{GOOD}"), *words)
    refused(file(tmp_path, gzip.compress(f"; Version: 2.2\n{GOOD}{bad}".encode())), *words)


def test_cut_in_the_middle_of_a_line(tmp_path: Path) -> None:
    refused(file(tmp_path, GOOD + GOOD[:20]), "line 2", "fields")


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (GOOD.replace(" 10 4", " -1 4"), "negative runtime"),
        (GOOD.replace(" 10 4", " nan 4"), "no runtime"),
        (GOOD.replace(" 10 4", " 1e300 4"), "absurd runtime"),
        (GOOD.replace("1 0 0", "1 -5 0"), "no submission time"),
        (GOOD.replace("1 0 0", "1 1e30 0"), "absurd submission"),
        (GOOD.replace(" 10 4", " 10 99999999999999999999999"), "absurd processors"),
        (GOOD.replace("4", "0"), "no processors"),
    ],
)
def test_negative_and_absurd_numbers_are_counted(tmp_path: Path, line: str, rule: str) -> None:
    refused(file(tmp_path, line), "no job is left", f"{rule}: 1")
    workload = read_workload(file(tmp_path, GOOD + line.replace("1", "2", 1)))
    assert (len(workload), workload.cleaning) == (1, {rule: 1})


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    refused(path, "takes no speed=", speed=1e9)
    refused(path, "takes no unit=", unit="min")
    with pytest.raises(EscalaError, match="'xls'"):
        read_workload(path, format="xls")
    with pytest.raises(EscalaError, match="'both'"):
        read_workload(path, cores="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["batsim", "slurm", "pbs", "oar", "csv", "parquet"])
def test_wrong_format_given(tmp_path: Path, form: str) -> None:
    refused(file(tmp_path, GOOD * 3), format=form)


def test_given_name_size_and_rules(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD.replace(" 10 4", " 0 4") + GOOD.replace("1 0", "2 5"), "KTH-1996.swf")
    workload = read_workload(path, max_cores=99, rules=CleaningRules(zero_runtime_s=None))
    assert (workload.name, workload.max_cores, len(workload)) == ("KTH-1996", 99, 1)
    assert read_workload(path, name="mine").name == "mine"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = file(tmp_path, "before")

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, pieces())
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    write_swf(Workload.from_jobs({"submit_s": [0], "runtime_s": [1], "cores": [1]}), path)
    assert path.read_text().startswith("; Version") and list(tmp_path.iterdir()) == [path]
    with pytest.raises(EscalaError, match="cannot be written"):
        write_atomic(tmp_path / "no" / "folder", [b"x"])


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_behind_many_comments(tmp_path: Path, packed: bool) -> None:
    comments = "".join(f"; Note: {'x' * 80} {k}\n" for k in range(4000))
    assert len(comments) > 1 << 18
    text = (comments + GOOD + GOOD.replace("1 0", "2 5", 1)).encode()
    path = tmp_path / "log.txt"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert len(read_workload(path)) == 2
    path.write_text(comments)
    with pytest.raises(EscalaError, match="has comments only"):
        read_workload(path)
