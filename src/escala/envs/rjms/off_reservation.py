"""`escala/OffReservation-v0`: when may nodes be woken? R3's DeepShutdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.batch import Rows, Turn
from escala.envs.core.checks import chosen_actions
from escala.envs.core.environment import BatchEnv
from escala.envs.core.options import choice, documented, flag, nonnegative, option, share, whole
from escala.envs.core.records import Records, settings_of
from escala.envs.core.vector import BatchVectorEnv
from escala.envs.rjms import observation, off_reservation_step
from escala.envs.rjms.action import FORMS, GUARDS
from escala.envs.rjms.days import DayBatch, DayOptions
from escala.envs.rjms.episodes import MOST_SHOWN, Episodes, days_of, given_or_built_in, idle_watts, watts_of
from escala.envs.rjms.state import SHUTDOWN, SHUTDOWN_MEMORY, SHUTDOWN_SETTINGS
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import Options, Plan
from escala.platform import Platform
from escala.policies.compose import plan_for, scheduler, shutdown
from escala.workload import Workload

HOLD_FRACTIONS = (0.0, 0.05, 0.125, 0.25, 0.375, 0.475)
BENEATH = {"wake": "timeout:0", "hold": "hold:0:uncapped", "count": None}
"""The kernel's shutdown policy under each form of action; None: held nodes go off, others never."""
DEFAULT_GUARD = {"wake": "late", "hold": "none", "count": "head"}
ALLOWED_GUARDS = {"wake": ("late", "none"), "hold": ("late", "none"), "count": ("head", "none")}


@dataclass(frozen=True)
class OffReservationOptions(DayOptions):
    """Options of the environment; see `OffReservation`."""

    env: ClassVar[str] = "escala/OffReservation-v0"

    action: str = choice("wake", "hold", "count", about="what an action does")
    holds: Sequence[float] = option(
        HOLD_FRACTIONS, "shares of the walltime, none below 0", "action=hold: what each action stands for"
    )
    observation: str = choice("snapshots", "compact", about="the last snapshots with their jobs, or one vector")
    history: int = whole(20, 1, MOST_SHOWN, about="snapshots that are seen")
    jobs: int = whole(10, 1, MOST_SHOWN, about="queued jobs that are seen")
    qos: str = choice("startable", "all", about="which late jobs the reward counts")
    tau: float = share(0.5, about="a job is late for the reward after so long a wait")
    stretch_cost: float = nonnegative(0.0, about="price of a queued job's wait of one walltime")
    normalise: str = choice("author", "none", about="scales of the reward")
    guard: str | None = choice(None, *GUARDS, about="whose jobs are not blocked by held nodes; None: by the action")
    guard_at: float = share(0.3, about="guard=late: a job is late after so long a wait")
    skip: bool | None = flag(
        None, about="periods with an empty queue pass without a question; None: where that changes nothing"
    )
    ask: str = choice("submissions", "periods", about="decide every period and at submissions, or every period only")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.always and self.skip:
            what = "action='count'" if self.action == "count" else "ask='periods'"
            raise EscalaError(
                f"option skip=True: with {what} the agent also decides while the queue is empty; leave skip out"
            )
        if self.guard_name not in ALLOWED_GUARDS[self.action]:
            possible = " or ".join(ALLOWED_GUARDS[self.action])
            raise EscalaError(f"option guard={self.guard!r}: does nothing with action={self.action!r}: use {possible}")
        if not self.holds or not all(0.0 <= x < 1e6 for x in self.holds):
            raise EscalaError(f"option holds={self.holds!r}: give at least one share of the walltime, none below 0")

    @property
    def guard_name(self) -> str:
        """The guard in force."""
        return self.guard if self.guard is not None else DEFAULT_GUARD[self.action]

    @property
    def skips(self) -> bool:
        """Do instants with an empty queue pass without a question?"""
        return not self.always if self.skip is None else self.skip

    @property
    def always(self) -> bool:
        """Does a choice count with an empty queue, too?"""
        return self.action == "count" or self.ask == "periods"

    def actions(self, platform: Platform) -> int:
        """Number of actions."""
        return len(self.holds) if self.action == "hold" else platform.n_nodes + 1

    def settings(self, platform: Platform) -> NDArray[Any]:
        """The compiled code's settings."""
        times = self.times()
        author = self.normalise == "author"
        scale = idle_watts(platform) * self.period_s
        if author and scale <= 0:
            raise EscalaError(
                f"platform {platform.name!r} idles at 0 W: energy cannot be normalised; give a platform with power, "
                "or normalise='none'"
            )
        values = {
            **times,
            "jobs": self.jobs,
            "compact": self.observation == "compact",
            "form": FORMS[self.action],
            "skip": self.skips,
            "always": self.always,
            "guard": GUARDS[self.guard_name],
            "guard_at": self.guard_at,
            "tau": self.tau,
            "startable": self.qos == "startable",
            "waste_scale": 1.0 / scale if author else 1.0,
            "late_scale": 1.0 / platform.total_cores if author else 1.0,
            "stretch_cost": self.stretch_cost,
        }
        return settings_of(SHUTDOWN_SETTINGS, values)

    def games(self, n: int, platform: Platform, users: int, running: int) -> Records:
        """Settings and memory of n simulations, for environment and policy alike. running: jobs that run at once, at
        most."""
        memory = np.zeros(n, SHUTDOWN_MEMORY)
        memory["standing"] = self.resting % self.actions(platform)
        return Records(
            SHUTDOWN,
            n,
            settings=self.settings(platform),
            fractions=np.asarray(self.holds, np.float64),
            watts=watts_of(platform),
            users=np.zeros(users, np.int64),
            frontier=np.zeros(running + 1, np.int64),
            memory=memory,
            history=np.zeros((n, self.history, self.width), np.float32),
        )

    @property
    def width(self) -> int:
        """Numbers in one snapshot."""
        return observation.SNAPSHOT + (0 if self.observation == "compact" else self.jobs * observation.JOB)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        if self.observation == "snapshots":
            return (self.history, self.width)
        more = self.jobs * observation.JOB + observation.RUNNING_SHOWN * observation.RUNNING + observation.SUMMARY
        return (self.history * self.width + more,)

    @property
    def resting(self) -> int:
        """The action in force before the first question: nothing is held back."""
        return 0 if self.action in ("hold", "count") else -1

    def plan(self, workload: Workload, options: Options) -> Plan:
        """SAF with a pause before each of its decisions."""
        beneath = BENEATH[self.action]
        power = shutdown(beneath, options)[0] if beneath is not None else {"shutdown": codes.POWER_EXTERNAL}
        return plan_for(scheduler("saf"), power | self.pauses, workload, options)

    @property
    def pauses(self) -> dict[str, Any]:
        """Fields of a plan: when the kernel pauses, before the scheduler of every instant, or of every period's."""
        return {"pause_before": 1 if self.ask == "submissions" else 2, "period_s": self.period_s}


options_of = OffReservationOptions.of


class OffReservationBatch(DayBatch):
    """N days at once; see `escala.envs.core.batch.Batch`."""

    def __init__(self, num_envs: int, workload: Any = None, platform: Any = None, **options: Any) -> None:
        self.options = options_of(options)
        chosen = self.options
        workload, platform = given_or_built_in(workload, platform)
        days = days_of(workload, chosen.day_s, chosen.min_jobs)
        episodes = Episodes(num_envs, days, platform, self.plan, chosen.simulation_options(), timers=self.timers)
        super().__init__(num_envs, chosen, episodes, chosen.actions(episodes.platform))

    def plan(self, day: Workload, how: Options) -> Plan:
        """The kernel's plan of a day."""
        return self.options.plan(day, how)

    @property
    def timers(self) -> int:
        """How many timers a job may have at once: one for each share of its walltime."""
        return len(self.options.holds) if self.options.action == "hold" else 0

    def restart(self, rows: Rows, turn: Turn, options: Mapping[str, Any]) -> None:
        """Begin the next day of these rows."""
        self._begin(rows, options)
        self.games.memory["standing"][rows] = self.options.resting % int(self.action_space.n)
        self.games.history[rows] = 0.0
        self._check(off_reservation_step.begin(self.episodes.table, self.games.table, rows, (_flat(turn), turn.mask)))

    def step(self, actions: Any, turn: Turn) -> None:
        """One action of every row."""
        actions = chosen_actions(actions, self.num_envs, int(self.action_space.n))
        written = (_flat(turn), turn.mask, turn.reward, turn.terminated, turn.truncated)
        self._check(off_reservation_step.step(self.episodes.table, self.games.table, actions, written))

    def info(self) -> dict[str, NDArray[Any]]:
        """waste_j: joules wasted in the step; late_cores: its QoS term; waited: walltimes that queued jobs waited;
        time_s: the clock; day: the day's number."""
        memory = self.games.memory
        return {
            "waste_j": memory["step_waste_j"].copy(),
            "late_cores": memory["shown_late"].copy(),
            "waited": memory["shown_wait"].copy(),
            "time_s": self.episodes.world.s[:, 0]["now"] * 1e-6,
            "day": self.episodes.day.copy(),
        }

    def info_of(self, i: int) -> dict[str, Any]:
        """The same of simulation i."""
        memory, episodes = self.games.memory, self.episodes
        return {
            "waste_j": memory["step_waste_j"].item(i),
            "late_cores": memory["shown_late"].item(i),
            "waited": memory["shown_wait"].item(i),
            "time_s": episodes.world.s["now"].item(i) * 1e-6,
            "day": episodes.day.item(i),
        }


def _flat(turn: Turn) -> NDArray[np.float32]:
    """Observations as one row of numbers each."""
    return turn.observation.reshape(len(turn.observation), -1)


@documented(OffReservationOptions)
class OffReservation(BatchEnv):
    """One day of a log; once a minute, and when a job is submitted, the agent says how freely nodes may be woken for
    waiting jobs.

    ## Description
    R3's DeepShutdown: every minute (and at submissions between two minutes, which R3's rounded logs do not have; not
    with `ask="periods"`), after the events of that instant and before the scheduler (SAF: EASY backfilling with the
    candidates in order of walltime x cores). Idle nodes that the scheduler leaves over go off in the same instant (not
    with `action="count"`).

    ## Action space
    `Discrete`. `action="wake"` (default): 0..G, how many of the nodes that are off may be woken until the next decision
    (the lowest ids). Always G is exactly the shutdown policy `timeout:0`. `action="hold"`: an index into `holds`; a job
    may wake nodes when it has waited that share of its walltime; always the same index is exactly `hold:X:uncapped`.
    `action="count"` (R3): 0..G nodes are held: free ones (idle first, highest ids first) go off at once and stay off;
    idle nodes that are not held stay on; always 0 is exactly `never`. With `guard="head"` (its default) nodes that the
    queue's first job needs are not taken, and where it can start, off nodes are taken before idle ones.
    The mask tells which actions make sense; the others are carried out as well as can be. With an empty queue the
    action in force stays, whatever is chosen (excepted `count`, which also decides what idles then, and
    `ask="periods"`).

    ## Observation space
    `Box(0, 1)`. `observation="snapshots"` (default): (history, 8 + 4 jobs), the last snapshots, one a minute, the
    newest last: nodes in the five states, queue length, promised start of the first job, time of day; then for each of
    the first jobs cores, walltime, wait / walltime, jobs of its user in the system.
    `"compact"`: one vector: the snapshots without jobs, the first jobs now, ten running jobs (cores, remaining
    walltime, time they have run), free cores and demand.
    Scales: `escala.envs.rjms.observation`.

    ## Rewards
    -(E_waste + QoS) since the last decision: E_waste the joules of nodes idling or switching (the ledger's difference:
    a day's rewards add up to the metric); QoS, at each minute, the cores of the jobs that have waited `tau` of their
    walltime (`qos="startable"`: only those that fit the cores no job holds; `"all"`: all).
    `normalise="author"`: E_waste / (idle watts of the platform x period), QoS / cores. `"none"`: joules and cores.
    `stretch_cost` (beyond R3, 0 by default): what a queued job's wait of one walltime costs besides, counted each
    minute.

    ## Starting state
    Midnight of a day drawn by seed (`reset(options={"day": k})`: day k); all nodes off (`start_off`).

    ## Episode end
    `window="cut"`: truncated at the end of the day. `"drain"`: terminated when the last job has ended (truncated after
    `drain_days` more).

    ## Arguments
    workload: a Workload or path (split into days at midnight; days with fewer than `min_jobs` jobs left out), or a list
    of Workloads.
    platform: a Platform or a spec. Without both, the built-in log: two generated weeks of the cluster orion (`BUILT_IN`
    in `escala.envs.rjms.episodes`).

    {options}

    guard: `"late"` (default with wake: jobs that have waited `guard_at` of their walltime and could start may wake what
    they need; with hold no job is held longer than that), `"head"` (default with count: the queue's first job is never
    blocked by the held nodes alone, see Action space), `"none"`.
    skip: minutes with an empty queue pass without a question (default, except with count and `ask="periods"`); nothing
    else changes.
    ask: `"submissions"` (default: every period and at submissions) or `"periods"` (R3's reading of any log: one
    decision a minute, also with an empty queue; the action in force holds for jobs submitted between two).

    ## Version history
    v0: first.
    """

    batch_type = OffReservationBatch


class OffReservationVector(BatchVectorEnv):
    """Many days at once, see `OffReservation` and `BatchVectorEnv`."""

    batch_type = OffReservationBatch
