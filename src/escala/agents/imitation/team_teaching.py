"""A warm start for teams: imitate a rule of `escala.envs.slots.heuristics`, or look-ahead, then learn by reward.

Look-ahead (`escala.agents.imitation.team_lookahead`) tells what each choice would come to cost, from few futures: its
choices are noisy, but its costs are right in the mean. The network therefore learns from the costs: it makes the
expected regret of its own choices small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from escala.agents.imitation.team_lookahead import LookAhead
from escala.envs.slots.heuristics import TEAM_RULES as RULES
from escala.envs.slots.lists import JobLists
from escala.envs.slots.team.batch import LEAVE, MultiBatch
from escala.errors import EscalaError

ROLLOUT = "rollout"
STRAY = 0.05  # share of random choices, so that more states are seen
SMOOTHING = 0.01  # share of the wanted probabilities that is spread over all open choices
BATCH, RATE = 512, 3e-3
MOST = 400_000  # states


class Manner(NamedTuple):
    """How to teach. games: simulations that the teacher plays, at most; updates: of a network; regret: weight of the
    expected regret, in units of its mean over all choices (0: only the teacher's choices count)."""

    games: int
    updates: int
    regret: float


OF_RULE = Manner(192, 1200, 0.0)
OF_LOOK_AHEAD = Manner(280, 2000, 30.0)


class Lessons(NamedTuple):
    """States [n, numbers], masks [n, actions], the teacher's choices [n], the team's discounted rewards that followed
    each and those before it [n], and what each action costs more than the best one [n, actions] (0 where it makes no
    sense; no rows: not told)."""

    seen: NDArray[Any]
    mask: NDArray[np.bool_]
    choice: NDArray[np.int64]
    value: NDArray[np.float64]
    running: NDArray[np.float64]
    regret: NDArray[np.float32]


def check(teacher: Any) -> None:
    """EscalaError unless this is None, a rule, or {"rollout": futures}."""
    if isinstance(teacher, Mapping):
        futures = teacher.get(ROLLOUT)
        if len(teacher) == 1 and isinstance(futures, int) and not isinstance(futures, bool) and futures >= 1:
            return
    elif teacher is None or (isinstance(teacher, str) and teacher in RULES):
        return
    raise EscalaError(f'teacher={teacher!r}: use None, {{"{ROLLOUT}": futures}}, or a rule: {", ".join(RULES)}')


def lessons(
    batch: MultiBatch, teacher: str | LookAhead, gamma: float, weight: NDArray[np.float64], rng: np.random.Generator
) -> Lessons:
    """What a rule or look-ahead does. weight [lists]: of each list's rewards and regrets."""
    n = batch.num_envs
    turn, rows = batch.new_turn(), np.arange(n)
    batch.restart(rows, turn, {"list": rng.integers(0, len(batch.lists), n)})
    share = weight[batch.worlds.chosen]
    batch.games.settings["discount"] = gamma
    lists: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
    seen, masks, choices, rewards, alive, passed, regrets = lists
    done, out = np.zeros(n, bool), np.zeros(n, np.int64)
    while not done.all() and len(seen) * n < MOST:
        if isinstance(teacher, str):
            batch.decide(teacher, out)
        else:
            costs = teacher.costs(turn.mask, ~done)
            out = costs.argmin(axis=1)
            more = (costs - costs.min(axis=1, keepdims=True)) * share[:, None]
            regrets.append(np.where(np.isfinite(more), more, 0.0).astype(np.float32))
        seen.append(turn.observation.copy())
        masks.append(turn.mask.copy())
        choices.append(out.copy())
        alive.append(~done)
        strayed = np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1)
        actions = np.where(rng.random(n) < STRAY, strayed, out)
        since = batch.games.memory["row"].copy()
        batch.step(np.where(done, LEAVE, actions), turn)
        passed.append(gamma ** (batch.games.memory["row"] - since))
        rewards.append(turn.reward.mean(axis=1) * share)
        done |= turn.terminated | turn.truncated
    value = np.stack(rewards)
    running = value.copy()
    for t in range(len(value) - 2, -1, -1):
        value[t] += passed[t] * value[t + 1]
    for t in range(1, len(running)):
        running[t] += passed[t - 1] * running[t - 1]
    kept = np.array(alive)
    told = np.array(regrets)[kept] if regrets else np.zeros((0, masks[0].shape[1]), np.float32)
    return Lessons(
        np.array(seen)[kept], np.array(masks)[kept], np.array(choices)[kept], value[kept], running[kept], told
    )


def teach(
    models: list[Any],
    normalisers: list[Any],
    lists: JobLists,
    options: dict[str, Any],
    teacher: str | Mapping[str, int],
    weight: Any,
    seed: int,
    loads: int = 1,
) -> None:
    """Bring learners that have not begun to a teacher. Each imitates it from all agents' turns. loads: see
    `LookAhead`."""
    rng = np.random.default_rng([seed, 0x7EAC])
    manner = OF_RULE if isinstance(teacher, str) else OF_LOOK_AHEAD
    batch = MultiBatch(min(len(lists), manner.games), lists, **options)
    guide = teacher if isinstance(teacher, str) else LookAhead(batch, teacher[ROLLOUT], seed, loads)
    whole = lessons(batch, guide, models[0].gamma, weight, rng)
    for k, (model, normaliser) in enumerate(zip(models, normalisers, strict=True)):
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count = (
            float(whole.running.mean()),
            float(whole.running.var()),
            float(len(whole.running)),
        )
        if k > 0 and manner.regret > 0:  # the same lessons for all: one learns, the others take it over
            model.policy.load_state_dict(models[0].policy.state_dict())
        else:
            fit(model.policy, whole, float(np.sqrt(rms.var + normaliser.epsilon)), manner, rng)


def fit(policy: Any, whole: Lessons, scale: float, manner: Manner, rng: np.random.Generator) -> None:
    """Imitate. scale: what rewards are divided by."""
    state, barred, wanted = torch.as_tensor(whole.seen), torch.as_tensor(~whole.mask), torch.as_tensor(whole.choice)
    scaled = torch.as_tensor((whole.value / scale).astype(np.float32))
    regret = torch.as_tensor(whole.regret)
    some = whole.mask[:, :-1].any(axis=1)
    unit = float(whole.regret[some].sum() / whole.mask[some].sum()) if len(regret) else 1.0
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    rows_of = np.flatnonzero(some) if some.any() else np.arange(len(whole.seen))
    for update in range(manner.updates):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1.0 - update / manner.updates)
        rows = torch.as_tensor(rng.choice(rows_of, BATCH))
        hidden = policy.mlp_extractor
        logits = hidden.forward_actor(state[rows]).masked_fill(barred[rows], -1e9)
        open_ = (~barred[rows]).float()
        spread = open_ / open_.sum(dim=1, keepdim=True)
        target = (1 - SMOOTHING) * functional.one_hot(wanted[rows], logits.shape[1]) + SMOOTHING * spread
        value_of = policy.value_net(hidden.forward_critic(state[rows])).squeeze(1)
        chance = functional.log_softmax(logits, dim=1)
        loss = -(target * chance).sum(dim=1).mean() + 0.5 * functional.mse_loss(value_of, scaled[rows])
        if manner.regret > 0:
            loss = loss + manner.regret * (chance.exp() * regret[rows]).sum(dim=1).mean() / unit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
