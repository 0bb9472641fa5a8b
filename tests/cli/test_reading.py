"""Every log that the library reads can be read from the command line, and a refusal names the option that helps."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import escala
from tests.cli.program import Escala, Outcome

WORK = {
    "nb_res": 4,
    "jobs": [
        {"id": "a", "subtime": 0, "res": 2, "profile": "p"},
        {"id": "b", "subtime": 1, "res": 1, "profile": "p", "walltime": 100},
    ],
    "profiles": {"p": {"type": "parallel_homogeneous", "cpu": 5e10, "com": 0}},
}
XML = (
    "<platform version='4.1'><zone id='z' routing='Full'>"
    "<cluster id='c' prefix='n' suffix='' radical='0-3' speed='2Gf' core='1'/></zone></platform>"
)
SACCT = "1|2022-01-01T00:00:00|2022-01-01T00:00:00|2022-01-01T00:01:00|COMPLETED|2\n"
PACK = "set,file,id,subtime,res,walltime,runtime,user,type\na,1,x,0,1,5,3,u,t\na,2,y,0,1,5,4,u,t\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A Batsim workload in flops: 50 s at 1 Gflop/s, 25 s on the platform beside it."""
    (tmp_path / "work.json").write_text(json.dumps(WORK))
    (tmp_path / "machine.xml").write_text(XML)
    return tmp_path / "work.json"


def _told(outcome: Outcome) -> Any:
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


def _refused(outcome: Outcome, *words: str) -> None:
    assert outcome.status == 2 and outcome.out == ""
    assert re.search(r"^error: [^\n]+\n\Z", outcome.err, re.MULTILINE), outcome.err
    for word in words:
        assert word in outcome.err, outcome.err


def test_describe_takes_a_speed_or_a_platform_with_one(escala_: Escala, work: Path) -> None:
    def longest(*more: object) -> float:
        return float(_told(escala_("workload", "describe", work, "--json", *more))["quantiles"]["runtime_s"]["max"])

    assert longest("--speed", "1e9") == 50.0 and longest("--platform", work.parent / "machine.xml") == 25.0
    assert longest("--speed", "1e9", "--platform", work.parent / "machine.xml") == 50.0, "the speed given counts"
    _refused(escala_("workload", "describe", work), "work.json", "--speed 1e9")
    _refused(escala_("workload", "describe", work, "--platform", "4x1"), "work.json", "'4x1'", "--speed 1e9")


def test_simulate_and_compare_take_a_speed(escala_: Escala, work: Path) -> None:
    for more, seconds in (
        (["--platform", "4x1", "--speed", "1e9"], 51.0),
        (["--platform", work.parent / "machine.xml"], 26.0),
    ):
        assert _told(escala_("simulate", work, "--json", *more))["makespan_s"] == seconds
        assert [
            row["makespan_s"] for row in _told(escala_("compare", work, "--schedulers", "easy", "--json", *more))
        ] == [seconds]
    _refused(escala_("simulate", work, "--platform", "4x1"), "work.json", "--speed 1e9")


def test_convert_from_and_to_flops(escala_: Escala, work: Path) -> None:
    swf = work.parent / "work.swf"
    _refused(escala_("workload", "convert", work, "--out", swf), "work.json", "--speed 1e9")
    assert not swf.exists()
    _told(escala_("workload", "convert", work, "--out", swf, "--speed", "1e9", "--json"))
    assert escala.read_workload(swf).jobs["runtime_s"].to_list() == [50.0, 50.0]
    assert _told(escala_("workload", "convert", work, "--out", work.parent / "same.json", "--json"))["jobs"] == 2
    assert escala.read_workload(work.parent / "same.json").jobs["flops"].to_list() == [5e10, 5e10], "work stays work"
    _told(escala_("workload", "convert", swf, "--out", work.parent / "back.json", "--speed", "1e9", "--json"))
    assert escala.read_workload(work.parent / "back.json").jobs["flops"].to_list() == [5e10, 5e10]


@pytest.mark.parametrize("speed", ["-1", "0", "nan", "inf"])
@pytest.mark.parametrize("end", ["swf", "json"])
def test_absurd_speeds(escala_: Escala, work: Path, speed: str, end: str) -> None:
    _refused(
        escala_("workload", "convert", work, "--out", work.parent / f"x.{end}", "--speed", speed),
        "finite number above 0",
    )
    assert not (work.parent / f"x.{end}").exists()
    if math.isfinite(float(speed)):
        generate = ["workload", "generate", "bernoulli", "--out", work.parent / f"x.{end}", "--speed", speed]
        _refused(escala_(*generate), "finite number above 0")


def test_the_author_s_logs_in_flops(escala_: Escala, traces: Path) -> None:
    """All of them can be described with the speed of the platform that lies beside them."""
    folder = traces / "author" / "r1-bench"
    logs = sorted((folder / "original").glob("*.json.gz"))
    assert len(logs) >= 5
    for path in logs:
        described = _told(escala_("workload", "describe", path, "--platform", folder / "platform_hg_10.xml", "--json"))
        assert described["jobs"] > 0 and described["quantiles"]["runtime_s"]["min"] > 0


def test_sacct_text_without_a_header(escala_: Escala, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    fields = "JobID,Submit,Start,End,State,AllocCPUS"
    described = _told(escala_("workload", "describe", path, "--fields", fields, "--json"))
    assert (
        described["jobs"] == 1 and described["quantiles"]["runtime_s"]["max"] == 60.0 and described["largest_job"] == 2
    )
    _refused(escala_("workload", "describe", path), "jobs.txt", "--fields JobID,Submit")
    _refused(escala_("workload", "describe", path, "--fields", fields, "--column", "a=b"), "--column", "--fields")


def test_the_format_may_be_named(escala_: Escala, log: Path) -> None:
    assert _told(escala_("workload", "describe", log, "--format", "swf", "--json"))["jobs"] == 4
    _refused(escala_("workload", "describe", log, "--format", "SWFF"), "small.swf", "swf, batsim")
    _refused(escala_("workload", "describe", log, "--format", "batsim"), "small.swf")


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        ("a,b\n1,2\n3,4\n", [], ["--column submit_s=NAME"]),
        ("a,b\n1,2\n", ["--column", "submit_s=a"], ["--column"]),
        ("a,b\n1,2\n", ["--column", "when=a"], ["--column", "'when'"]),
        (PACK, [], ["--select set=a --select file=1"]),
        (PACK, ["--select", "file=1"], ["--unit min"]),
        (SACCT.replace("|", ","), ["--format", "slurm"], ["--fields"]),
        ("1 0 -1 5 1 -1 -1 1 5 -1 1 1 -1 -1 -1 -1 -1 -1\n", ["--unit", "min"], ["--unit", "--format"]),
        ("1 0 -1 5 1 -1 -1 1 5 -1 1 1 -1 -1 -1 -1 -1 -1\n", ["--speed", "1e9"], ["--speed"]),
        ("1 0 -1 -1 1 -1 -1 1 5 -1 1 1 -1 -1 -1 -1 -1 -1\n", [], ["negative runtime", "--zero-runtime"]),
    ],
)
def test_refusals_name_the_option(
    escala_: Escala, tmp_path: Path, content: str, more: list[str], words: list[str]
) -> None:
    path = tmp_path / "log.txt"
    path.write_text(content)
    _refused(escala_("workload", "describe", path, *more), "log.txt", *words)


def test_a_refused_run_leaves_no_folders(escala_: Escala, tmp_path: Path) -> None:
    for target in ("nd/a/b", "nd/a/x.swf"):
        verb = ["simulate"] if target.endswith("b") else ["workload", "convert"]
        more = ["--platform", "4x1"] if target.endswith("b") else []
        _refused(escala_(*verb, tmp_path / "missing.swf", "--out", tmp_path / target, *more), "missing.swf")
        assert not list(tmp_path.iterdir())
    (tmp_path / "nd").mkdir()
    _refused(
        escala_("simulate", tmp_path / "missing.swf", "--platform", "4x1", "--out", tmp_path / "nd" / "a" / "b"),
        "missing.swf",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["nd"] and not list((tmp_path / "nd").iterdir()), (
        "what was there stays"
    )


def test_output_may_lie_deep(escala_: Escala, log: Path) -> None:
    out = log.parent / "new" / "folder" / "run"
    assert escala_("simulate", log, "--platform", "4x1", "--out", out).status == 0
    assert (out / "manifest.json").exists() and [path.name for path in out.parent.iterdir()] == ["run"]


def test_a_column_named_twice_is_refused(escala_: Escala, log: Path) -> None:
    _refused(
        escala_("workload", "describe", log, "--column", "submit_s=a", "--column", "submit_s=b"), "--column", "twice"
    )
