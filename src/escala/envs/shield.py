"""A learnt scheduler behind a shield: its choice is taken only where a look-ahead by EASY does not find that it loses too much.

Where the agent and EASY want the same, it is done. Else both are simulated on by EASY over the same sampled futures
(`escala.policies.rollout`), and the agent's choice is taken if its mean cost is at most (1 + margin) times that of EASY's; otherwise EASY
acts at this decision. Costs are of all jobs in sight, so a small margin at each of many decisions is much in the end. Shielding: Alshiekh
et al., AAAI 2018; here by estimates in place of proofs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.records import Records
from escala.envs.deciding import Deciding
from escala.envs.learnt import LearntScheduler
from escala.envs.rjms import scheduling_step
from escala.errors import EscalaError
from escala.kernel import codes
from escala.policies.rollout import Rollout
from escala.policy import View, insider

BASE, FUTURES, MARGIN = "easy", 64, 0.0


@insider
class Shielded(LearntScheduler):
    """An agent of escala/Scheduling-v0 behind a shield.

    futures: so many are sampled. margin: share of EASY's cost that a choice may lose. objective: of the look-ahead, see `Rollout`.
    `counts`: choices of the last run, those unlike EASY's, and those overruled.
    """

    def __init__(
        self,
        agent: Deciding,
        sampled: bool = True,
        seed: int = 0,
        *,
        futures: int = FUTURES,
        margin: float = MARGIN,
        objective: str = "bounded-slowdown",
    ) -> None:
        if getattr(agent, "env_id", None) != "escala/Scheduling-v0":
            raise EscalaError("a shield stands before agents of escala/Scheduling-v0: others choose no waiting job")
        if not 0.0 <= margin < np.inf:
            raise EscalaError(f"shield: margin={margin!r}: give a share of at least 0, such as 0.05")
        super().__init__(agent, sampled, seed)
        self.name = f"shield:{BASE} of {self.name}"
        self.margin = margin
        self._ahead = Rollout(futures, BASE, objective=objective, seed=seed)
        self.counts = {"choices": 0, "unlike": 0, "overruled": 0}

    def _begin(self, simulation: Any, i: int) -> Records:
        self._cores = simulation.platform.total_cores
        self._ahead.forget(self._cores)
        self.counts = dict.fromkeys(self.counts, 0)
        return super()._begin(simulation, i)

    @property
    def remembers_rows(self) -> bool:  # type: ignore[override]
        """As of `EnvPolicy`: the look-ahead knows running jobs by them."""
        return True

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "ahead": self._ahead.state(), "counts": dict(self.counts)}

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        super()._check(state, arrays)
        self._ahead.read(state["ahead"])
        if any(type(state["counts"][name]) is not int for name in self.counts):
            raise TypeError(state["counts"])

    def _recall(self, state: Any) -> None:
        super()._recall(state)
        self._ahead.restore(state["ahead"])
        self._ahead.forget(self._cores)
        self.counts = dict(state["counts"])

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        return self._choose()

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        """The agent's choice, as long as it passes; what EASY starts, where it does not."""
        worlds, games = simulation.table, self._games.table
        row, base = scheduling_step.rows(worlds, i, games, action)
        self.counts["choices"] += 1
        if row == base or self._passes(View(simulation, i), int(row), int(base)):
            scheduling_step.put(worlds, i, games, action)
        else:
            self.counts["overruled"] += 1
            scheduling_step.put_easy(worlds, i, games)
        return True

    def _passes(self, view: View, row: int, base: int) -> bool:
        """Is the choice of row `row` not much worse than that of row `base`? NONE: to wait."""
        self.counts["unlike"] += 1
        own, other = self._ahead.costs(view, [None if one == codes.NONE else one for one in (row, base)])
        return own <= other * (1.0 + self.margin)


def shielded(agent: Any, **settings: Any) -> Shielded:
    """A trained agent behind a shield, as a scheduler of `simulate`; settings: see `Shielded`."""
    return Shielded(agent, **settings)
