"""Sharing: what is sent comes back byte for byte with a card, and what was changed, or is no policy, is refused in one
line."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import escala
from escala.sharing import card, contents, hub, listed
from tests.cli.hub import Hub
from tests.cli.hub import hub as standing
from tests.cli.program import LOG, Escala

AGENT = Path(__file__).parents[2] / "docs" / "studies" / "deepscheduler2020" / "agents" / "orion-0.95-0"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scale.md"
POLICY = """format = 1
formula = "easy:queue=score:score.toml"
guard = "24h"
shutdown = "timeout:300"
escala = "0.1.0"
[log]
name = "month"
jobs = 1200
platform = "orion"
[later_weeks]
slowdown = 2.5
[later_weeks_under_easy]
slowdown = 5.0
[ratio_to_easy]
slowdown = [0.5, 0.4, 0.6]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A tuned policy with a score in a file of its own."""
    folder = tmp_path / "tuned"
    folder.mkdir()
    (folder / "policy.toml").write_text(POLICY)
    (folder / "score.toml").write_text('form = "linear"\n[weights]\nlog_wait = -1\n')
    return folder


def test_a_card_says_what_the_folder_says(policy: Path) -> None:
    text = card(contents(policy), "you/night", "mit")
    assert text.startswith(
        "---\nlibrary_name: escala\ntags: [escala, batch-scheduling]\nlicense: mit\n---\n\n# night\n"
    )
    assert (
        "A tuned policy for batch clusters: `easy:queue=score:score.toml:guard=24h`. Nodes are switched off by "
        "`timeout:300`." in text
    )
    assert (
        "month, 1200 jobs, on orion." in text
        and "| slowdown | 2.5 | 5 |" in text
        and "- slowdown: 0.5, 0.4, 0.6" in text
    )
    assert "Made with Escala 0.1.0." in text and "--scheduler policy:policy --shutdown policy:policy" in text
    other = card(contents(AGENT), "you/agent")
    assert "escala/Scheduling-v0, cross-entropy, search" in other and "4214 jobs, on orion" in other
    assert (
        "None is named" in other and "license:" not in other and "The folder keeps no figures from later jobs." in other
    )


def test_folders_are_listed(policy: Path, escala_: Escala, tmp_path: Path) -> None:
    shutil.copytree(AGENT, tmp_path / "deep" / "agent")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text('{"verb": "simulate"}')
    told = escala_("policy", "list", tmp_path, "--json")
    rows = json.loads(told.out)
    assert [(Path(row["folder"]).name, row["kind"]) for row in rows] == [
        ("agent", "agent"),
        ("tuned", "tuned policy"),
    ], told.err
    assert "tuned policy" in escala_("policy", "list", tmp_path).out
    assert escala_("policy", "list", tmp_path / "run").out.startswith("No policies in ")
    assert escala_("policy", "list", tmp_path / "none").status == 2
    assert len(listed(AGENT.parent)) == len(list(AGENT.parent.iterdir()))


def test_what_is_no_part_of_a_policy_is_not_sent(policy: Path, tmp_path: Path) -> None:
    def stage() -> Path:
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        return hub.staged(contents(policy), "you/night", None, tmp_path / "work")

    (policy / ".hidden").write_text("mine")
    (policy / "checkpoint.npz").write_bytes(b"to go on with")
    assert sorted(path.name for path in stage().iterdir()) == [
        "README.md",
        "manifest.json",
        "policy.toml",
        "score.toml",
    ]
    (policy / "weights.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(escala.EscalaError, match=r"holds 'weights.pkl', which is no part of a policy"):
        stage()
    (policy / "weights.pkl").unlink()
    (policy / "more.toml").symlink_to("/etc/passwd")
    with pytest.raises(escala.EscalaError, match="is a link"):
        stage()
    (policy / "more.toml").unlink()
    (policy / "policy.toml").write_text(POLICY.replace("score:score.toml", f"score:{policy / 'score.toml'}"))
    with pytest.raises(escala.EscalaError, match="outside its folder"):
        stage()
    (policy / "policy.toml").write_text(POLICY.replace("easy:queue", "esy:queue"))
    with pytest.raises(escala.EscalaError, match="unknown scheduler 'esy:queue"):
        stage()


def test_without_the_library_its_extra_is_named(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(escala.EscalaError, match=r"sharing needs the extra \[share\]"):
        hub.push(policy, "you/night")


@pytest.fixture
def near() -> Iterator[Hub]:
    """A hub on this machine."""
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: pip install '.[share]'")
    with standing() as server:
        yield server


def _call(server: Hub | str, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, with this hub."""
    url = server if isinstance(server, str) else server.url
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hf"),
        "HF_TOKEN": "hf_x",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    asked = [sys.executable, "-m", "escala", *map(str, words)]
    return subprocess.run(asked, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_what_is_sent_comes_back_and_runs(policy: Path, near: Hub, tmp_path: Path) -> None:
    sent = _call(near, tmp_path, "policy", "push", "tuned", "you/night", "--license", "mit", "--json")
    assert sent.returncode == 0, sent.stderr
    first = json.loads(sent.stdout)["revision"]
    (policy / "policy.toml").write_text(POLICY.replace('"24h"', '"12h"'))
    assert _call(near, tmp_path, "policy", "push", "tuned", "you/night").returncode == 0
    got = _call(near, tmp_path, "policy", "pull", "you/night", "--revision", first, "--out", "got", "--json")
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["revision"] == first
    assert (tmp_path / "got" / "policy.toml").read_text() == POLICY and "license: mit" in (
        tmp_path / "got" / "README.md"
    ).read_text()
    manifest = json.loads((tmp_path / "got" / "manifest.json").read_text())
    assert manifest["pulled"] == {"repository": "you/night", "revision": first}
    (tmp_path / "small.swf").write_text(LOG)
    both = ["--platform", "4x1:grid5000", "--scheduler", "policy:got", "--shutdown", "policy:got"]
    done = _call(near, tmp_path, "simulate", "small.swf", *both)
    assert done.returncode == 0, done.stderr
    again = _call(near, tmp_path, "policy", "pull", "you/night", "--out", "got")
    assert again.returncode == 0 and "guard=12h" in (tmp_path / "got" / "README.md").read_text(), again.stderr
    assert _call(near, tmp_path, "policy", "push", AGENT, "you/agent").returncode == 0
    assert _call(near, tmp_path, "policy", "pull", "you/agent", "--out", "agent").returncode == 0
    assert (tmp_path / "agent" / "weights.pt").read_bytes() == (AGENT / "weights.pt").read_bytes()


@pytest.mark.slow
def test_what_others_changed_is_refused_and_nothing_is_written(policy: Path, near: Hub, tmp_path: Path) -> None:
    assert _call(near, tmp_path, "policy", "push", "tuned", "you/night").returncode == 0

    def refused(*words: str) -> str:
        done = _call(near, tmp_path, "policy", "pull", *words, "--out", "got")
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert not (tmp_path / "got").exists() and not (tmp_path / ".got.partial").exists()
        return done.stderr

    sound = near.files("you/night")
    assert sound is not None
    for name, data, said in (
        (
            "score.toml",
            b'form = "linear"\n[weights]\nlog_wait = 1\n',
            "you/night: holds 'score.toml', which was changed since",
        ),
        ("more.toml", b"", "you/night: holds 'more.toml', which escala policy push did not write"),
        ("weights.pkl", pickle.dumps([1]), "you/night: holds 'weights.pkl', which is no part of a policy"),
        ("manifest.json", b"{}", "you/night: holds files that Escala did not write"),
    ):
        near.repositories["you/night"].append((f"{len(name):040x}", {**sound[1], name: data}))
        assert said in refused("you/night")
    assert "has no such revision" in refused("you/night", "--revision", "other")
    assert "no such repository" in refused("you/none")
    assert "give OWNER/NAME" in refused("night")
    silent = _call("http://127.0.0.1:9", tmp_path, "policy", "pull", "you/night", "--out", "got")
    assert (
        silent.returncode == 2 and len(silent.stderr.strip().splitlines()) == 1 and not (tmp_path / "got").exists()
    ), silent.stderr


@pytest.mark.slow
def test_the_page_works_as_it_is_written(policy: Path, near: Hub, tmp_path: Path) -> None:
    (text,) = re.findall(
        r"^## Sharing a policy\n.*?^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for line in text.splitlines():
        done = _call(near, tmp_path, *line.split()[1:])
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert (tmp_path / "night" / "policy.toml").read_text() == POLICY
