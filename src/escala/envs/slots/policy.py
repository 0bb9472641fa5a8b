"""Slotted deciders in the event-driven simulation: `escala.simulate(workload, platform, scheduler=SlotPolicy("sjf"))`.

The same lens and the same compiled choices as in `escala/Slots-v0`, on the simulation's own tables. While jobs are visible or reserved the
policy asks to be woken at every unit of time, as R1 did in its event-driven simulator. On workloads whose times are whole units and
whose jobs run their walltime both give the same schedule. Elsewhere lengths are walltimes, rounded up to units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import lean
from escala.envs.core.checks import choice
from escala.envs.core.random import rng_of
from escala.envs.slots import lens
from escala.envs.slots.heuristics import RULES, decide
from escala.envs.slots.observation import begin_of_arrivals
from escala.envs.slots.options import RESCUE, check_hold, options_of, set_hold
from escala.envs.slots.state import Game, game
from escala.envs.slots.step import asks, show
from escala.errors import EscalaError
from escala.kernel.clock import SECOND
from escala.kernel.state import World
from escala.kernel.world import one
from escala.policy import Commands, insider

Choose = Callable[[NDArray[Any], NDArray[np.bool_], np.random.Generator | None], int]
"""From one observation, one mask and a generator (None: choose the best) to an action."""

SHAPING = ("slots", "horizon", "placement", "observation", "dtype", "skip", "queue", "backlog", "unit_s", "arrivals_end")
"""Options of the environment that shape what is seen and done."""

BY_CHOICE = -1
ROWS = 64


@lean
def foresee(w: World, g: Game) -> None:
    """The rows to come from the jobs that hold cores now, by their planned ends (start-now: nothing is reserved)."""
    st, m = g.settings, g.memory
    g.used[:, :] = 0
    for p in range(w.s[0].n_plans):
        j = int(w.plans[p])
        row = m.row
        while row <= m.row + st.ring - 1 and row * st.unit_us < w.run[j].plan:
            for k in range(st.kinds):
                g.used[k, row & st.ring] += lens.demand_of(w, j, k)
            row += 1


@lean
def look(worlds: Any, i: int, games: Any, rule: int) -> int:
    """What simulation i looks like now. The rule's action; with BY_CHOICE 1 if there is something to decide, else 0; -2 on refusal."""
    w, g = one(worlds, i), game(games, 0)
    if not lens.catch_up(w, g):
        return -2
    if g.settings.reserve == 0:
        foresee(w, g)
    g.starts[:] = lens.UNKNOWN  # jobs may end before their walltime here
    if not asks(g, lens.find_starts(w, g)):
        return 0
    return 1 if rule == BY_CHOICE else decide(w, g, rule)


@lean
def carry_out(worlds: Any, i: int, games: Any, action: int) -> bool:
    """Place the job of a slot; False where it has no place (the action is then the no-op)."""
    w, g = one(worlds, i), game(games, 0)
    return g.starts[action - 1] != lens.NOWHERE and lens.choose(w, g, action - 1)


@lean
def write(worlds: Any, i: int, games: Any, numbers: Any, picture: Any, mask: Any) -> None:
    """The observation and the mask."""
    show(one(worlds, i), game(games, 0), numbers, picture, mask)


@insider
class SlotPolicy:
    """A scheduler over M visible jobs. `choose`: the name of a rule of `slots.heuristics`, or a function (see `Choose`).

    options: those of `escala/Slots-v0` named in `SHAPING`. hold: (long, quiet, share) of the rule hold-back, in units. seed: of the rule
    random, in each run. sampled: a function gets a generator, of this seed in each run; without one the mask forbids the no-op where
    nothing was submitted for `RESCUE` units, nothing runs and something fits (as `play(..., rescue=RESCUE)` does). seen: shape of the
    observations that the function takes; machines that show another are refused. Units without a waiting job are not asked about, whatever
    `skip` is.
    """

    role = "scheduler"

    def __init__(
        self,
        choose: str | Choose,
        *,
        name: str | None = None,
        hold: tuple[int, int, int] = (3, 6, 0),
        sampled: bool = True,
        seed: int = 0,
        seen: tuple[int, ...] | None = None,
        **options: Any,
    ) -> None:
        if choose not in RULES if isinstance(choose, str) else not callable(choose):
            raise EscalaError(f"unknown rule {choose!r}: use one of {', '.join(RULES)}, or a function")
        check_hold(hold)
        for key in options:
            if key not in SHAPING:
                raise EscalaError(f"option {key!r} does not shape a policy: use {', '.join(SHAPING)}")
        self.options = options_of(options)
        self.name = name or (choose if isinstance(choose, str) else "slotted agent")
        self.rule = RULES[choose] if isinstance(choose, str) else BY_CHOICE
        self.hold, self.seen = hold, seen
        self._seed = seed if sampled else None
        self._rng = rng_of(seed, 1)
        self._choose = choose
        self._new = True

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        self._new = True

    def decide_inside(self, simulation: Any, i: int, act: Commands) -> None:
        """Choices until the no-op."""
        if self._new:
            self._begin(simulation, i)
        games = self._games
        while True:
            action = int(look(simulation.table, i, games.table, self.rule))
            if action == -2:
                raise EscalaError(f"{self.name}: a reservation could not be kept; placement='reserve' needs jobs alone on the machine")
            if action > 0 and self.rule == BY_CHOICE:
                action = choice(self.name, self._ask(simulation, i), self.options.slots + 1)
            if action <= 0 or not carry_out(simulation.table, i, games.table, action):
                break
        memory = games.memory[0]
        if (games.slots >= 0).any() or memory["booked"] > 0:
            act.call_at((int(memory["row"]) + 1) * int(games.settings["unit_us"]) * 1e-6)

    def _ask(self, simulation: Any, i: int) -> int:
        write(simulation.table, i, self._games.table, self._numbers, self._picture, self._mask)
        s, memory = simulation.world.s[i, 0], self._games.memory[0]
        silent = memory["row"] - memory["last"] >= RESCUE and s["n_ends"] + s["n_starts"] == 0
        if self._random is None and silent and self._mask[1:].any():
            self._mask[0] = False  # the greedy choice alone could idle for ever
        if self.options.observation != "image":
            return self._choose(self._numbers, self._mask, self._random)  # type: ignore[operator]
        seen = self._picture.reshape(self.options.horizon, -1)
        return self._choose(seen if self.options.dtype == "uint8" else seen.astype(np.float32) / 255, self._mask, self._random)  # type: ignore[operator]

    def _begin(self, simulation: Any, i: int) -> None:
        """Empty slots on this simulation's machine."""
        platform, chosen = simulation.platform, self.options
        named = int(platform.cores.max()) == 1
        if not named and platform.n_nodes > 1:
            raise EscalaError(f"platform {platform.name!r}: {self.name} schedules one machine: nodes of one core (10x1), or a single node")
        kinds = simulation.kinds
        capacity = np.array([platform.total_cores, *(int(platform.resources[k].sum()) for k in kinds)], np.int64)
        reserve, drawn = chosen.placement == "reserve", chosen.observation == "image"
        if (reserve or drawn) and capacity.max() > 62:
            raise EscalaError(f"platform {platform.name!r}: {capacity.max()} units of a resource; charts and reservations hold at most 62")
        unit = round(chosen.unit_s * SECOND)
        longest = int(-(-int(simulation.world.job[i]["walltime"].max(initial=unit)) // unit))
        if (reserve or drawn) and longest > chosen.horizon:
            raise EscalaError(
                f"{self.name}: its chart shows {chosen.horizon} units of {chosen.unit_s:g} s, and a job asks for {longest}: "
                "train with a larger horizon, or schedule shorter jobs"
            )
        shape = (chosen.horizon, chosen.width(capacity)) if drawn else (chosen.numbers(len(capacity)),)
        if self.seen is not None and self.seen != shape:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} was trained on another machine (it sees {self.seen}, here it would see {shape}): "
                "schedule a machine with the same resources" + " and as many units of each" * drawn
            )
        longest = longest if reserve or self.rule == RULES["easy"] else min(longest, ROWS)  # easy counts to its head's start
        begin = begin_of_arrivals(simulation.world.job[i]["submit"], unit, chosen.arrivals_end)
        self._games = chosen.games(1, capacity, unit, longest, named, begin=begin, jobs=len(simulation.world.job[i]))
        set_hold(self._games, self.hold)
        self._games.memory["rng"] = self._rng
        self._games.memory["row"] = int(simulation.world.s[i, 0]["now"]) // unit
        self._numbers = np.zeros(0 if drawn else chosen.numbers(len(capacity)), np.float32)
        self._picture = np.zeros(chosen.horizon * chosen.width(capacity) if drawn else 0, np.uint8)
        self._mask = np.zeros(chosen.slots + 1, bool)
        self._random = None if self._seed is None else np.random.default_rng(self._seed)
        self._new = False
