"""What a teacher of slotted agents does, state by state: played here, and kept in files so that many agents learn from
one lesson."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.agents.imitation.lookahead_teacher import look_ahead
from escala.envs.core.batch import Turn, new_turn
from escala.envs.slots import heuristics
from escala.envs.slots.lists import JobLists
from escala.envs.slots.options import SHAPING, set_hold
from escala.envs.slots.pile import set_pile
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.writing import whole_file

LONGEST_NAP = 60
PATIENCE = 4000  # rows of voids and choices after which a teacher is given up
SHAPE = tuple(name for name in (*SHAPING, "reward") if name not in ("observation", "dtype", "backlog", "unit_s"))
"""Options of the environment that a lesson holds for."""

Teacher = Callable[[SlotsBatch, Turn], NDArray[np.int64]]


class Lessons(NamedTuple):
    """States [n, numbers], masks [n, actions], the teacher's choices [n], discounted rewards that followed [n]."""

    seen: NDArray[np.float32]
    mask: NDArray[np.bool_]
    choice: NDArray[np.int64]
    value: NDArray[np.float64]
    running: NDArray[np.float64]  # discounted rewards so far: what rewards are scaled by


def play_lessons(
    lists: JobLists,
    teacher: Teacher,
    options: Mapping[str, Any],
    gamma: float,
    n: int,
    rng: np.random.Generator,
    *,
    stray: float,
    nap: float,
    straight: float = 0.0,
) -> Lessons:
    """What a teacher does on n of the lists. stray: share of random choices; nap: chance of a row of voids; straight:
    share of the runs without either."""
    batch = SlotsBatch(n, lists, **options)
    turn, rows = new_turn(batch), np.arange(n)
    batch.restart(rows, turn, {"list": rng.integers(0, len(lists), n)})
    seen: list[NDArray[np.float32]] = []
    masks: list[NDArray[np.bool_]] = []
    choices: list[NDArray[np.int64]] = []
    rewards: list[NDArray[np.float64]] = []
    alive: list[NDArray[np.bool_]] = []
    done, asleep = np.zeros(n, bool), np.zeros(n, np.int64)
    loose = np.arange(n) >= straight * n
    while not done.all():
        if len(seen) >= PATIENCE:
            raise EscalaError("the teacher does not end a job list: give another setting")
        choice = teacher(batch, turn)
        seen.append(turn.observation.copy())
        masks.append(turn.mask.copy())
        choices.append(choice)
        alive.append(~done)
        strayed = np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1)
        asleep = np.where(
            asleep > 0, asleep - 1, np.where(rng.random(n) < nap * loose, rng.integers(1, LONGEST_NAP, n), 0)
        )
        batch.step(np.where(asleep > 0, 0, np.where(rng.random(n) < stray * loose, strayed, choice)), turn)
        rewards.append(np.where(done, 0.0, turn.reward))
        done |= turn.terminated | turn.truncated
    value: NDArray[np.float64] = np.stack(rewards)
    running = value.copy()
    for t in range(len(rewards) - 2, -1, -1):
        value[t] += gamma * value[t + 1]
    for t in range(1, len(rewards)):
        running[t] += gamma * running[t - 1]
    kept = np.array(alive)
    return Lessons(np.array(seen)[kept], np.array(masks)[kept], np.array(choices)[kept], value[kept], running[kept])


def rule(name: str, hold: Sequence[int] | None = None, pile: Sequence[float] | None = None) -> Teacher:
    """A rule of `escala.envs.slots.heuristics` as a teacher. hold: (long, quiet, share) of hold-back; pile: the numbers
    of hold-pile."""
    if name not in heuristics.RULES:
        raise EscalaError(f"unknown rule {name!r}: use one of {', '.join(heuristics.RULES)}")

    def choose(batch: SlotsBatch, turn: Turn) -> NDArray[np.int64]:
        if hold is not None:
            set_hold(batch.games, hold)
        if pile is not None:
            set_pile(batch.games, pile)
        out = np.zeros(batch.num_envs, np.int64)
        batch.decide(name, out)
        return out

    return choose


def record(
    file: str | Path,
    lists: JobLists,
    teacher: int | str,
    n: int,
    *,
    gamma: float = 1.0,
    stray: float = 0.05,
    nap: float = 0.01,
    seed: int = 0,
    **options: Any,
) -> int:
    """A teacher plays n of the lists; its lessons go into the file (.npz). Returns how many.

    teacher: look-ahead over so many futures, drawn from `lists`, or the name of a rule. stray, nap: see `play_lessons`.
    options: of escala/Slots-v0. Agents learn from the file by `escala.train(..., teacher={"lessons": [file]})` with the
    same options and gamma.
    """
    rng = np.random.default_rng([seed, 0x1E55])
    chosen = rule(teacher) if isinstance(teacher, str) else look_ahead(lists, teacher, seed)
    whole = play_lessons(lists, chosen, options, gamma, n, rng, stray=stray, nap=nap)
    shape = SlotsBatch(1, lists, **options).options
    about = {name: getattr(shape, name) for name in SHAPE} | {"gamma": gamma}
    target = Path(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as aside, aside.open("wb") as stream:
        np.savez_compressed(stream, about=np.array(json.dumps(about)), **whole._asdict())
    return len(whole.seen)


def read(files: Sequence[str | Path], options: Mapping[str, Any], gamma: float) -> Lessons:
    """Lessons of several files. EscalaError where one cannot be read, or was recorded for other options."""
    parts = []
    for file in files:
        try:
            with np.load(file, allow_pickle=False) as held:
                about = json.loads(str(held["about"]))
                parts.append(Lessons(*(held[name] for name in Lessons._fields)))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise EscalaError(
                f"{file}: no file of lessons ({error}): record one with escala.agents.imitation.demonstrations.record"
            ) from error
        for name, wanted in {**options, "gamma": gamma}.items():
            if about.get(name) != wanted:
                raise EscalaError(
                    f"{file}: lessons recorded with {name}={about.get(name)!r}, not {wanted!r}: record them again"
                )
    return Lessons(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
