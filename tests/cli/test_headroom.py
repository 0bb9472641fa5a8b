"""`escala compare --headroom`: shares of what is possible in the table, in the folder and on the page."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from escala.optimum.lagrange import Dual
from escala.workload import Workload, write_swf
from escala.workload.generate_slots import bernoulli_model
from tests.cli.program import Escala

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")


def test_shares_in_the_table_the_folder_and_the_page(escala_: Escala, tmp_path: Path) -> None:
    write_swf(bernoulli_model(load=1.9, steps=30).workload(7), tmp_path / "list.swf")
    out = tmp_path / "out"
    given = [
        "compare",
        str(tmp_path / "list.swf"),
        "--platform",
        "10x1",
        "--schedulers",
        "fcfs,sjf-fit",
        "--headroom",
        "slowdown",
    ]
    done = escala_(*given, "--json", "--out", str(out))
    assert done.status == 0, done.err
    first, second = json.loads(done.out)
    kept = json.loads((out / "headroom.json").read_text())
    assert first["headroom"] == first["headroom_proved"] == 0.0
    assert second["headroom"] == kept["shares"]["sjf-fit + never"]
    # the proved bound leaves more room than the best schedule found, so a gain is a smaller share of it
    assert 0 < second["headroom_proved"] <= second["headroom"] <= 1
    assert kept["lower"] <= kept["found"]
    assert escala_("report", str(out)).status == 0
    page = (out / "report.html").read_text()
    assert "Head-room" in page and "clairvoyant" in page


def test_shares_of_the_waste_are_those_that_bound_proves(escala_: Escala, tmp_path: Path) -> None:
    """hold:0.2 lets the third job wait for the second's node; hold:4 breaks the limit, so it has no share; idling for
    hours loses."""
    jobs = {
        "submit_s": [0.0, 4000.0, 4300.0],
        "runtime_s": [900.0, 200.0, 600.0],
        "walltime_s": [1000.0] * 3,
        "cores": [24, 12, 12],
    }
    write_swf(Workload.from_jobs(jobs), tmp_path / "log.swf")
    out, given = (
        tmp_path / "out",
        [str(tmp_path / "log.swf"), "--platform", "4x12:grid5000", "--schedulers", "easy", "--json"],
    )
    shutdowns = ["--shutdowns", "timeout:0,timeout:7200,hold:0.2,hold:4", "--stretch", "0.3"]
    done = escala_("compare", *given, *shutdowns, "--start-off", "--headroom", "waste", "--out", str(out))
    assert done.status == 0, done.err
    proved = {row["policy"]: row["headroom_proved"] for row in json.loads(done.out)}
    late = {row["policy"]: row["late_jobs"] for row in json.loads(done.out)}
    bound = json.loads(escala_("bound", *given, *shutdowns, "--objective", "waste").out)
    assert proved == pytest.approx(bound["headroom"]) and late == bound["late"]
    assert proved["easy + timeout:0"] == 0.0 and proved["easy + hold:4"] is None and late["easy + hold:4"] > 0
    assert proved["easy + timeout:7200"] < 0.0 < proved["easy + hold:0.2"] <= 1.0
    assert "headroom" not in json.loads(done.out)[0]  # no schedule was searched for
    assert escala_("report", str(out)).status == 0
    assert "at least this share" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["power"], "power"),
        (["waste"], "--start-off"),
        (["wait", "--stop-at", "10"], "--stop-at"),
        (["wait", "--stretch", "1"], "--stretch"),
    ],
)
def test_what_has_no_headroom_is_refused_before_anything_is_read(escala_: Escala, more: list[str], word: str) -> None:
    done = escala_("compare", "nowhere.swf", "--platform", "10x1", "--headroom", *more)
    assert done.status == 2 and word in done.err and len(done.err.strip().splitlines()) == 1


def test_nodes_that_cannot_switch_are_refused_before_anything_is_replayed(escala_: Escala, tmp_path: Path) -> None:
    write_swf(bernoulli_model(load=1.9, steps=30).workload(7), tmp_path / "list.swf")
    done = escala_(
        "compare", str(tmp_path / "list.swf"), "--platform", "10x1:none", "--start-off", "--headroom", "waste"
    )
    assert done.status == 2 and "needs a power profile" in done.err


def test_nothing_gains_more_than_all_where_nodes_boot(escala_: Escala, tmp_path: Path) -> None:
    """Two jobs and a node that boots first: of two orders sjf has the better one, so nothing is left to gain over
    it."""
    write_csv = "job_id,submit_s,runtime_s,walltime_s,cores\n1,0,100,100,1\n2,0.5,10,10,1\n"
    (tmp_path / "two.csv").write_text(write_csv)
    given = [
        "compare",
        str(tmp_path / "two.csv"),
        "--platform",
        "1x1:grid5000",
        "--schedulers",
        "fcfs,sjf",
        "--shutdowns",
        "timeout:0",
    ]
    done = escala_(*given, "--start-off", "--headroom", "wait", "--limit", "5", "--json")
    assert done.status == 0, done.err
    fcfs, sjf = json.loads(done.out)
    assert (fcfs["headroom"], sjf["headroom"]) == (0.0, 1.0) and 0 < sjf["headroom_proved"] < 1
    of = sjf["headroom_of"]
    assert (
        of["found_by"] == "sjf + timeout:0"
        and of["found"] == of["value"] == sjf["mean_wait_s"]
        and of["status"] == "interval"
    )


def test_ctrl_c_keeps_the_runs_and_what_was_proved(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_swf(bernoulli_model(load=1.9, steps=60).workload(7), tmp_path / "list.swf")
    improve = Dual.improve

    def stopped(self: Dual, target: float, iterations: int, expired: Any) -> bool:
        improve(self, target, 200, expired)
        raise KeyboardInterrupt

    monkeypatch.setattr(Dual, "improve", stopped)
    given = [
        "compare",
        str(tmp_path / "list.swf"),
        "--platform",
        "10x1:none",
        "--schedulers",
        "fcfs,sjf-fit",
        "--headroom",
        "slowdown",
    ]
    done = escala_(*given, "--limit", "300", "--json", "--out", str(tmp_path / "out"))
    assert done.status == 130 and done.err.strip().splitlines()[-1].startswith(
        "error: interrupted: the head-room told is of what was"
    )
    kept = json.loads((tmp_path / "out" / "headroom.json").read_text())
    assert kept["interrupted"] and kept["lower"] > 1.0
    assert {row["policy"] for row in json.loads(done.out)} == set(kept["proved"])


@pytest.mark.slow
def test_a_signal_while_something_is_proved_loses_no_run(tmp_path: Path) -> None:
    write_swf(bernoulli_model(load=1.9, steps=1500).workload(7), tmp_path / "list.swf")
    given = [
        "compare",
        str(tmp_path / "list.swf"),
        "--platform",
        "10x1:none",
        "--schedulers",
        "fcfs,sjf-fit",
        "--headroom",
        "slowdown",
    ]
    command = [sys.executable, "-m", "escala", *given, "--limit", "300", "--json", "--out", str(tmp_path / "out")]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    seen = b""
    try:
        while b"done: at least" not in seen:
            assert select.select([ours], [], [], 120)[0], seen
            seen += os.read(ours, 65536)
        os.kill(process.pid, signal.SIGINT)
        with contextlib.suppress(OSError):  # it has closed its end
            while select.select([ours], [], [], 60)[0]:
                seen += os.read(ours, 65536)
        process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 130 and re.search(
        rb"error: interrupted(: the head-room told is of|; what was finished is kept beside)", seen
    ), seen


@pytest.mark.parametrize(
    ("more", "word"), [(["--limit", "3"], "--headroom"), (["--headroom", "wait", "--limit", "0"], "above 0")]
)
def test_a_limit_needs_headroom_and_seconds(escala_: Escala, more: list[str], word: str) -> None:
    done = escala_("compare", "nowhere.swf", "--platform", "10x1", *more)
    assert done.status == 2 and word in done.err and len(done.err.strip().splitlines()) == 1
