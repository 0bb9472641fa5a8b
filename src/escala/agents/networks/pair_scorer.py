"""A network for agents with machines of their own: one small network, the same for every job and machine, gives each
pair a preference.

With s_k the features of slot k, p_n the chart of own machine n, f_kn whether the job fits there, and g the rest of the
compact observation (other machines, backlog, arrivals, which agent):

    e = mean over k of relu(E s_k);  c = relu(C [p_1 .. p_N, g, e])
    h = relu(A s_k + B p_n + F f_kn + D c);  preference of (k, n) = u . relu(H h);  of the no-op = v . relu(V c)

The value has E and C of its own. Jobs may change slots, and machines their numbers within an agent, with no other
effect.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from escala.envs.forward import Shape


class Context(nn.Module):
    """c of the formula above."""

    def __init__(self, shape: Shape, embedded: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Linear(shape.job + shape.machines, embedded)
        self.mix = nn.Linear(shape.rest + embedded, hidden)

    def forward(self, jobs: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """[batch, slots, features], [batch, rest] -> [batch, hidden]."""
        mean = torch.relu(self.embed(jobs)).mean(dim=1)
        return torch.relu(self.mix(torch.cat([rest, mean], dim=1)))


class PairScorer(nn.Module):
    """Takes the place of stable-baselines3's two towers: preferences for the policy, a hidden layer for the value."""

    def __init__(self, shape: Shape, embedded: int = 24, hidden: int = 48) -> None:
        super().__init__()
        self.shape = shape
        self.latent_dim_pi, self.latent_dim_vf = shape.slots * shape.machines + 1, hidden
        self.context = Context(shape, embedded, hidden)
        self.of_job = nn.Linear(shape.job, embedded)
        self.of_machine = nn.Linear(shape.chart, embedded, bias=False)
        self.of_fit = nn.Linear(1, embedded, bias=False)
        self.of_context = nn.Linear(hidden, embedded, bias=False)
        self.deeper = nn.Linear(embedded, embedded)
        self.preference = nn.Linear(embedded, 1)
        # the no-op; named so in kept weights
        self.void = nn.Sequential(nn.Linear(hidden, embedded), nn.ReLU(), nn.Linear(embedded, 1))
        self.seen = Context(shape, embedded, hidden)
        self.judged = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())

    def _parts(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = self.shape
        end = shape.slots * (shape.job + shape.machines)
        return numbers[:, :end].reshape(-1, shape.slots, shape.job + shape.machines), numbers[:, end:]

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[batch, numbers] -> preferences [batch, N M + 1], hidden layer of the value [batch, hidden]."""
        return self.forward_actor(numbers), self.forward_critic(numbers)

    def forward_actor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Preferences: machine by machine the slots, then the no-op."""
        shape = self.shape
        jobs, rest = self._parts(numbers)
        context = self.context(jobs, rest)
        charts = rest[:, : shape.machines * shape.chart].reshape(-1, shape.machines, 1, shape.chart)
        fit = jobs[:, :, shape.job :].transpose(1, 2).unsqueeze(3)  # [batch, machines, slots, 1]
        of_job = self.of_job(jobs[:, :, : shape.job]).unsqueeze(1)
        hidden = torch.relu(
            of_job + self.of_machine(charts) + self.of_fit(fit) + self.of_context(context)[:, None, None, :]
        )
        pairs = self.preference(torch.relu(self.deeper(hidden))).flatten(1)
        return torch.cat([pairs, self.void(context)], dim=1)

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """What the value is read from."""
        out: torch.Tensor = self.judged(self.seen(*self._parts(numbers)))
        return out


class MaskedPairPolicy(MaskableActorCriticPolicy):
    """For MaskablePPO. shape: see `Shape`, as a list."""

    def __init__(self, *given: Any, shape: Any = None, **more: Any) -> None:
        self._shape = Shape(*shape)
        super().__init__(*given, **more)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = PairScorer(self._shape)  # type: ignore[assignment]
        # the preferences are the logits
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # type: ignore[method-assign]

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        scorer: Any = self.mlp_extractor
        for layer in (scorer.preference, scorer.void[2]):  # begin with nearly equal preferences
            nn.init.orthogonal_(layer.weight, gain=0.01)
