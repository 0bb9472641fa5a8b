"""Slotted agents: equal choices in the environment and in the event-driven simulation, saved and loaded; order of slots; teaching."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import escala
from escala.agents.presets import PRESETS
from escala.agents.slot_networks import SlotScorer
from escala.envs.slots_options import options_of
from escala.envs.slots_play import play, tune_hold_back
from escala.errors import EscalaError

LISTS = {"load": 1.0, "lists": 64, "lists_seed": 1}


def test_preferences_move_with_the_jobs() -> None:
    torch.manual_seed(0)
    scorer = SlotScorer(86, slots=10, horizon=20)
    torch.nn.init.normal_(scorer.preference.weight)
    seen = torch.rand(4, 86)
    order = torch.randperm(10)
    moved = torch.cat([seen[:, :60].reshape(4, 10, 6)[:, order].reshape(4, 60), seen[:, 60:]], dim=1)
    first, second = scorer.forward_actor(seen), scorer.forward_actor(moved)
    assert torch.allclose(first[:, 1:][:, order], second[:, 1:], atol=1e-5)
    assert torch.allclose(first[:, 0], second[:, 0], atol=1e-5)
    assert torch.allclose(scorer.forward_critic(seen), scorer.forward_critic(moved), atol=1e-5)


@pytest.mark.learn
@pytest.mark.slow
@pytest.mark.parametrize("preset", ["taught", "taught-reserve"])
def test_taught_agent_in_the_environment_and_in_the_simulation(tmp_path: Path, preset: str) -> None:
    fresh = options_of({"load": 1.0, "lists": 6, "lists_seed": 2}).job_lists()
    agent = escala.train("escala/Slots-v0", steps=1, preset=preset, seed=0, teacher=[(3, 4, 0)], **LISTS)
    shape = {"skip": "forced", "placement": agent.env_options["placement"]}
    agent.save(tmp_path)
    agent = escala.load_agent(tmp_path)
    rule = play(fresh, "hold-back", hold=(3, 4, 0))["slowdown"].mean()
    for e in range(len(fresh)):
        random = np.random.default_rng(5)
        slotted = play(fresh.part([e]), lambda seen, mask, random=random: agent.act(seen, mask, random), **shape)
        assert slotted["finished"].all()
        jobs = escala.simulate(fresh.workload(e), fresh.platform, scheduler=agent.policy(sampled=True, seed=5)).jobs
        slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
        assert slowdown == pytest.approx(slotted["slowdown"][0], rel=1e-12)
        assert jobs["wait_s"].max() == slotted["longest_wait"][0]
    likeliest = play(fresh, lambda seen, mask: agent.act(seen, mask, None), rescue=50, **shape)
    assert likeliest["finished"].all()
    assert likeliest["slowdown"].mean() < 1.5 * rule  # it has learnt most of what the rule does; untaught agents are at ten times that


@pytest.mark.learn
@pytest.mark.parametrize("preset", [name for env, name in PRESETS if env == "escala/Slots-v0"])
def test_presets_train(preset: str) -> None:
    algorithm = "a2c" if "batch_size" not in PRESETS["escala/Slots-v0", preset].learn else "ppo" if "printed" in preset else "maskable-ppo"
    agent = escala.train("escala/Slots-v0", steps=1, preset=preset, algorithm=algorithm, num_envs=8, learn={"n_steps": 4}, **LISTS)
    assert all(torch.isfinite(p).all() for p in agent.network.parameters())


def test_hold_back_is_tuned_on_the_lists_that_are_given() -> None:
    lists = options_of({"load": 1.9, "lists": 20, "lists_seed": 3}).job_lists()
    hold = tune_hold_back(lists)
    best = play(lists, "hold-back", hold=hold)["slowdown"].mean()
    assert best <= min(play(lists, "hold-back", hold=(3, quiet, 0))["slowdown"].mean() for quiet in (1, 4, 10))


def test_bad_teacher_and_rule_are_one_clear_line() -> None:
    with pytest.raises(EscalaError, match="compact"):
        escala.train("escala/Slots-v0", steps=1, preset="printed", algorithm="ppo", num_envs=2, teacher=[(3, 4, 0)], **LISTS)
    for teacher in ({"rollout": 8}, {"rollout": [8], "updates": 500}):
        with pytest.raises(EscalaError, match="in a list"):
            escala.train("escala/Slots-v0", steps=1, teacher=teacher, num_envs=2, **LISTS)
    with pytest.raises(EscalaError, match="updates"):
        escala.train("escala/Slots-v0", steps=1, teacher={"rollout": [8], "updates": [0]}, num_envs=2, **LISTS)
    with pytest.raises(EscalaError, match="unknown rule"):
        play(options_of(LISTS).job_lists(), "sfj")
