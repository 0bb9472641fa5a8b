"""Weights chosen, and training stopped, by days that are not learnt from."""

from __future__ import annotations

import itertools
import math
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from escala.agents import Agent, checkpoint, load_agent, train
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.agents.training import validation as early
from escala.agents.training.reference_returns import mean_return
from escala.agents.training.validation import LOOKS, Early
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.errors import EscalaError
from tests.learn.small import SMALL, days, equal

pytestmark = pytest.mark.learn


def small(env_id: str = OFF_RESERVATION, **more: Any) -> Agent:
    return train(env_id, days()[:3], "orion", **{**SMALL, "validation": days()[3:5], **more})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Agent, Path]:
    """A training that nothing interrupts, and its folder."""
    folder = tmp_path_factory.mktemp("early") / "agent"
    return small(out=folder), folder


def test_the_weights_that_do_best_on_the_validation_days_are_kept(whole: tuple[Agent, Path]) -> None:
    agent, folder = whole
    points = agent.manifest["validation"]
    assert [step for step, _ in points] == sorted({step for step, _ in points}) and points[-1][0] == agent.manifest[
        "steps_done"
    ]
    assert 4 <= len(points) <= LOOKS + 1
    batch = OffReservationBatch(2, days()[3:5], "orion", **agent.env_options)
    random = np.random.default_rng(0)
    again = mean_return(batch, lambda turn: agent.act(turn.observation, turn.mask, random), math.inf)
    assert again == max(value for _, value in points)
    assert equal(load_agent(folder), agent) and agent.manifest["validation_days"]["days"] == 2


@pytest.mark.parametrize("env_id", [OFF_RESERVATION, SCHEDULING])
def test_looking_moves_no_weight(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = train(env_id, days()[:3], "orion", **SMALL)
    monkeypatch.setattr(Early, "end", lambda self, step: None)
    assert equal(small(env_id), plain)


def test_a_resumed_training_keeps_what_it_saw(
    whole: tuple[Agent, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(share: float) -> None:
        if share > 0.6:
            raise Killed

    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    with pytest.raises(Killed):
        small(out=tmp_path / "agent", progress=kill)
    with pytest.raises(EscalaError, match="validation_days"):
        small(out=tmp_path / "agent", resume=True, patience=3)
    with pytest.raises(EscalaError, match="validation_days"):
        small(out=tmp_path / "agent", resume=True, validation=None)
    resumed = small(out=tmp_path / "agent", resume=True)
    assert resumed.manifest["validation"] == whole[0].manifest["validation"] and equal(resumed, whole[0])


def test_training_stops_when_nothing_becomes_better(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, states, look = iter(range(100)), [], Early._look

    def noted(self: Early, step: int) -> None:
        states.append({name: value.clone() for name, value in self._model.policy.state_dict().items()})
        look(self, step)

    monkeypatch.setattr(Early, "_look", noted)
    monkeypatch.setattr(early, "mean_return", lambda *_: -float(next(looks)))
    agent = small(patience=2)
    first, *later = agent.manifest["validation"]
    assert agent.manifest["steps_done"] < SMALL["steps"] and len(later) >= 2 and later[1][0] - first[0] == 512
    kept = agent.network.state_dict()
    assert all(torch.equal(kept[name], states[0][name]) for name in kept)
    assert any(not torch.equal(kept[name], states[1][name]) for name in kept)


def test_a_training_by_the_clock_looks_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) / 100)
    monkeypatch.setattr(import_module("escala.agents.training.train"), "time", clock)
    agent = small(steps=10**9, minutes=0.05)
    assert 3 <= len(agent.manifest["validation"]) <= LOOKS + 1 and next(ticks) > 300


def test_bad_requests_are_one_clear_line() -> None:
    with pytest.raises(EscalaError, match="environments that play days"):
        train("escala/Slots-v0", validation=days()[:1], steps=64)
    with pytest.raises(EscalaError, match="both given as lists"):
        small(validation=days()[3])
    with pytest.raises(EscalaError, match="patience=2: training stops by validation days only"):
        small(validation=None, patience=2)
    with pytest.raises(EscalaError, match="validation: give at least one day"):
        small(validation=[])
    with pytest.raises(EscalaError, match="patience=-1"):
        small(patience=-1)
