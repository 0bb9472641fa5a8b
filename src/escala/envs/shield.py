"""A learnt scheduler behind a shield: its choice is taken only where a look-ahead by a base does not find that it loses
too much.

Where the agent and the base want the same, it is done. Else both are simulated on by the base over the same sampled
futures (`escala.policies.rollout`), and the agent's choice is taken if its mean cost is at most (1 + margin) times that
of the base's; otherwise the base acts at this decision. Costs are of all jobs in sight, so a small margin at each of
many decisions is much in the end.
Shielding: Alshiekh et al., AAAI 2018; here by estimates in place of proofs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs import shutdown_shield as power
from escala.envs.core.records import Records
from escala.envs.deciding import Deciding
from escala.envs.learnt import LearntScheduler
from escala.envs.rjms import scheduling_step
from escala.envs.shutdown_shield import ShieldedShutdown
from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.policies.rollout import Rollout, base_scheduler
from escala.policies.rollout_names import OPTIONS as AHEAD
from escala.policies.rollout_names import number, options_of
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.policy import View, insider

ENV = "escala/Scheduling-v0"
BASE, FUTURES, MARGIN = "easy", 64, 0.0
SHIELD, AGENT = "shield:", "agent:"
FORM, EXAMPLE = "shield:BASE[:KEY=VALUE...]:agent:DIR", "shield:easy:futures=8:margin=0.02:agent:DIR"
OPTIONS = {
    "futures": AHEAD["horizon"],
    "margin": number(1e6, "a share of at least 0, such as 0.05"),
    "objective": AHEAD["objective"],
}
"""Key -> reader of its value, as of `rollout`."""


@insider
class Shielded(LearntScheduler):
    """An agent of escala/Scheduling-v0 behind a shield.

    base: a strict, greedy or EASY scheduler with a fixed score, which starts jobs by counts of cores. futures: so many
    are sampled.
    margin: share of the base's cost that a choice may lose. objective: of the look-ahead, see `Rollout`. `counts`:
    choices of the last run, those unlike the base's, and those overruled.
    """

    def __init__(
        self,
        agent: Deciding,
        sampled: bool = True,
        seed: int = 0,
        *,
        base: str = BASE,
        futures: int = FUTURES,
        margin: float = MARGIN,
        objective: str = "bounded-slowdown",
    ) -> None:
        if getattr(agent, "env_id", None) != ENV:
            raise EscalaError(f"a shield with a base that starts jobs stands before agents of {ENV}")
        if not 0.0 <= margin < np.inf:
            raise EscalaError(f"shield: margin={margin!r}: give a share of at least 0, such as 0.05")
        super().__init__(agent, sampled, seed)
        self.draws = True  # futures
        self.name = f"shield:{base} of {self.name}"
        self.margin = margin
        self._base = base_of(base)
        self._ahead = Rollout(futures, base, objective=objective, seed=seed)
        self.counts = {"choices": 0, "unlike": 0, "overruled": 0}

    @property
    def _counting(self) -> str:
        return "its shield"

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
        """The agent's choice, as long as it passes; what the base starts, where it does not."""
        worlds, games = simulation.table, self._games.table
        order, queueing = self._order(simulation, i), self._base.queueing
        row, base = scheduling_step.rows(worlds, i, games, action, order, queueing)
        self.counts["choices"] += 1
        known = (
            one if one == codes.NONE or simulation.numbers is None else simulation.numbers[one] for one in (row, base)
        )
        if row == base or self._passes(View(simulation, i), *map(int, known)):
            scheduling_step.put(worlds, i, games, action)
        else:
            self.counts["overruled"] += 1
            scheduling_step.put_base(worlds, i, games, order, queueing)
        return True

    def _order(self, simulation: Any, i: int) -> NDArray[np.int64]:
        """Rows of the waiting jobs, in the base's order."""
        rows = np.empty(simulation.world.s["n_queued"].item(i), np.int64)
        scheduling_step.waiting(simulation.table, i, rows)
        if self._base.score is None:
            return rows
        job = simulation.world.job[i][rows]
        keys = self._base.score(job["submit"], job["walltime"], job["cores"])
        return rows[np.argsort(keys, kind="stable")]

    def _passes(self, view: View, row: int, base: int) -> bool:
        """Is the choice of row `row` not much worse than that of row `base`? NONE: to wait."""
        self.counts["unlike"] += 1
        own, other = self._ahead.costs(view, [None if one == codes.NONE else one for one in (row, base)])
        return own <= other * (1.0 + self.margin)


def base_of(name: str) -> Scheduler:
    """The scheduler behind a base; EscalaError for one that cannot overrule."""
    try:
        if name in SCHEDULERS:
            return base_scheduler(name)
        raise EscalaError(name)
    except EscalaError:
        raise EscalaError(
            f"shield: base {quoted(name)} is none of its bases: strict, greedy and EASY schedulers with a fixed score "
            f"(fcfs, first-fit, easy, easy-sjf, saf, ...); before a shutdown policy {', '.join(power.BASES)}"
        ) from None


def shielded(agent: Any, **settings: Any) -> Shielded | ShieldedShutdown:
    """A trained agent behind a shield, as a scheduler or a shutdown policy of `simulate`; settings: see `Shielded` and
    `escala.envs.shutdown_shield.ShieldedShutdown`."""
    kind = BEHIND.get(getattr(agent, "env_id", ""))
    if kind is None:
        raise EscalaError(f"a shield stands before agents of {' and '.join(BEHIND)}, before no others")
    return kind(agent, **settings)


BEHIND = {ENV: Shielded, power.ENV: ShieldedShutdown}
"""Environment -> what stands before its agents."""


def split_name(name: str) -> tuple[str, str, dict[str, Any]]:
    """The environment of the agent, its folder and the settings of `shield:BASE[:KEY=VALUE...]:agent:DIR`, as
    `EXAMPLE`; EscalaError for a name that makes no sense. It loads nothing."""
    head, agent, folder = name.removeprefix(SHIELD).partition(AGENT)
    if not agent or not head.endswith(":") or not folder:
        raise EscalaError(
            f"scheduler {quoted(name)}: write {FORM}, with the folder of an agent of {' or '.join(BEHIND)}"
        )
    base, *parts = head.removesuffix(":").split(":")
    switches = base in power.BASES
    while switches and parts and "=" not in parts[0]:
        base += f":{parts.pop(0)}"
    whose = f"{'shutdown policy' if switches else 'scheduler' if base in SCHEDULERS else 'policy'} {quoted(name)}"
    known, example, check = (power.OPTIONS, power.EXAMPLE, power.plan_of) if switches else (OPTIONS, EXAMPLE, base_of)
    try:
        check(base)
        given = options_of(parts, whose, known, example)
        settings = {key: known[key](text, f"{whose}: {key} is {text!r}") for key, text in given.items()}
        return power.ENV if switches else ENV, folder, {"base": base, **settings}
    except EscalaError as error:
        raise EscalaError(f"{whose}: {str(error).removeprefix(f'{whose}: ')}") from None
