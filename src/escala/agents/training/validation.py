"""Which weights of a training to keep, and when to stop: by days that are not learnt from.

At fixed shares of the training the policy plays the validation days in a batch of their own, with draws of its own, so
looking moves no weight, and an interrupted training looks where an uninterrupted one does.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from escala.agents.agent import Agent
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.agents.training.reference_returns import mean_return
from escala.errors import EscalaError

LOOKS = 20


class Early:
    """points: [decisions, mean return of a validation day], one a look. patience: looks without a better one after
    which training stops; 0: it never does."""

    def __init__(self, batch: Any, days: Sequence[Any], options: Mapping[str, Any], model: Any, patience: int) -> None:
        self._batch = type(batch)(len(days), list(days), batch.platform, **options)
        self._model, self._patience = model, patience
        self.points: list[list[float]] = []
        self._best: dict[str, Any] | None = None
        self._seen = 0

    def between(self, step: int, share: float) -> None:
        """Between two rollouts: look, where a further part of the training is over (share: how much of it is)."""
        reached = int(share * LOOKS)
        if reached > self._seen:
            self._seen = reached
            self._look(step)

    def _look(self, step: int) -> None:
        agent, random = Agent(self._model.policy, {}), np.random.default_rng(0)
        value = mean_return(self._batch, lambda turn: agent.act(turn.observation, turn.mask, random), math.inf)
        assert value is not None
        if all(value > before for _, before in self.points):
            self._best = copy.deepcopy(self._model.policy.state_dict())
        self.points.append([step, value])

    @property
    def over(self) -> bool:
        """Has nothing become better for too long?"""
        values = [value for _, value in self.points]
        return self._patience > 0 and bool(values) and len(values) - 1 - int(np.argmax(values)) >= self._patience

    def end(self, step: int) -> None:
        """The last look; the best weights are the policy's."""
        if not self.points or self.points[-1][0] != step:
            self._look(step)
        assert self._best is not None
        self._model.policy.load_state_dict(self._best)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"points": self.points, "best": self._best, "seen": self._seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.points, self._best, self._seen = [list(point) for point in state["points"]], state["best"], state["seen"]


def check_days(env_id: str, workload: Any, validation: Any, patience: int) -> None:
    """EscalaError where an environment plays no days, days are no list, or patience is none."""
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
        raise EscalaError(f"patience={patience!r}: give a number of looks, 0 to train to the end")
    if validation is None:
        if patience:
            raise EscalaError(f"patience={patience}: training stops by validation days only: give validation")
        return
    if env_id not in (OFF_RESERVATION, SCHEDULING) or not (
        isinstance(workload, list | tuple) and isinstance(validation, list | tuple)
    ):
        raise EscalaError(
            "validation: for environments that play days (escala/OffReservation-v0, escala/Scheduling-v0), both given "
            "as lists"
        )
