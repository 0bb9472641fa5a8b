"""A learning curve kept while training: from time to time the policy plays a few fixed days, beside the levels of other
policies.

The days are days of the training, spread evenly over it, so that nothing is looked at that an agent is judged on later.
Every point plays the same days with the same draws of actions, so points differ by what was learnt only; training
itself is left untouched: the days are played in a batch of their own, and actions are drawn by a generator of their
own. What a look costs is bounded by a share of the training time, so how many points there are depends on the machine;
their values do not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from escala.agents.agent import CURVE_SCHEMA, Agent
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.agents.training.reference_returns import levels, mean_return

DAYS, POINTS = 4, 10
LEAST_S, LOOK_S = 5.0, 1.0
"""Trainings shorter than LEAST_S have no curve; a look may always take LOOK_S."""
SHARE = 0.06
"""Looks take no more than this share of the training time, but for the last."""

AGENT = "agent"

RETURNS = 50
"""Points of a training's own returns."""


class Watch:
    """points: (decisions taken so far, mean return of the days)."""

    def __init__(self, env_id: str, batch: Any, options: Mapping[str, Any], model: Any) -> None:
        days = batch.episodes.days
        chosen = np.unique(np.linspace(0, len(days) - 1, min(DAYS, len(days))).round().astype(np.int64))
        self._batch = type(batch)(len(chosen), [days[k] for k in chosen], batch.platform, **options)
        self._env_id, self._model = env_id, model
        self.points: list[tuple[int, float]] = []
        self._seen, self._spent, self._last = 0, 0.0, 0.0

    def restore(self, points: Sequence[tuple[int, float]], share: float) -> None:
        """Go on with the points of an interrupted training, of which that share was done."""
        self.points, self._seen = list(points), int(share * POINTS)

    def between(self, step: int, share: float, elapsed_s: float) -> None:
        """Between two rollouts: look, where a tenth of the training is over and the time allowed."""
        reached = int(share * POINTS)
        if reached > self._seen and elapsed_s >= LEAST_S and self._spent + self._last <= SHARE * elapsed_s:
            self._seen = reached
            self._look(step, elapsed_s)

    def end(self, step: int, elapsed_s: float) -> pl.DataFrame | None:
        """The whole curve, columns policy, step and value (levels have no step); None of a training too short for
        one."""
        if elapsed_s < LEAST_S and not self.points:
            return None
        if not self.points or self.points[-1][0] != step:
            self._look(step, elapsed_s)
        rows: list[tuple[str, int | None, float]] = [(AGENT, at, value) for at, value in self.points]
        for name, level in levels(self._env_id, self._batch).items():
            value = level(LOOK_S)
            rows += [] if value is None else [(name, None, value)]
        return pl.DataFrame(rows, schema=CURVE_SCHEMA, orient="row") if self.points else None

    def _look(self, step: int, elapsed_s: float) -> None:
        agent, random = Agent(self._model.policy, {}), np.random.default_rng(0)
        began = time.monotonic()
        allowed = max(LOOK_S, SHARE * elapsed_s - self._spent)
        value = mean_return(self._batch, lambda turn: agent.act(turn.observation, turn.mask, random), allowed)
        self._last = time.monotonic() - began
        self._spent += self._last
        if value is not None:
            self.points.append((step, value))


class Returns:
    """What a training itself earns, in any environment: at every fiftieth of it the mean return of the last ended
    episodes, a hundred at most. points: (decisions taken so far, mean)."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.points: list[tuple[int, float]] = []
        self._seen = 0

    def restore(self, points: Sequence[tuple[int, float]], share: float) -> None:
        """Go on with the points of an interrupted training, of which that share was done."""
        self.points, self._seen = list(points), int(share * RETURNS)

    def between(self, step: int, share: float) -> None:
        """Between two rollouts: note a point where a fiftieth is over."""
        reached = int(share * RETURNS)
        if reached > self._seen:
            self._seen = reached
            self._note(step)

    def end(self, step: int) -> list[tuple[int, float]]:
        """All points, the last at the end; none where no episode ended."""
        if not self.points or self.points[-1][0] != step:
            self._note(step)
        return self.points

    def _note(self, step: int) -> None:
        ended = [float(episode["r"]) for episode in self._model.ep_info_buffer or ()]
        if ended:
            self.points.append((step, float(np.mean(ended))))


def watch_of(env_id: str, batch: Any, options: Mapping[str, Any], model: Any) -> Watch | None:
    """The watch of a training in an environment that plays days of their own; None in others, and where episodes go on
    from each other."""
    by_days = env_id in (OFF_RESERVATION, SCHEDULING) and options.get("warm") is None
    return Watch(env_id, batch, options, model) if by_days else None
