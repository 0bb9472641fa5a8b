"""Slotted agents: equal choices in the environment and in the event-driven simulation, saved and loaded; order of
slots; teaching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import escala
from escala.agents import checkpoint
from escala.agents.networks.slot_scorer import SlotScorer
from escala.agents.presets import PRESETS
from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import JobLists, given_lists
from escala.envs.slots.options import RESCUE, options_of, shaping
from escala.envs.slots.playing import play, tune_hold_back
from escala.envs.slots.policy import SlotPolicy
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload

LISTS = {"load": 1.0, "lists": 64, "lists_seed": 1}


def test_preferences_move_with_the_jobs() -> None:
    torch.manual_seed(0)
    scorer = SlotScorer(86, slots=10, features=6)
    torch.nn.init.normal_(scorer.preference.weight)
    seen = torch.rand(4, 86)
    order = torch.randperm(10)
    moved = torch.cat([seen[:, :60].reshape(4, 10, 6)[:, order].reshape(4, 60), seen[:, 60:]], dim=1)
    first, second = scorer.forward_actor(seen), scorer.forward_actor(moved)
    assert torch.allclose(first[:, 1:][:, order], second[:, 1:], atol=1e-5)
    assert torch.allclose(first[:, 0], second[:, 0], atol=1e-5)
    assert torch.allclose(scorer.forward_critic(seen), scorer.forward_critic(moved), atol=1e-5)


def test_empty_slots_count_as_the_formula_says() -> None:
    """Taken slots alone are worked through; the same numbers come out of all of them, as the module's formula is
    written."""
    torch.manual_seed(1)
    scorer = SlotScorer(86, slots=10, features=6)
    torch.nn.init.normal_(scorer.preference.weight)
    seen = torch.rand(5, 86)
    for row, empty in enumerate(([], [0], [3, 9], range(1, 10), range(10))):
        seen[row, :60].reshape(10, 6)[list(empty)] = 0.0
    jobs, rest = seen[:, :60].reshape(5, 10, 6), seen[:, 60:]

    def context(part: torch.nn.Module) -> torch.Tensor:
        return torch.relu(part.mix(torch.cat([rest, torch.relu(part.embed(jobs)).mean(dim=1)], dim=1)))

    c = context(scorer.context)
    hidden = torch.relu(scorer.of_job(jobs) + scorer.of_context(c).unsqueeze(1))
    wanted = torch.cat([scorer.void(c), scorer.preference(hidden).squeeze(2)], dim=1)
    preferences, judged = scorer(seen)
    assert torch.allclose(preferences, wanted, atol=1e-6)
    assert torch.allclose(judged, scorer.judged(context(scorer.seen)), atol=1e-6)
    assert torch.equal(scorer.forward_actor(seen), preferences) and torch.equal(scorer.forward_critic(seen), judged)


@pytest.mark.learn
@pytest.mark.slow
@pytest.mark.parametrize("preset", [pytest.param("taught", marks=pytest.mark.long), "taught-reserve"])
def test_taught_agent_in_the_environment_and_in_the_simulation(tmp_path: Path, preset: str) -> None:
    fresh = options_of({"load": 1.0, "lists": 6, "lists_seed": 2}).job_lists()
    teacher = {"hold-back": [(3, 4, 0)], "updates": [1500]}
    agent = escala.train("escala/Slots-v0", steps=1, preset=preset, seed=0, teacher=teacher, **LISTS)
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
    greedy = play(fresh, lambda seen, mask: agent.act(seen, mask, None), rescue=50, **shape)
    assert greedy["finished"].all()
    # it has learnt most of what the rule does; untaught agents are at ten times that
    assert greedy["slowdown"].mean() < 1.5 * rule


def _starts_in_the_environment(agent: escala.Agent, lists: JobLists, sampled: bool, seed: int) -> np.ndarray:
    """Start of each job of the only list, s, played as `play` does with a rescue."""
    batch = SlotsBatch(1, lists, **shaping(agent.env_options))
    turn, row, random = new_turn(batch), np.zeros(1, np.int64), np.random.default_rng(seed) if sampled else None
    for own in range(1000):  # an episode whose charts are drawn from the first shade on, as in the simulation
        batch.seed(row, np.array([own], np.uint64))
        batch.restart(row, turn, {"list": 0})
        if batch.games.memory["shade"][0] == 0:
            break
    assert batch.games.memory["shade"][0] == 0
    rescued = 0
    while not turn.terminated[0]:
        memory = batch.games.memory[0]
        silent = (
            memory["row"] - memory["last"] >= RESCUE
            and batch.worlds.world.s[0, 0]["n_ends"] == 0
            and turn.mask[0, 1:].any()
        )
        if silent and not sampled:
            turn.mask[0, 0] = False
            rescued += 1
        batch.step(agent.act(turn.observation, turn.mask, random), turn)
    assert sampled or rescued < 3 * len(lists.job)
    return np.asarray(batch.worlds.world.run[0, : len(lists.job)]["start"] / 1e6)


@pytest.mark.learn
@pytest.mark.slow
@pytest.mark.parametrize(
    "preset, sampled",
    [
        (preset, sampled)
        for preset in ("taught", "taught-reserve", "look-ahead", "cpu-memory-taught", "conv3-16", "printed")
        for sampled in (True, False)
        if preset != "printed" or not sampled  # its environment (skip="none") draws in units without a waiting job too
    ],
)
def test_an_agent_starts_every_job_when_it_does_in_the_environment(preset: str, sampled: bool) -> None:
    """Hardly taught agents, so that greedy actions fall silent too; one pool and two resources, ten slots and 32,
    charts and numbers."""
    algorithm = {"conv3-16": "a2c", "printed": "ppo"}.get(preset, "maskable-ppo")
    kinds = {} if preset in ("conv3-16", "cpu-memory-taught") else {"load": 1.0}
    known = {"arrivals_end": 100} if preset == "look-ahead" else {}
    learn = {"n_steps": 8} | ({} if preset == "conv3-16" else {"batch_size": 16})
    agent = escala.train(
        "escala/Slots-v0",
        steps=1,
        preset=preset,
        algorithm=algorithm,
        num_envs=8,
        learn=learn,
        lists=8,
        **kinds,
        **known,
    )
    model = {"model": "cpu-memory"} if preset in ("conv3-16", "cpu-memory-taught") else {"load": 1.0}
    fresh = options_of(model | {"lists": 3, "lists_seed": 7}).job_lists()
    for e in range(3):
        policy = agent.policy(sampled=sampled, seed=5)
        jobs = escala.simulate(fresh.workload(e), fresh.platform, scheduler=policy).jobs
        wanted = _starts_in_the_environment(agent, fresh.part([e]), sampled, 5)
        assert jobs["start_s"].to_list() == wanted.tolist()


def test_agents_act_as_their_preset_says() -> None:
    agent = escala.train(
        "escala/Slots-v0", steps=1, preset="taught", num_envs=2, learn={"n_steps": 8, "batch_size": 16}, **LISTS
    )
    assert agent.manifest["sampled"] and "likeliest" not in agent.policy().name
    asked = {"preset": "look-ahead", "num_envs": 2, "learn": {"n_steps": 8, "batch_size": 16}}
    agent = escala.train("escala/Slots-v0", steps=1, **asked, **LISTS)
    assert (
        not agent.manifest["sampled"]
        and "likeliest" in agent.policy().name
        and "likeliest" not in agent.policy(sampled=True).name
    )


def _learnt(agent: Any, still: Any) -> bool:
    """Has an agent other weights, all finite, than one that learnt at a rate of 0?"""
    pairs = list(zip(agent.network.parameters(), still.network.parameters(), strict=True))
    return all(torch.isfinite(a).all() for a, _ in pairs) and any(not torch.equal(a, b) for a, b in pairs)


LEARN = {"n_steps": 4, "batch_size": 4}


@pytest.mark.learn
@pytest.mark.parametrize("preset", [name for env, name in PRESETS if env == "escala/Slots-v0"])
def test_presets_train(preset: str) -> None:
    """By an algorithm of their own, which moves the weights."""
    agent, still = (
        escala.train("escala/Slots-v0", steps=1, preset=preset, num_envs=8, learn={"n_steps": 4, **rate}, **LISTS)
        for rate in ({}, {"learning_rate": 0.0})
    )
    assert _learnt(agent, still)
    r1 = ("printed", "printed-compact", "one-list")
    r2 = ("a2c", "a2c-list", "fc", "conv3-16", "conv3-32", "conv3-16-pool", "conv3-32-pool")
    assert agent.manifest["algorithm"] == ("ppo" if preset in r1 else "a2c" if preset in r2 else "maskable-ppo")


@pytest.mark.learn
def test_a_network_on_the_image_learns_by_a_masked_algorithm_too() -> None:
    given: dict[str, Any] = {"preset": "conv3-16", "num_envs": 2, "learn": LEARN, "steps": 1}
    agent = escala.train("escala/Slots-v0", algorithm="maskable-ppo", **given, **LISTS)
    given["learn"] = {**LEARN, "learning_rate": 0.0}
    assert agent.manifest["algorithm"] == "maskable-ppo"
    assert _learnt(agent, escala.train("escala/Slots-v0", algorithm="maskable-ppo", **given, **LISTS))


@pytest.mark.learn
def test_snapshots_are_whole_trainings_where_the_rate_does_not_fall(tmp_path: Path) -> None:
    """Also over an interruption; a rollout has 32 decisions."""
    given: dict[str, Any] = {
        "preset": "printed-compact",
        "num_envs": 4,
        "learn": {"n_steps": 8, "batch_size": 16},
        **LISTS,
    }
    asked = {**given, "steps": 128, "out": tmp_path / "agent", "snapshots": [90, 32, 128]}
    seen = 0

    def interrupt(share: float) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:
            raise KeyboardInterrupt

    whole = escala.train("escala/Slots-v0", **{**asked, "out": tmp_path / "whole"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "EVERY_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            escala.train("escala/Slots-v0", **asked, progress=interrupt)
    assert (tmp_path / "agent" / "after-32").is_dir() and not (tmp_path / "agent" / "after-90").exists()
    escala.train("escala/Slots-v0", **asked, resume=True)
    for n, steps in ((32, 32), (90, 96), (128, 128)):
        alone = escala.train("escala/Slots-v0", **given, steps=n)
        for folder in ("whole", "agent"):
            kept = escala.load_agent(tmp_path / folder / f"after-{n}")
            assert kept.manifest["steps_done"] == alone.manifest["steps_done"] == steps
            assert all(
                torch.equal(a, b) for a, b in zip(kept.network.parameters(), alone.network.parameters(), strict=True)
            )
    last = escala.load_agent(tmp_path / "agent").network.parameters()
    assert all(torch.equal(a, b) for a, b in zip(last, whole.network.parameters(), strict=True))


@pytest.mark.parametrize(
    "given, words",
    [
        ({"snapshots": [32]}, "snapshots need out"),
        ({"snapshots": [0], "out": "."}, r"snapshots=\[0\]: give numbers of decisions from 1 to steps=64"),
        ({"snapshots": [65], "out": "."}, "to steps=64"),
        ({"snapshots": [1.5], "out": "."}, r"snapshots=\[1.5\]"),
        ({"snapshots": 3, "out": "."}, "snapshots=3"),
    ],
)
def test_bad_snapshots_are_one_clear_line(
    given: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EscalaError, match=words):
        escala.train("escala/Slots-v0", steps=64, **given)


def _with_resources(kinds: tuple[str, ...]) -> tuple[Workload, Platform]:
    """60 jobs that ask for cores and for each of `kinds`, and their machine."""
    rng = np.random.default_rng(5)
    columns = {
        "submit_s": np.sort(rng.integers(0, 120, 60)),
        "runtime_s": rng.integers(1, 16, 60),
        "cores": rng.integers(1, 6, 60),
    }
    columns |= {f"demand_{kind}": rng.integers(0, 6, 60) for kind in kinds} | {"single_node": np.ones(60, bool)}
    return Workload.from_jobs(columns), Platform.uniform(1, 10, power=None, resources=dict.fromkeys(kinds, 8))


@pytest.mark.learn
@pytest.mark.parametrize("preset", ["a2c", "fc", "conv3-16", "cpu-memory", "cpu-memory-taught"])
def test_presets_of_drawn_lists_learn_from_a_workload_too(preset: str) -> None:
    """What a preset says of the lists that it draws is not said of others; what the caller says of them is refused."""
    jobs, machine = _with_resources(("memory",))
    given = {"preset": preset, "steps": 1, "num_envs": 4, "learn": {"n_steps": 4}}
    agent = escala.train("escala/Slots-v0", [jobs], machine, **given)
    assert not {"model", "window", "limit", "arrivals_end"} & set(agent.env_options) and agent.env_options["slots"] == 5
    assert (escala.simulate(jobs, machine, scheduler=agent).jobs["start_s"] >= jobs.jobs["submit_s"]).all()
    drawn = escala.train("escala/Slots-v0", **given, lists=8)
    assert drawn.env_options["model"] == "cpu-memory"
    with pytest.raises(EscalaError, match="model='cpu-memory': job lists are drawn with it"):
        escala.train("escala/Slots-v0", [jobs], machine, **given, model="cpu-memory")


@pytest.mark.learn
@pytest.mark.parametrize("algorithm", ["maskable-ppo", "ppo", "a2c"])
def test_a_training_of_one_rollout_learns(algorithm: str) -> None:
    given = {"algorithm": algorithm, "num_envs": 4, "learn": {"n_steps": 8, "batch_size": 16}, "seed": 1, **LISTS}
    begun = escala.train("escala/Slots-v0", steps=1, **given | {"learn": given["learn"] | {"learning_rate": 0.0}})
    for steps in (1, 32, 33):  # one rollout, just one, and two
        learnt = escala.train("escala/Slots-v0", steps=steps, **given)
        assert any((a != b).any() for a, b in zip(begun.network.parameters(), learnt.network.parameters(), strict=True))


def test_a_slotted_agent_is_no_shutdown_policy() -> None:
    lists = options_of(LISTS | {"lists": 1}).job_lists()
    agent = escala.train("escala/Slots-v0", steps=1, num_envs=2, learn={"n_steps": 4, "batch_size": 4}, **LISTS)
    with pytest.raises(EscalaError, match="is a scheduler policy, given as shutdown"):
        escala.simulate(lists.workload(0), lists.platform, scheduler="easy", shutdown=agent)


@pytest.mark.parametrize("rule", ["sjf", "sjf-strict", "packer", "tetris", "tetris-normalised", "fcfs"])
def test_three_kinds_of_resources_play_the_same_in_the_environment_and_in_the_simulation(rule: str) -> None:
    jobs, machine = _with_resources(("memory", "gpu"))
    lists = given_lists([jobs], machine, 1.0, "walltime")
    assert len(lists.kinds) == 3
    played = play(lists, rule, slots=4)
    simulated = escala.simulate(jobs, machine, scheduler=SlotPolicy(rule, slots=4)).jobs
    slowdown = (simulated["finish_s"] - simulated["submit_s"]) / simulated["runtime_s"]
    assert slowdown.mean() == pytest.approx(played["slowdown"][0], rel=1e-9) and slowdown.max() > 1.0


def test_hold_back_is_tuned_on_the_lists_that_are_given() -> None:
    lists = options_of({"load": 1.9, "lists": 20, "lists_seed": 3}).job_lists()
    hold = tune_hold_back(lists)
    best = play(lists, "hold-back", hold=hold)["slowdown"].mean()
    assert best <= min(play(lists, "hold-back", hold=(3, quiet, 0))["slowdown"].mean() for quiet in (1, 4, 10))


@pytest.mark.learn
@pytest.mark.parametrize("preset", [pytest.param("conv3-16", marks=pytest.mark.long), "fc"])
def test_a_rule_is_imitated_on_the_image(preset: str) -> None:
    """By networks whose actor and critic look for themselves, and by one that they share."""
    drawn: dict[str, Any] = {"model": "cpu-memory", "rate": 0.7, "window": 50, "lists": 32}
    fresh = options_of(drawn | {"lists_seed": 2}).job_lists().part(range(4))
    rule = play(fresh, "sjf", slots=5)["slowdown"].mean()
    chance = play(fresh, "random", slots=5)["slowdown"].mean()
    teacher = {"hold-back": [(0, 0, 0)], "updates": [150]}
    agent = escala.train(
        "escala/Slots-v0", steps=0, preset=preset, seed=0, num_envs=2, teacher=teacher, **drawn, lists_seed=1
    )
    played = play(fresh, lambda seen, mask: agent.act(seen, mask, None), rescue=RESCUE, **shaping(agent.env_options))
    assert played["finished"].all() and played["slowdown"].mean() < (rule + chance) / 2


def test_bad_teacher_and_rule_are_one_clear_line() -> None:
    with pytest.raises(EscalaError, match="lessons in files hold the compact observation"):
        escala.train(
            "escala/Slots-v0",
            steps=1,
            preset="printed",
            algorithm="ppo",
            num_envs=2,
            teacher={"lessons": ["x"]},
            **LISTS,
        )
    wrong = ("sjf", 5, [], {}, {"rollout": 8}, {"rollout": ["a"]}, {"lessons": []}, {"x": [1]})
    for teacher in wrong:
        with pytest.raises(EscalaError, match="give settings"):
            escala.train("escala/Slots-v0", steps=1, teacher=teacher, num_envs=2, **LISTS)
    for hold in ((3, 4), ("a", 4, 0), (3, 2.7, 0)):
        with pytest.raises(EscalaError, match="hold="):
            escala.train("escala/Slots-v0", steps=1, teacher=[hold], num_envs=2, **LISTS)
        with pytest.raises(EscalaError, match="hold="):
            play(options_of(LISTS).job_lists(), "hold-back", hold=hold)
    with pytest.raises(EscalaError, match="single list"):
        escala.train("escala/Slots-v0", steps=1, teacher={"plan": [1.0, 2.0]}, num_envs=2, **LISTS)
    for updates in (500, [0], [1, 2]):
        with pytest.raises(EscalaError, match="updates"):
            escala.train("escala/Slots-v0", steps=1, teacher={"rollout": [8], "updates": updates}, num_envs=2, **LISTS)
    with pytest.raises(EscalaError, match="unknown rule"):
        play(options_of(LISTS).job_lists(), "sfj")
