"""The verbs of beside, with clients that print what real ones printed."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from escala.bridges.slurm.alone import alone
from tests.bridges.slurm.test_reader import RECORDED
from tests.cli.program import Escala

SQUEUE = '#!/bin/sh\ncase "$1" in --version) echo slurm-wlm 22.05.8;; *) cat {0}/squeue-22.05.txt;; esac\n'
SCONTROL = (
    '#!/bin/sh\ncase "$*" in *nodes) cat {0}/nodes-22.05.txt;; '
    "*reservations) sed 's/EndTime=[0-9]*/EndTime=9999999999/' {0}/reservations-22.05.txt;; "
    "*jobs) echo 'JobId=2 Nodes=n3 CPU_IDs=0-3 Mem=0   Nodes=n4 CPU_IDs=0-1 Mem=0';; *config) echo ClusterName = lab;; "
    "create*acts* | delete*acts*) ;; *) exit 9;; esac\n"
)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for client, text in (("squeue", SQUEUE), ("scontrol", SCONTROL), ("sinfo", "#!/bin/sh\nexit 9\n")):
        (tmp_path / client).write_text(text.format(RECORDED))
        (tmp_path / client).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_shadow_status_explain_and_replay(clients: Path, escala_: Escala) -> None:
    begun = escala_(
        "beside", "slurm", "--shutdown", "timeout:0", "--power", "taurus", "--period", "0.5", "--looks", "2"
    )
    assert begun.status == 0 and begun.err == "", begun.err
    assert begun.out.startswith("shadow: partition batch, 8 nodes, easy + timeout:0; journal beside/journal.jsonl\n")
    assert "shadow: would start 4" in begun.out and begun.out.endswith("ended: looks 2, missed 0\n")
    found = json.loads(escala_("beside", "status", "beside", "--json").out)
    assert (found["looks"], found["slurm"], found["waiting_jobs"], found["would_start"]) == (2, "22.05", 11, ["4"])
    shown = escala_("beside", "status").out
    assert "timeout:0" in shown and re.search(r"last look +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown), shown
    told = escala_("beside", "explain", "4").out
    assert "8 CPUs on 4 nodes" in told and "the policy would have started it" in told
    assert "for Dependency, whatever the nodes do" in escala_("beside", "explain", "9", "beside").out
    again = escala_(
        "beside",
        "slurm",
        "--mode",
        "replay",
        "--from",
        "beside/journal.jsonl",
        "--folder",
        "again",
        "--power",
        "taurus",
    )
    assert again.status == 0 and "ended: looks 2, missed 0" in again.out
    written = Path("again/journal.jsonl").read_text()
    for folder in ("again", "beside"):
        twice = escala_(
            "beside",
            "slurm",
            "--mode",
            "replay",
            "--from",
            "beside/journal.jsonl",
            "--folder",
            folder,
            "--power",
            "taurus",
        )
        assert twice.status == 2 and twice.err.count("\n") == 1
        assert f"--folder {folder}: holds a journal, and a replay begins anew: name another folder" in twice.err
    assert Path("again/journal.jsonl").read_text() == written


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--mode", "drive"], "--mode drive: give one of"),
        (["--mode", "replay"], "belong together"),
        (["--read", "tea"], "--read tea: give text, json, or rest:SOCKET"),
        (["--partition", "none"], "there is no partition 'none': give --partition, one of batch"),
        (["--scheduler", "random"], "scheduler random draws a number"),
        (["--mode", "power"], "say by --allow which it may"),
        (["--mode", "advise", "--allow", "n[1-9]"], "n9 is no node of partition batch"),
        (["--mode", "advise", "--lease", "20"], "less than three periods"),
        (["--metrics", "0.0.0.0:9464"], "others could ask there"),
        (["--metrics", "./scontrol"], "scontrol: stands there already, and is no socket: name another one"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_leaves_nothing(
    options: list[str], why: str, clients: Path, escala_: Escala
) -> None:
    outcome = escala_("beside", "slurm", "--folder", "made", *options)
    assert outcome.status == 2 and why in outcome.err and outcome.err.count("\n") == 1, outcome.err
    assert not Path("made").exists()


def test_advise_and_undo(clients: Path, escala_: Escala) -> None:
    guards = ("--allow", "n[5-7]", "--spare", "0", "--looks", "1")
    changes = clients / "beside" / "changes.jsonl"
    changes.parent.mkdir()
    changes.write_text('{"lease": "escala_n7", "t": 1795592250}\n')
    outcome = escala_(
        "beside",
        "slurm",
        "--mode",
        "advise",
        "--power",
        "taurus",
        "--scheduler",
        "fcfs",
        "--shutdown",
        "timeout:0",
        *guards,
    )
    assert outcome.status == 0 and "advise: scontrol " in outcome.out, outcome
    assert escala_("beside", "undo", "--dry").out == "scontrol delete reservationname=escala_n7\n"
    failed = escala_("beside", "undo", "beside")
    assert failed.status == 2 and "FAILED scontrol delete" in failed.out and "1 commands failed" in failed.err
    changes.unlink()
    assert escala_("beside", "undo", "--dry").out == (
        "nothing is left to undo\nleft alone: reservation escala_n7 of ann: there is no changes.jsonl here that names "
        "it\n"
    )
    assert "holds no journal.jsonl" in escala_("beside", "undo", clients).err


@pytest.mark.parametrize("version", ["22.11.1", "23.03.0", "25.05.0", "25.11.1"])
def test_a_version_that_was_not_tried_is_watched_and_never_acted_on(
    version: str, clients: Path, escala_: Escala
) -> None:
    squeue = clients / "squeue"
    squeue.write_text(squeue.read_text().replace("22.05.8", version))
    said = f"Slurm {version[:5]} is none of the versions that were tried (22.05, 23.02, 23.11, 24.05, 24.11): "
    for mode in ("order", "power", "full"):
        outcome = escala_("beside", "slurm", "--mode", mode, "--allow", "n5", "--i-am-root", "--folder", "made")
        assert (
            outcome.status == 2
            and f"error: --mode {mode}: {said}take shadow or advise" in outcome.err
            and not Path("made").exists()
        )
    (clients / "beside").mkdir()
    (clients / "beside" / "changes.jsonl").write_text('{"lease": "escala_n7", "t": 1795592250}\n')
    advised = escala_("beside", "slurm", "--mode", "advise", "--allow", "n7", "--looks", "1", "--power", "taurus")
    assert advised.status == 0 and advised.err == f"remark: {said}it is read all the same, and never acted on\n"
    assert "advise: scontrol update nodename=n7 state=power_up\n" in advised.out


def test_nodes_that_come_are_said_once(clients: Path, escala_: Escala) -> None:
    program = clients / "scontrol"
    text, later = (
        program.read_text(),
        f"if [ $(wc -l < {clients}/asked) -gt 2 ]; then sed 's/=n8 /=n9 /' {RECORDED}/nodes-22.05.txt | tail -1; fi",
    )
    nodes = f"cat {RECORDED}/nodes-22.05.txt"
    program.write_text(text.replace(nodes, f"echo x >> {clients}/asked; {nodes}; {later}"))
    outcome = escala_("beside", "slurm", "--period", "0.5", "--looks", "4")
    assert outcome.status == 0 and "missed 0" in outcome.out, outcome
    assert outcome.err == "remark: new in partition batch: n9; begin anew, in another folder, to have them counted\n"
    assert json.loads(escala_("beside", "status", "--json").out)["added_nodes"] == ["n9"]


def test_one_process_acts_on_a_partition(clients: Path, escala_: Escala) -> None:
    order = ("beside", "slurm", "--mode", "order", "--i-am-root", "--looks", "1", "--folder", "second")
    refused = escala_(*order)
    assert refused.status == 2 and refused.err.count("\n") == 1 and not Path("second").exists()
    assert "partition batch: escala_n7 of ann is a lease that this folder did not make" in refused.err
    Path("second").mkdir()
    (clients / "second" / "changes.jsonl").write_text('{"lease": "escala_n7", "t": 1795592250}\n')
    with alone("lab", "batch", Path("first")):
        refused = escala_(*order)
        assert (
            refused.status == 2 and "cluster lab, partition batch: another process acts on it (--folder" in refused.err
        )
        assert not Path("second/journal.jsonl").exists()
    for _ in range(2):
        assert escala_(*order).status == 0


def test_root_is_refused(clients: Path, escala_: Escala, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for mode, level in (("order", "Operator"), ("full", "Administrator")):
        refused = escala_("beside", "slurm", "--mode", mode, "--allow", "n5").err
        assert f"--mode {mode} as root: begin as another user of Slurm (AdminLevel={level})" in refused


def test_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, escala_: Escala) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    outcome = escala_("beside", "slurm")
    assert outcome.status == 2 and "squeue: no such program on the PATH" in outcome.err and not Path("beside").exists()
    assert "no such file" in escala_("beside", "status").err
    assert "unknown scheduler 'zz'" in escala_("beside", "slurm", "--scheduler", "zz").err, "said before Slurm is asked"


def test_a_service_says_how_it_does(clients: Path) -> None:
    """What systemd hears, and what Prometheus is answered, of a process of its own that is ended by SIGTERM."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(clients / "notify.sock"))
        systemd.settimeout(120)
        command = [sys.executable, "-m", "escala", "beside", "slurm", "--period", "0.5", "--metrics", "metrics.sock"]
        environment = os.environ | {"NOTIFY_SOCKET": str(clients / "notify.sock"), "WATCHDOG_USEC": "30000000"}
        refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert refused.returncode == 2 and "or the path of a socket with a / in it" in refused.stderr
        command[-1] = str(clients / "metrics.sock")
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            heard = [systemd.recv(4096).decode() for _ in range(4)]
            there = http.client.HTTPConnection("localhost", timeout=10)
            there.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            there.sock.connect(command[-1])
            there.request("GET", "/metrics")
            text = there.getresponse().read().decode()
            process.send_signal(signal.SIGTERM)
            out = process.communicate(timeout=30)[0]
        finally:
            process.kill()
        while "STOPPING=1" not in heard:
            heard.append(systemd.recv(4096).decode())
    assert heard[0] == "READY=1\nSTATUS=shadow" and heard[1] == "WATCHDOG=1\nSTATUS=looks 1, missed 0"
    assert 'escala_beside_nodes{state="on"}' in text and "escala_beside_misses_total 0\n" in text
    assert process.returncode == 0 and "ended: looks" in out and not (clients / "metrics.sock").exists()


UNIT = Path(__file__).parents[2] / "examples" / "slurm" / "escala.service"


def test_the_unit_for_systemd_begins_what_there_is(escala_: Escala) -> None:
    told = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#")
    words = told["ExecStart"].split()[1:]
    known = escala_(*words[:2], "--help").out
    assert words[:2] == ["beside", "slurm"] and all(word in known for word in words if word.startswith("--"))
    state, cache = f"/var/lib/{told['StateDirectory']}", f"/var/cache/{told['CacheDirectory']}"
    assert told["Environment"] == f"XDG_STATE_HOME={state} ESCALA_CACHE_DIR={cache}", "all that it writes lies there"
    assert words[words.index("--folder") + 1] == state


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on the PATH")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    """And it calls the service well confined: below 2 of 10, where 8.5 is one that names a user alone."""
    unit = tmp_path / "escala.service"
    unit.write_text(UNIT.read_text().replace("/opt/escala/bin/escala", sys.executable))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "escala.service" not in said.stdout + said.stderr
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert float(re.findall(r"exposure level for escala.service: ([0-9.]+)", said.stdout)[0]) < 2.0
