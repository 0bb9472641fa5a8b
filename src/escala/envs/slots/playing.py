"""Playing job lists with rules and agents, all lists at once: one row of figures a list. The quick way to judge slotted policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.envs.core.batch import Turn, new_turn
from escala.envs.core.checks import whole_number
from escala.envs.core.random import rng_of
from escala.envs.slots import heuristics
from escala.envs.slots.lists import JobLists
from escala.envs.slots.options import check_hold, set_hold
from escala.envs.slots.pile import set_pile
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.state import HOLD_PILE
from escala.errors import EscalaError

FIGURES = ("slowdown", "makespan", "turnaround", "wait", "longest_wait")
Act = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[np.int64]]
"""From observations [N, ...] and masks [N, actions] to actions [N]."""


def play(
    lists: JobLists,
    chooser: str | Act,
    *,
    hold: tuple[int, int, int] = (3, 6, 0),
    pile: Sequence[float] = HOLD_PILE,
    seed: int = 0,
    patience: int = 20_000,
    rescue: int = 0,
    **options: Any,
) -> pl.DataFrame:
    """Run every list to completion; columns list, finished, slowdown, makespan, turnaround, wait, longest_wait (means over the list's
    jobs, in units).

    chooser: a rule of `slots.heuristics`, or a function of (observations, masks). hold: (long, quiet, share) of the rule hold-back.
    pile: the numbers of hold-pile, see `slots.pile`. seed: of the rule random. patience: choices after which a run counts as not finished
    (its figures are then null): a policy may idle for ever. rescue: when so many units have passed without a submission, nothing runs and
    something fits, the no-op is taken from the mask (0: never).
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
    act, done = _actor(batch, chooser), np.zeros(n, bool)
    for _ in range(patience):
        if rescue > 0:
            memory, scalars = batch.games.memory, batch.worlds.world.s[:, 0]
            stuck = (memory["row"] - memory["last"] >= rescue) & (scalars["n_ends"] == 0) & turn.mask[:, 1:].any(axis=1)
            turn.mask[stuck, 0] = False
        batch.step(act(turn, ~done), turn)
        done |= turn.terminated
        if done.all():
            break
    info = batch.info()
    figures = {name: np.where(done, info[name], np.nan) for name in FIGURES}
    return pl.DataFrame({"list": rows, "finished": done, **figures}).fill_nan(None)


def _actor(batch: SlotsBatch, chooser: str | Act) -> Callable[[Turn, NDArray[np.bool_]], NDArray[np.int64]]:
    """What to do in each run, given which are still running; of the others the action does not matter."""
    if not isinstance(chooser, str):

        def ask(turn: Turn, running: NDArray[np.bool_]) -> NDArray[np.int64]:
            actions = np.zeros(running.size, np.int64)
            actions[running] = chooser(turn.observation[running], turn.mask[running])
            return actions

        return ask
    if chooser not in heuristics.RULES:
        raise EscalaError(f"unknown rule {chooser!r}: use one of {', '.join(heuristics.RULES)}, or a function")
    out = np.zeros(batch.num_envs, np.int64)

    def rule(turn: Turn, running: NDArray[np.bool_]) -> NDArray[np.int64]:
        batch.decide(chooser, out)
        return out

    return rule


def tune_hold_back(
    lists: JobLists, quiets: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 15), shares: tuple[int, ...] = (0, 5), **options: Any
) -> tuple[int, int, int]:
    """(long, quiet, share) of the rule hold-back with the least mean slowdown on these (validation) lists. EscalaError: nothing to try."""
    if not quiets or not shares:
        raise EscalaError(f"quiets={quiets!r}, shares={shares!r}: give at least one of each to try")
    tried = {
        (3, quiet, share): float(play(lists, "hold-back", hold=(3, quiet, share), **options)["slowdown"].mean())
        for quiet in quiets
        for share in shares
    }  # type: ignore[arg-type]
    return min(tried, key=lambda setting: tried[setting])
