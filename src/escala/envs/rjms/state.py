"""What an environment of R3 knows beside the kernel's tables: its settings, and what it remembers of each simulation."""

from __future__ import annotations

import numpy as np

# Settings of an environment, one record.
SETTINGS = np.dtype(
    [
        ("period_us", "i8"),  # between decisions
        ("day_us", "i8"),
        ("limit_us", "i8"),  # an episode is cut at the first decision at or after this time
        ("history", "i8"),  # snapshots in an observation
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
        ("rho", "f8"),  # weights of the scheduling reward
        ("sigma", "f8"),
        ("mu", "f8"),
        ("confidence", "i8"),  # scheduling: confidence.ENDED | SUBMITTED
    ]
)

# What is remembered of one simulation.
MEMORY = np.dtype(
    [
        ("standing", "i8"),  # action in force
        ("newest", "i8"),  # place of the newest snapshot in the ring
        ("over", "i8"),  # 1: the run ended; no question is left
        ("due_us", "i8"),  # scheduling: no question before this time
        ("seen_us", "i8"),  # scheduling: when the reward was last settled
        ("seen_ended", "i8"),  # scheduling: jobs whose end has been noted
        ("seen_jobs", "i8"),  # scheduling: jobs whose submission has been noted
        ("n_live", "i8"),  # scheduling: placed jobs whose end has not been noted
        ("shown_us", "i8"),  # scheduling: time of the newest snapshot
        ("waste_j", "f8"),  # settled so far
        ("idle_us", "f8"),
        ("computing_us", "f8"),
        ("step_waste_j", "f8"),  # of the last step
        ("step_late", "f8"),  # late cores since the last step, growing
        ("shown_late", "f8"),  # those of the last step
        ("step_wait", "f8"),  # walltimes waited by queued jobs since the last step, growing
        ("shown_wait", "f8"),  # those of the last step
    ]
)

RECENT = 20  # a user's confidence is the mean over so many jobs
