"""The verb export."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import escala
from escala import extras
from escala.envs.exported import load_exported
from escala.errors import EscalaError
from escala.sharing import contents
from escala.sharing.files import check
from tests.cli.program import Escala

KEPT = Path(__file__).parents[2] / "docs" / "studies" / "grid2019" / "agents" / "fresh-190-0"


def test_the_verb_writes_what_the_other_verbs_take(escala_: Escala, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert escala_("export", KEPT, "--out", folder).status == 0
    assert load_exported(folder).env_id == escala.load_agent(folder).env_id == "escala/Slots-v0"
    twice = escala_("export", folder, "--out", tmp_path / "again")
    assert twice.status == 2 and "is exported already" in twice.err


def test_a_team_too(escala_: Escala, tmp_path: Path) -> None:
    folder, team = tmp_path / "out", KEPT.parents[2] / "marl2024" / "agents" / "team-2x1-0"
    assert escala_("export", team, "--out", folder).status == 0
    assert load_exported(folder).options["agents"] == 2
    twice = escala_("export", folder, "--out", tmp_path / "again")
    assert twice.status == 2 and "is exported already" in twice.err
    assert "exported team" in escala_("policy", "list", folder).out
    check(contents(folder))
    (folder / "weights.npz").write_bytes(b"PK")
    with pytest.raises(EscalaError, match="is not the file that"):
        check(contents(folder))


@pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed")
def test_the_verb_writes_a_file_that_says_what_it_is(escala_: Escala, tmp_path: Path) -> None:
    import onnx

    out = tmp_path / "agent.onnx"
    assert escala_("export", KEPT, "--out", out).status == 0
    told = {one.key: one.value for one in onnx.load(out).metadata_props}
    assert json.loads(told["escala"])["env_id"] == "escala/Slots-v0"
    again = escala_("export", KEPT, "--out", out)
    assert again.status == 2 and again.err.count("\n") == 1 and "exists already" in again.err
    assert escala_("export", KEPT, "--out", out, "--force").status == 0
    assert escala_("export", KEPT, "--out", tmp_path / "folder").status == 0
    # what is exported already, too
    assert escala_("export", tmp_path / "folder", "--out", tmp_path / "same.onnx").status == 0
    assert (tmp_path / "same.onnx").read_bytes() == out.read_bytes()


def test_without_onnx_one_line_names_the_extra(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "found", lambda package: package != "onnx")
    done = escala_("export", KEPT, "--out", tmp_path / "agent.onnx")
    assert done.status == 2 and done.err.count("\n") == 1 and "needs the extras [agents,onnx] of Escala" in done.err
    assert list(tmp_path.iterdir()) == []


def test_force_is_for_a_file(escala_: Escala, tmp_path: Path) -> None:
    done = escala_("export", KEPT, "--out", tmp_path / "folder", "--force")
    assert done.status == 2 and "--force is for a file" in done.err
