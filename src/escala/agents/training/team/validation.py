"""Which weights of a team's training to keep: those that a judge likes best, asked at fixed shares of the training."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from escala.agents.team import Team
from escala.envs.slots.lists import JobLists
from escala.envs.slots.team.playing import RESCUE, play
from escala.errors import EscalaError

LOOKS = 20
"""How often a judge is asked, beside the start: spread evenly over the training."""

Judge = Callable[[Team], float]
"""From a team to a figure: the smaller, the better; one that is not finite is never the best."""
MOST_TURNS = 6_000


def against_sjf(*lists: JobLists, sampled: bool = False) -> Judge:
    """A judge: a team's mean slowdown as a multiple of that of SJF as a team (one choice a turn), on these lists run to
    completion; the mean of one ratio for each of `lists`, so that a heavy load does not outweigh a light one. NaN where
    a list does not end.

    lists: job lists neither learnt from nor tested on, one `JobLists` a load. sampled: actions are drawn, by one seed
    for all looks; else greedy ones, as in a comparison. Raises EscalaError: no lists; and, when asked, lists that do
    not suit the team's game.
    """
    if not lists or not all(isinstance(part, JobLists) for part in lists):
        raise EscalaError("a judge needs job lists: give one or more, for instance options_of({...}).job_lists()")

    def judge(team: Team) -> float:
        game = {name: value for name, value in team.options.items() if name not in ("limit", "lists")}
        members, rescue = team.members(sampled, seed=0), 0 if sampled else RESCUE
        ratios = []
        for part in lists:
            level = play(part, "sjf", **game | {"turns": "single"})["slowdown"]
            own = play(part, members, patience=MOST_TURNS, rescue=rescue, **game)["slowdown"]
            # NaN where a run did not end
            ratios.append(float(np.mean(own.to_numpy())) / float(np.mean(level.to_numpy())))
        return float(np.mean(ratios))

    return judge


def _figure(said: Any) -> float:
    """What a judge said, as a number."""
    try:
        return float(said)
    except (TypeError, ValueError):
        raise EscalaError(f"the judge said {said!r}: it is to give one number, the smaller the better") from None


class Looks:
    """points: [decisions, figure or None], one a look. policies: the networks that learn. judge None: nobody looks."""

    def __init__(self, judge: Judge | None, looks: int, policies: Sequence[Any]) -> None:
        if isinstance(looks, bool) or not isinstance(looks, int) or looks < 1:
            raise EscalaError(f"looks={looks!r}: give a whole number from 1")
        if judge is not None and not callable(judge):
            raise EscalaError(
                f"judge={judge!r}: give a function from a team to a figure, for instance against_sjf(lists)"
            )
        self._judge, self._looks, self._policies = judge, looks, policies
        self.points: list[list[Any]] = []
        self._best: list[dict[str, Any]] | None = None
        self._least = math.inf
        self._seen = 0

    def look(self, step: int, share: float, team: Callable[[], Team]) -> None:
        """Ask the judge where a further part of the training is over. share: how much of it is, 0 to 1."""
        reached = 1 + int(share * self._looks)
        if self._judge is not None and reached > self._seen:
            value = _figure(self._judge(team()))
            self.points.append([step, value if math.isfinite(value) else None])
            if value < self._least:
                self._least, self._best = value, [copy.deepcopy(policy.state_dict()) for policy in self._policies]
        self._seen = reached

    def end(self) -> None:
        """The weights of the best look are the networks'; without one, the last are."""
        for policy, weights in zip(self._policies, self._best or (), strict=self._best is not None):
            policy.load_state_dict(weights)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"points": self.points, "best": self._best, "least": self._least, "seen": self._seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.points, self._best = [list(point) for point in state["points"]], state["best"]
        self._least, self._seen = state["least"], state["seen"]
