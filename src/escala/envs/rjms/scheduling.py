"""`escala/Scheduling-v0`: which waiting job starts next? R3's DeepScheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.batch import Rows, Turn
from escala.envs.core.checks import chosen_actions
from escala.envs.core.environment import BatchEnv
from escala.envs.core.options import choice, documented, flag, nonnegative, option, weight, whole
from escala.envs.core.records import Records, settings_of
from escala.envs.core.vector import BatchVectorEnv
from escala.envs.rjms import scheduling_step
from escala.envs.rjms.days import DayBatch, DayOptions
from escala.envs.rjms.episodes import MOST_SHOWN, Episodes, days_of, given_or_built_in, watts_of, whole_log, whole_us
from escala.envs.rjms.observation import SNAPSHOT
from escala.envs.rjms.reward import COSTS
from escala.envs.rjms.state import RECENT, SCHEDULING, SCHEDULING_MEMORY, SCHEDULING_SETTINGS
from escala.envs.rjms.user_confidence import KINDS
from escala.envs.rjms.warm import warm_episodes
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import Options, Plan
from escala.platform import Platform, read_platform
from escala.policies.compose import plan_for, scheduler, shutdown
from escala.workload import Workload


@dataclass(frozen=True)
class SchedulingOptions(DayOptions):
    """Options of the environment; see `Scheduling`."""

    env: ClassVar[str] = "escala/Scheduling-v0"

    places: int = whole(20, 1, MOST_SHOWN, about="waiting jobs, running jobs and snapshots that are seen")
    waits: bool = flag(False, about="show how long each of the first waiting jobs has waited")
    rho: float = weight(1.0, about="reward: price of idle nodes")
    sigma: float = weight(1.0, about="reward: price of waiting")
    tau: float = weight(0.2, about="reward: worth of computing nodes")
    objective: str = choice(
        *COSTS, about="what waiting costs: time waited in walltimes, in hours, in runtimes, or in hours by work"
    )
    guard_s: float = nonnegative(
        0.0, about="jobs that have waited so long stand in front, under EASY's reservation, s; 0: no guard"
    )
    warm: str | None = option(
        None, "None or a scheduler", "episodes begin as its replay of the whole log has machine and queue"
    )
    confidence: str = choice(*KINDS, about="the user's last jobs that count")
    shutdown: str = option("timeout:300", "never or timeout:SECONDS", "the shutdown policy")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shutdown.startswith(("timeout:", "never")):
            raise EscalaError(
                f"option shutdown={self.shutdown!r}: under a learnt scheduler give never or timeout:SECONDS"
            )
        if self.warm is not None and scheduler(self.warm).queueing == codes.CONSERVATIVE:
            raise EscalaError(
                f"option warm={self.warm!r}: its reservations are no part of a start: give another scheduler, such as "
                "easy"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of one observation."""
        return self.places, scheduling_step.WIDTH + int(self.waits)

    def settings(self) -> NDArray[Any]:
        """The compiled code's settings."""
        values = {
            **self.times(),
            "rho": self.rho,
            "sigma": self.sigma,
            "tau": self.tau,
            "cost": COSTS[self.objective],
            "guard_us": whole_us(self.guard_s, "guard_s") if self.guard_s > 0 else codes.NEVER_US,
            "confidence": KINDS[self.confidence],
        }
        return settings_of(SCHEDULING_SETTINGS, values)

    def games(self, n: int, platform: Platform, users: int, running: int) -> Records:
        """Settings and memory of n simulations, for environment and policy alike. running: jobs that run at once, at
        most."""
        return Records(
            SCHEDULING,
            n,
            settings=self.settings(),
            watts=watts_of(platform),
            frontier=np.zeros(running + 1, np.int64),
            memory=np.zeros(n, SCHEDULING_MEMORY),
            history=np.zeros((n, self.places, SNAPSHOT), np.float32),
            live=np.zeros((n, running + 1), np.int64),
            ratios=np.zeros((n, users + 1, RECENT), np.float64),
            entered=np.zeros((n, users + 1), np.int64),
            confidence=np.ones((n, users + 1), np.float64),
        )

    def plan(self, workload: Workload, options: Options) -> Plan:
        """Nobody schedules inside the kernel."""
        return plan_for(None, shutdown(self.shutdown, options)[0], workload, options)

    def plan_before(self, workload: Workload, options: Options) -> Plan:
        """Of the replay that the episodes begin with (`warm`)."""
        assert self.warm is not None
        return plan_for(scheduler(self.warm), shutdown(self.shutdown, options)[0], workload, options)

    def episodes(self, num_envs: int, workload: Any, platform: Any) -> Episodes:
        """What the batch plays."""
        told = self.simulation_options()
        if self.warm is None:
            return Episodes(num_envs, days_of(workload, self.day_s, self.min_jobs), platform, self.plan, told)
        log, machine = whole_log(workload), platform if isinstance(platform, Platform) else read_platform(platform)
        days, starts = warm_episodes(log, machine, self.plan_before, told, self.day_s, self.min_jobs)
        return Episodes(num_envs, days, machine, self.plan, told, starts=starts)


options_of = SchedulingOptions.of


class SchedulingBatch(DayBatch):
    """N days at once; see `escala.envs.core.batch.Batch`."""

    def __init__(self, num_envs: int, workload: Any = None, platform: Any = None, **options: Any) -> None:
        self.options = options_of(options)
        chosen = self.options
        episodes = chosen.episodes(num_envs, *given_or_built_in(workload, platform))
        super().__init__(num_envs, chosen, episodes, chosen.places + 1)

    def restart(self, rows: Rows, turn: Turn, options: Mapping[str, Any]) -> None:
        """Begin the next day of these rows."""
        self._begin(rows, options)
        games = self.games
        games.history[rows], games.entered[rows], games.confidence[rows] = 0.0, 0, 1.0
        self._check(scheduling_step.begin(self.episodes.table, games.table, rows, (turn.observation, turn.mask)))

    def step(self, actions: Any, turn: Turn) -> None:
        """One choice of every row."""
        actions = chosen_actions(actions, self.num_envs, int(self.action_space.n))
        self._check(scheduling_step.step(self.episodes.table, self.games.table, actions, tuple(turn)))

    def info(self) -> dict[str, NDArray[Any]]:
        """waste_j: joules wasted in the step, where the platform has watts; time_s: the clock; day: the day's
        number."""
        return {
            **({"waste_j": self.games.memory["step_waste_j"].copy()} if self.platform.has_energy else {}),
            "time_s": self.episodes.world.s[:, 0]["now"] * 1e-6,
            "day": self.episodes.day.copy(),
        }

    def info_of(self, i: int) -> dict[str, Any]:
        """The same of simulation i."""
        episodes = self.episodes
        return {
            **({"waste_j": self.games.memory["step_waste_j"].item(i)} if self.platform.has_energy else {}),
            "time_s": episodes.world.s["now"].item(i) * 1e-6,
            "day": episodes.day.item(i),
        }


@documented(SchedulingOptions)
class Scheduling(BatchEnv):
    """One day of a log; the agent starts waiting jobs.

    ## Description
    R3's DeepScheduler. The agent is asked whenever jobs wait. Time stands still while it makes valid choices; a no-op
    or invalid choice lets one period (a minute) pass; while the queue is empty time runs to the next submission. Nodes
    go off after 300 s of idling (`shutdown`);
    a job may be given nodes that are off, which are then woken for it.

    ## Action space
    `Discrete(1 + places)`: 0 the no-op; k starts the k-th waiting job, in order of submission, on the lowest cores that
    may be given now. Choosing a job that
    does not fit now, or an empty place, counts as the no-op. The mask says which choices are valid.

    ## Observation space
    `Box(0, 1)`, (places, 14): three sequences side by side. Columns 0-2: the first waiting jobs [cores, walltime,
    confidence]. Columns 3-5: the running jobs that leave first by walltime [cores, remaining walltime, remaining by
    confidence]. Columns 6-13: the last snapshots of the
    platform, the newest last [cores of jobs that wait for their nodes to be on, queue length, time of day, nodes in the
    five states]. `waits=True` (beyond R3) adds a column: the time that each of the first waiting jobs has waited.
    Confidence: mean of runtime / walltime over the user's 20 jobs that ended last; with `confidence="submitted"` (R3's
    words) over those of the user's last 20 submissions that have ended; 1 without any. Scales:
    `escala.envs.rjms.observation`.

    ## Rewards
    When time has passed: -rho N_idle - sigma waited + tau busy, with N_idle and busy the time of idle and of computing
    nodes, in periods and as shares of the
    platform, and waited the sum over waiting jobs of the time passed / walltime (R3's sum of -1/walltime for each
    minute). So a day's rewards add up
    to -rho idle node-minutes / nodes - sigma (sum of wait in the queue / walltime) + tau computing node-minutes /
    nodes. `objective` (beyond R3) counts waits otherwise: "wait" in hours; "bounded-slowdown" in runtimes of the job,
    of 10 s at least; "area-wait" in hours, times the hours of the whole machine that the job takes. Rewards may know
    runtimes, observations do not.

    ## Starting state
    Midnight of a day drawn by seed (`reset(options={"day": k})`: day k); all nodes off (`start_off`). With
    `warm="easy"` machine and queue are as a replay of the whole log under that scheduler has them: jobs run, wait and
    hold nodes. `day_s` makes longer episodes, such as weeks.

    ## Episode end
    `window="cut"`: truncated at the end of the day. `"drain"`: terminated when the last job has ended (truncated after
    `drain_days` more).

    ## Arguments
    workload: a Workload or path (split into days at midnight; days with fewer than `min_jobs` jobs left out), or a list
    of Workloads.
    platform: a Platform or a spec. Without both, the built-in log: two generated weeks of the cluster orion (`BUILT_IN`
    in `escala.envs.rjms.episodes`).

    {options}

    A platform without a power profile takes shutdown="never" only: its nodes stay on.

    ## Version history
    v0: first.
    """

    batch_type = SchedulingBatch


class SchedulingVector(BatchVectorEnv):
    """Many days at once, see `Scheduling` and `BatchVectorEnv`."""

    batch_type = SchedulingBatch
