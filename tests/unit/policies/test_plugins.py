"""Policies that another package announces as entry points."""

from __future__ import annotations

from pathlib import Path

import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.workload import generate, write_swf

CODE = '''
class Narrow:
    """Starts what fits, the narrowest first; `most`: so many at a decision."""
    def __init__(self, rest):
        self.most = int(rest) if rest else 1000
    def decide(self, view, act):
        for job in sorted(view.queue, key=lambda job: (job.cores, job.row))[:self.most]:
            act.start(job)

class Off:
    role = "shutdown"
    def __init__(self, rest):
        pass
    def decide(self, view, act):
        for node, since in enumerate(view.idle_since_s):
            if since == since and view.now_s - since >= 60.0:
                act.switch_off(node)

class Half:
    def __init__(self, rest):
        pass
    def estimate(self, view, job):
        return job.walltime_s / 2

def broken(rest):
    raise ValueError("no such setting")

def nothing(rest):
    return 7
'''
POINTS = """[escala.schedulers]
narrow = others_policies:Narrow
broken = others_policies:broken
nothing = others_policies:nothing
gone = others_policies:Gone

[escala.shutdowns]
off = others_policies:Off

[escala.predictors]
half = others_policies:Half
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with policies."""
    about = tmp_path / "others_policies-1.2.dist-info"
    about.mkdir()
    (tmp_path / "others_policies.py").write_text(CODE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others-policies\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return about


@pytest.fixture
def log() -> escala.Workload:
    return generate.lublin(jobs=120, cores=16, load=0.9, seed=2)


def test_they_run_by_name_like_any_other(package: Path, log: escala.Workload) -> None:
    found = escala.simulate(log, "16x1", "plugin:narrow")
    assert found.jobs["start_s"].equals(escala.simulate(log, "16x1", "smallest-fit").jobs["start_s"])
    assert found.manifest["scheduler"] == "plugin:narrow"
    assert found.manifest["policy_files"] == {"plugin:narrow": "others-policies 1.2"}
    slow = escala.simulate(log, "16x1", "plugin:narrow:1")
    assert slow.summary()["mean_wait_s"] > found.summary()["mean_wait_s"]
    off = escala.simulate(log, "16x1:grid5000", "easy", "plugin:off")
    assert off.summary()["transitions"] > 0
    planned = escala.simulate(log, "16x1", "easy", estimate="plugin:half")
    assert planned.manifest["options"]["estimate"] == "plugin:half"
    assert list(escala.compare(log, "16x1", ["fcfs", "plugin:narrow"]).results) == [
        "fcfs + never",
        "plugin:narrow + never",
    ]


def test_a_run_is_run_again_with_the_same_version_only(package: Path, log: escala.Workload) -> None:
    found = escala.simulate(log, "16x1", "plugin:narrow")
    assert escala.rerun(found, log).jobs.equals(found.jobs)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: others-policies\nVersion: 1.3\n")
    with pytest.raises(EscalaError, match="plugin:narrow is not what it was in that run"):
        escala.rerun(found, log)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plugin:narow", "did you mean plugin:narrow"),
        ("plugin:broken", "others-policies 1.2 cannot be made: ValueError: 'no such setting'"),
        ("plugin:nothing", "has no method decide"),
        ("plugin:gone", "cannot be made: AttributeError"),
        ("plugin:off", "unknown scheduler 'plugin:off'"),
    ],
)
def test_what_is_no_policy_is_one_line(name: str, message: str, package: Path, log: escala.Workload) -> None:
    with pytest.raises(EscalaError, match=message):
        escala.simulate(log, "16x1", name)


def test_without_any_the_groups_are_named(log: escala.Workload) -> None:
    with pytest.raises(EscalaError, match=r"no installed package announces one \(entry points escala.schedulers\)"):
        escala.simulate(log, "16x1", "plugin:narrow")


def test_by_the_command(
    package: Path, log: escala.Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_swf(log, tmp_path / "log.swf")
    assert run(["simulate", str(tmp_path / "log.swf"), "--platform", "16x1", "--scheduler", "plugin:narrow"]) == 0
    assert "plugin:narrow + never" in capsys.readouterr().out
    assert run(["policies", "--json"]) == 0
    assert '"plugin": "plugin:off"' in capsys.readouterr().out
    assert run(["compare", str(tmp_path / "log.swf"), "--platform", "16x1", "--schedulers", "plugin:narow"]) != 0
    assert "did you mean plugin:narrow" in capsys.readouterr().err
