"""Playing job lists with teams of rules and agents, all lists at once: one row of figures a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from escala.envs.core.checks import whole_number
from escala.envs.slots.lists import JobLists
from escala.envs.slots.playing import Member, members_of, play_out
from escala.envs.slots.team.batch import FIGURES, MultiBatch
from escala.errors import EscalaError

PATIENCE = 60_000
RESCUE = 1
"""Units of silence, with nothing running, after which the no-op is taken from teams that are asked for their greedy
actions: these alone could idle for ever. (One machine with slots waits longer, as a wait on an idle machine can pay
there.)"""


def play(
    lists: JobLists | None,
    team: Member | Sequence[Member],
    *,
    patience: int = PATIENCE,
    rescue: int = 0,
    batch: MultiBatch | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Run every list to its end; columns list, finished, row, and `slots.team.batch.FIGURES` (null where `finished` is
    False).

    team: a rule of `slots.heuristics` or a function of (observations, masks), played by every agent, or one of them for
    each agent.
    patience: turns after which a run counts as not finished. rescue: when so many units have passed without a
    submission and nothing runs, the no-op is taken from the mask where something fits (0: never).
    """
    if not isinstance(lists, JobLists) and (lists is not None or batch is None):
        raise EscalaError(f"lists {lists!r:.60}: give JobLists, for instance options_of({{...}}).job_lists()")
    whole_number("patience", patience, 1)
    whole_number("rescue", rescue, 0)
    batch = batch if batch is not None else MultiBatch(len(lists or ()), lists, **options)
    members = members_of(team, batch.options.agents, batch.RULES)
    n = batch.num_envs
    turn, rows = batch.new_turn(), np.arange(n)
    batch.seed(rows, rows.astype(np.uint64))
    batch.restart(rows, turn, {"list": rows})
    done = play_out(batch, turn, members, patience, rescue)
    info = batch.info()
    figures = {name: np.where(done, info[name].astype(np.float64), np.nan) for name in FIGURES}
    return pl.DataFrame({"list": rows, "finished": done, "row": info["row"], **figures}).fill_nan(None)
