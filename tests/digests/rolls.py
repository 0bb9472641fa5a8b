"""Environments played by chance: what is seen, paid and told in every step."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np

import escala.envs
from tests.digests.digest import Digest
from tests.digests.variants import SLOTS, TEAM, Variant, arguments

SEEDS = 8
FACES = 300
"""Steps of the environments' other faces: of one game, and of agents by name."""


def by_chance(mask: Any, rng: np.random.Generator) -> Any:
    """An action of each row that its mask allows, int64 [N]."""
    return ((1.0 - rng.random(mask.shape)) * mask).argmax(axis=1)


def rolled(variant: Variant, steps: int) -> str:
    """Eight seeds side by side."""
    return (team_rolled if variant.env == TEAM else vector_rolled)(variant, steps)


def vector_rolled(variant: Variant, steps: int) -> str:
    digest, rng = Digest(), np.random.default_rng(1)
    env = gymnasium.make_vec(variant.env, num_envs=SEEDS, **arguments(variant))
    observation, info = env.reset(seed=100)
    digest.take(observation)
    for _ in range(steps):
        mask = info["action_mask"]
        digest.take(mask)
        observation, reward, terminated, truncated, info = env.step(by_chance(mask, rng))
        digest.take(observation, reward, terminated, truncated)
        digest.take(*[info.get("final_obs")[row] for row in np.flatnonzero(info.get("_final_obs", ()))])
        take_figures(digest, info)
    return digest.text()


def take_figures(digest: Digest, info: dict[str, Any]) -> None:
    """What info tells beside mask and last observation."""
    for name in sorted(set(info) - {"action_mask", "final_obs", "_final_obs"}):
        digest.take(name, info[name])


def team_rolled(variant: Variant, steps: int) -> str:
    digest, rng, rows = Digest(), np.random.default_rng(1), np.arange(SEEDS)
    games = escala.envs.multi.batch(SEEDS, **arguments(variant))
    turn = games.new_turn()
    games.seed(rows, np.arange(100, 100 + SEEDS, dtype=np.uint64))
    games.restart(rows, turn)
    for _ in range(steps):
        digest.take(games.agent, turn.observation, turn.mask)
        games.step(by_chance(turn.mask, rng), turn)
        digest.take(turn.reward, turn.terminated, turn.truncated)
        ended = np.flatnonzero(turn.terminated | turn.truncated)
        if len(ended):
            digest.take(turn.observation[ended])
            take_figures(digest, games.info())
            games.restart(ended, turn)
    return digest.text()


def single(env_id: str) -> str:
    """The registered environment of one game, and its pictures."""
    digest, rng = Digest(), np.random.default_rng(2)
    named = "list" if env_id == SLOTS else "day"
    wanted = itertools.cycle([{named: 2}, None])
    env = gymnasium.make(env_id, render_mode="rgb_array", **arguments(Variant(env_id, {})))
    observation, info = env.reset(seed=5, options=next(wanted))
    for step in range(FACES):
        digest.take(observation, info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(int(by_chance(info["action_mask"][None], rng)[0]))
        digest.take(observation, reward, terminated, truncated)
        take_figures(digest, info)
        if step % 60 == 0:
            digest.take(env.render())
        if terminated or truncated:
            observation, info = env.reset(options=next(wanted))
    return digest.text()


def in_turn() -> str:
    """The game of a team as a `pettingzoo.AECEnv`, and its pictures."""
    digest, rng = Digest(), np.random.default_rng(3)
    env = escala.envs.multi.slots(lists=4, steps=10, render_mode="rgb_array")
    env.reset(seed=5)
    for step, agent in enumerate(env.agent_iter(FACES)):
        observation, reward, terminated, truncated, info = env.last()
        digest.take(agent, observation, reward, terminated, truncated, info["action_mask"])
        env.step(None if terminated or truncated else int(by_chance(info["action_mask"][None], rng)[0]))
        if step % 60 == 0:
            digest.take(env.render())
    return digest.text()


def at_once() -> str:
    """The game of a team as a `pettingzoo.ParallelEnv`."""
    digest, rng = Digest(), np.random.default_rng(4)
    env = escala.envs.multi.parallel(lists=4, steps=10)
    seen, infos = env.reset(seed=5)
    for _ in range(FACES):
        if not env.agents:
            seen, infos = env.reset()
        actions = {agent: int(by_chance(infos[agent]["action_mask"][None], rng)[0]) for agent in env.agents}
        for agent in env.agents:
            digest.take(agent, seen[agent], infos[agent]["action_mask"], actions[agent])
        seen, rewards, terminated, truncated, infos = env.step(actions)
        digest.take(*rewards.values(), *terminated.values(), *truncated.values())
    return digest.text()
