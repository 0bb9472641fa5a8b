"""A warm start for slotted agents: imitate the rule hold-back, look-ahead (rollout), or a plan of a single list, then
learn by reward.

The teacher plays training lists, with now and then a random choice or a nap so that more states are seen; the network
learns the teacher's choice in each state, and the value of what followed. Without it, PPO spends most of a short
training on finding out that waiting may pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from escala.agents.imitation import demonstrations
from escala.agents.imitation.demonstrations import Lessons, Teacher, play_lessons
from escala.agents.imitation.lookahead_teacher import look_ahead
from escala.agents.networks.convolutions import PART
from escala.envs.core.checks import number
from escala.envs.slots.options import check_hold
from escala.envs.slots.plan import follow
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.state import PILED
from escala.errors import EscalaError

RUNS = 192  # simulations, shared by the settings of the rule
LONG = 3  # units; longer jobs are held back by hold-pile
PASSES = 400  # over the states, at most


class Manner(NamedTuple):
    """How to teach. stray: share of random choices; nap: chance of a row of voids (long silences must have been seen,
    or an agent may idle in them for ever); updates: of the network, at most, from `batch` states each, at the (falling)
    rate `rate`; smoothing: share of the wanted probabilities that is spread over all open choices, so that the policy
    goes on trying; straight: share of the teacher's runs without strays and naps."""

    stray: float
    nap: float
    updates: int
    smoothing: float
    batch: int = 256
    rate: float = 5e-3
    straight: float = 0.0


OF_RULE = Manner(0.05, 0.01, 4000, 0.01)
OF_LOOK_AHEAD = Manner(0.05, 0.01, 4500, 0.01, 512, 3e-3)
OF_PILE = Manner(0.05, 0.01, 9000, 0.01, 512, 3e-3)
# a single list is played again and again: the way itself counts
OF_PLAN = Manner(0.02, 0.003, 12000, 0.0, straight=0.5)
ON_IMAGES = {"batch": 128, "rate": 5e-4}  # thousands of inputs move a preference at once: smaller steps


def planned(wanted: Sequence[float]) -> Teacher:
    """A plan: wanted starts of the jobs of a single list, see `escala.envs.slots.plan`."""
    plan = np.asarray(wanted, np.float64)
    return lambda batch, turn: follow(batch, turn, np.broadcast_to(plan, (batch.num_envs, len(plan))))


def teach(
    model: Any, normaliser: Any, batch: Any, teacher: Sequence[Sequence[int]] | Mapping[str, Any], seed: int
) -> None:
    """Bring a learner that has not begun to its teacher.

    teacher: settings (long, quiet, share) of hold-back, one for each equal part of the batch's lists (or {"hold-back":
    settings}); {"rollout": [K]}: look-ahead over K futures, which are drawn from the batch's own lists; {"lessons":
    files} of `escala.agents.imitation.demonstrations.record` (not on images); {"pile": numbers} of the rule hold-pile;
    or {"plan": wanted starts} where the batch has a single list. Beside these, {"updates": [N]}: so many updates of the
    network at most, in place of the usual number.
    """
    if not isinstance(batch, SlotsBatch):
        raise EscalaError("teacher: only escala/Slots-v0 can be taught")
    rng = np.random.default_rng([seed, 0x7EAC])
    check(teacher)
    teacher, most = _without_updates(teacher)
    kind = next(iter(teacher)) if isinstance(teacher, Mapping) and len(teacher) == 1 else ""
    manner = {"plan": OF_PLAN, "pile": OF_PILE, "rollout": OF_LOOK_AHEAD, "lessons": OF_LOOK_AHEAD}.get(kind, OF_RULE)
    manner = manner._replace(**{**(ON_IMAGES if batch.image else {}), **({} if most is None else {"updates": most})})
    if kind == "lessons":
        if batch.image:
            raise EscalaError(
                "teacher: lessons in files hold the compact observation: give a rule to imitate on images"
            )
        shape = {name: getattr(batch.options, name) for name in demonstrations.SHAPE}
        whole = demonstrations.read(teacher["lessons"], shape, model.gamma)  # type: ignore[call-overload]
    else:
        whole = _played(batch, _teachers(batch, teacher, seed), model.gamma, manner, rng)
    scale = 1.0
    if normaliser is not None:
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count = (
            float(whole.running.mean()),
            float(whole.running.var()),
            float(len(whole.running)),
        )
        scale = float(np.sqrt(rms.var + normaliser.epsilon))
    _fit(model.policy, whole, scale, manner, rng)


def _without_updates(teacher: Any) -> tuple[Any, int | None]:
    """(the teacher, updates at most or None)."""
    if not isinstance(teacher, Mapping) or "updates" not in teacher:
        return teacher, None
    most = teacher["updates"]
    if (
        not isinstance(most, Sequence)
        or len(most) != 1
        or not isinstance(most[0], int)
        or isinstance(most[0], bool)
        or most[0] < 1
    ):
        raise EscalaError(f"teacher: updates={most!r}: give one whole number >= 1 in a list")
    return {name: value for name, value in teacher.items() if name != "updates"}, most[0]


def _played(
    batch: SlotsBatch, teachers: Sequence[Teacher], gamma: float, manner: Manner, rng: np.random.Generator
) -> Lessons:
    """Every teacher plays its part of the lists."""
    n, parts = len(batch.lists), len(teachers)
    options = {name: getattr(batch.options, name) for name in (*demonstrations.SHAPE, "limit", "observation", "dtype")}
    strays = {"stray": manner.stray, "nap": manner.nap, "straight": manner.straight}
    taught = [
        play_lessons(
            batch.lists.part(range(n * k // parts, n * (k + 1) // parts)),
            one,
            options,
            gamma,
            max(16, RUNS // parts),
            rng,
            **strays,
        )
        for k, one in enumerate(teachers)
    ]
    return Lessons(*(np.concatenate(columns) for columns in zip(*taught, strict=True)))


def _teachers(batch: SlotsBatch, teacher: Any, seed: int) -> list[Teacher]:
    """One teacher for each equal part of the batch's lists."""
    teacher = teacher.get("hold-back", teacher) if isinstance(teacher, Mapping) else teacher
    if not isinstance(teacher, Mapping):
        return [demonstrations.rule("hold-back", hold) for hold in teacher]
    if "pile" in teacher:
        return [demonstrations.rule("hold-pile", (LONG, 0, 0), teacher["pile"])]
    if "plan" in teacher:
        jobs = int(batch.lists.jobs_of[0])
        if len(batch.lists) != 1 or len(teacher["plan"]) != jobs:
            raise EscalaError(f"teacher: a plan needs a single list, and a wanted start for each of its {jobs} jobs")
        return [planned(teacher["plan"])]
    return [look_ahead(batch.lists, int(teacher["rollout"][0]), seed)]


def check(teacher: Any) -> None:
    """EscalaError where it is no teacher, see `teach`."""
    rest, _ = _without_updates(teacher)
    kind, given = next(iter(rest.items())) if isinstance(rest, Mapping) and len(rest) == 1 else ("hold-back", rest)
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) > 0
    fine = {
        "hold-back": lambda: not isinstance(given, Mapping),
        "plan": lambda: all(number(v) for v in given),
        "pile": lambda: len(given) == PILED and all(number(v) for v in given),
        "lessons": lambda: all(isinstance(v, str | Path) for v in given),
        "rollout": lambda: len(given) == 1 and number(given[0]) and given[0] == int(given[0]) >= 1,
    }
    if not several or kind not in fine or not fine[kind]():
        raise EscalaError(
            f"teacher={teacher!r}: give settings (long, quiet, share) of hold-back in a list, {{'rollout': "
            f"[futures]}}, {{'lessons': [files]}}, {{'pile': [the numbers of hold-pile]}}, or {{'plan': [a wanted "
            f"start for each job]}} for a single list"
        )
    for hold in given if kind == "hold-back" else ():
        check_hold(hold)


def _latent(policy: Any, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What a policy's heads for actions and for values take. Images go through the network's filters, in parts (see
    `convolutions`)."""
    if seen.ndim == 2:
        actor, critic = policy.mlp_extractor(seen)
        return actor, critic
    parts = []
    for part in seen.split(PART):
        found = policy.extract_features(part)
        actor, critic = found if isinstance(found, tuple) else (found, found)
        parts.append((policy.mlp_extractor.forward_actor(actor), policy.mlp_extractor.forward_critic(critic)))
    return torch.cat([actor for actor, _ in parts]), torch.cat([critic for _, critic in parts])


def _fit(policy: Any, whole: Lessons, scale: float, manner: Manner, rng: np.random.Generator) -> None:
    seen, barred = torch.as_tensor(whole.seen), torch.as_tensor(~whole.mask)
    value = torch.as_tensor((whole.value / scale).astype(np.float32))
    wanted = (1 - manner.smoothing) * functional.one_hot(torch.as_tensor(whole.choice), barred.shape[1]).float()
    wanted += manner.smoothing * (~barred).float() / (~barred).sum(dim=1, keepdim=True)
    weights = list(policy.parameters())
    optimizer = torch.optim.Adam(weights, lr=manner.rate, fused=True)
    policy.set_training_mode(True)
    updates = min(manner.updates, 1 + PASSES * len(seen) // manner.batch)
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = manner.rate * (1 - update / updates)
        rows = torch.as_tensor(rng.integers(0, len(seen), manner.batch))
        latent, judged = _latent(policy, seen[rows])
        chance = functional.log_softmax(policy.action_net(latent).masked_fill(barred[rows], -1e8), dim=1)
        loss = -(wanted[rows] * chance).sum(dim=1).mean() + 0.5 * functional.mse_loss(
            policy.value_net(judged).squeeze(1), value[rows]
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
