"""Long work says in a log file how far it is: plain lines with the share done and the time left; short work nothing."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from escala.cli import streamed, watched
from escala.cli.app import run
from escala.cli.watched import Bar, Lines, begin_of

LINE = re.compile(r"progress: (.+?):( (\d+) % done,)?( about (\d+:\d\d:\d\d) left,)? (\d+:\d\d:\d\d) since the start")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Watched:
    """Work on a clock of its own, looked at each second, and the lines with the seconds at which they came."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.came: list[tuple[float, str]] = []
        self.lines = Lines(lambda line: self.came.append((self.clock.now_s - 1000.0, line)), self.clock)
        self.begin = begin_of(self.lines)

    def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.now_s += 1.0
            self.lines.look()


def test_the_first_line_comes_after_half_a_minute_and_then_one_a_minute() -> None:
    work = Watched()
    work.begin("reading log.swf")
    work.pass_s(29)
    assert work.came == []
    work.pass_s(171)
    assert [second for second, _ in work.came] == [30, 90, 150]
    assert work.came[0][1] == "progress: reading log.swf: 0:00:30 since the start"


def test_a_line_has_the_share_done_and_the_time_left() -> None:
    work = Watched()
    work.begin("reading log.swf")
    work.pass_s(10)
    share = work.begin("replaying 3000 jobs")
    for percent in range(1, 101):
        work.pass_s(10)
        share(percent / 100)
    told = dict(work.came)
    assert told[30.0] == "progress: replaying 3000 jobs: 1 % done, about 0:16:20 left, 0:00:30 since the start"
    assert told[90.0] == "progress: replaying 3000 jobs: 7 % done, about 0:15:20 left, 0:01:30 since the start"
    found = [LINE.fullmatch(line) for line in told.values()]
    assert all(found) and 14 <= len(told) <= 1 + 990 // 60
    for line in found:
        assert line is not None
        hours, minutes, seconds = (int(part) for part in line[5].split(":"))
        assert 3600 * hours + 60 * minutes + seconds == pytest.approx(10 * (100 - int(line[3])), abs=10)


def test_a_tenth_more_is_told_after_half_a_minute() -> None:
    work = Watched()
    share = work.begin("replaying")
    for tenth in range(1, 11):
        work.pass_s(40)
        share(tenth / 10)
    assert [second for second, _ in work.came] == [30, 60, 90, *range(120, 401, 40)]
    quick = Watched()
    share = quick.begin("replaying")
    for tenth in range(1, 11):
        quick.pass_s(12)
        share(tenth / 10)
    assert [second for second, _ in quick.came] == [30, 60, 90, 120], "no two lines within half a minute"


def test_a_day_takes_few_lines() -> None:
    work = Watched()
    work.begin("training on 40 days")
    work.pass_s(86_400)
    gaps = [after - before for (before, _), (after, _) in zip(work.came, work.came[1:])]
    assert len(work.came) < 200 and gaps[0] == 60 and max(gaps) <= 600 and gaps == sorted(gaps)


def test_what_was_kept_and_what_was_compiled_does_not_count_for_the_time_left() -> None:
    work = Watched()
    share = work.begin("training")
    work.pass_s(20)
    share(0.5)  # an interrupted run had done half
    work.pass_s(100)
    share(0.6)
    assert work.came[-1][1] == "progress: training: 60 % done, about 0:06:40 left, 0:02:00 since the start"
    work.lines.wait()
    work.pass_s(50)
    share(0.61)
    work.pass_s(20)
    share(0.62)
    work.pass_s(50)
    assert work.came[-1][1] == "progress: training: 62 % done, about 0:11:50 left, 0:04:00 since the start"


def test_the_line_of_a_compilation_counts_as_one() -> None:
    work = Watched()
    work.begin("replaying")
    work.pass_s(20)
    work.lines.wait()
    work.pass_s(59)
    assert work.came == []
    work.pass_s(1)
    assert [second for second, _ in work.came] == [80]


def test_a_time_left_that_has_passed_is_not_told() -> None:
    work = Watched()
    share = work.begin("replaying")
    share(0.0)
    work.pass_s(10)
    share(0.9)
    work.pass_s(60)
    assert work.came[-1][1] == "progress: replaying: 90 % done, 0:00:30 since the start"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change is told at once."""
    for name in ("FIRST_S", "NEXT_S", "MOST_S", "CLOSE_S", "GROWTH"):
        monkeypatch.setattr(watched, name, 0.0)


def _compare(log: Path) -> list[str]:
    return ["compare", str(log), "--platform", "4x1:grid5000", "--schedulers", "fcfs,easy,saf", "--json"]


def test_verbs_tell_it_on_stderr(log: Path, soon: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_compare(log)) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 3
    told = [line for line in err.splitlines() if line.startswith("progress:")]
    assert all(LINE.fullmatch(line) for line in told) and "\r" not in err and "\x1b" not in err
    assert any("under 3 pairs of policies: 100 % done" in line for line in told)


def test_a_stream_of_a_table_knows_how_far_it_is(
    soon: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "log.parquet"
    pl.DataFrame({"submit_s": [float(k) for k in range(400)], "runtime_s": 5.0, "cores": 1}).write_parquet(table)
    assert run(["simulate", str(table), "--platform", "4x1", "--stream", "--out", str(tmp_path / "out")]) == 0
    assert re.search(r"replaying 400 jobs of \S+: \d+ % done,", capsys.readouterr().err)


@pytest.mark.parametrize("part", [{"since": "2020-01-01"}, {}])
def test_other_streams_count_what_has_ended(log: Path, tmp_path: Path, part: dict[str, str]) -> None:
    table, told = tmp_path / "log.parquet", []
    pl.DataFrame({"submit_s": [0.0], "runtime_s": 5.0, "cores": 1}).write_parquet(table)
    streamed._ended(lambda what: told.append(what), table if part else log, part)(12_000)
    assert told == ["12,000 jobs have ended"]


def test_work_that_says_nothing_is_told_of_too(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from escala.cli.terminal import progress

    monkeypatch.setattr(watched, "TICK_S", 0.01)
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    with progress() as begin:
        begin("counting")
        until = time.monotonic() + 20.0
        while "counting" not in said.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    told = said.getvalue()
    assert "progress: counting: 0:00:0" in told
    time.sleep(0.1)
    assert said.getvalue() == told, "nothing once the work is over"


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_a_stderr_that_takes_nothing_is_no_matter(log: Path, closed: str) -> None:
    code = "from escala.cli import watched; from escala.cli.app import run; import sys; "
    code += "watched.FIRST_S = watched.NEXT_S = watched.MOST_S = watched.CLOSE_S = watched.GROWTH = 0.0; "
    words: list[Any] = [sys.executable, "-c", f"{code}sys.exit(run({_compare(log)!r}))"]
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *words]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=240)
    assert len(json.loads(done.stdout)) == 3


@pytest.mark.parametrize("drawn", [False, True], ids=["before", "after"])
def test_a_bar_goes_on_where_ctrl_c_came_as_it_was_begun(drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever proves keeps what it has, compiles more, and says so: before or after the new line was drawn."""
    bar = Bar(Console(file=io.StringIO()))
    bar.start("wspt")
    add = bar.drawn.add_task

    def interrupted(*given: Any, **named: Any) -> None:
        if drawn:
            add(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(bar.drawn, "add_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bar.start("lagrange")
    bar.wait()
    bar.move(0.5)
    assert [(task.description, task.completed) for task in bar.drawn.tasks] == [("lagrange", 0.5)] * drawn
