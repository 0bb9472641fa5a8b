"""Playing job lists with teams of rules and agents, all lists at once: one row of figures a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.envs.core.checks import whole_number
from escala.envs.slots.lists import JobLists
from escala.envs.slots.team.batch import FIGURES, LEAVE, MultiBatch, MultiTurn
from escala.envs.slots.team.heuristics import RULES
from escala.envs.slots.team.options import MultiOptions
from escala.errors import EscalaError

Act = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[np.int64]]
"""From observations [n, ...] and masks [n, actions] to actions [n]."""
Member = str | Act
PATIENCE = 60_000
RESCUE = 1
"""Units of silence, with nothing running, after which the no-op is taken from teams that are asked for their greedy actions: these alone
could idle for ever. (One machine with slots waits longer, as a wait on an idle machine can pay there.)"""


def play(
    lists: JobLists | None,
    team: Member | Sequence[Member],
    *,
    patience: int = PATIENCE,
    rescue: int = 0,
    batch: MultiBatch | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Run every list to its end; columns list, finished, row, and `slots.team.batch.FIGURES` (null where `finished` is False).

    team: a rule of `slots.team.heuristics` or a function of (observations, masks), played by every agent, or one of them for each agent.
    patience: turns after which a run counts as not finished. rescue: when so many units have passed without a submission and nothing runs,
    the no-op is taken from the mask where something fits (0: never).
    """
    if not isinstance(lists, JobLists) and (lists is not None or batch is None):
        raise EscalaError(f"lists {lists!r:.60}: give JobLists, for instance options_of({{...}}).job_lists()")
    whole_number("patience", patience, 1)
    whole_number("rescue", rescue, 0)
    batch = batch if batch is not None else MultiBatch(len(lists or ()), lists, **options)
    members = members_of(team, batch.options)
    n = batch.num_envs
    turn, rows = batch.new_turn(), np.arange(n)
    batch.seed(rows, rows.astype(np.uint64))
    batch.restart(rows, turn, {"list": rows})
    done = np.zeros(n, bool)
    for _ in range(patience):
        if rescue > 0:
            memory = batch.games.memory
            stuck = (memory["row"] - memory["last"] >= rescue) & (batch.worlds.world.s[:, 0]["n_ends"] == 0)
            turn.mask[stuck & turn.mask[:, :-1].any(axis=1), -1] = False
        actions = choose(batch, turn, members)
        actions[done] = LEAVE
        batch.step(actions, turn)
        done |= turn.terminated | turn.truncated
        if done.all():
            break
    info = batch.info()
    figures = {name: np.where(done, info[name].astype(np.float64), np.nan) for name in FIGURES}
    return pl.DataFrame({"list": rows, "finished": done, "row": info["row"], **figures}).fill_nan(None)


def members_of(team: Member | Sequence[Member], options: MultiOptions) -> list[Member]:
    """One member for each agent."""
    if not (isinstance(team, str | Sequence) or callable(team)):
        raise EscalaError(f"team {team!r}: give a rule, a function of (observations, masks), or one of them for each agent")
    members = [team] * options.agents if isinstance(team, str) or callable(team) else list(team)
    if len(members) != options.agents:
        raise EscalaError(f"a team of {len(members)} for a game of {options.agents} agents: give one member, or one for each agent")
    for member in members:
        if member not in RULES if isinstance(member, str) else not callable(member):
            raise EscalaError(f"unknown rule {member!r}: use one of {', '.join(RULES)}, or a function")
    return members


def choose(batch: MultiBatch, turn: MultiTurn, members: Sequence[Member], rows: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """The actions of the members whose turn it is; `LEAVE` in games outside `rows` (bool [N], by default all)."""
    actions = np.full(batch.num_envs, LEAVE, np.int64)
    asked = np.ones(batch.num_envs, bool) if rows is None else rows
    same = all(member is members[0] for member in members)
    for member in [members[0]] if same else _distinct(members):
        its = asked if same else asked & np.isin(batch.agent, [a for a, other in enumerate(members) if other is member])
        if not its.any():
            continue
        if isinstance(member, str):
            out = np.zeros(batch.num_envs, np.int64)
            batch.decide(member, out)
            actions[its] = out[its]
        else:
            actions[its] = member(turn.observation[its], turn.mask[its])
    return actions


def _distinct(members: Sequence[Member]) -> list[Member]:
    out: list[Member] = []
    for member in members:
        if not any(member is other for other in out):
            out.append(member)
    return out
