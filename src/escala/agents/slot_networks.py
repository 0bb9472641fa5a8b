"""Networks that score slots: one small network, the same for every slot, gives each visible job a preference, and another the void.

With s_k the features of slot k and g the rest of the compact observation (free rows, backlog, arrivals):

    e = mean over k of relu(E s_k);  c = relu(C [g, e]);  preference of slot k = u . relu(A s_k + B c);  of the void = v . relu(D c)

The value has E, C and a hidden layer of its own. Jobs may change slots without any effect, and what is learnt about one slot holds for
all. Beside the separate 20-unit networks of R1 it learns faster and better (docs/studies/grid2019).
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from escala.envs.slots_observe import CLOCK, GLOBAL, SLOT
from escala.errors import EscalaError

SLOT_SCORER = "slot-scorer"
"""How presets name these networks."""


def split_of(numbers: int, slots: int, horizon: int) -> tuple[int, int]:
    """(features a slot, numbers after the slots) of a compact observation."""
    kinds, rest = divmod(numbers - SLOT * slots - GLOBAL, slots + horizon)
    if rest not in (0, CLOCK) or kinds < 1:
        raise EscalaError(f"slot-scorer reads the compact observation of {slots} slots and {horizon} rows, not {numbers} numbers")
    return SLOT + kinds, kinds * horizon + GLOBAL + rest


class Context(nn.Module):
    """c of the formula above."""

    def __init__(self, features: int, rest: int, embedded: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, embedded)
        self.mix = nn.Linear(rest + embedded, hidden)

    def forward(self, jobs: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """[batch, slots, features], [batch, rest] -> [batch, hidden]."""
        mean = torch.relu(self.embed(jobs)).mean(dim=1)
        return torch.relu(self.mix(torch.cat([rest, mean], dim=1)))


class SlotScorer(nn.Module):
    """Takes the place of stable-baselines3's two towers: preferences for the policy, a hidden layer for the value."""

    def __init__(self, numbers: int, slots: int, horizon: int, embedded: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.slots = slots
        self.features, rest = split_of(numbers, slots, horizon)
        self.latent_dim_pi, self.latent_dim_vf = slots + 1, hidden
        self.context = Context(self.features, rest, embedded, hidden)
        self.of_job = nn.Linear(self.features, embedded)
        self.of_context = nn.Linear(hidden, embedded, bias=False)
        self.preference = nn.Linear(embedded, 1)
        self.void = nn.Sequential(nn.Linear(hidden, embedded), nn.ReLU(), nn.Linear(embedded, 1))
        self.seen = Context(self.features, rest, embedded, hidden)
        self.judged = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[batch, numbers] -> preferences [batch, 1 + slots], hidden layer of the value [batch, hidden]."""
        return self.forward_actor(numbers), self.forward_critic(numbers)

    def _parts(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        end = self.slots * self.features
        return numbers[:, :end].reshape(-1, self.slots, self.features), numbers[:, end:]

    def forward_actor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Preferences: the void, then the slots."""
        jobs, rest = self._parts(numbers)
        context = self.context(jobs, rest)
        hidden = torch.relu(self.of_job(jobs) + self.of_context(context).unsqueeze(1))
        return torch.cat([self.void(context), self.preference(hidden).squeeze(2)], dim=1)

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """What the value is read from."""
        out: torch.Tensor = self.judged(self.seen(*self._parts(numbers)))
        return out


def _first_small(scorer: SlotScorer) -> None:
    """Begin with nearly equal preferences, as stable-baselines3 does for its own action layer."""
    for layer in (scorer.preference, scorer.void[2]):
        nn.init.orthogonal_(layer.weight, gain=0.01)


class _Scoring:
    """What both policy classes share; comes before them."""

    def __init__(self, *given: Any, horizon: int = 20, sizes: tuple[int, ...] = (), **more: Any) -> None:
        self._horizon, self._sizes = horizon, sizes
        super().__init__(*given, **more)

    def _build_mlp_extractor(self: Any) -> None:
        slots = int(self.action_space.n) - 1
        self.mlp_extractor = SlotScorer(self.features_dim, slots, self._horizon, *self._sizes)
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # the preferences are the logits

    def _build(self: Any, lr_schedule: Any) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]
        _first_small(self.mlp_extractor)


class MaskedSlotPolicy(_Scoring, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class PlainSlotPolicy(_Scoring, ActorCriticPolicy):
    """For PPO and A2C, without masks."""
