"""Teams in the event-driven simulation: `escala.simulate(workload, platform, scheduler=TeamPolicy("sjf", agents=3))`.

The same lens and the same choices as in the game, on the simulation's own tables; agent a owns nodes a N .. (a + 1) N -
1. While jobs wait the policy asks to be woken at every unit of time. On workloads whose times are whole units and whose
jobs run their walltime both give the same schedule. Elsewhere lengths are walltimes, rounded up to units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.checks import choice, number, whole_number
from escala.envs.core.records import Records
from escala.envs.slots.heuristics import TEAM_RULES
from escala.envs.slots.observation import begin_of_arrivals
from escala.envs.slots.playing import Member, members_of
from escala.envs.slots.policy import ROWS, SlottedPolicy, by_rule
from escala.envs.slots.team.options import MultiOptions, options_of
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.platform.sharers import SHARERS
from escala.policy import insider

SHAPING = (
    "agents",
    "machines",
    "resources",
    "horizon",
    "slots",
    "backlog",
    "information",
    "turns",
    "skip",
    "arrivals_end",
)
"""Options of the game that shape what is seen and done."""


@insider
class TeamPolicy(SlottedPolicy):
    """A scheduler over M visible jobs by several agents, each with machines of its own.

    team: a rule of `slots.heuristics`, or a function that gives the members (rules or functions of observations and
    masks, one for each agent) and is called at the start of each run. options: those of the game; the ones named in
    `SHAPING` matter here. unit_s: length of a unit of time, seconds. rescue: as in
    `escala.envs.slots.team.playing.play`.
    """

    def __init__(
        self,
        team: str | Callable[[], Sequence[Member]],
        *,
        name: str | None = None,
        unit_s: float = 1.0,
        rescue: int = 0,
        **options: Any,
    ) -> None:
        if team not in TEAM_RULES if isinstance(team, str) else not callable(team):
            raise EscalaError(
                f"unknown rule {team!r}: use one of {', '.join(TEAM_RULES)}, or a function that gives the members"
            )
        if not number(unit_s) or unit_s < 1e-6:
            raise EscalaError(f"unit_s={unit_s!r}: give seconds, at least 1e-6")
        whole_number("rescue", rescue, 0)
        MultiOptions.check_names(options)
        self.options = options_of({key: value for key, value in options.items() if key in SHAPING})
        self.name = name or (team if isinstance(team, str) else "team")
        self._team, self._unit, self.rescue = team, round(unit_s * SECOND), rescue
        self.agents = self.options.agents
        self.begin_run()

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        member = self._members[agent]
        if isinstance(member, str):
            return int(by_rule(simulation.table, i, self._games.table, TEAM_RULES[member]))
        self._show(simulation, i)
        return choice(self.name, member(self._numbers[None], self._mask[None])[0], len(self._mask))

    def _begin(self, simulation: Any, i: int) -> Records:
        """Empty slots on this simulation's machines."""
        platform, chosen = simulation.platform, self.options
        if platform.n_nodes != chosen.owned or int(platform.cores.max()) == 1:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} schedules {chosen.agents} agents x {chosen.machines} "
                "machines of several cores"
            )
        kinds = simulation.kinds
        if SHARERS in kinds:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} gives no job nodes of several sizes to itself: leave out "
                "the column exclusive, and partitions that are"
            )
        if 1 + len(kinds) != chosen.resources:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} knows {chosen.resources} resources, the workload has "
                f"{1 + len(kinds)}"
            )
        self._whole(simulation.world.job[i])
        capacity = np.column_stack([platform.cores, *(platform.resources[k] for k in kinds)]).astype(np.int64)
        begin = begin_of_arrivals(simulation.world.job[i]["submit"], self._unit, chosen.arrivals_end)
        games = chosen.games(1, np.ascontiguousarray(capacity), self._unit, ROWS, begin)
        games.memory["rng"] = 1
        self._numbers = np.zeros(chosen.numbers(), np.float32)
        self._members = members_of(
            self._team if isinstance(self._team, str) else list(self._team()), chosen.agents, TEAM_RULES
        )
        self._random = next(filter(None, (getattr(one, "random", None) for one in self._members)), None)
        return self._records(simulation, i, games)

    def _look_round(self, simulation: Any, i: int, ended: NDArray[np.int64]) -> None:
        n = simulation.world.o["n_jobs"].item(i)
        self._whole(simulation.world.job[i, :n][simulation.world.run[i, :n]["state"] == codes.QUEUED])
        super()._look_round(simulation, i, ended)

    def _whole(self, jobs: NDArray[Any]) -> None:
        if not jobs["single"].all():
            raise EscalaError(
                f"{self.name}: agents' machines take whole jobs: the workload needs single_node for all of them"
            )
