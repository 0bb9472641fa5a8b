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
from escala.envs.core.random import luck_of
from escala.envs.slots import lens
from escala.envs.slots.heuristics import RULES, decide
from escala.envs.slots.observation import begin_of_arrivals, compact, image
from escala.envs.slots.options import RESCUE, check_hold, options_of
from escala.envs.slots.state import BOOKED, MEMORY, SETTINGS
from escala.envs.slots.step import asks
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.state import World
from escala.kernel.world import one
from escala.policy import Commands, insider

Choose = Callable[[NDArray[Any], NDArray[np.bool_], np.random.Generator | None], int]
"""From one observation, one mask and a generator (None: choose the best) to an action."""

SHAPING = ("slots", "horizon", "placement", "observation", "dtype", "skip", "backlog", "unit_s", "arrivals_end")
"""Options of the environment that shape what is seen and done."""

BY_CHOICE = -1
ROWS = 64


@lean
def foresee(w: World, st: Any, m: Any, used: Any) -> None:
    """The rows to come from the jobs that hold cores now, by their planned ends (start-now: nothing is reserved)."""
    used[:, :] = 0
    for p in range(w.s[0].n_plans):
        j = int(w.plans[p])
        row = m.row
        while row <= m.row + st.ring - 1 and row * st.unit_us < w.run[j].plan:
            for k in range(st.kinds):
                used[k, row & st.ring] += lens.demand_of(w, j, k)
            row += 1


@lean
def look(
    table: Any, i: int, settings: Any, capacity: Any, memory: Any, slots: Any, starts: Any, used: Any, busy: Any, chart: Any, ends: Any,
    booked: Any, rule: int,
) -> int:  # fmt: skip
    """What the simulation looks like now. The rule's action; with BY_CHOICE 1 if there is something to decide, else 0; -2 on refusal."""
    w = one(table, i)
    st = settings[0]
    m = memory[0]
    if not lens.catch_up(w, st, m, slots, starts, used, busy, chart, ends, booked):
        return -2
    if st.reserve == 0:
        foresee(w, st, m, used)
    starts[:] = lens.UNKNOWN  # jobs may end before their walltime here
    some = lens.find_starts(w, st, m, capacity, slots, starts, used, busy)
    if not asks(st, slots, some):
        return 0
    return 1 if rule == BY_CHOICE else decide(w, st, m, capacity, slots, starts, used, rule)


@lean
def carry_out(
    table: Any, i: int, settings: Any, capacity: Any, memory: Any, slots: Any, starts: Any, used: Any, busy: Any, chart: Any, ends: Any,
    booked: Any, action: int,
) -> bool:  # fmt: skip
    """Place the job of a slot; False where it has no place (the action is then the void)."""
    if starts[action - 1] == lens.NOWHERE:
        return False
    w = one(table, i)
    return lens.choose(w, settings[0], memory[0], capacity, slots, starts, used, busy, chart, ends, booked, action - 1)


@lean
def write(
    table: Any, i: int, settings: Any, capacity: Any, memory: Any, slots: Any, starts: Any, used: Any, chart: Any, width: int,
    numbers: Any, picture: Any, mask: Any,
) -> None:  # fmt: skip
    """The observation and the mask."""
    w = one(table, i)
    if settings[0].image == 1:
        image(w, settings[0], memory[0], capacity, slots, chart, width, picture)
    else:
        compact(w, settings[0], memory[0], capacity, slots, starts, used, numbers)
    mask[0] = True
    for k in range(slots.shape[0]):
        mask[k + 1] = starts[k] != lens.NOWHERE


@insider
class SlotPolicy:
    """A scheduler over M visible jobs. `choose`: the name of a rule of `slots.heuristics`, or a function (see `Choose`).

    options: those of `escala/Slots-v0` named in `SHAPING`. hold: (long, quiet, share) of the rule hold-back, in units. seed: of the rule
    random, in each run. sampled: a function gets a generator, of this seed in each run; without one the mask forbids the void where
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
        self._luck = luck_of(seed, 1)
        self._choose = choose
        self._new = True

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        self._new = True

    def decide_inside(self, simulation: Any, i: int, act: Commands) -> None:
        """Choices until the void."""
        if self._new:
            self._begin(simulation, i)
        while True:
            action = int(look(simulation.table, i, *self._lens, self.rule))
            if action == -2:
                raise EscalaError(f"{self.name}: a reservation could not be kept; placement='reserve' needs jobs alone on the machine")
            if action > 0 and self.rule == BY_CHOICE:
                action = choice(self.name, self._ask(simulation, i), len(self._slots) + 1)
            if action <= 0 or not carry_out(simulation.table, i, *self._lens, action):
                break
        if (self._slots >= 0).any() or self._memory["booked"][0] > 0:
            unit = int(self._settings["unit_us"][0])
            act.call_at((int(self._memory["row"][0]) + 1) * unit * 1e-6)

    def _ask(self, simulation: Any, i: int) -> int:
        write(
            simulation.table, i, *self._lens[:6], self._lens[7], self._width, self._numbers, self._picture, self._mask
        )  # fmt: skip
        s = simulation.world.s[i, 0]
        silent = self._memory["row"][0] - self._memory["last"][0] >= RESCUE and s["n_ends"] + s["n_starts"] == 0
        if self._random is None and silent and self._mask[1:].any():
            self._mask[0] = False  # the likeliest choice alone could idle for ever
        if self.options.observation != "image":
            return self._choose(self._numbers, self._mask, self._random)  # type: ignore[operator]
        seen = self._picture.reshape(self.options.horizon, self._width)
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
        rows = chosen.ring(longest if reserve or self.rule == RULES["easy"] else min(longest, ROWS))  # easy counts to its head's start
        settings = np.zeros(1, SETTINGS)
        values = {"unit_us": unit, "slots": chosen.slots, "horizon": chosen.horizon, "kinds": len(capacity), "ring": rows - 1,
                  "reserve": reserve, "named": named, "skip": {"none": 0, "empty": 1, "forced": 2}[chosen.skip], "image": drawn,
                  "backlog": chosen.backlog, "arrivals_end": chosen.arrivals_end,
                  "arrivals_begin": begin_of_arrivals(simulation.world.job[i]["submit"], unit, chosen.arrivals_end),
                  "long": self.hold[0], "quiet": self.hold[1], "share": self.hold[2]}  # fmt: skip
        for name, value in values.items():
            settings[0][name] = value
        self._settings, self._memory = settings, np.zeros(1, MEMORY)
        self._memory["luck"] = self._luck
        self._memory["row"] = int(simulation.world.s[i, 0]["now"]) // unit
        self._slots = np.full(chosen.slots, codes.NONE, np.int64)
        used = np.zeros((len(capacity), rows), np.int64)
        chart = np.zeros((len(capacity), rows, int(capacity.max()) if drawn else 0), np.uint8)
        booked = np.zeros(int(capacity[0]) * chosen.horizon if reserve else 1, BOOKED)
        starts = np.zeros(chosen.slots, np.int64)
        self._lens = (settings, capacity, self._memory, self._slots, starts, used, used.copy(), chart, np.zeros(rows), booked)
        self._width = chosen.width(capacity)
        self._numbers = np.zeros(0 if drawn else chosen.numbers(len(capacity)), np.float32)
        self._picture = np.zeros(chosen.horizon * self._width if drawn else 0, np.uint8)
        self._mask = np.zeros(chosen.slots + 1, bool)
        self._random = None if self._seed is None else np.random.default_rng(self._seed)
        self._new = False
