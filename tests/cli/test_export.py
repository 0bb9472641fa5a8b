"""The verb export."""

from __future__ import annotations

from pathlib import Path

import escala
from escala.envs.exported import load_exported
from tests.cli.program import Escala

KEPT = Path(__file__).parents[2] / "docs" / "studies" / "grid2019" / "agents" / "fresh-190-0"


def test_the_verb_writes_what_the_other_verbs_take(escala_: Escala, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert escala_("export", KEPT, "--out", folder).status == 0
    assert load_exported(folder).env_id == escala.load_agent(folder).env_id == "escala/Slots-v0"
    twice = escala_("export", folder, "--out", tmp_path / "again")
    assert twice.status == 2 and "is exported already" in twice.err
