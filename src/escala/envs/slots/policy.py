"""Slotted deciders in the event-driven simulation: `escala.simulate(workload, platform, scheduler=SlotPolicy("sjf"))`.

The same lens and the same compiled choices as in `escala/Slots-v0`, on the simulation's own tables. While jobs are
visible or reserved the policy asks to be woken at every unit of time, as R1 did in its event-driven simulator. On
workloads whose times are whole units and whose jobs run their walltime both give the same schedule. Elsewhere lengths
are walltimes, rounded up to units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import lean
from escala.envs.core.checks import choice
from escala.envs.core.policy import EnvPolicy, forbid_noop
from escala.envs.core.random import rng_of
from escala.envs.core.records import Records
from escala.envs.slots import behind, lens
from escala.envs.slots.heuristics import RULES, decide
from escala.envs.slots.observation import begin_of_arrivals
from escala.envs.slots.options import RESCUE, SHAPING, check_hold, options_of, set_hold
from escala.envs.slots.state import MEMORY, SHOWS_OLDEST, Game, game
from escala.envs.slots.step import FAILED, asks, carry_out, show
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.state import World
from escala.kernel.world import one
from escala.policy import Commands, insider

Choose = Callable[[NDArray[Any], NDArray[np.bool_], np.random.Generator | None], int]
"""From one observation, one mask and a generator (None: choose the best) to an action."""

ROWS = 64


@lean
def foresee(w: World, g: Game) -> None:
    """The rows to come from the jobs that hold cores now, by their planned ends (start-now: nothing is reserved)."""
    st, m = g.settings, g.memory
    g.used[:, :] = 0
    for p in range(w.s[0].n_plans):
        j = int(w.plans[p])
        c = np.int64(w.run[j].chunk)  # NONE beside a machine, where all its nodes are gone
        n = 0 if st.pool == 1 else np.int64(w.chunk[c].low) if c != codes.NONE else codes.NONE
        row = m.row if n >= 0 else codes.NEVER_US
        while row <= m.row + st.ring - 1 and row * st.unit_us < w.run[j].plan:
            for k in range(st.kinds):
                g.used[n * st.kinds + k, row & st.ring] += lens.demand_of(w, j, k)
            row += 1


@lean
def look(worlds: Any, i: int, games: Any) -> int:
    """Take in what simulation i looks like now. 1: the agent whose turn it is has something to decide; 0: it has not;
    or FAILED."""
    w, g = one(worlds, i), game(games, 0)
    if not lens.catch_up(w, g):
        return FAILED
    if g.settings.reserve == 0:
        foresee(w, g)
    g.starts[:] = lens.UNKNOWN  # jobs may end before their walltime here
    return 1 if asks(w, g) else 0


@lean
def let_go(worlds: Any, i: int, games: Any) -> None:
    """Beside a machine: jobs that wait no longer, whoever has started or cancelled them, leave the slots and what is
    behind them."""
    w, g = one(worlds, i), game(games, 0)
    m = g.memory
    for k in range(g.settings.slots):
        j = np.int64(g.slots[k])
        if j != codes.NONE and w.run[j].state != codes.QUEUED:
            g.slots[k] = codes.NONE
            g.starts[k] = lens.NOWHERE
    if g.settings.shows != SHOWS_OLDEST:
        kept = 0
        for at in range(m.seen - m.entered):
            j = np.int64(g.behind[at])
            if w.run[j].state == codes.QUEUED:
                behind.join(w, g, kept, j)
                kept += 1
        m.entered = m.seen - kept
        for k in range(g.settings.slots):
            if g.slots[k] == codes.NONE and m.entered < m.seen:
                g.slots[k] = behind.leave(w, g, m.seen - m.entered)
                m.entered += 1


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
    """Place a job; False where the choice counts as the no-op."""
    return carry_out(one(worlds, i), game(games, 0), action) == 1


class SlottedPolicy(EnvPolicy):
    """A scheduler over M visible jobs, of one agent or several. rescue: units of silence after which the no-op is
    forbidden where nothing runs (0: never)."""

    name: str
    options: Any
    rescue = 0
    one_pool = by_node = True
    """Beside a machine: it looks at what jobs of one node demand."""
    _numbers: NDArray[np.float32]
    _first_us = 0

    @property
    def unasked(self) -> str:  # type: ignore[override]
        """As of `EnvPolicy`."""
        if self.options.arrivals_end > 0:
            known = f"arrivals_end={self.options.arrivals_end}"
            return f"was trained to know when the last job comes ({known}): nobody can tell it beside a machine"
        if getattr(self.options, "placement", "") == "reserve":
            return (
                "goes by reservations that it gave before, which a snapshot does not tell: take one with "
                "placement='start-now'"
            )
        if self.options.observation == "image":
            return (
                "sees a picture of where it placed jobs, which a snapshot does not tell: take one with "
                "observation='compact'"
            )
        return ""

    def _forms(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        return {"memory": (MEMORY, (1,)), "slots": (np.int64, (1, self.options.slots))}

    def _more(self) -> dict[str, Any]:
        """Rows behind the slots, and when the first job came."""
        memory = self._games.memory[0]
        behind = self._games.behind[0, : max(int(memory["seen"] - memory["entered"]), 0)].tolist()
        return {"behind": behind, "first_us": self._first_us}

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        memory = arrays["memory"][0]
        rows = np.array([*state["behind"], *arrays["slots"][0], memory["entered"] - 1, memory["seen"] - 1], np.int64)
        behind = memory["seen"] - memory["entered"] if getattr(self.options, "queue", "oldest") != "oldest" else 0
        if (
            rows.min() < codes.NONE
            or rows.max() >= memory["seen"]
            or len(state["behind"]) != behind
            or memory["booked"] != 0
        ):
            raise ValueError(state["behind"])
        int(state["first_us"])

    def _recall(self, state: Any) -> None:
        self._games.behind[0, : len(state["behind"])] = state["behind"]
        self._first_us = state["first_us"]

    def _make_room(self, simulation: Any, i: int, users: int, ended: int) -> None:
        room, rows = self._games.behind.shape[1], simulation.world.job.shape[1]
        if 0 < room < rows:
            behind = np.zeros((1, rows), np.int64)
            behind[:, :room] = self._games.behind
            self._games = self._games.with_room(behind=behind)

    def renumber(self, kept: NDArray[np.int64]) -> None:
        """As of `LearntScheduler`."""
        games, memory = self._games, self._games.memory
        seen, entered = int(memory["seen"][0]), int(memory["entered"][0])
        filled = games.slots >= 0
        games.slots[filled] = np.searchsorted(kept, games.slots[filled])
        now = int(np.searchsorted(kept, seen))
        if games.behind.shape[1]:
            games.behind[0, : seen - entered] = np.searchsorted(kept, games.behind[0, : seen - entered])
            memory["entered"] = now - (seen - entered)
        else:
            memory["entered"] = np.searchsorted(kept, entered)
        memory["seen"] = now
        memory["gone"] += seen - now

    def _look_round(self, simulation: Any, i: int, ended: NDArray[np.int64]) -> None:
        first = simulation.world.job[i, :1]["submit"]
        if self._games.memory["seen"][0] == 0:
            self._first_us = int(first[0])
        first[:] = self._first_us  # of a job that may be long gone
        let_go(simulation.table, i, self._games.table)

    def _suits(self, simulation: Any, i: int) -> None:
        """EscalaError where jobs to come are made of several parts: slots show one place for each."""
        world = simulation.world
        job, run = (table[i, : world.o["n_jobs"].item(i)] for table in (world.job, world.run))
        parted = np.flatnonzero((job["single"] == 2) & (run["state"] <= codes.QUEUED))
        if len(parted):
            raise EscalaError(
                f"{self.name} gives each job one place, and job {int(parted[0])} asks for several nodes or tasks, or "
                "whole nodes: take easy or sjf-fit, or leave out what jobs ask of nodes"
            )

    def _records(self, simulation: Any, i: int, games: Records) -> Records:
        """The games of a run that begins now, and what agents are shown in."""
        settings, drawn = games.settings, self.options.observation == "image"
        games.memory["row"] = int(simulation.world.s[i, 0]["now"]) // int(settings["unit_us"])
        self._noop = 0 if settings["first"] else int(settings["machines"] * settings["slots"])
        self._mask = np.zeros(int(settings["machines"] * settings["slots"]) + 1, bool)
        self._picture = np.zeros(int(settings["horizon"] * settings["width"]) if drawn else 0, np.uint8)
        return games

    def _look(self, simulation: Any, i: int, agent: int) -> bool:
        self._games.memory["agent"] = agent
        asked = look(simulation.table, i, self._games.table)
        if asked == FAILED:
            raise EscalaError(
                f"{self.name}: a reservation could not be kept; placement='reserve' needs jobs alone on the machine"
            )
        return asked == 1

    def _show(self, simulation: Any, i: int) -> None:
        """Write what the agent whose turn it is sees."""
        write(simulation.table, i, self._games.table, (self._numbers, self._picture, self._mask))
        memory = self._games.memory[0]
        if self.rescue > 0 and memory["row"] - memory["last"] >= self.rescue:
            forbid_noop(simulation, i, self._mask, self._noop)

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        return put(simulation.table, i, self._games.table, action) and self._games.settings["until_noop"] == 1

    def _wake(self, act: Commands) -> None:
        games, memory = self._games, self._games.memory[0]
        if (games.slots >= 0).any() or memory["booked"] > 0:
            act.call_at((int(memory["row"]) + 1) * int(games.settings["unit_us"]) * 1e-6)


@insider
class SlotPolicy(SlottedPolicy):
    """A scheduler over M visible jobs. `choose`: the name of a rule of `slots.heuristics`, or a function (see
    `Choose`).

    options: those of `escala/Slots-v0` in `options.SHAPING`. hold: (long, quiet, share) of the rule hold-back, in
    units. seed: of the rule random, in each run. sampled: a function gets a generator, of this seed in each run;
    without one the mask forbids the no-op where nothing was submitted for `RESCUE` units, nothing runs and something
    fits (as `play(..., rescue=RESCUE)` does). seen: shape of the observations that the function takes; machines that
    show another are refused. Units without a waiting job are not asked about, whatever `skip` is.
    """

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
        self.rule = RULES[choose] if isinstance(choose, str) else None
        self.hold, self.seen = hold, seen
        self._seed, self.draws = seed if sampled else None, sampled
        self.rescue = 0 if sampled else RESCUE
        self._rng = rng_of(seed, 1)
        self._choose = choose
        self.begin_run()

    @property
    def unasked(self) -> str:  # type: ignore[override]
        """As of `EnvPolicy`."""
        if self.rule == RULES["easy"]:
            return "counts as far as the longest job of a log, which a machine has not: take the scheduler 'easy'"
        return super().unasked

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        if self.rule is not None:
            return int(by_rule(simulation.table, i, self._games.table, self.rule))
        self._show(simulation, i)
        seen: Any = self._numbers
        if self.options.observation == "image":
            seen = self._picture.reshape(self.options.horizon, -1)
            seen = seen if self.options.dtype == "uint8" else seen.astype(np.float32) / 255
        chosen = self._choose(seen, self._mask, self._random)  # type: ignore[operator]
        return choice(self.name, chosen, len(self._mask))

    def _begin(self, simulation: Any, i: int) -> Records:
        """Empty slots on this simulation's machine."""
        platform, chosen = simulation.platform, self.options
        named = int(platform.cores.max()) == 1
        if not named and platform.n_nodes > 1:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} schedules one machine: nodes of one core (10x1), or a "
                "single node"
            )
        kinds = simulation.kinds
        capacity = np.array([platform.total_cores, *(int(platform.resources[k].sum()) for k in kinds)], np.int64)
        reserve, drawn = chosen.placement == "reserve", chosen.observation == "image"
        if (reserve or drawn) and capacity.max() > 62:
            raise EscalaError(
                f"platform {platform.name!r}: {capacity.max()} units of a resource; charts and reservations hold at "
                "most 62"
            )
        unit = round(chosen.unit_s * SECOND)
        longest = int(-(-int(simulation.world.job[i]["walltime"].max(initial=unit)) // unit))
        if (reserve or drawn) and longest > chosen.horizon:
            raise EscalaError(
                f"{self.name}: its chart shows {chosen.horizon} units of {chosen.unit_s:g} s, and a job asks for "
                f"{longest}: train with a larger horizon, or schedule shorter jobs"
            )
        shape = (chosen.horizon, chosen.width(capacity)) if drawn else (chosen.numbers(len(capacity)),)
        if self.seen is not None and self.seen != shape:
            raise EscalaError(
                f"platform {platform.name!r}: {self.name} was trained on another machine (it sees {self.seen}, here "
                f"it would see {shape}): schedule a machine with the same "
                "resources" + " and as many units of each" * drawn
            )
        # easy counts to its head's start
        longest = longest if reserve or self.rule == RULES["easy"] else min(longest, ROWS)
        begin = begin_of_arrivals(simulation.world.job[i]["submit"], unit, chosen.arrivals_end)
        games = chosen.games(1, capacity, unit, longest, named, begin=begin, jobs=len(simulation.world.job[i]))
        games.settings["of_kinds"] = 1 + len(platform.resources)  # whatever jobs to come demand
        set_hold(games, self.hold)
        games.memory["rng"] = self._rng
        self._numbers = np.zeros(0 if drawn else chosen.numbers(len(capacity)), np.float32)
        self._random = None if self._seed is None else np.random.default_rng(self._seed)
        return self._records(simulation, i, games)
