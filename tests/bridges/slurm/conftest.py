"""Locks of those who act stand in a folder of the tests' own; what decides on a fake Slurm is compiled before."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A first decision that compiles takes longer than a period, and what is decided late is refused."""
    from tests.bridges.slurm.world import World, queue

    pairs = (("sjf", "never"), ("easy", "timeout:0"), ("easy", "hold:0.25"), ("easy", "never"), ("fcfs", "timeout:2"))
    for scheduler, shutdown in pairs:
        World(queue(2, 1), tmp_path_factory.mktemp("compiled"), "order", scheduler=scheduler, shutdown=shutdown).go(3)
