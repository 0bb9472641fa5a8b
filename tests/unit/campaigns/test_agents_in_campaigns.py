"""Campaigns with trained agents, tuned policies in folders and policies of other packages: as in single runs, on any
engine, known by what decides and not by where it lies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.campaigns import as_text, work
from escala.campaigns.campaign import RUNS
from escala.campaigns.definition import read_definition
from escala.campaigns.runs import Run, runs_of
from escala.engines import on_slurm
from escala.policies.files import identities
from tests.unit.campaigns.test_campaign import KILLED
from tests.unit.policies.test_plugins import package as package  # a fixture

AGENTS = Path(__file__).parents[3] / "docs" / "studies"
QUEUE, POWER = (
    AGENTS / "deepscheduler2020" / "agents" / "g5k-0.95-0",
    AGENTS / "deepshutdown2020" / "agents" / "g5k-1-0",
)
SHIELD = "shield:easy:futures=2:agent:queue"
TUNED = 'format = 1\nformula = "easy:queue=score:score.toml"\nguard = "24h"\nshutdown = "timeout:60"\n'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A generated log, agents in folders, with torch and without, and a tuned policy with a score file: 28 runs."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(POWER, "power")
    escala.load_agent(POWER).export("light")
    escala.load_agent(QUEUE).export("queue")
    Path("tuned").mkdir()
    Path("tuned", "policy.toml").write_text(TUNED)
    Path("tuned", "score.toml").write_text('form = "linear"\n[weights]\nlog_wait = -1\n')
    return {
        "logs": [{"generator": "lublin", "jobs": 30, "cores": 16, "load": 0.9, "seed": 3}],
        "platforms": ["16x1:grid5000"],
        "schedulers": ["easy", "agent:queue", SHIELD, "policy:tuned"],
        "shutdowns": ["never", "agent:power", "agent:light", "policy:tuned"],
        "seeds": [0, 1],
    }


def _keys(spec: dict[str, Any], **more: Any) -> dict[tuple[str, str], str]:
    """By scheduler and shutdown policy, of the first seed."""
    return {(run.scheduler, run.shutdown): run.key for run in reversed(runs_of(read_definition({**spec, **more})))}


@pytest.mark.slow
def test_the_figures_are_those_of_single_runs_on_any_engine(
    spec: dict[str, Any], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = escala.campaign(spec, "local", "local:1")
    assert (found.done, found.failed) == (28, 0), (
        "a seed changes nothing for those four that neither draw nor look ahead by chance"
    )
    log = escala.workload.generate.lublin(jobs=30, cores=16, load=0.9, seed=3)
    for row in found.runs.to_dicts():
        summary = escala.simulate(
            log, "16x1:grid5000", row["scheduler"], row["shutdown"], seed=row["seed"] or 0
        ).summary()
        assert all(row[name] == value for name, value in summary.items() if name in row), row
    drawn = found.runs.filter(scheduler="agent:queue", shutdown="never")
    assert drawn["seed"].to_list() == [0, 1] and drawn["mean_wait_s"].n_unique() == 2
    again = escala.campaign(spec, "local", "local:1")
    assert (again.done, again.kept) == (0, found.done)
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    for on in ("local:2", "slurm:tasks=2"):
        assert escala.campaign(spec, on, on).failed == 0
        assert Path(on, RUNS).read_bytes() == Path("local", RUNS).read_bytes()
    runs = runs_of(read_definition(spec))
    assert as_text.read(as_text.written(runs)) == runs


@pytest.mark.slow
def test_ray_gives_the_same_table(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    escala.campaign(spec, "local", "local:1")
    assert escala.campaign(spec, "ray", "ray").failed == 0
    assert Path("ray", RUNS).read_bytes() == Path("local", RUNS).read_bytes()


def test_an_agent_of_another_machine_is_one_line_before_anything_runs(spec: dict[str, Any]) -> None:
    agent = f"agent:{AGENTS / 'grid2019' / 'agents' / 'fresh-all-0'}"
    asked = {**spec, "schedulers": ["easy", agent], "shutdowns": ["never"]}
    with pytest.raises(
        escala.EscalaError, match=r"^log 'lublin' on platform '64x2' under agent:.*schedules one machine"
    ):
        escala.campaign({**asked, "platforms": ["64x2"]}, "out", "local:1")
    assert not Path("out").exists()


def test_a_kill_changes_no_table(spec: dict[str, Any]) -> None:
    asked = {**spec, "schedulers": ["easy", "agent:queue"], "shutdowns": ["agent:power", "policy:tuned"]}
    whole = escala.campaign(asked, "whole", "local:1")
    given = json.dumps([asked, "killed", 4, True])
    assert subprocess.run([sys.executable, "-c", KILLED, given], timeout=120).returncode == -signal.SIGKILL
    found = escala.campaign(asked, "killed", "local:1")
    assert (found.kept, found.done) == (3, whole.done - 3) and Path("killed", RUNS).read_bytes() == Path(
        "whole", RUNS
    ).read_bytes()


def test_what_is_moved_is_not_run_again_and_what_is_made_anew_is(spec: dict[str, Any]) -> None:
    first = _keys(spec)
    for name in ("queue", "power", "light", "tuned"):
        Path("elsewhere").mkdir(exist_ok=True)
        shutil.copytree(name, Path("elsewhere", name))
    moved = _keys(
        spec,
        schedulers=[
            "easy",
            "agent:elsewhere/queue",
            "shield:easy:futures=2:agent:elsewhere/queue",
            "policy:elsewhere/tuned",
        ],
        shutdowns=["never", "agent:elsewhere/power", "agent:elsewhere/light", "policy:elsewhere/tuned"],
    )
    assert list(moved.values()) == list(first.values()) and len(set(first.values())) == 16
    Path("elsewhere", "tuned", "score.toml").write_text('form = "linear"\n[weights]\nlog_wait = -2\n')
    told = json.loads(Path("elsewhere", "queue", "manifest.json").read_text())
    Path("elsewhere", "queue", "manifest.json").write_text(json.dumps({**told, "pulled": {"repository": "you/night"}}))
    assert (
        _keys(spec, schedulers=["agent:elsewhere/queue"]).items()
        == {
            ("agent:elsewhere/queue", shutdown): first["agent:queue", shutdown] for shutdown in spec["shutdowns"]
        }.items()
    )
    assert (
        _keys(spec, schedulers=["policy:elsewhere/tuned"])["policy:elsewhere/tuned", "never"]
        != first["policy:tuned", "never"]
    )
    shutil.rmtree("power")
    shutil.copytree(AGENTS / "deepshutdown2020" / "agents" / "g5k-1-1", "power")  # another seed's
    Path("tuned", "policy.toml").write_text(TUNED.replace("timeout:60", "timeout:90"))
    then = _keys(spec)
    assert {pair[1] for pair in first if first[pair] != then[pair] and pair[0] != "policy:tuned"} == {
        "agent:power",
        "policy:tuned",
    }


def test_what_is_kept_of_replays_and_run_again_is_of_the_same_agent(spec: dict[str, Any], package: Path) -> None:
    """Also behind a shield, and of another package; `compare` and its like keep what `identities` says."""
    names = ["easy", "agent:queue", SHIELD, "policy:tuned", "plugin:narrow:3", "agent:nowhere", "plugin:nowhere"]
    first = identities(names)
    assert list(first) == names[1:5] and first["agent:queue"] == first[SHIELD] and identities(names) == first
    log = escala.workload.generate.lublin(jobs=20, cores=16, load=0.9, seed=3)
    run = escala.simulate(log, "16x1:grid5000", "agent:queue", "policy:tuned", seed=4)
    assert escala.rerun(run, log).jobs.equals(run.jobs)
    told = json.loads(Path("queue", "manifest.json").read_text())
    Path("queue", "manifest.json").write_text(json.dumps({**told, "seed": 77}))
    then = identities(names)
    assert {name for name in first if first[name] != then[name]} == {"agent:queue", SHIELD}
    with pytest.raises(escala.EscalaError, match=r"queue/manifest.json is not what it was in that run"):
        escala.rerun(run, log)


def test_what_decides_may_not_change_under_way(spec: dict[str, Any]) -> None:
    runs = {(run.scheduler, run.shutdown): run for run in runs_of(read_definition(spec))}
    told = json.loads(Path("queue", "manifest.json").read_text())
    Path("queue", "manifest.json").write_text(json.dumps({**told, "seed": 77}))
    shutil.rmtree("light")
    assert "found" in work.work(runs["easy", "agent:power"])
    assert (
        "finds another agent, policy, model or plug-in than the campaign began with"
        in work.work(runs["agent:queue", "never"])["error"]
    )
    gone = work.work(runs["easy", "agent:light"])["error"]
    assert gone.startswith("node ") and "light/manifest.json" in gone and "\n" not in gone


QUIET = """
import json, sys, escala
found = escala.campaign(*json.loads(sys.argv[1]))
torch = sys.modules.get("torch")
print(found.failed, None if torch is None else torch.get_num_threads())
"""


@pytest.mark.parametrize(("name", "threads"), [("agent:light", "None"), ("agent:power", "1")])
def test_torch_has_one_thread_and_is_not_imported_where_it_does_not_decide(
    spec: dict[str, Any], name: str, threads: str
) -> None:
    asked = {**spec, "schedulers": ["easy"], "shutdowns": [name], "seeds": [0]}
    call = [sys.executable, "-c", QUIET, json.dumps([asked, "out", "local:1"])]
    alone = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    done = subprocess.run(call, env=alone, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0", threads]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schedulers": ["agent:power"]}, "agent:power is a shutdown policy, given as scheduler: give it as shutdown"),
        ({"shutdowns": ["agent:queue"]}, "agent:queue is a scheduler policy, given as shutdown: give it as scheduler"),
        ({"schedulers": ["agent:nowhere"]}, "nowhere: no trained agent here"),
        ({"schedulers": ["shield:easy:agent:power"]}, "and power holds another"),
        ({"schedulers": ["shield:easy"]}, "write shield:BASE"),
        ({"platforms": ["16x1"], "shutdowns": ["agent:light"]}, "shutdown policy agent:light needs a power profile"),
        ({"schedulers": ["plugin:narrow"]}, "no installed package announces one (entry points escala.schedulers)"),
    ],
)
def test_contradictions_are_one_line_before_anything_runs(
    spec: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    with pytest.raises(escala.EscalaError) as told:
        escala.campaign({**spec, **change}, "out", "local:1")
    assert said in str(told.value) and "\n" not in str(told.value) and not Path("out").exists()


@pytest.fixture
def others(package: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """A campaign with policies of another package: eight runs."""
    estimates = {"estimate": ["walltime", "plugin:half"]}
    return {**spec, "schedulers": ["easy", "plugin:narrow"], "shutdowns": ["never", "plugin:off"], "options": estimates}


def test_policies_of_other_packages_are_as_in_single_runs_on_any_engine(
    others: dict[str, Any], tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = escala.campaign(others, "local", "local:1")
    assert (found.done, found.failed) == (8, 0) and found.runs["seed"].null_count() == 8
    log = escala.workload.generate.lublin(jobs=30, cores=16, load=0.9, seed=3)
    for row in found.runs.to_dicts():
        summary = escala.simulate(
            log, "16x1:grid5000", row["scheduler"], row["shutdown"], estimate=row["estimate"]
        ).summary()
        assert all(row[name] == value for name, value in summary.items() if name in row), row
    assert found.runs["mean_wait_s"].n_unique() > 4
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    for on in ("local:2", "slurm:tasks=2"):
        assert escala.campaign(others, on, on).failed == 0
        assert Path(on, RUNS).read_bytes() == Path("local", RUNS).read_bytes()


CODE_OF = (
    "import json, sys; from escala.policies.plugins import code_of; print(json.dumps(code_of('plugin:narrow:7', "
    "'scheduler')))"
)


def test_their_version_and_code_are_part_of_a_run(others: dict[str, Any], package: Path, tmp_path: Path) -> None:
    def told() -> list[str]:
        env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
        done = subprocess.run(
            [sys.executable, "-c", CODE_OF], env=env, capture_output=True, text=True, timeout=60, check=True
        )
        found: list[str] = json.loads(done.stdout)
        return found

    first, keys = told(), _keys(others)
    assert first[0] == "others-policies 1.2" and len(first[1]) == 64 and told() == first
    code = tmp_path / "others_policies.py"
    code.write_text(f"{code.read_text()}\n# another state\n")
    assert told()[0] == first[0] and told()[1] != first[1]
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: others-policies\nVersion: 1.3\n")
    then = _keys(others)
    assert {pair for pair in keys if keys[pair] != then[pair]} == {pair for pair in keys if "plugin" in "".join(pair)}


def test_a_process_without_the_package_says_so(others: dict[str, Any], package: Path) -> None:
    runs: list[Run] = runs_of(read_definition(others))
    shutil.move(package, package.with_suffix(".gone"))
    errors = {(run.scheduler, run.shutdown): work.work(run).get("error", "") for run in runs if not run.predictors}
    assert errors["easy", "never"] == ""
    for pair, of in ((("plugin:narrow", "never"), "scheduler"), (("easy", "plugin:off"), "shutdown")):
        assert (
            errors[pair].startswith("node ") and f"unknown {of} 'plugin:" in errors[pair] and "\n" not in errors[pair]
        )
