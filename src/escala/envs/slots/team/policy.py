"""Teams in the event-driven simulation: `escala.simulate(workload, platform, scheduler=TeamPolicy("sjf", agents=3))`.

The same lens and the same choices as in the game, on the simulation's own tables; agent a owns nodes a N .. (a + 1) N - 1. While jobs wait
the policy asks to be woken at every unit of time. On workloads whose times are whole units and whose jobs run their walltime both give the
same schedule. Elsewhere lengths are walltimes, rounded up to units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.core.checks import choice, number, whole_number
from escala.envs.slots.lens import demand_of
from escala.envs.slots.observation import begin_of_arrivals
from escala.envs.slots.team import lens
from escala.envs.slots.team.heuristics import RULES, decide
from escala.envs.slots.team.options import MultiOptions, options_of
from escala.envs.slots.team.playing import Member, members_of
from escala.envs.slots.team.state import Game, game
from escala.envs.slots.team.step import asks, carry_out, show
from escala.errors import EscalaError
from escala.kernel.clock import SECOND
from escala.kernel.state import World
from escala.kernel.world import one
from escala.policy import Commands, insider

SHAPING = ("agents", "machines", "resources", "horizon", "slots", "backlog", "information", "turns", "skip", "arrivals_end")
"""Options of the game that shape what is seen and done."""

ROWS = 64


@lean
def foresee(w: World, g: Game) -> None:
    """The rows to come of every machine from the jobs that hold cores now, by their planned ends."""
    st, m = g.settings, g.memory
    g.used[:, :] = 0
    for p in range(w.s[0].n_plans):
        j = int(w.plans[p])
        n = np.int64(w.chunk[w.run[j].chunk].low)
        row = m.row
        while row <= m.row + st.ring - 1 and row * st.unit_us < w.run[j].plan:
            for k in range(st.kinds):
                g.used[n * st.kinds + k, row & st.ring] += demand_of(w, j, k)
            row += 1


@lean
def look(worlds: Any, i: int, games: Any) -> bool:
    """Take in what simulation i looks like now. Has the agent whose turn it is something to decide?"""
    w, g = one(worlds, i), game(games, 0)
    lens.catch_up(w, g)
    foresee(w, g)
    return asks(w, g)


@lean
def by_rule(worlds: Any, i: int, games: Any, rule: int) -> int:
    """The action of a rule."""
    return decide(one(worlds, i), game(games, 0), rule)


@lean
def write(worlds: Any, i: int, games: Any, turn: Any) -> None:
    """The observation and the mask of the agent whose turn it is."""
    numbers, picture, mask = turn
    g = game(games, 0)
    show(one(worlds, i), g, g.memory.agent, numbers, picture, mask)


@lean
def put(worlds: Any, i: int, games: Any, action: int) -> bool:
    """Start a job on a machine; False where the choice counts as the no-op."""
    return carry_out(one(worlds, i), game(games, 0), action) == 1


@insider
class TeamPolicy:
    """A scheduler over M visible jobs by several agents, each with machines of its own.

    team: a rule of `slots.team.heuristics`, or a function that gives the members (rules or functions of observations and masks, one for
    each agent) and is called at the start of each run. options: those of the game; the ones named in `SHAPING` matter here. unit_s: length
    of a unit of time, seconds. rescue: as in `escala.envs.slots.team.playing.play`.
    """

    role = "scheduler"

    def __init__(
        self, team: str | Callable[[], Sequence[Member]], *, name: str | None = None, unit_s: float = 1.0, rescue: int = 0, **options: Any
    ) -> None:
        if team not in RULES if isinstance(team, str) else not callable(team):
            raise EscalaError(f"unknown rule {team!r}: use one of {', '.join(RULES)}, or a function that gives the members")
        if not number(unit_s) or unit_s < 1e-6:
            raise EscalaError(f"unit_s={unit_s!r}: give seconds, at least 1e-6")
        whole_number("rescue", rescue, 0)
        MultiOptions.check_names(options)
        self.options = options_of({key: value for key, value in options.items() if key in SHAPING})
        self.name = name or (team if isinstance(team, str) else "team")
        self._team, self._unit, self._rescue = team, round(unit_s * SECOND), rescue
        self._new = True

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        self._new = True

    def decide_inside(self, simulation: Any, i: int, act: Commands) -> None:
        """One round of turns."""
        if self._new:
            self._begin(simulation, i)
        worlds, games = simulation.table, self._games
        for a in range(self.options.agents):
            games.memory["agent"] = a
            while look(worlds, i, games.table):
                if not put(worlds, i, games.table, self._ask(simulation, i, self._members[a])) or self.options.turns == "single":
                    break
        games.memory["agent"] = 0
        if (games.slots >= 0).any():
            act.call_at((int(games.memory["row"][0]) + 1) * self._unit * 1e-6)

    def _ask(self, simulation: Any, i: int, member: Member) -> int:
        if isinstance(member, str):
            return int(by_rule(simulation.table, i, self._games.table, RULES[member]))
        write(simulation.table, i, self._games.table, (self._numbers[0], self._picture, self._mask[0]))
        s, memory = simulation.world.s[i, 0], self._games.memory[0]
        silent = memory["row"] - memory["last"] >= self._rescue and s["n_ends"] + s["n_starts"] == 0
        if self._rescue > 0 and silent and self._mask[0, :-1].any():
            self._mask[0, -1] = False
        return choice(self.name, member(self._numbers, self._mask)[0], self._mask.shape[1])

    def _begin(self, simulation: Any, i: int) -> None:
        """Empty slots on this simulation's machines."""
        platform, chosen = simulation.platform, self.options
        if platform.n_nodes != chosen.owned or int(platform.cores.max()) == 1:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} schedules {chosen.agents} agents x {chosen.machines} machines of several cores"
            )
        kinds = simulation.kinds
        if 1 + len(kinds) != chosen.resources:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} knows {chosen.resources} resources, the workload has {1 + len(kinds)}"
            )
        if not simulation.world.job[i]["single"].all():
            raise EscalaError(f"{self.name}: agents' machines take whole jobs: the workload needs single_node for all of them")
        capacity = np.column_stack([platform.cores, *(platform.resources[k] for k in kinds)]).astype(np.int64)
        begin = begin_of_arrivals(simulation.world.job[i]["submit"], self._unit, chosen.arrivals_end)
        self._games = chosen.games(1, np.ascontiguousarray(capacity), self._unit, ROWS, begin)
        self._games.memory["row"] = int(simulation.world.s[i, 0]["now"]) // self._unit
        self._games.memory["rng"] = 1
        self._numbers = np.zeros((1, chosen.numbers()), np.float32)
        self._picture, self._mask = np.zeros(0, np.uint8), np.zeros((1, chosen.machines * chosen.slots + 1), bool)
        self._members = members_of(self._team if isinstance(self._team, str) else list(self._team()), chosen)
        self._new = False
