"""Several schedulers that share one queue, each with machines of its own (R4: Gergely, ICAART 2024), on the one kernel.

`slots` gives the game as a PettingZoo AEC environment, `parallel` as a parallel one, `batch` in the native form of N
games in one process, in which agents learn. All take the same options. `job_lists` draws lists, `play` runs them with
rules and agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from escala.envs.slots.lists import JobLists
    from escala.envs.slots.team.batch import MultiBatch
    from escala.envs.slots.team.pettingzoo import MultiSlotsAEC, MultiSlotsParallel

__all__ = ["batch", "job_lists", "parallel", "play", "slots"]


def slots(workload: Any = None, *, render_mode: str | None = None, **options: Any) -> MultiSlotsAEC:
    """The game as a `pettingzoo.AECEnv`; agents are called agent_0, agent_1, ...

    ## Description
    K agents share one queue and each owns N machines with R resources. Time goes in units of 1 s. Jobs come first come
    first served into M slots that all agents see; a slot that is emptied takes the oldest job of the backlog at once
    (the lowest empty slot first). Agents take turns; after the last, one unit of time passes. What runs, runs in the
    kernel.

    ## Action space
    `Discrete(N * M + 1)`. a < N M: the job of slot a mod M starts now on the agent's machine a div M. N M, the no-op:
    nothing. An empty slot, or a job that does not fit now, counts as the no-op; `info["action_mask"]` (and
    `action_mask(agent)`) tells which choices make sense. turns: `"single"` (default): one choice a turn;
    `"until-void"`: choices until the no-op.

    ## Observation space
    information: `"global"` (default): all machines, the agent's own first; `"local"`: its own. observation: `"compact"`
    (default): `Box(0, 1)`, see `slots.observation`: slots, machines, backlog, arrivals, which agent it is, with
    `arrivals_end` also time / arrivals_end, and 1 once it has passed; `"image"`: `Box(0, 255, (horizon, columns),
    uint8)`:
    charts of the machines, the slots, the backlog.

    ## Rewards
    For each unit that passes: alpha x sum of 1 / length over the jobs in the slots + beta x that of the backlog + gamma
    x that of the jobs that run: all of them (rewards `"global"`, default: with -1, -1, -1 they add up to minus the sum
    of the slowdowns) or those on the agent's own machines (`"local"`).

    ## Starting state
    Empty machines. The job list is drawn by seed (`reset(options={"list": e})`: list e).

    ## Episode end
    Terminated for all when the last job has ended. Truncated for all after `limit` units (0: never), and with
    `overflow="end"` when more than `backlog` jobs wait without a slot; `"keep"` (default): they go on waiting, and the
    observation shows `backlog` of them. No job is dropped.

    ## Arguments
    workload: job lists, a Workload of single-node jobs (times in whole seconds, runtimes equal to walltimes), or
    several; left out, `lists` lists of `steps` units of arrivals are drawn (by `lists_seed`) for `load` (or several
    loads, each its share), by `formula` `"plain"` or `"printed"` (the paper's q squared) and `p_long`, see
    `escala.workload.generate_slots.multi_resource_model`. agents, machines (of each agent), resources, slots, horizon.
    capacity: one number; one for each machine; or one for each machine and resource (machines in order of their
    owners): agents may differ; demands are drawn for the largest capacity of which every job has a machine, `load` is
    of all machines together, by the scarcest resource. skip: turns that pass unasked: `"none"` (default), `"empty"` (no
    job in the slots), `"forced"` (nothing fits). arrivals_end: the unit after which no job comes, where agents may know
    it (0: they do not).

    ## Version history
    v0: first.
    """
    from escala.envs.slots.team.pettingzoo import MultiSlotsAEC

    return MultiSlotsAEC(workload, render_mode=render_mode, **options)


def parallel(workload: Any = None, *, render_mode: str | None = None, **options: Any) -> MultiSlotsParallel:
    """The game as a `pettingzoo.ParallelEnv`: all agents choose at once, one choice a unit, carried out in the order of
    agents. A choice whose job an earlier agent has taken in the same unit counts as the no-op. Options as in `slots`,
    but for `turns` and `skip`."""
    from escala.envs.slots.team.pettingzoo import MultiSlotsParallel

    return MultiSlotsParallel(workload, render_mode=render_mode, **options)


def batch(num_envs: int, workload: Any = None, **options: Any) -> MultiBatch:
    """`num_envs` games in one process, see `slots.team.batch.MultiBatch`. Options as in `slots`."""
    from escala.envs.slots.team.batch import MultiBatch

    return MultiBatch(num_envs, workload, **options)


def job_lists(workload: Any = None, **options: Any) -> JobLists:
    """The job lists that `slots` with these arguments plays: drawn by its options, or those of a workload."""
    from escala.envs.slots.team.options import options_of

    return options_of(options).job_lists(workload)


def play(lists: JobLists, team: Any, **options: Any) -> pl.DataFrame:
    """Run every list to completion: one row of figures a list, in units. team: a rule (`"sjf"`, `"dense"`, ...) or a
    function of (observations, masks), played by every agent, or one of them for each agent. Beside the options of
    `slots`: patience and rescue, see `slots.team.playing.play`."""
    from escala.envs.slots.team import playing

    return playing.play(lists, team, **options)
