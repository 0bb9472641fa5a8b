"""Plans for one job list: a wanted start for each job, played in the slotted world, and a search for plans that play
well there.

A plan is played like this: among the visible jobs whose place is not before their wanted start, the one that is wanted
first is placed; if there is none, a unit passes. So a plan tells what to do in every state, also after it was left. The
list is known from its first to its last job: what a plan reaches is within reach of an agent that trains on that very
list, and no figure of a policy that does not know the future.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.batch import Turn, new_turn
from escala.envs.slots.lists import JobLists
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.kernel import codes

PLANS = 128  # tried side by side
ISLANDS = 16  # plans that are changed apart from each other
PATIENCE = 4000
FAR = 2**40  # a wanted start that never comes


class Plan(NamedTuple):
    """wanted: starts [jobs], units; slowdown: its mean over the jobs when the plan is played."""

    wanted: NDArray[np.float64]
    slowdown: float


def follow(batch: SlotsBatch, turn: Turn, wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """The actions of plans [N, jobs] in all simulations."""
    rows = np.arange(batch.num_envs)
    slots = batch.games.slots
    wish = np.where(slots == codes.NONE, FAR, wanted[rows[:, None], np.where(slots == codes.NONE, 0, slots)])
    late = turn.mask[:, 1:] & (batch.games.starts >= np.floor(wish))
    first = np.where(late, wish, FAR).argmin(axis=1)
    return np.where(late[rows, first], first + 1, 0)


def play_plans(batch: SlotsBatch, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean slowdown of each plan [N, jobs] on the batch's first list; infinite where a run does not end."""
    turn, rows = new_turn(batch), np.arange(batch.num_envs)
    batch.seed(rows, np.zeros(batch.num_envs, np.uint64))
    batch.restart(rows, turn, {"list": np.zeros(batch.num_envs, np.int64)})
    for _ in range(PATIENCE):
        batch.step(follow(batch, turn, wanted), turn)
        if turn.terminated.all():
            break
    return np.where(turn.terminated, batch.info()["slowdown"], np.inf)


def search_plan(lists: JobLists, starts: NDArray[np.float64], rounds: int, seed: int, **options: Any) -> Plan:
    """The best plan found for a single list, from one first plan. In each of `rounds` rounds `PLANS` changed copies are
    played, of `ISLANDS` plans that go their own ways at first; the worse half of them is given up again and again,
    until one is left."""
    if len(lists) != 1:
        raise EscalaError(f"{len(lists)} job lists: a plan is for one")
    batch, rng = SlotsBatch(PLANS, lists, **options), np.random.default_rng([seed, 0x97A1])
    submit = lists.job["submit"] / (1e6 * lists.unit_s)
    kept = np.repeat(np.maximum(np.asarray(starts, np.float64), submit)[None], ISLANDS, axis=0)
    least = np.full(ISLANDS, np.inf)
    halving = -(-rounds // ISLANDS.bit_length())
    for k in range(1, rounds + 1):
        tried = np.maximum(np.concatenate([_changed(one, submit, PLANS // len(kept), rng) for one in kept]), submit)
        found = play_plans(batch, tried).reshape(len(kept), -1)
        # the last of equals: plans drift where nothing is lost
        best = found.shape[1] - 1 - found[:, ::-1].argmin(axis=1)
        rows = np.arange(len(kept))
        kept, least = tried.reshape(*found.shape, -1)[rows, best], found[rows, best]
        if k % halving == 0 or k == rounds:
            better = np.argsort(least, kind="stable")[: max(1, len(kept) // 2)]
            kept, least = kept[better], least[better]
    return Plan(kept[0], float(least[0]))


def _changed(
    plan: NDArray[np.float64], submit: NDArray[np.float64], copies: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Copies [copies, jobs], all but the first changed: one to three jobs moved, two near ones exchanged, some wanted
    at once, all of a while moved together, or some wanted next to another."""
    out = np.repeat(plan[None], copies, axis=0)
    for row in out[1:]:
        jobs, kind = rng.integers(0, len(plan), rng.integers(1, 4)), rng.random()
        near = np.abs(plan - plan[jobs[0]])
        if kind < 0.4:
            row[jobs] += rng.normal(0.0, 1.0, len(jobs)) * rng.choice([1.0, 4.0, 15.0])
        elif kind < 0.65:
            other = rng.choice(np.flatnonzero(near < 15.0))
            row[[jobs[0], other]] = row[[other, jobs[0]]]
        elif kind < 0.8:
            row[jobs] = submit[jobs]
        elif kind < 0.9:
            row[near < rng.choice([3.0, 10.0, 30.0])] += rng.normal() * rng.choice([1.0, 4.0])
        else:
            row[jobs] = plan[rng.integers(0, len(plan), len(jobs))] + rng.choice([-0.5, 0.5])
    return out
