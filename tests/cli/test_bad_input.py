"""Bad input and bad usage: one clear line, status 2, no traceback, nothing written."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import LOG, Escala, Outcome


def _refused(outcome: Outcome, *words: str) -> None:
    assert outcome.status == 2
    assert outcome.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
    for word in words:
        assert word in outcome.err


def _replay(escala_: Escala, log: Path, *more: object, platform: str = "4x1") -> Outcome:
    return escala_("simulate", log, "--platform", platform, "--out", log.parent / "out", *more)


BAD_LOGS = {
    "empty": (b"", []),
    "prose": (b"Dear reader,\nthis is no log.\n", []),
    "letters in a line": (LOG.replace("2 10 -1", "2 ten -1").encode(), ["line 4"]),
    "too few columns": (
        LOG.replace("3 20 -1 30 1 -1 -1 1 40 -1 1 7 -1 -1 -1 -1 -1 -1", "3 20 -1").encode(),
        ["line 5"],
    ),
    "truncated gzip": (gzip.compress(LOG.encode() * 50)[:100], ["gzip"]),
    "broken JSON": (b'{"nb_res": 4, "jobs": [', []),
    "binary": (bytes(range(256)) * 10, []),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_bad_logs_are_refused_by_file_and_line(escala_: Escala, tmp_path: Path, name: str) -> None:
    content, words = BAD_LOGS[name]
    path = tmp_path / "bad.swf"
    path.write_bytes(content)
    _refused(_replay(escala_, path), "bad.swf", *words)
    assert os.listdir(tmp_path) == ["bad.swf"]


def test_missing_log(escala_: Escala, tmp_path: Path) -> None:
    _refused(_replay(escala_, tmp_path / "nowhere.swf"), "nowhere.swf", "no such file")


@pytest.mark.parametrize(
    "form", ["--shutdown={}", "--scheduler=rollout:{}", "--scheduler=easy:queue={}", "--scheduler=shield:{}"]
)
def test_a_long_name_leaves_room_for_the_reason(escala_: Escala, log: Path, form: str) -> None:
    outcome = _replay(escala_, log, form.format("x" * 5000))
    _refused(outcome)
    assert outcome.err.count("x") < 130 and re.search("known are|is no|is none|use |write ", outcome.err), outcome.err


@pytest.mark.parametrize("option", ["--platform", "--power"])
def test_a_pipe_is_said_to_be_one(escala_: Escala, log: Path, option: str) -> None:
    os.mkfifo(log.parent / "pipe")
    given = ("simulate", log, "--out", log.parent / "out", "--platform", "4x1", option, log.parent / "pipe")
    _refused(escala_(*given), "is a pipe or a device: save its content as a file first")


def test_a_platform_has_a_name_that_a_line_can_hold(escala_: Escala, log: Path) -> None:
    (log.parent / "nodes.yaml").write_text(f"name: {'x' * 300_000}\nnodes: [{{count: 4, cores: 1}}]\n")
    _refused(
        _replay(escala_, log, platform=str(log.parent / "nodes.yaml")), "platform file: name has 300000 characters"
    )


def test_job_larger_than_the_platform(escala_: Escala, log: Path) -> None:
    _refused(_replay(escala_, log, platform="3x1"), "'2'", "4 cores", "drop")
    assert _replay(escala_, log, "--oversized", "drop", platform="3x1").status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheduler", "esay"], ["'esay'", "easy"]),
        (["--shutdown", "timeuot:5"], ["timeuot", "timeout"]),
        (["--shutdown", "timeout:soon"], ["timeout:soon"]),
        (["--rules", "bathsched"], ["batsched"]),
        (["--head", "highest"], ["lowest-id", "latest-released"]),
        (["--estimate", "guess"], ["runtime"]),
        (["--oversized", "keep"], ["drop"]),
        (["--stop-at", "-5"], ["stop-at"]),
        (["--plan-margin", "-1"], ["margin"]),
        (["--depth", "0"], ["--depth"]),
        (["--export", "csv"], ["batsim"]),
        (["--schedular", "easy"], ["--scheduler", "--help"]),
        (["--seed", "x"], ["--seed"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options_name_what_is_known(escala_: Escala, log: Path, arguments: list[str], words: list[str]) -> None:
    _refused(_replay(escala_, log, *arguments), *words)
    assert os.listdir(log.parent) == ["small.swf"]


@pytest.mark.parametrize(
    ("spec", "word"), [("oroin", "orion"), ("4x", ""), ("4x1:TAURS", "taurus"), ("nowhere.xml", "nowhere.xml")]
)
def test_unknown_platform(escala_: Escala, log: Path, spec: str, word: str) -> None:
    _refused(_replay(escala_, log, platform=spec), word)


@pytest.mark.parametrize(("verb", "word"), [("simulat", "simulate"), ("workloads", "workload")])
def test_unknown_verb(escala_: Escala, verb: str, word: str) -> None:
    _refused(escala_(verb), verb, f"'{word}'")


def test_unwritable_folder_is_refused_before_the_work(escala_: Escala, log: Path) -> None:
    _refused(
        escala_("simulate", log, "--platform", "4x1", "--out", "/proc/nowhere/out"),
        "/proc/nowhere/out",
        "cannot be written",
    )


def test_foreign_folder_is_not_replaced(escala_: Escala, log: Path) -> None:
    (log.parent / "out").mkdir()
    (log.parent / "out" / "thesis.tex").write_text("years of work")
    _refused(_replay(escala_, log), "--force")


@pytest.mark.parametrize(
    ("given", "word"), [("easy,,", ""), ("easy,easy", "twice"), (" ,", "empty"), ("easy,esay", "easy")]
)
def test_lists_of_policies(escala_: Escala, log: Path, given: str, word: str) -> None:
    outcome = escala_("compare", log, "--platform", "4x1", "--schedulers", given)
    if not word:
        assert outcome.status == 0
    else:
        _refused(outcome, word)


def test_reports_need_results(escala_: Escala, tmp_path: Path) -> None:
    _refused(escala_("report", tmp_path / "nowhere"), "nowhere", "no saved results")
    _refused(escala_("report", tmp_path), "no saved results")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["grid500", "--out", "x.swf"], "grid5000"),
        (["grid5000", "clutser=orion", "--out", "x.swf"], "cluster"),
        (["grid5000", "cluster=oriin", "--out", "x.swf"], "orion"),
        (["grid5000", "days=many", "--out", "x.swf"], "days"),
        (["grid5000", "days", "--out", "x.swf"], "NAME=VALUE"),
        (["grid5000", "--out", "x.txt"], ".swf"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_generators(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _refused(escala_("workload", "generate", *arguments), word)
    assert not os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_an_interrupt_ends_compiled_work_at_once(tmp_path: Path, sent: signal.Signals, status: int) -> None:
    jobs = "".join(
        f"{n} 0 -1 {50 + n % 977} {1 + n % 97} -1 -1 -1 1000 -1 1 1 -1 -1 -1 -1 -1 -1\n" for n in range(1, 60_001)
    )
    (tmp_path / "crowd.swf").write_text(jobs)
    verb = ["simulate", "crowd.swf", "--platform", "100x1", "--scheduler", "conservative", "--rebuild", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "escala", *verb], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        used = 0.0
        ticks = os.sysconf("SC_CLK_TCK")
        while used < 4.0 and process.poll() is None:  # read, compiled or loaded, and well inside the replay
            time.sleep(0.1)
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            used = (int(fields[11]) + int(fields[12])) / ticks
        assert process.poll() is None, "the replay ended by itself: make it longer"
        process.send_signal(sent)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == status
    assert out == "" and re.fullmatch(r"error: [^\n]+\n", err), err
    assert os.listdir(tmp_path) == ["crowd.swf"]


def test_a_folder_is_not_replaced_by_what_is_made_of_it(escala_: Escala, log: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    mine = logs / "mine.swf"
    mine.write_bytes(log.read_bytes())
    done = escala_("simulate", mine, "--platform", "4x1", "--force", "--out", logs)
    assert done.status == 2 and "holds mine.swf, which this run reads" in done.err
    assert mine.read_bytes() == log.read_bytes()


@pytest.mark.parametrize("text", ["{}", "[" * 100_000, "[]", '{"scheduler": 1, "shutdown": "never"}', "no json"])
def test_a_page_of_a_broken_run_is_refused(escala_: Escala, tmp_path: Path, text: str) -> None:
    (tmp_path / "jobs.parquet").write_text("")
    (tmp_path / "manifest.json").write_text(text)
    done = escala_("report", tmp_path)
    assert done.status == 2 and len(done.err.strip().splitlines()) == 1 and "fault" not in done.err
