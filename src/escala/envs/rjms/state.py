"""What the environments of R3 know beside the kernel's tables: settings, and what is remembered of each simulation, as
one compiled record for each environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile.pointer import PointerType, row_of

CLOCK = [
    ("period_us", "i8"),  # between decisions
    ("day_us", "i8"),
    ("limit_us", "i8"),  # an episode is cut at the first decision at or after this time
]

SHUTDOWN_SETTINGS = np.dtype(
    [
        *CLOCK,
        ("jobs", "i8"),  # queued jobs in an observation
        ("compact", "i8"),  # 1: jobs of this instant only; 0: jobs in every snapshot
        ("form", "i8"),  # action.WAKE | COUNT | HOLD
        ("skip", "i8"),  # 1: instants with an empty queue pass without a question
        ("always", "i8"),  # 1: a choice counts with an empty queue, too
        ("guard", "i8"),  # action.NO_GUARD | LATE | HEAD
        ("guard_at", "f8"),  # a job is late for the guard after this share of its walltime
        ("tau", "f8"),  # a job is late for the reward after this share of its walltime
        ("startable", "i8"),  # 1: only late jobs count that fit the cores which no job holds
        ("waste_scale", "f8"),  # reward per joule wasted
        ("late_scale", "f8"),  # reward per late core and decision
        ("stretch_cost", "f8"),  # reward per walltime waited by a queued job
    ]
)

SHUTDOWN_MEMORY = np.dtype(
    [
        ("standing", "i8"),  # action in force
        ("newest", "i8"),  # place of the newest snapshot in the ring
        ("over", "i8"),  # 1: the run ended; no question is left
        ("waste_j", "f8"),  # settled so far
        ("step_waste_j", "f8"),  # of the last step
        ("step_late", "f8"),  # late cores since the last step, growing
        ("shown_late", "f8"),  # those of the last step
        ("step_wait", "f8"),  # walltimes waited by queued jobs since the last step, growing
        ("shown_wait", "f8"),  # those of the last step
    ]
)

SCHEDULING_SETTINGS = np.dtype(
    [
        *CLOCK,
        ("rho", "f8"),  # weights of the reward
        ("sigma", "f8"),
        ("tau", "f8"),
        ("cost", "i8"),  # what a waiting job costs: reward.STRETCH | WAIT | SLOWDOWN | AREA
        ("guard_us", "i8"),  # a job that has waited so long stands in front
        ("confidence", "i8"),  # user_confidence.ENDED | SUBMITTED
    ]
)

SCHEDULING_MEMORY = np.dtype(
    [
        ("newest", "i8"),  # place of the newest snapshot in the ring
        ("over", "i8"),  # 1: the run ended; no question is left
        ("due_us", "i8"),  # no question before this time
        ("aged", "i8"),  # 1: the first waiting job has waited the guard, and holds a reservation
        ("shadow_us", "i8"),  # of that job: when its cores will be free, by walltimes
        ("spare", "i8"),  # and how many more than it needs
        ("seen_us", "i8"),  # when the reward was last settled
        ("seen_ended", "i8"),  # jobs whose end has been noted
        ("seen_jobs", "i8"),  # jobs whose submission has been noted
        ("n_live", "i8"),  # placed jobs whose end has not been noted
        ("shown_us", "i8"),  # time of the newest snapshot
        ("waste_j", "f8"),  # settled so far
        ("idle_us", "f8"),
        ("computing_us", "f8"),
        ("step_waste_j", "f8"),  # of the last step
    ]
)

RECENT = 20  # a user's confidence is the mean over so many jobs

SHUTDOWN = PointerType(
    "ShutdownGame",
    {
        "settings": (SHUTDOWN_SETTINGS, 0),  # of all games
        "fractions": (np.float64, 1),  # [actions] hold: shares of the walltime, of all games
        "watts": (np.float64, 2),  # [profiles, 3] of idle, switching-off and switching-on nodes, of all games
        "users": (np.int64, 1),  # scratch: jobs of each user, all zero between two uses
        "frontier": (np.int64, 1),  # scratch of `plans.following`
        "memory": (SHUTDOWN_MEMORY, 0),
        "history": (np.float32, 2),  # [snapshots, width] a ring
    },
)

SCHEDULING = PointerType(
    "SchedulingGame",
    {
        "settings": (SCHEDULING_SETTINGS, 0),  # of all games
        "watts": (np.float64, 2),  # as above
        "frontier": (np.int64, 1),
        "memory": (SCHEDULING_MEMORY, 0),
        "history": (np.float32, 2),  # [places, SNAPSHOT] a ring
        "live": (np.int64, 1),  # placed jobs whose end has not been noted
        "ratios": (np.float64, 2),  # [users, RECENT] rings of runtime / walltime, -1 - row of a job that has not ended
        "entered": (np.int64, 1),  # [users] jobs that came into them
        "confidence": (np.float64, 1),  # [users]
    },
)

Game = Any  # `g.memory.over`, `g.history[k]`: one game inside compiled code
shutdown_game: Any = row_of(SHUTDOWN)  # shutdown_game(games, i)
scheduling_game: Any = row_of(SCHEDULING)
