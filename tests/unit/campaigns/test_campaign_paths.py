"""Paths in a campaign's file are relative to it: the same file gives the same table from whatever folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import escala
from escala.campaigns.beside import beside
from escala.campaigns.campaign import RUNS
from tests.cli.program import LOG

ASKED = """
logs = ["logs/small.swf", { path = "logs/small.swf", name = "again", user = "7" }, { generator = "lublin", jobs = 20 }]
platforms = ["machine.yaml", "128x1:grid5000"]
schedulers = ["easy", "policy:tuned", "easy:queue=score:tuned/score.toml:guard=24h"]
shutdowns = ["never", "policy:tuned"]
options = { oversized = "drop" }
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A campaign with all that it names in its folder."""
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    (home / "tuned").mkdir()
    (home / "logs" / "small.swf").write_text(LOG)
    (home / "machine.yaml").write_text(json.dumps(escala.read_platform("16x1:grid5000").spec()))
    (home / "tuned" / "policy.toml").write_text(
        'format = 1\nformula = "easy:queue=score:score.toml"\nguard = "24h"\nshutdown = "timeout:60"\n'
    )
    (home / "tuned" / "score.toml").write_text('form = "linear"\n[weights]\nlog_wait = -1\n')
    (home / "campaign.toml").write_text(ASKED)
    return home / "campaign.toml"


def test_the_table_is_the_same_from_any_folder(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(asked.parent)
    first = escala.campaign("campaign.toml", tmp_path / "first", "local:1")
    assert first.failed == 0 and {"policy:tuned", "easy"} < set(first.runs["scheduler"])
    monkeypatch.chdir(tmp_path)
    for spec in (asked, "home/campaign.toml"):
        again = escala.campaign(spec, tmp_path / "first", "local:1")
        assert again.done == 0 and again.runs.equals(first.runs)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    escala.campaign(Path("..", "home", "campaign.toml"), "out", "local:2")
    assert Path("out", RUNS).read_bytes() == (tmp_path / "first" / RUNS).read_bytes()


def test_a_file_of_the_current_folder_is_not_taken(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "month.swf").write_text(LOG)
    asked.write_text('logs = ["month.swf"]\nplatforms = ["16x1"]\nschedulers = ["easy"]\n')
    with pytest.raises(escala.EscalaError, match=r"log 'home/month.swf': no such file"):
        escala.campaign("home/campaign.toml", "out", "local:1")
    (tmp_path / "other.yaml").write_text(json.dumps(escala.read_platform("16x1").spec()))
    asked.write_text('logs = ["logs/small.swf"]\nplatforms = ["other.yaml"]\nschedulers = ["easy"]\n')
    with pytest.raises(escala.EscalaError, match=r"unknown platform 'home/other.yaml': no such file"):
        escala.campaign("home/campaign.toml", "out", "local:1")
    assert not Path("out").exists()


def test_every_name_that_holds_a_path(tmp_path: Path) -> None:
    """Absolute paths, names without one, and what is of a wrong kind stay as they are."""
    (tmp_path / "site.toml").touch()
    told = {
        "logs": ["a.swf", "/b.swf", {"path": "c.csv"}, {"generator": "lublin"}, 3],
        "platforms": ["site.toml#5", "16x1"],
        "power": "taurus",
        "schedulers": ["agent:a", "shield:easy:futures=2:agent:a", "policy:/p", "plugin:x:y", "easy:estimate=model:m"],
        "options": {"estimate": ["runtime", "model:m"], "order_estimate": "model:m", "depth": 3},
    }
    found, written = beside(told, tmp_path)
    model = f"model:{tmp_path}/m"
    assert found == {
        "logs": [f"{tmp_path}/a.swf", "/b.swf", {"path": f"{tmp_path}/c.csv"}, {"generator": "lublin"}, 3],
        "platforms": [f"{tmp_path}/site.toml#5", "16x1"],
        "power": "taurus",
        "schedulers": [
            f"agent:{tmp_path}/a",
            f"shield:easy:futures=2:agent:{tmp_path}/a",
            "policy:/p",
            "plugin:x:y",
            f"easy:estimate={model}",
        ],
        "options": {
            "estimate": ["runtime", f"model:{tmp_path}/m"],
            "order_estimate": f"model:{tmp_path}/m",
            "depth": 3,
        },
    }
    assert written[f"agent:{tmp_path}/a"] == "agent:a" and written["plugin:x:y"] == "plugin:x:y"
