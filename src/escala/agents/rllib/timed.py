"""Advantages where steps last, in RLlib's learner: the discount of a step is that of the units of time that passed in
it, as in `escala.agents.training.team.buffer`. Were it one of choices, dithering would make costs smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

Floats = NDArray[np.float64]
DISCOUNT = "discount"
"""The column of a step's own discount."""


def advantages(rewards: Floats, values: Floats, discounts: Floats, ended: Floats, cut: Floats, weight: float) -> Floats:
    """Generalised advantage estimates of a semi-Markov process: delta = r + d V' - V, weighted by (d weight). Pieces of
    episodes one after the other, each with one step behind its last that tells the value there. ended: nothing follows;
    cut: what follows is another piece."""
    goes_on = 1.0 - ended
    deltas = rewards + discounts * goes_on * np.append(values[1:], 0.0) - values
    kept = weight * discounts * goes_on * (1.0 - cut)
    out, last = np.zeros_like(deltas), 0.0
    for step in reversed(range(len(deltas))):
        out[step] = last = deltas[step] + kept[step] * last
    return out


class TimedEstimation(ConnectorV2):
    """In the place of RLlib's GeneralAdvantageEstimation."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def __call__(self, *, rl_module: Any, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add advantages, normalised over the rollout, and targets of the values."""
        for name, part in batch.items():
            with torch.no_grad():
                values = _plain(rl_module[name].compute_values(part))
            columns = (Columns.REWARDS, DISCOUNT, Columns.TERMINATEDS, Columns.TRUNCATEDS)
            rewards, discounts, ended, cut = (_plain(part[column]) for column in columns)
            found = advantages(rewards, values, discounts, ended, cut, self.weight)
            real = _plain(part[Columns.LOSS_MASK]) > 0.0
            level = (found - found[real].mean()) / max(1e-4, float(found[real].std()))
            part[Postprocessing.ADVANTAGES] = torch.as_tensor(level, dtype=torch.float32)
            part[Postprocessing.VALUE_TARGETS] = torch.as_tensor(found + values, dtype=torch.float32)
        return batch


def _plain(column: Any) -> Floats:
    out: Floats = torch.as_tensor(column).double().numpy()
    return out


class TimedLearner(PPOTorchLearner):
    """PPO whose steps have the column `discount`."""

    def build(self) -> None:
        """Build it, and change the last connector."""
        super().build()
        connectors = self._learner_connector.connectors
        connectors[-1] = TimedEstimation(self.config.lambda_)
