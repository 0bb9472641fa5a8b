"""`escala/Slots-v0`: the slotted scheduling world of R1 and R2, as a lens on the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Turn
from escala.envs.core.checks import environments
from escala.envs.core.environment import BatchEnv
from escala.envs.core.options import documented
from escala.envs.core.vector import BatchVectorEnv
from escala.envs.slots import heuristics
from escala.envs.slots.batch import SlottedBatch
from escala.envs.slots.lists import JobLists
from escala.envs.slots.observation import COMPACT
from escala.envs.slots.options import REWARDS, SlotOptions, options_of
from escala.options import microseconds


class SlotsBatch(SlottedBatch):
    """N slotted worlds of one machine; see `SlottedBatch`. After the end of a run `info` also tells longest_wait."""

    RULES = heuristics.RULES
    FIGURES = ("slowdown", "turnaround", "wait", "longest_wait", "makespan")

    def __init__(self, num_envs: int, workload: Any = None, platform: Any = None, **options: Any) -> None:
        self.options = chosen = options_of(options)
        lists = chosen.job_lists(workload, platform)
        environments(num_envs)
        unit, jobs = int(microseconds(lists.unit_s)), int(lists.jobs_of.max())
        games = chosen.games(num_envs, lists.capacity, unit, lists.longest, lists.named, jobs=jobs)
        games.settings["of_kinds"] = 1 + len(lists.platform.resources)
        if chosen.observation == "image":
            high, dtype = (255, np.uint8) if chosen.dtype == "uint8" else (1.0, np.float32)
            space = spaces.Box(0, high, (chosen.horizon, chosen.width(lists.capacity)), dtype)
        else:
            space = spaces.Box(0.0, 1.0, (chosen.numbers(len(lists.kinds)),), np.float32)
        super().__init__(num_envs, lists, games, space)
        self.weight = relative_weights(lists, chosen) if chosen.reward == "relative" else None

    def step(self, actions: Any, turn: Turn) -> None:
        """One action of every row."""
        super().step(actions, turn)
        if self.weight is not None:
            np.multiply(turn.reward, self.weight[self.worlds.chosen], out=turn.reward)


LEAST_LOSS = 0.2  # a job; keeps lists that SJF plays without a loss from weighing without limit


def relative_weights(lists: JobLists, options: SlotOptions) -> NDArray[np.float64]:
    """1 / (what greedy SJF loses) of each list [lists]."""
    from escala.envs.slots.playing import play  # plays batches of this module

    shape = {name: getattr(options, name) for name in ("slots", "horizon", "unit_s", "queue")}
    mean = play(lists, "sjf", **shape)["slowdown"].to_numpy()
    return 1.0 / (lists.jobs_of * np.maximum(mean - 1.0, LEAST_LOSS))


@documented(
    SlotOptions,
    compact=COMPACT,
    rewards="\n".join(f'- `reward="{name}"`: {about}' for name, (_, about) in REWARDS.items()),
)
class Slots(BatchEnv):
    """One machine, a chart of the units of time to come, and M slots that show waiting jobs; the agent says which one
    is placed.

    ## Description
    R1 (PPO grid scheduler) and R2 (A2cScheduler), after DeepRM. Time goes in units (`unit_s`). Jobs come first come
    first served into the slots; a slot that is emptied takes the oldest job of the backlog at once (the lowest empty
    slot first), so slots are not in order of arrival. What runs, runs in the kernel. `queue="shortest"`: the slots hold
    the shortest of all waiting jobs (of equals the oldest) instead: where the queue outgrows the slots, the oldest
    would be long jobs held back, and hide the short ones. `queue="ends"`: the oldest in half of the slots, rounded up,
    and the newest in the others (a split window, arXiv 2401.09910).

    ## Action space
    `Discrete(M + 1)`. 0, the no-op: one unit of time passes. k: the job of slot k is placed, and time stands.
    `placement="start-now"`: it starts now. `"reserve"` (R1): if it does not fit now, it is reserved at the first row at
    which it fits for its whole length within the horizon, on the lowest columns free throughout, and leaves its slot.
    An empty slot, or a job without a place, counts as the no-op. The mask says which choices have a place; the no-op is
    always allowed.

    ## Observation space
    `observation="compact"` (default): `Box(0, 1)`:

    {compact}

    `"image"`: (horizon, columns): for each kind its chart, each job in a shade of its own, running and reserved, and
    the slots (demand x length); then the backlog, filled row by row in `backlog` columns, and a column for the time
    since the last submission / 10. `dtype`: `"uint8"` 0..255, or `"float32"` 0..1.

    ## Rewards
    What option `reward` says:

    {rewards}

    ## Starting state
    An empty machine, at the first unit with something to decide. The job list is drawn by seed (`reset(options={"list":
    e})`: list e).

    ## Episode end
    Terminated when the last job has ended. With `limit` truncated when so many units have passed.

    ## Arguments
    workload, platform: a Workload, a path, or a list of Workloads on a machine of nodes of one core ("10x1") or of a
    single node with further resources. Left out, `lists` job lists are drawn (by `lists_seed`) of `model`:
    `"bernoulli"` (R1; `load`; `window` 100; `demand`), `"cpu-memory"` (R2; `rate`; `window` 50), or a SlotModel.
    `window`: steps with arrivals. Of several loads, rates or windows each has its share of the lists.

    {options}

    ## Version history
    v0: first.
    """

    batch_type = SlotsBatch


class SlotsVector(BatchVectorEnv):
    """Many slotted worlds at once, see `Slots` and `BatchVectorEnv`."""

    batch_type = SlotsBatch


def job_lists(workload: Any = None, platform: Any = None, **options: Any) -> JobLists:
    """The job lists that `Slots` with these arguments plays: drawn by its options, or those of a workload."""
    return options_of(options).job_lists(workload, platform)
