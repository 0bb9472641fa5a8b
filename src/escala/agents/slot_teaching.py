"""A warm start for slotted agents: imitate the rule hold-back, then learn by reward.

The rule plays training lists, with now and then a random choice or a nap so that more states are seen; the network learns the rule's
choice in each state, and the value of what followed. Without it, PPO spends most of a short training on finding out that waiting may pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from escala.envs import slots_rules
from escala.envs.batch import new_turn
from escala.envs.slots import SlotsBatch
from escala.envs.slots_lists import JobLists
from escala.errors import EscalaError

RUNS = 192  # simulations, shared by the settings of the rule
STRAY = 0.05  # share of random choices
NAP, LONGEST_NAP = (
    0.01,
    60,
)  # chance of a row of voids, and its length: long silences must have been seen, or an agent may idle in them for ever
UPDATES, BATCH, RATE = 1500, 256, 5e-3
SMOOTHING = 0.05  # of the choices, so that the policy goes on trying
PATIENCE = 4000


class Lessons(NamedTuple):
    """States [n, numbers], masks [n, actions], the rule's choices [n], discounted rewards that followed [n]."""

    seen: NDArray[np.float32]
    mask: NDArray[np.bool_]
    choice: NDArray[np.int64]
    value: NDArray[np.float64]
    running: NDArray[np.float64]  # discounted rewards so far: what rewards are scaled by


def lessons(lists: JobLists, hold: Sequence[int], options: Mapping[str, Any], gamma: float, n: int, rng: np.random.Generator) -> Lessons:
    """The rule with one setting on some of the lists."""
    batch = SlotsBatch(n, lists, **options)
    for name, number in zip(("long", "quiet", "share"), hold, strict=True):
        batch.settings[name] = number
    turn, rows = new_turn(batch), np.arange(n)
    batch.restart(rows, turn, {"list": rng.integers(0, len(lists), n)})
    seen: list[NDArray[np.float32]] = []
    masks: list[NDArray[np.bool_]] = []
    choices: list[NDArray[np.int64]] = []
    rewards: list[NDArray[np.float64]] = []
    alive: list[NDArray[np.bool_]] = []
    done, choice, nap = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    while not done.all():
        if len(seen) >= PATIENCE:
            raise EscalaError(f"the rule hold-back {list(hold)} does not end a job list: give another setting")
        lens = batch.settings, batch.capacity, batch.memory, batch.slots, batch.starts, batch.used
        slots_rules.decide_all(batch.worlds.table, *lens, slots_rules.HOLD_BACK, choice)
        seen.append(turn.observation.copy())
        masks.append(turn.mask.copy())
        choices.append(choice.copy())
        alive.append(~done)
        strayed = np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1)
        nap = np.where(nap > 0, nap - 1, np.where(rng.random(n) < NAP, rng.integers(1, LONGEST_NAP, n), 0))
        batch.step(np.where(nap > 0, 0, np.where(rng.random(n) < STRAY, strayed, choice)), turn)
        rewards.append(np.where(done, 0.0, turn.reward))
        done |= turn.terminated | turn.truncated
    value: NDArray[np.float64] = np.stack(rewards)
    running = value.copy()
    for t in range(len(rewards) - 2, -1, -1):
        value[t] += gamma * value[t + 1]
    for t in range(1, len(rewards)):
        running[t] += gamma * running[t - 1]
    kept = np.array(alive)
    return Lessons(np.array(seen)[kept], np.array(masks)[kept], np.array(choices)[kept], value[kept], running[kept])


def teach(model: Any, normaliser: Any, batch: Any, holds: Sequence[Sequence[int]], seed: int) -> None:
    """Bring a learner that has not begun to the rule. holds: (long, quiet, share) for each equal part of the batch's lists."""
    if not isinstance(batch, SlotsBatch) or batch.image:
        raise EscalaError("teacher: only escala/Slots-v0 with the compact observation can be taught by the rule hold-back")
    rng = np.random.default_rng([seed, 0x7EAC])
    n, parts = len(batch.lists), len(holds)
    options = {name: getattr(batch.options, name) for name in ("slots", "horizon", "placement", "skip", "reward", "limit")}
    taught = [
        lessons(batch.lists.part(range(n * k // parts, n * (k + 1) // parts)), hold, options, model.gamma, max(16, RUNS // parts), rng)
        for k, hold in enumerate(holds)
    ]
    whole = Lessons(*(np.concatenate(columns) for columns in zip(*taught, strict=True)))
    scale = 1.0
    if normaliser is not None:
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count = float(whole.running.mean()), float(whole.running.var()), float(len(whole.running))
        scale = float(np.sqrt(rms.var + normaliser.epsilon))
    _fit(model.policy, whole, scale, rng)


def _fit(policy: Any, whole: Lessons, scale: float, rng: np.random.Generator) -> None:
    seen, choice = torch.as_tensor(whole.seen), torch.as_tensor(whole.choice)
    barred = torch.as_tensor(~whole.mask)
    value = torch.as_tensor((whole.value / scale).astype(np.float32))
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    policy.set_training_mode(True)
    for update in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - update / UPDATES)
        rows = rng.integers(0, len(seen), BATCH)
        latent, judged = policy.mlp_extractor(seen[rows])
        logits = policy.action_net(latent).masked_fill(barred[rows], -1e8)
        chance = functional.log_softmax(logits, dim=1)
        open_choices = (~barred[rows]).float()
        wanted = (1 - SMOOTHING) * functional.one_hot(choice[rows], logits.shape[1]).float()
        wanted = wanted + SMOOTHING * open_choices / open_choices.sum(dim=1, keepdim=True)
        loss = -(wanted * chance).sum(dim=1).mean() + 0.5 * functional.mse_loss(policy.value_net(judged).squeeze(1), value[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 2.0)
        optimizer.step()
