"""Look-ahead as a teacher of slotted agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import escala
from escala.agents.imitation import teaching
from escala.agents.imitation.demonstrations import read, record
from escala.agents.imitation.lookahead_teacher import look_ahead
from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import draw_lists
from escala.envs.slots.playing import play
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.workload.generate_slots import bernoulli_model, cpu_memory_model

MODEL = bernoulli_model(load=1.9, steps=50, demand="clip10")


def test_its_choices_beat_the_rules() -> None:
    lists, n = draw_lists(MODEL, 6, 77), 6
    batch = SlotsBatch(n, lists)
    turn, done = new_turn(batch), np.zeros(n, bool)
    batch.restart(np.arange(n), turn, {"list": np.arange(n)})
    teacher = look_ahead(draw_lists(MODEL, 100, 5), 8, 0)
    while not done.all():
        choice = teacher(batch, turn)
        assert turn.mask[np.arange(n), choice].all()
        batch.step(choice, turn)
        done |= turn.terminated
    ours = batch.info()["slowdown"].mean()
    assert ours < 0.65 * play(lists, "sjf")["slowdown"].to_numpy().mean()
    assert ours < play(lists, "sjf-strict")["slowdown"].to_numpy().mean()


@pytest.mark.learn
@pytest.mark.long
def test_an_agent_learns_from_it() -> None:
    given = {"model": "bernoulli", "load": 1.9, "window": 50, "demand": "clip10", "lists": 200, "lists_seed": 5}
    agent = escala.train("escala/Slots-v0", preset="taught", teacher={"rollout": [16]}, steps=4096, seed=1, **given)
    test = draw_lists(MODEL, 60, 77)
    ours = (
        play(test, lambda seen, mask: agent.act(seen, mask, None), skip="forced", rescue=50)["slowdown"]
        .to_numpy()
        .mean()
    )
    assert ours < 0.75 * play(test, "sjf")["slowdown"].to_numpy().mean()


@pytest.mark.learn
def test_imitate_is_short_for_the_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teaching, "OF_LOOK_AHEAD", teaching.OF_LOOK_AHEAD._replace(updates=20))
    monkeypatch.setattr(teaching, "RUNS", 16)
    given = {
        "model": "bernoulli",
        "load": 1.9,
        "window": 50,
        "demand": "clip10",
        "lists": 8,
        "lists_seed": 5,
        "preset": "taught",
        "steps": 0,
    }
    agent = escala.train("escala/Slots-v0", imitate="rollout:2", seed=1, **given)
    assert agent.manifest["teacher"] == {"rollout": [2]}
    for wrong in (
        {"imitate": "easy"},
        {"imitate": "rollout:x"},
        {"imitate": "rollout:horizon=4"},
        {"imitate": "rollout", "teacher": {"rollout": [2]}},
    ):
        with pytest.raises(EscalaError) as error:
            escala.train("escala/Slots-v0", **wrong, **given)
        assert "\n" not in str(error.value)


@pytest.mark.learn
def test_recorded_lessons_teach_without_a_decision_of_their_own(tmp_path: Path) -> None:
    given = {"slots": 16, "placement": "start-now", "skip": "forced", "arrivals_end": 50}
    lists = draw_lists(MODEL, 40, 5)
    n = record(tmp_path / "sub" / "a.npz", lists, 4, 30, seed=1, **given)
    record(tmp_path / "b.npz", lists, 4, 10, seed=2, **given)
    files = [tmp_path / "sub" / "a.npz", tmp_path / "b.npz"]
    whole = read(files, given, 1.0)
    assert n < len(whole.seen) and whole.seen.shape[1] == 16 * 6 + 20 + 6 + 2
    assert whole.mask[np.arange(len(whole.choice)), whole.choice].all()
    about = {"load": 1.9, "window": 50, "demand": "clip10", "lists": 40, "lists_seed": 5}
    taught = {"lessons": [str(f) for f in files], "updates": [400]}
    agent = escala.train("escala/Slots-v0", preset="look-ahead", teacher=taught, steps=0, **about | given)
    assert agent.manifest["steps_done"] == 0
    greedy = agent.policy(sampled=False)
    # in the event-driven simulation too it knows the end
    jobs = escala.simulate(lists.workload(0), lists.platform, greedy).jobs
    assert jobs["finish_s"].max() < 1000
    agreed = np.mean(agent.act(whole.seen, whole.mask, None) == whole.choice)
    assert agreed > 0.7


def test_lessons_of_other_options_are_refused(tmp_path: Path) -> None:
    lists = draw_lists(MODEL, 8, 5)
    record(tmp_path / "a.npz", lists, 2, 2, skip="forced")
    with pytest.raises(EscalaError, match=r"recorded with gamma=1\.0, not 0\.9"):
        read([tmp_path / "a.npz"], {"slots": 10}, 0.9)
    with pytest.raises(EscalaError, match="recorded with slots=10, not 12"):
        read([tmp_path / "a.npz"], {"slots": 12}, 1.0)
    (tmp_path / "b.npz").write_bytes(b"no lessons")
    for broken in ("b.npz", "c.npz"):
        with pytest.raises(EscalaError, match="no file of lessons"):
            read([tmp_path / broken], {}, 1.0)


def test_further_resources_are_refused() -> None:
    with pytest.raises(EscalaError, match="one pool of cores"):
        look_ahead(draw_lists(cpu_memory_model(), 4, 0), 4, 0)
