"""A warm start for slotted agents: imitate the rule hold-back, look-ahead (rollout), or a plan of a single list, then learn by reward.

The teacher plays training lists, with now and then a random choice or a nap so that more states are seen; the network learns the teacher's
choice in each state, and the value of what followed. Without it, PPO spends most of a short training on finding out that waiting may pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from escala.agents.slot_rollout import look_ahead
from escala.envs import slots_rules
from escala.envs.batch import Turn, new_turn
from escala.envs.slots import SlotsBatch
from escala.envs.slots_lists import JobLists
from escala.envs.slots_plan import follow
from escala.errors import EscalaError

RUNS = 192  # simulations, shared by the settings of the rule
LONGEST_NAP = 60
BATCH, RATE = 256, 5e-3
PATIENCE = 4000


class Manner(NamedTuple):
    """How to teach. stray: share of random choices; nap: chance of a row of voids (long silences must have been seen, or an agent may idle
    in them for ever); updates: of the network; smoothing: share of the wanted probabilities that is spread over all open choices, so
    that the policy goes on trying."""

    stray: float
    nap: float
    updates: int
    smoothing: float


OF_RULE = Manner(0.05, 0.01, 4000, 0.01)
OF_PLAN = Manner(0.01, 0.001, 5000, 0.0)  # the way itself counts: a single list is played again and again


class Lessons(NamedTuple):
    """States [n, numbers], masks [n, actions], the rule's choices [n], discounted rewards that followed [n]."""

    seen: NDArray[np.float32]
    mask: NDArray[np.bool_]
    choice: NDArray[np.int64]
    value: NDArray[np.float64]
    running: NDArray[np.float64]  # discounted rewards so far: what rewards are scaled by


Teacher = Callable[[SlotsBatch, Turn], NDArray[np.int64]]


def hold_back(hold: Sequence[int]) -> Teacher:
    """The rule with one setting: (long, quiet, share)."""

    def choose(batch: SlotsBatch, turn: Turn) -> NDArray[np.int64]:
        for name, number in zip(("long", "quiet", "share"), hold, strict=True):
            batch.settings[name] = number
        out = np.zeros(batch.num_envs, np.int64)
        lens = batch.settings, batch.capacity, batch.memory, batch.slots, batch.starts, batch.used
        slots_rules.decide_all(batch.worlds.table, *lens, slots_rules.HOLD_BACK, out)
        return out

    return choose


def planned(wanted: Sequence[float]) -> Teacher:
    """A plan: wanted starts of the jobs of a single list, see `escala.envs.slots_plan`."""
    plan = np.asarray(wanted, np.float64)
    return lambda batch, turn: follow(batch, turn, np.broadcast_to(plan, (batch.num_envs, len(plan))))


def lessons(
    lists: JobLists, teacher: Teacher, options: Mapping[str, Any], gamma: float, n: int, rng: np.random.Generator, manner: Manner = OF_RULE
) -> Lessons:
    """What a teacher does on some of the lists."""
    batch = SlotsBatch(n, lists, **options)
    turn, rows = new_turn(batch), np.arange(n)
    batch.restart(rows, turn, {"list": rng.integers(0, len(lists), n)})
    seen: list[NDArray[np.float32]] = []
    masks: list[NDArray[np.bool_]] = []
    choices: list[NDArray[np.int64]] = []
    rewards: list[NDArray[np.float64]] = []
    alive: list[NDArray[np.bool_]] = []
    done, nap = np.zeros(n, bool), np.zeros(n, np.int64)
    while not done.all():
        if len(seen) >= PATIENCE:
            raise EscalaError("the teacher does not end a job list: give another setting")
        choice = teacher(batch, turn)
        seen.append(turn.observation.copy())
        masks.append(turn.mask.copy())
        choices.append(choice)
        alive.append(~done)
        strayed = np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1)
        nap = np.where(nap > 0, nap - 1, np.where(rng.random(n) < manner.nap, rng.integers(1, LONGEST_NAP, n), 0))
        batch.step(np.where(nap > 0, 0, np.where(rng.random(n) < manner.stray, strayed, choice)), turn)
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


def teach(model: Any, normaliser: Any, batch: Any, teacher: Sequence[Sequence[int]] | Mapping[str, Any], seed: int) -> None:
    """Bring a learner that has not begun to its teacher.

    teacher: settings (long, quiet, share) of hold-back, one for each equal part of the batch's lists; {"rollout": [K]}: look-ahead over K
    futures, which are drawn from the batch's own lists; or {"plan": wanted starts} where the batch has a single list.
    """
    if not isinstance(batch, SlotsBatch) or batch.image:
        raise EscalaError("teacher: only escala/Slots-v0 with the compact observation can be taught")
    teachers = _teachers(batch, teacher, seed)
    rng = np.random.default_rng([seed, 0x7EAC])
    n, parts = len(batch.lists), len(teachers)
    options = {name: getattr(batch.options, name) for name in ("slots", "horizon", "placement", "skip", "reward", "limit")}
    manner = OF_PLAN if isinstance(teacher, Mapping) and "plan" in teacher else OF_RULE
    runs = max(16, RUNS // parts)
    taught = [
        lessons(batch.lists.part(range(n * k // parts, n * (k + 1) // parts)), one, options, model.gamma, runs, rng, manner)
        for k, one in enumerate(teachers)
    ]
    whole = Lessons(*(np.concatenate(columns) for columns in zip(*taught, strict=True)))
    scale = 1.0
    if normaliser is not None:
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count = float(whole.running.mean()), float(whole.running.var()), float(len(whole.running))
        scale = float(np.sqrt(rms.var + normaliser.epsilon))
    _fit(model.policy, whole, scale, manner, rng)


def _teachers(batch: SlotsBatch, teacher: Sequence[Sequence[int]] | Mapping[str, Any], seed: int) -> list[Teacher]:
    """One teacher for each equal part of the batch's lists."""
    if not isinstance(teacher, Mapping):
        return [hold_back(hold) for hold in teacher]
    if list(teacher) == ["plan"] and len(batch.lists) == 1:
        return [planned(teacher["plan"])]
    if list(teacher) == ["rollout"] and len(teacher["rollout"]) == 1:
        return [look_ahead(batch.lists, int(teacher["rollout"][0]), seed)]
    raise EscalaError(
        'teacher: give settings of hold-back, {"rollout": [futures]}, or {"plan": [a wanted start for each job]} for a single list'
    )


def _fit(policy: Any, whole: Lessons, scale: float, manner: Manner, rng: np.random.Generator) -> None:
    seen, choice = torch.as_tensor(whole.seen), torch.as_tensor(whole.choice)
    barred = torch.as_tensor(~whole.mask)
    value = torch.as_tensor((whole.value / scale).astype(np.float32))
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    policy.set_training_mode(True)
    for update in range(manner.updates):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - update / manner.updates)
        rows = rng.integers(0, len(seen), BATCH)
        latent, judged = policy.mlp_extractor(seen[rows])
        logits = policy.action_net(latent).masked_fill(barred[rows], -1e8)
        chance = functional.log_softmax(logits, dim=1)
        open_choices = (~barred[rows]).float()
        wanted = (1 - manner.smoothing) * functional.one_hot(choice[rows], logits.shape[1]).float()
        wanted = wanted + manner.smoothing * open_choices / open_choices.sum(dim=1, keepdim=True)
        loss = -(wanted * chance).sum(dim=1).mean() + 0.5 * functional.mse_loss(policy.value_net(judged).squeeze(1), value[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 2.0)
        optimizer.step()
