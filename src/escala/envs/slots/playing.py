"""Playing job lists with rules and agents, all lists at once: one row of figures a list. The quick way to judge slotted
policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.envs.core.batch import Turn, new_turn
from escala.envs.core.checks import whole_number
from escala.envs.core.random import rng_of
from escala.envs.slots import heuristics
from escala.envs.slots.batch import SlottedBatch
from escala.envs.slots.lists import JobLists
from escala.envs.slots.options import check_hold, set_hold
from escala.envs.slots.pile import set_pile
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.state import HOLD_PILE
from escala.errors import EscalaError

FIGURES = ("slowdown", "makespan", "turnaround", "wait", "longest_wait")
Act = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[np.int64]]
"""From observations [N, ...] and masks [N, actions] to actions [N]."""
Member = str | Act


def play(
    lists: JobLists,
    chooser: Member,
    *,
    hold: tuple[int, int, int] = (3, 6, 0),
    pile: Sequence[float] = HOLD_PILE,
    seed: int = 0,
    patience: int = 20_000,
    rescue: int = 0,
    **options: Any,
) -> pl.DataFrame:
    """Run every list to completion; columns list, finished, slowdown, makespan, turnaround, wait, longest_wait (means
    over the list's jobs, in units).

    chooser: a rule of `slots.heuristics`, or a function of (observations, masks). hold: (long, quiet, share) of the
    rule hold-back.
    pile: the numbers of hold-pile, see `slots.pile`. seed: of the rule random. patience: choices after which a run
    counts as not finished (its figures are then null): a policy may idle for ever. rescue: when so many units have
    passed without a submission, nothing runs and something fits, the no-op is taken from the mask (0: never).
    """
    check_hold(hold)
    for name, value, least in (("seed", seed, 0), ("patience", patience, 1), ("rescue", rescue, 0)):
        whole_number(name, value, least)
    n = len(lists)
    batch = SlotsBatch(n, lists, **options)
    set_hold(batch.games, hold)
    set_pile(batch.games, pile)
    turn, rows = new_turn(batch), np.arange(n)
    batch.seed(rows, np.zeros(n, np.uint64))
    batch.restart(rows, turn, {"list": rows})
    batch.games.memory["rng"] = rng_of(seed, n)
    done = play_out(batch, turn, members_of(chooser, 1, heuristics.RULES), patience, rescue)
    info = batch.info()
    figures = {name: np.where(done, info[name], np.nan) for name in FIGURES}
    return pl.DataFrame({"list": rows, "finished": done, **figures}).fill_nan(None)


def play_out(
    batch: SlottedBatch, turn: Turn, members: Sequence[Member], patience: int, rescue: int
) -> NDArray[np.bool_]:
    """Play games that have begun to their ends, by `patience` choices at most. Which ended [N]. rescue: see `play`."""
    done = np.zeros(batch.num_envs, bool)
    for _ in range(patience):
        if rescue > 0:
            memory, scalars = batch.games.memory, batch.worlds.world.s[:, 0]
            stuck = (memory["row"] - memory["last"] >= rescue) & (scalars["n_ends"] == 0) & (turn.mask.sum(axis=1) > 1)
            turn.mask[stuck, batch.noop] = False
        batch.step(choose(batch, turn, members, ~done), turn)
        done |= turn.terminated | turn.truncated
        if done.all():
            break
    return done


def members_of(team: Member | Sequence[Member], agents: int, rules: Mapping[str, int]) -> list[Member]:
    """One member for each agent; EscalaError where they are not as many, or something else than rules and functions."""
    if not (isinstance(team, str | Sequence) or callable(team)):
        raise EscalaError(
            f"team {team!r}: give a rule, a function of (observations, masks), or one of them for each agent"
        )
    members = [team] * agents if isinstance(team, str) or callable(team) else list(team)
    if len(members) != agents:
        raise EscalaError(
            f"a team of {len(members)} for a game of {agents} agents: give one member, or one for each agent"
        )
    for member in members:
        if member not in rules if isinstance(member, str) else not callable(member):
            raise EscalaError(f"unknown rule {member!r}: use one of {', '.join(rules)}, or a function")
    return members


def choose(
    batch: SlottedBatch, turn: Turn, members: Sequence[Member], rows: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The actions of the members whose turn it is; the least action in games outside `rows` (bool [N], by default
    all)."""
    actions = np.full(batch.num_envs, batch.least, np.int64)
    asked = np.ones(batch.num_envs, bool) if rows is None else rows
    same = all(member is members[0] for member in members)
    for member in [members[0]] if same else _distinct(members):
        its = (
            asked
            if same
            else asked & np.isin(batch.games.memory["agent"], [a for a, other in enumerate(members) if other is member])
        )
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


def tune_hold_back(
    lists: JobLists,
    quiets: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 15),
    shares: tuple[int, ...] = (0, 5),
    **options: Any,
) -> tuple[int, int, int]:
    """(long, quiet, share) of the rule hold-back with the least mean slowdown on these (validation) lists. EscalaError:
    nothing to try."""
    if not quiets or not shares:
        raise EscalaError(f"quiets={quiets!r}, shares={shares!r}: give at least one of each to try")
    tried = {
        (3, quiet, share): float(play(lists, "hold-back", hold=(3, quiet, share), **options)["slowdown"].mean())
        for quiet in quiets
        for share in shares
    }
    return min(tried, key=lambda setting: tried[setting])
