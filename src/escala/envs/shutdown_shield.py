"""A learnt shutdown policy behind a shield: its choice is taken only where a look-ahead by a base does not find that it
loses too much.

At each of its decisions the machine is played on over the same sampled futures twice: with the agent's choice until the
next decision and the base from then on, and with the base alone (`escala.envs.rjms.shield_ahead`). The agent's choice
is taken if it costs at most `margin` more, as a share of what the base costs in the time for which a choice is in
force; else the base switches nodes until the next decision.
Shielding: Alshiekh et al., AAAI 2018; here by estimates in place of proofs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.records import Records
from escala.envs.deciding import Deciding
from escala.envs.learnt import LearntShutdown
from escala.envs.rjms import shield_step
from escala.envs.rjms.off_reservation import BENEATH
from escala.envs.rjms.shield_ahead import SwitchAhead, living, requested, rules_of
from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.options import Options, Plan
from escala.policies.compose import shutdown
from escala.policies.rollout_names import OPTIONS as AHEAD
from escala.policies.rollout_names import number
from escala.policy import insider

BASE, FUTURES, MARGIN, AHEAD_S = "timeout:300", 16, 0.0, 3600.0
BASES = ("never", "timeout", "proportional", "hold")
ENV = "escala/OffReservation-v0"
EXAMPLE = "shield:timeout:300:futures=16:margin=0.05:agent:DIR"
OPTIONS = {
    "futures": AHEAD["horizon"],
    "margin": number(1e6, "a share of at least 0, such as 0.05"),
    "price": number(1e6, "how many times its idle power a waiting core costs, at least 0"),
    "ahead_s": number(1e9, "seconds above 0", positive=True),
}
"""Key -> reader of its value."""


@insider
class ShieldedShutdown(LearntShutdown):
    """An agent of escala/OffReservation-v0 behind a shield.

    base: a shutdown policy that knows nothing of the future and remembers nothing (`BASES`). futures: so many are
    sampled. margin: by so much of the base's cost may the run cost more. price: what a waiting core costs, in the idle
    power of a core; None: energy and waits as in the reward that the agent was trained for. ahead_s: length of a
    future, s. `counts`: decisions of the last run, those that led to another cost than the base's in some future, and
    those overruled.
    """

    remembers_rows = one_pool = True

    def __init__(
        self,
        agent: Deciding,
        sampled: bool = True,
        seed: int = 0,
        *,
        base: str = BASE,
        futures: int = FUTURES,
        margin: float = MARGIN,
        price: float | None = None,
        ahead_s: float = AHEAD_S,
    ) -> None:
        if getattr(agent, "env_id", None) != ENV:
            raise EscalaError(f"a shield with a base that switches nodes stands before agents of {ENV}")
        for name, value in (("margin", margin), ("price", price or 0.0)):
            if not 0.0 <= value < np.inf:
                raise EscalaError(f"shield: {name}={value!r}: give a number of at least 0, such as 0.05")
        if futures < 1 or not ahead_s > 0:
            raise EscalaError("shield: futures must be at least 1, and ahead_s above 0")
        super().__init__(agent, sampled, seed)
        self.draws = True  # futures
        self.name = f"shield:{base} of {self.name}"
        self.margin = margin
        own = BENEATH[self.options.action]
        fields = {"shutdown": codes.POWER_EXTERNAL} if own is None else shutdown(own, Options())[0]
        self._rules = rules_of((Plan(**fields), plan_of(base)))
        self._looks = {"futures": futures, "ahead_s": ahead_s, "price": price}
        self._scheduler: Any = None
        self.counts = {"choices": 0, "unlike": 0, "overruled": 0}

    def beside(self, scheduler: Any) -> None:
        """The scheduler of the run: a `Scheduler`, or None for one outside the kernel."""
        self._scheduler = scheduler

    def _begin(self, simulation: Any, i: int) -> Records:
        self._ahead = SwitchAhead(
            simulation.platform, self.options, self._rules, self._scheduler, simulation.options, **self._looks
        )
        self._ahead.begin(self._seed)
        self._own = True  # the agent's rules are in force: nothing has been decided
        self._come, self._alive, self._told_ends = 0, np.zeros(0, np.int64), False
        self.counts = dict.fromkeys(self.counts, 0)
        return super()._begin(simulation, i)

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "ahead": self._ahead.state(), "own": self._own, "counts": dict(self.counts)}

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        super()._check(state, arrays)
        SwitchAhead.read(state["ahead"])
        if type(state["own"]) is not bool or any(type(state["counts"][name]) is not int for name in self.counts):
            raise TypeError(state["counts"])

    def _recall(self, state: Any) -> None:
        super()._recall(state)
        self._ahead.memory, self._ahead.draw = SwitchAhead.read(state["ahead"])
        self._own, self.counts = state["own"], dict(state["counts"])

    def renumber(self, kept: NDArray[np.int64]) -> None:
        """Nothing: the look-ahead knows jobs by numbers that stay."""

    def _look_round(self, simulation: Any, i: int, ended: NDArray[np.int64]) -> None:
        """Beside a machine: whoever was in charge is; who has come and who has ended."""
        shield_step.stand(simulation.table, i, self._rules, self._own)
        self._told_ends, memory, rows = True, self._ahead.memory, living(simulation, i)
        numbers = rows if simulation.numbers is None else simulation.numbers[rows]
        memory.note(requested(simulation, i, rows[numbers > memory.last_row]), simulation.world.job[i][ended])
        memory.last_row = int(max(memory.last_row, numbers.max(initial=-1)))

    def _look(self, simulation: Any, i: int, agent: int) -> bool:
        if not self._told_ends:
            self._note(simulation, i)
        return super()._look(simulation, i, agent)

    def _note(self, simulation: Any, i: int) -> None:
        """In a run: who has come and who has ended since the last look."""
        world = simulation.world
        submitted = np.arange(self._come, int(world.s[i, 0]["next_job"]))
        alive = np.concatenate([self._alive, submitted])
        over = np.isin(world.run["state"][i, alive], (codes.COMPLETED, codes.KILLED))
        self._ahead.memory.note(requested(simulation, i, submitted), requested(simulation, i, alive[over]))
        self._come, self._alive = self._come + len(submitted), alive[~over]

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        """The agent's choice, as long as it passes; what the base does, where it does not."""
        simulation.make_room(i, int(simulation.world.s[i, 0]["n_queued"]) + 2)
        own = self._passes(simulation, i, action)
        self.counts["choices"] += 1
        self.counts["overruled"] += not own
        shield_step.put(simulation.table, i, self._games.table, self._rules, own, own != self._own, action)
        self._own = own
        return False

    def _passes(self, simulation: Any, i: int, action: int) -> bool:
        """Is the choice not much worse than what the base does?"""
        (own, base), share = self._ahead.costs(simulation, i, self._games.table, self._own, action)
        self.counts["unlike"] += bool((own != base).any())
        return bool((own - base).mean() <= self.margin * (base * share).mean())


def plan_of(base: str) -> Plan:
    """The kernel's plan of a base; EscalaError for a shutdown policy that cannot overrule."""
    if base.partition(":")[0] not in BASES:
        raise EscalaError(
            f"shield: base {quoted(base)} is none of its bases: {', '.join(BASES)} (timeout:300, hold:0.25, ...)"
        )
    try:
        return Plan(**shutdown(base, Options())[0])
    except EscalaError as error:
        raise EscalaError(f"shield: base {quoted(base)}: {error}") from None
