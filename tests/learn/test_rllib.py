"""RLlib on Escala's environments: on native batches with masks, and through the faces of Gymnasium and PettingZoo (only
where ray is installed)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="the extra rllib is not installed")

import torch

import escala
from escala import EscalaError
from escala.agents import trials
from escala.agents.networks.build import build_policy
from escala.envs import multi


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """RLlib by itself starts a Ray of the process, and leaves it running."""
    yield
    import ray

    ray.shutdown()


@pytest.mark.slow
@pytest.mark.learn
def test_rllib_trains_one_iteration() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
    from ray.tune.registry import register_env

    register_env("escala_multi", lambda _: ParallelPettingZooEnv(multi.parallel(agents=2, load=0.9, limit=50, lists=8)))
    config = (
        PPOConfig()
        .environment("escala_multi")
        .multi_agent(policies={"agent_0", "agent_1"}, policy_mapping_fn=lambda agent, *_, **__: agent)
        .env_runners(num_env_runners=0)
        .training(train_batch_size=400, minibatch_size=64, num_epochs=1)
    )
    learner = config.build_algo()
    try:
        found = learner.train()
    finally:
        learner.stop()
    assert math.isfinite(found["env_runners"]["episode_return_mean"])


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ray.md"


@pytest.mark.slow
@pytest.mark.learn
@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, r"RLlib +mean slowdown \d.*hold-back +mean slowdown \d"),
        (1, r"sjf +mean slowdown \d.*RLlib +mean slowdown \d"),
        (2, r"-\d+"),
    ],
)
def test_the_page_on_ray(number: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its scripts as they stand, but for the length of the training and the number of lists."""
    block = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[number]
    shorter = {
        r"^STEPS = .*": "STEPS = 512",
        r"^ITERATIONS, BATCH = 10, 4000": "ITERATIONS, BATCH = 1, 256",
        r'"?lists"?(=|: )\d+': None,
    }
    for long, short in shorter.items():
        block = re.sub(long, short or (lambda match: match[0].rstrip("0123456789") + "4"), block, flags=re.MULTILINE)
    exec(block, {})
    assert re.search(told, capsys.readouterr().out, re.DOTALL)


SMALL = {"load": 0.9, "lists": 8, "num_envs": 16, "learn": {"n_steps": 16, "batch_size": 64}, "preset": "reserve"}


def test_an_agent_of_rllib_is_an_agent_of_escala(tmp_path: Path) -> None:
    """Trained with the masks, saved, read, and equal for equal seeds."""
    made = [
        escala.train("escala/Slots-v0", algorithm="rllib-ppo", steps=512, seed=3, out=tmp_path / str(k), **SMALL)
        for k in range(2)
    ]
    assert made[0].manifest["steps_done"] == 512 and made[0].manifest["algorithm"] == "rllib-ppo"
    first, second = (agent.network.state_dict() for agent in made)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    begun = build_policy(
        made[0].manifest, made[0].network.observation_space, made[0].network.action_space, 3
    ).state_dict()
    assert any(not torch.equal(value, begun[name]) for name, value in first.items()), "nothing was learnt"
    read = escala.load_agent(tmp_path / "0")
    seen = torch.rand(4, *read.network.observation_space.shape).numpy()
    assert np.array_equal(read.logits(seen), made[0].logits(seen))


@pytest.mark.slow
@pytest.mark.learn
def test_seeds_side_by_side_are_the_agents_of_one_process(tmp_path: Path) -> None:
    """Each in a task of Ray, in which RLlib finds itself: the same table and weights as in this process."""
    import ray

    given = {name: value for name, value in SMALL.items() if name != "preset"} | {
        "algorithm": "rllib-ppo",
        "steps": 512,
    }
    asked = {"presets": ["reserve"], "seeds": [0, 1], **given}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    here, there = (
        trials.trials("escala/Slots-v0", None, None, out=tmp_path / on, on=on, **asked) for on in ("local:1", "ray")
    )
    assert here["error"].null_count() == 2 and here.drop("train_s").equals(there.drop("train_s"))
    for name in here["agent"]:
        one, other = (escala.load_agent(tmp_path / on / name).network.state_dict() for on in ("local:1", "ray"))
        assert all(torch.equal(value, other[key]) for key, value in one.items())


def test_pieces_of_a_rollout_are_what_the_environments_gave() -> None:
    """Actions that the masks allow, returns that add up to those of the episodes, ends where an episode ends, and
    probabilities of the network that drew."""
    runner = _runner()
    pieces = runner.sample(num_timesteps=400 * 16, explore=True)
    assert sum(len(one) for one in pieces) == 400 * 16
    ended = [one for one in pieces if one.is_done]
    assert ended and all(one.is_terminated for one in ended)
    for one in pieces:
        seen, mask = one.get_observations()["observations"], one.get_observations()["action_mask"]
        actions = one.get_actions()
        assert len(seen) == len(actions) + 1
        assert mask[np.arange(len(actions)), actions].all(), "an action that the mask forbids"
        drawn = runner.module.policy.get_distribution(
            torch.as_tensor(seen[:-1]), action_masks=torch.as_tensor(mask[:-1])
        )
        told = drawn.distribution.log_prob(torch.as_tensor(actions)).detach().numpy()
        assert np.allclose(told, one.get_extra_model_outputs("action_logp"), atol=1e-5)
    told = runner.get_metrics()
    assert np.isfinite(told["episode_return_mean"].peek())
    whole = [one for one in ended if one.get_observations()["observations"].shape[0] > 1]
    assert len(whole) == len(ended)


def test_agents_with_networks_of_their_own_play_by_them() -> None:
    """Each agent's pieces name it, come from games in which it learns, as many for each, and are drawn by its own
    network."""
    from escala.agents.rllib.training import configured, of_team
    from escala.agents.training.team.presets import PRESETS
    from escala.envs.slots.team.batch import MultiBatch

    preset, given = PRESETS["from-nothing"], {"agents": 3, "load": 0.9, "lists": 8, "skip": "forced", "limit": 60}
    request = {"mode": "simultaneous", "learn": dict(preset.learn), "num_envs": 4, "steps": 1024, "seed": 1}
    task = of_team(MultiBatch(1, None, **given), given, request, preset)
    config = configured(task)
    runner = config.env_runner_cls(config=config, worker_index=0)
    pieces = runner.sample(num_timesteps=100 * 12, explore=True)
    assert [sum(len(one) for one in pieces if one.module_id == one.agent_id == f"agent_{k}") for k in range(3)] == [
        400
    ] * 3
    begun = dict(zip(task.names, task.networks(), strict=True))
    worst = dict.fromkeys(begun, 0.0)
    for one in pieces:
        shown, actions = one.get_observations(), one.get_actions()
        seen, mask = torch.as_tensor(shown["observations"][:-1]), torch.as_tensor(shown["action_mask"][:-1])
        assert mask[np.arange(len(actions)), actions].all(), "an action that the mask forbids"
        for name, network in begun.items():
            drawn = (
                network.get_distribution(seen, action_masks=mask)
                .distribution.log_prob(torch.as_tensor(actions))
                .detach()
                .numpy()
            )
            gap = float(np.abs(drawn - one.get_extra_model_outputs("action_logp")).max())
            assert gap < 1e-5 or name != one.agent_id
            worst[name] = max(worst[name], gap)
    assert min(worst.values()) > 1e-3, "the networks are one"


def _runner() -> Any:
    from escala.agents.presets import preset_of
    from escala.agents.rllib.training import configured, of_environment

    preset = preset_of("escala/Slots-v0", "reserve")
    options = {**preset.environment, **preset.drawn, "load": 0.9, "lists": 8}
    request = {
        "env_id": "escala/Slots-v0",
        "env_options": options,
        "preset": "reserve",
        "num_envs": 16,
        "steps": 1024,
        "seed": 1,
    }
    shape = {name: getattr(preset, name) for name in ("network", "extractor", "separate", "relu", "ordered")}
    request |= {"learn": dict(preset.learn), "algorithm": "rllib-ppo"}
    config = configured(of_environment(request, request | shape, None, None))
    return config.env_runner_cls(config=config, worker_index=0)


def test_what_rllib_does_not_know_is_refused() -> None:
    for wrong in ({"imitate": "rollout"}, {"track": "tensorboard:x"}, {"curve": True}):
        with pytest.raises(EscalaError, match="means nothing to RLlib"):
            escala.train("escala/Slots-v0", algorithm="rllib-ppo", steps=512, **wrong, **SMALL)


def test_advantages_are_discounted_by_the_time_that_passed() -> None:
    """By hand: two pieces with a step behind each; the first ends, the second is cut. Choices that take no time cost no
    discount."""
    from escala.agents.rllib.timed import advantages

    rewards, values = np.array([0.0, -1.0, 0.0, -2.0, 0.0]), np.array([4.0, 2.0, 9.0, 1.0, 3.0])
    discounts = np.array([1.0, 0.5, 1.0, 0.25, 1.0])
    ended, cut = np.array([0.0, 1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    found = advantages(rewards, values, discounts, ended, cut, 0.5)
    assert found[1] == -1.0 - 2.0 and found[3] == -2.0 + 0.25 * 3.0 - 1.0
    assert found[0] == 0.0 + 1.0 * 2.0 - 4.0 + 1.0 * 0.5 * found[1]


@pytest.mark.slow
@pytest.mark.learn
def test_a_team_of_rllib_is_a_team_of_escala(tmp_path: Path) -> None:
    """Saved, read, and it has learnt with discounts of time: equal for equal seeds, other weights where the discounts
    are of choices."""
    from escala.agents import load_team, train_team
    from escala.agents.training.team.view import NetworksView

    small = {
        "mode": "shared",
        "preset": "from-nothing",
        "algorithm": "rllib-ppo",
        "agents": 2,
        "lists": 8,
        "num_envs": 8,
        "steps": 512,
    }
    made = [
        train_team(**small, seed=3, out=tmp_path / str(k), learn={"n_steps": 32, "batch_size": 64}) for k in range(2)
    ]
    first, second = (team.networks[0].state_dict() for team in made)
    assert (
        all(torch.equal(value, second[name]) for name, value in first.items()) and made[0].manifest["steps_done"] == 512
    )
    read = load_team(tmp_path / "0")
    assert all(torch.equal(value, first[name]) for name, value in read.networks[0].state_dict().items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NetworksView, "_discount", lambda view: np.full(view.num_envs, 0.99))
        other = train_team(**small, seed=3, learn={"n_steps": 32, "batch_size": 64}).networks[0].state_dict()
    assert any(not torch.equal(value, other[name]) for name, value in first.items())


@pytest.mark.slow
@pytest.mark.learn
def test_a_team_of_rllib_may_have_a_network_for_each_agent(tmp_path: Path) -> None:
    """Each has learnt, from its own games: saved, read, judged, and equal for equal seeds, in a process of its own
    too."""
    from escala.agents import load_team, train_team

    small = {
        "mode": "simultaneous",
        "preset": "from-nothing",
        "algorithm": "rllib-ppo",
        "agents": 2,
        "lists": 8,
        "num_envs": 8,
    }
    learn = {"n_steps": 32, "batch_size": 64}
    made = [train_team(**small, steps=1024, seed=3, out=tmp_path / str(k), learn=learn) for k in range(2)]
    still = train_team(**small, steps=1024, seed=3, learn=learn | {"learning_rate": 0.0, "num_env_runners": 1})
    assert [team.manifest["steps_done"] for team in (*made, still)] == [1024] * 3
    states = [[network.state_dict() for network in team.networks] for team in (*made, still, load_team(tmp_path / "0"))]
    for first, second, begun, read in zip(*states, strict=True):
        assert all(torch.equal(first[name], second[name]) and torch.equal(first[name], read[name]) for name in first)
        assert any(not torch.equal(value, begun[name]) for name, value in first.items()), "nothing was learnt"
    assert any(not torch.equal(value, states[0][1][name]) for name, value in states[0][0].items())
    found = multi.play(
        multi.job_lists(agents=2, load=0.9, lists=4, lists_seed=7), load_team(tmp_path / "0").members(), agents=2
    )
    assert (found["slowdown"] >= 1.0).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "turns"}, "mode='simultaneous'"),
        ({"observation": "image"}, "compact observations"),
        ({"preset": "tuned"}, "teacher means nothing"),
        ({"algorithm": "x"}, "unknown algorithm"),
    ],
)
def test_what_rllib_cannot_do_for_teams_is_one_line(change: dict[str, str], said: str) -> None:
    with pytest.raises(EscalaError, match=said):
        escala.agents.train_team(
            **{"mode": "shared", "preset": "from-nothing", "algorithm": "rllib-ppo", "steps": 10, **change}
        )
