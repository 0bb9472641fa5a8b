"""Agents and teams are saved as a whole: a saving that stops anywhere leaves what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import escala
from escala.agents import Agent, checkpoint, load_agent, load_team
from escala.agents.team import Team
from escala.writing import moves

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
OF_AN_OLDER_VERSION = STUDIES / "deepscheduler2020" / "agents" / "orion-0.95-0"
TEAM = next(path for path in sorted((STUDIES / "marl2024" / "agents").iterdir()) if path.is_dir())


def networks(saved: Any) -> list[dict[str, Any]]:
    return [
        {k: v.numpy().copy() for k, v in one.state_dict().items()}
        for one in getattr(saved, "networks", None) or [saved.network]
    ]


def equal(a: Agent | Team, b: Agent | Team) -> bool:
    return all(
        x.keys() == y.keys() and all(np.array_equal(x[k], y[k]) for k in x)
        for x, y in zip(networks(a), networks(b), strict=True)
    )


@pytest.mark.parametrize(("load", "source"), [(load_agent, OF_AN_OLDER_VERSION), (load_team, TEAM)])
def test_saving_over_gives_the_old_one_or_the_new_one(
    load: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, old, new = tmp_path / "saved", load(source), load(source)
    new.manifest["seed"] = 77
    with torch.no_grad():
        for network in getattr(new, "networks", None) or [new.network]:
            next(network.parameters()).add_(1.0)
    old.save(folder)
    assert load(folder).manifest.keys() - {"escala"} == old.manifest.keys()  # what the saving notes is not the agent's

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for module, step in ((checkpoint, "write_weights"), (checkpoint, "write_manifest"), (moves, "exchange")):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(module, step, stop)
            new.save(folder)
        assert equal(load(folder), old) and list(tmp_path.iterdir()) == [folder]
    new.save(folder)
    assert equal(load(folder), new) and load(folder).manifest["seed"] == 77
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(escala.EscalaError, match=r"holds 'notes\.txt'"):
        old.save(folder)
    assert equal(load(folder), new) and (folder / "notes.txt").read_text() == "mine"


def test_the_curve_of_an_agent_that_was_there_goes_with_it(tmp_path: Path) -> None:
    agent = load_agent(OF_AN_OLDER_VERSION)
    Agent(agent.network, agent.manifest, pl.DataFrame({"policy": ["a"], "step": [1], "value": [0.5]})).save(
        tmp_path / "agent"
    )
    assert load_agent(tmp_path / "agent").curve is not None
    agent.curve = None
    agent.save(tmp_path / "agent")
    assert load_agent(tmp_path / "agent").curve is None


def test_an_agent_without_hashes_is_not_replaced(tmp_path: Path) -> None:
    agent = load_agent(OF_AN_OLDER_VERSION)
    for path in OF_AN_OLDER_VERSION.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(escala.EscalaError, match="keeps no hashes of its files"):
        agent.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in OF_AN_OLDER_VERSION.iterdir()
    )
