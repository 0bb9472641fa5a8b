"""The verb export."""

from __future__ import annotations

from pathlib import Path

import pytest

import escala
from escala.envs.exported import load_exported
from escala.errors import EscalaError
from escala.sharing.contents import check, contents
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
