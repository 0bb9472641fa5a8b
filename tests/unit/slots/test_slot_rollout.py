"""Look-ahead as a teacher of slotted agents."""

from __future__ import annotations

import numpy as np
import pytest

import escala
from escala.agents.slot_rollout import look_ahead
from escala.envs.batch import new_turn
from escala.envs.slots import SlotsBatch
from escala.envs.slots_lists import draw_lists
from escala.envs.slots_play import play
from escala.errors import EscalaError
from escala.workload.generate_slots import bernoulli_model, cpu_memory_model

MODEL = bernoulli_model(load=1.9, steps=50, demand="clip10")


def test_its_choices_beat_the_rules() -> None:
    lists, n = draw_lists(MODEL, 24, 77), 24
    batch = SlotsBatch(n, lists)
    turn, done = new_turn(batch), np.zeros(n, bool)
    batch.restart(np.arange(n), turn, {"list": np.arange(n)})
    teacher = look_ahead(draw_lists(MODEL, 300, 5), 16, 0)
    while not done.all():
        choice = teacher(batch, turn)
        assert turn.mask[np.arange(n), choice].all()
        batch.step(choice, turn)
        done |= turn.terminated
    ours = batch.info()["slowdown"].mean()
    assert ours < 0.65 * play(lists, "sjf")["slowdown"].to_numpy().mean()
    assert ours < play(lists, "sjf-strict")["slowdown"].to_numpy().mean()


@pytest.mark.learn
@pytest.mark.slow
def test_an_agent_learns_from_it() -> None:
    given = {"model": "bernoulli", "load": 1.9, "window": 50, "demand": "clip10", "lists": 200, "lists_seed": 5}
    agent = escala.train("escala/Slots-v0", preset="taught", teacher={"rollout": [16]}, steps=4096, seed=1, **given)
    test = draw_lists(MODEL, 60, 77)
    ours = play(test, lambda seen, mask: agent.act(seen, mask, None), skip="forced", rescue=50)["slowdown"].to_numpy().mean()
    assert ours < 0.75 * play(test, "sjf")["slowdown"].to_numpy().mean()


def test_further_resources_are_refused() -> None:
    with pytest.raises(EscalaError, match="one pool of cores"):
        look_ahead(draw_lists(cpu_memory_model(), 4, 0), 4, 0)
