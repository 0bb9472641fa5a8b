"""Networks that score slots: one small network, the same for every slot, gives each visible job a preference, and
another the no-op.

With s_k the features of slot k and g the rest of the compact observation (free rows, backlog, arrivals):

    e = mean over k of relu(E s_k);  c = relu(C [g, e]);  preference of slot k = u . relu(A s_k + B c);  of the no-op =
    v . relu(D c)

The value has E, C and a hidden layer of its own. Jobs may change slots without any effect, and what is learnt about one
slot holds for all. From nothing it learns more than one hidden layer of R1's 20 units, or of 64, from as many decisions
and in as much processor time: a measurement beside the study, told in docs/studies/grid2019.

An empty slot's features are all 0, so that it adds relu(bias of E) to the mean, and its preference is u . relu(bias of
A + B c): all of them are worked through as one (`escala.agents.networks.slot_layers`), as most of a long window is
empty most of the time.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from escala.agents.networks.slot_layers import mean_embedding, preferences


class Context(nn.Module):
    """c of the formula above."""

    def __init__(self, features: int, rest: int, embedded: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, embedded)
        self.mix = nn.Linear(rest + embedded, hidden)

    def forward(self, mean: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """e [batch, embedded], g [batch, rest] -> [batch, hidden]."""
        return torch.relu(self.mix(torch.cat([rest, mean], dim=1)))


class SlotScorer(nn.Module):
    """Takes the place of stable-baselines3's two towers: preferences for the policy, a hidden layer for the value.
    features: numbers of a slot."""

    def __init__(self, numbers: int, slots: int, features: int, embedded: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.slots, self.features = slots, features
        rest = numbers - slots * features
        self.latent_dim_pi, self.latent_dim_vf = slots + 1, hidden
        self.context = Context(self.features, rest, embedded, hidden)
        self.of_job = nn.Linear(self.features, embedded)
        self.of_context = nn.Linear(hidden, embedded, bias=False)
        self.preference = nn.Linear(embedded, 1)
        # the no-op; named so in kept weights
        self.void = nn.Sequential(nn.Linear(hidden, embedded), nn.ReLU(), nn.Linear(embedded, 1))
        self.seen = Context(self.features, rest, embedded, hidden)
        self.judged = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[batch, numbers] -> preferences [batch, 1 + slots], hidden layer of the value [batch, hidden]."""
        both = self.context.embed, self.seen.embed
        weight, bias = torch.cat([embed.weight for embed in both]), torch.cat([embed.bias for embed in both])
        mine, judges = mean_embedding(numbers, self.slots, weight, bias).chunk(2, dim=1)
        return self._preferences(numbers, mine), self._judge(numbers, judges)

    def forward_actor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Preferences: the no-op, then the slots."""
        embed = self.context.embed
        return self._preferences(numbers, mean_embedding(numbers, self.slots, embed.weight, embed.bias))

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """What the value is read from."""
        embed = self.seen.embed
        return self._judge(numbers, mean_embedding(numbers, self.slots, embed.weight, embed.bias))

    def _rest(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers[:, self.slots * self.features :]

    def _preferences(self, numbers: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        context = self.context(mean, self._rest(numbers))
        job, score = self.of_job, self.preference
        of_slots = (
            preferences(numbers, self.slots, job.weight, job.bias, self.of_context(context), score.weight[0])
            + score.bias
        )
        return torch.cat([self.void(context), of_slots], dim=1)

    def _judge(self, numbers: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.judged(self.seen(mean, self._rest(numbers)))
        return out


def _first_small(scorer: SlotScorer) -> None:
    """Begin with nearly equal preferences, as stable-baselines3 does for its own action layer."""
    for layer in (scorer.preference, scorer.void[2]):
        nn.init.orthogonal_(layer.weight, gain=0.01)


class _Scoring:
    """What both policy classes share; comes before them."""

    def __init__(self, *given: Any, features: int, sizes: tuple[int, ...] = (), **more: Any) -> None:
        self._features, self._sizes = features, sizes
        super().__init__(*given, **more)

    def _build_mlp_extractor(self: Any) -> None:
        slots = int(self.action_space.n) - 1
        self.mlp_extractor = SlotScorer(self.features_dim, slots, self._features, *self._sizes)
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # the preferences are the logits

    def _build(self: Any, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        _first_small(self.mlp_extractor)


class MaskedSlotPolicy(_Scoring, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class PlainSlotPolicy(_Scoring, ActorCriticPolicy):
    """For PPO and A2C, without masks."""
