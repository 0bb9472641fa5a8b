"""A warm start for teams: imitate a rule of `escala.envs.multi_rules`, then learn by reward."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from escala.envs.multi_batch import LEAVE, MultiBatch
from escala.envs.slots_lists import JobLists

STRAY = 0.05  # share of random choices, so that more states are seen
SMOOTHING = 0.01  # share of the wanted probabilities that is spread over all open choices
UPDATES, BATCH, RATE = 1200, 512, 3e-3
MOST = 400_000  # states


def lessons(
    batch: MultiBatch, rule: str, gamma: float, weight: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """What a rule does: states [n, numbers], masks, its choices, the team's discounted rewards that followed each, and those before it."""
    n = batch.num_envs
    turn, rows = batch.new_turn(), np.arange(n)
    batch.restart(rows, turn, {"list": rng.integers(0, len(batch.lists), n)})
    share = weight[batch.worlds.chosen]
    batch.settings["discount"] = gamma
    lists: tuple[list[Any], ...] = ([], [], [], [], [], [])
    seen, masks, choices, rewards, alive, passed = lists
    done, out = np.zeros(n, bool), np.zeros(n, np.int64)
    while not done.all() and len(seen) * n < MOST:
        batch.decide(rule, out)
        seen.append(turn.observation.copy())
        masks.append(turn.mask.copy())
        choices.append(out.copy())
        alive.append(~done)
        strayed = np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1)
        actions = np.where(rng.random(n) < STRAY, strayed, out)
        since = batch.memory["row"].copy()
        batch.step(np.where(done, LEAVE, actions), turn)
        passed.append(gamma ** (batch.memory["row"] - since))
        rewards.append(turn.reward.mean(axis=1) * share)
        done |= turn.terminated | turn.truncated
    value = np.stack(rewards)
    running = value.copy()
    for t in range(len(value) - 2, -1, -1):
        value[t] += passed[t] * value[t + 1]
    for t in range(1, len(running)):
        running[t] += passed[t - 1] * running[t - 1]
    kept = np.array(alive)
    return np.array(seen)[kept], np.array(masks)[kept], np.array(choices)[kept], value[kept], running[kept]


def teach(models: list[Any], normalisers: list[Any], lists: JobLists, options: dict[str, Any], rule: str, weight: Any, seed: int) -> None:
    """Bring learners that have not begun to a rule. Each imitates it from all agents' turns."""
    rng = np.random.default_rng([seed, 0x7EAC])
    batch = MultiBatch(min(len(lists), 192), lists, **options)
    seen, mask, choice, value, running = lessons(batch, rule, models[0].gamma, weight, rng)
    some = mask[:, :-1].any(axis=1)
    state, barred, wanted = torch.as_tensor(seen), torch.as_tensor(~mask), torch.as_tensor(choice)
    for model, normaliser in zip(models, normalisers, strict=True):
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count = float(running.mean()), float(running.var()), float(len(running))
        scaled = torch.as_tensor((value / np.sqrt(rms.var + normaliser.epsilon)).astype(np.float32))
        optimizer = torch.optim.Adam(model.policy.parameters(), lr=RATE)
        rows_of = np.flatnonzero(some) if some.any() else np.arange(len(seen))
        for update in range(UPDATES):
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1.0 - update / UPDATES)
            rows = torch.as_tensor(rng.choice(rows_of, BATCH))
            hidden = model.policy.mlp_extractor
            logits = hidden.forward_actor(state[rows]).masked_fill(barred[rows], -1e9)
            open_ = (~barred[rows]).float()
            spread = open_ / open_.sum(dim=1, keepdim=True)
            target = (1 - SMOOTHING) * functional.one_hot(wanted[rows], logits.shape[1]) + SMOOTHING * spread
            value_of = model.policy.value_net(hidden.forward_critic(state[rows])).squeeze(1)
            loss = -(target * functional.log_softmax(logits, dim=1)).sum(dim=1).mean() + 0.5 * functional.mse_loss(value_of, scaled[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
