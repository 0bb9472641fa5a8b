"""Campaigns on Slurm: beside a stand-in, and beside a real Slurm where one is installed, the table is that of `local`;
nothing is lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.campaigns import as_text
from escala.campaigns.campaign import RUNS
from escala.campaigns.definition import read_definition
from escala.campaigns.runs import runs_of
from escala.engines import on_slurm
from escala.workload import CleaningRules
from tests.cli.program import LOG

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "scale.md"
SPEC: dict[str, Any] = {
    "logs": ["small.swf", {"generator": "lublin", "jobs": 60, "cores": 16, "load": 0.9}],
    "platforms": ["16x1:grid5000"],
    "schedulers": ["easy", "random"],
    "shutdowns": ["never", "timeout:0"],
    "seeds": [0, 1],
    "options": {"oversized": "drop"},
}
WHOLE = ["runs.journal", "runs.parquet", "seconds.parquet"]


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A log named by a relative path, and a generated one: fourteen runs; what `local:1` finds of them is in
    `local`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    Path("small.swf").write_text(LOG)
    escala.campaign(SPEC, "local", "local:1")
    return SPEC


def _same(out: str) -> None:
    assert Path(out, RUNS).read_bytes() == Path("local", RUNS).read_bytes()
    assert sorted(path.name for path in Path(out).iterdir()) == WHOLE


def test_runs_are_the_same_as_text(spec: dict[str, Any]) -> None:
    more = {
        **spec,
        "logs": [{"path": "small.swf", "rules": {}, "name": "ü"}],
        "schedulers": ["conservative", "rollout:2"],
    }
    more["options"] = {"depth": ["none", 1], "corrections_s": [60, 300], "order_estimate": ["none", "last2"]}
    for asked in (spec, more):
        runs = runs_of(read_definition(asked))
        assert as_text.read(as_text.written(runs)) == runs
    rules = {"path": Path("small.swf").resolve(), "rules": CleaningRules()}
    (run, *_) = runs_of(read_definition({**spec, "logs": [{**rules, "path": str(rules["path"])}]}))
    (again,) = as_text.read(as_text.written([run]))
    assert again.log.load(0).jobs.equals(run.log.load(0).jobs)


def test_the_table_is_that_of_local(spec: dict[str, Any], slurm: Path) -> None:
    (on,) = re.findall(r"^escala campaign .*--on (slurm\S+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = escala.campaign(spec, "out", on.replace("tasks=64", "tasks=3"))
    assert (found.done, found.failed) == (14, 0)
    _same("out")
    (call,) = [line for line in (slurm / "calls").read_text().splitlines() if line.startswith("sbatch")]
    assert " --array=0-2 " in call and " --partition=short --time=02:00:00" in call and "tasks" not in call
    assert escala.campaign(spec, "out", "slurm").kept == 14 and (slurm / "calls").read_text().count("sbatch") == 1


def test_runs_that_end_their_task_are_named_and_the_others_go_on(spec: dict[str, Any], slurm: Path) -> None:
    (slurm / "deadly").write_text("random")
    found = escala.campaign(spec, "out", "slurm:tasks=2")
    assert (found.done, found.failed) == (6, 8)
    errors = found.runs.filter(scheduler="random")["error"].to_list()
    assert (
        errors == [f"{on_slurm.ENDED}: out of memory"] * 8
        and found.runs.filter(scheduler="easy")["error"].null_count() == 6
    )
    (slurm / "deadly").unlink()
    assert escala.campaign(spec, "out", "slurm").done == 8
    _same("out")


OTHER = "import json, sys, escala; escala.campaign(*json.loads(sys.argv[1]))"


def test_an_array_outlives_a_kill_and_is_taken_up(spec: dict[str, Any], slurm: Path) -> None:
    call = [sys.executable, "-c", OTHER, json.dumps([spec, "out", "slurm:tasks=2"])]
    killed = subprocess.Popen(call)
    while not any(Path("out").glob(f"{on_slurm.Array.PREFIX}*/keys")):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait(20)
    found = escala.campaign(spec, "out", "slurm")
    assert found.done + found.kept == 14
    _same("out")
    assert (slurm / "calls").read_text().count("sbatch") == 1, "nothing is asked for twice"


def test_an_array_that_is_asked_for_no_more_is_ended(spec: dict[str, Any], slurm: Path) -> None:
    left = Path("out", f"{on_slurm.Array.PREFIX}0123")
    escala.campaign({**spec, "schedulers": ["fcfs"]}, "out", "local:1")
    left.mkdir()
    (left / "keys").write_text("other keys\n")
    escala.campaign(spec, "out", "slurm")
    assert not left.exists() and "scancel --name=escala-0123" in (slurm / "calls").read_text()


def test_what_slurm_refuses_is_one_line_and_leaves_nothing(
    spec: dict[str, Any], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slurm / "refuse").write_text("invalid partition specified: shrt")
    with pytest.raises(escala.EscalaError, match=r"sbatch refuses the array .*invalid partition specified: shrt"):
        escala.campaign(spec, "out", "slurm:partition=shrt")
    assert not Path("out").exists()
    (slurm / "refuse").unlink()
    monkeypatch.setattr(on_slurm.sys, "executable", "/bin/false")
    with pytest.raises(escala.EscalaError, match="no task of the array has begun to work"):
        escala.campaign(spec, "out", "slurm")
    assert not Path("out").exists()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(escala.EscalaError, match=r"sbatch is not on the PATH"):
        escala.campaign(spec, "other", "slurm")
    assert not Path("other").exists()


def test_a_node_with_another_escala_is_named(
    spec: dict[str, Any], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_slurm, "made_by", lambda: "0.0 of another state")
    found = escala.campaign(spec, "out", "slurm:tasks=1")
    assert found.failed == 14 and "has another version or state of Escala" in found.runs["error"][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("tasks=0", "tasks='0': give a whole number"),
        ("short", "'short' is no option: write KEY=VALUE"),
        ("array=1-3", "array is the engine's own"),
        ("time=1:time=2", "time is given twice"),
        ("--time=1", "is no option"),
    ],
)
def test_options_that_are_none(spec: dict[str, Any], slurm: Path, options: str, said: str) -> None:
    with pytest.raises(escala.EscalaError) as told:
        escala.campaign(spec, "out", f"slurm:{options}")
    assert said in str(told.value) and not Path("out").exists()


@pytest.mark.slurm
@pytest.mark.slow
def test_beside_a_real_slurm(spec: dict[str, Any], on_real_slurm: None) -> None:
    found = escala.campaign(spec, "out", "slurm:tasks=3:cpus-per-task=2")
    assert (found.done, found.failed) == (14, 0)
    _same("out")
    with pytest.raises(escala.EscalaError, match=r"sbatch refuses the array .*partition"):
        escala.campaign(spec, "other", "slurm:partition=none")
