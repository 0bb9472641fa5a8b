"""Networks that score slots: one small network, the same for every slot, gives each visible job a preference, and another the void.

With s_k the features of slot k and g the rest of the compact observation (free rows, backlog, arrivals):

    e = mean over k of relu(E s_k);  c = relu(C [g, e]);  preference of slot k = u . relu(A s_k + B c);  of the void = v . relu(D c)

The value has E, C and a hidden layer of its own. Jobs may change slots without any effect, and what is learnt about one slot holds for
all. From nothing it learns more than one hidden layer of R1's 20 units, or of 64, from as many decisions and in as much processor time: a
measurement beside the study, told in docs/studies/grid2019.

Only taken slots are worked through, as rows of one table: most of a long window is empty most of the time. An empty slot's features are
all 0, so that it adds relu(bias of E) to the mean, and its preference is u . relu(bias of A + B c).
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Parts(NamedTuple):
    """A compact observation, cut: features of the taken slots [taken, features], where each of them is in [batch x slots] and in [batch],
    how many slots are empty [batch, 1], and the numbers after the slots [batch, rest]."""

    jobs: torch.Tensor
    place: torch.Tensor
    row: torch.Tensor
    empty: torch.Tensor
    rest: torch.Tensor


def cut(numbers: torch.Tensor, slots: int, features: int) -> Parts:
    """[batch, numbers] -> its parts."""
    end = slots * features
    rows = numbers[:, :end].reshape(-1, features)
    taken = rows[:, 0] > 0
    place = taken.nonzero().squeeze(1)
    empty = slots - taken.reshape(-1, slots).sum(dim=1, keepdim=True)
    return Parts(rows[place], place, torch.div(place, slots, rounding_mode="floor"), empty, numbers[:, end:])


class Context(nn.Module):
    """c of the formula above."""

    def __init__(self, features: int, rest: int, embedded: int, hidden: int, slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.embed = nn.Linear(features, embedded)
        self.mix = nn.Linear(rest + embedded, hidden)

    def forward(self, parts: Parts) -> torch.Tensor:
        """-> [batch, hidden]."""
        of_empty = parts.empty * torch.relu(self.embed.bias)
        mean = of_empty.index_add(0, parts.row, torch.relu(self.embed(parts.jobs))) / self.slots
        return torch.relu(self.mix(torch.cat([parts.rest, mean], dim=1)))


class SlotScorer(nn.Module):
    """Takes the place of stable-baselines3's two towers: preferences for the policy, a hidden layer for the value."""

    def __init__(self, numbers: int, slots: int, horizon: int, embedded: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.slots = slots
        self.features, rest = split_of(numbers, slots, horizon)
        self.latent_dim_pi, self.latent_dim_vf = slots + 1, hidden
        self.context = Context(self.features, rest, embedded, hidden, slots)
        self.of_job = nn.Linear(self.features, embedded)
        self.of_context = nn.Linear(hidden, embedded, bias=False)
        self.preference = nn.Linear(embedded, 1)
        self.void = nn.Sequential(nn.Linear(hidden, embedded), nn.ReLU(), nn.Linear(embedded, 1))
        self.seen = Context(self.features, rest, embedded, hidden, slots)
        self.judged = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[batch, numbers] -> preferences [batch, 1 + slots], hidden layer of the value [batch, hidden]."""
        parts = cut(numbers, self.slots, self.features)
        return self._preferences(parts), self._judge(parts)

    def forward_actor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Preferences: the void, then the slots."""
        return self._preferences(cut(numbers, self.slots, self.features))

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """What the value is read from."""
        return self._judge(cut(numbers, self.slots, self.features))

    def _preferences(self, parts: Parts) -> torch.Tensor:
        context = self.context(parts)
        of_context = self.of_context(context)
        of_empty = self.preference(torch.relu(self.of_job.bias + of_context)).expand(-1, self.slots).reshape(-1)
        of_taken = self.preference(torch.relu(self.of_job(parts.jobs) + of_context.index_select(0, parts.row))).squeeze(1)
        return torch.cat([self.void(context), of_empty.scatter(0, parts.place, of_taken).reshape(-1, self.slots)], dim=1)

    def _judge(self, parts: Parts) -> torch.Tensor:
        out: torch.Tensor = self.judged(self.seen(parts))
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
