"""Every agent that is kept under docs/studies is the agent of its row: played again, it gives the figures of its page to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from escala.studies.replay import REPLAYED, Study, replay

ROOT = Path(__file__).resolve().parents[2] / "docs" / "studies"
KEPT = [(study, agent) for study in REPLAYED for agent in Study(ROOT / study).agents() if agent.startswith("published")]


@pytest.mark.slow
@pytest.mark.parametrize("study, agent", KEPT, ids=lambda one: str(one))
def test_a_kept_agent_is_that_of_its_row(traces: Path, study: str, agent: str) -> None:
    found = replay(study, ROOT / study, agents=[agent])
    assert found.figures and not found.missing
    assert [f"{one.figure}: {one.page} on the page, {one.now} now" for one in found.differ] == []
