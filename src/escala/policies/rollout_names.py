"""The names of `rollout` with its options: `rollout[:K][:KEY=VALUE...]`, such as
`rollout:128:objective=slowdown:base=hold-back:0+sjf-fit`.

A part without `=` behind the first option belongs to the value before it, so that bases may hold a colon.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from escala.errors import EscalaError, quoted
from escala.policies.compose import ROLLOUT
from escala.policies.rollout import DEFAULT_FUTURES, OBJECTIVES, Rollout, base_scheduler

FORM = f"{ROLLOUT}[:K][:KEY=VALUE...]"
EXAMPLE = f"{ROLLOUT}:128:objective=wait"
MOST = 100_000  # of anything that is counted
LONGEST_S = 1e9


def rollout_of(name: str, seed: int, objective: str | None = None) -> Rollout | None:
    """The policy of this name, None for another than rollout. objective: one for a name that says none; if it knows
    that one, else its own. EscalaError for an option that makes no sense."""
    kind, colon, rest = name.partition(":")
    if kind != ROLLOUT:
        return None
    first, *parts = rest.split(":") if colon else [str(DEFAULT_FUTURES)]
    if "=" in first:
        first, parts = str(DEFAULT_FUTURES), [first, *parts]
    if not (first.isascii() and first.isdigit() and 1 <= int(first) <= MOST):
        raise EscalaError(
            f"scheduler {quoted(name)}: {quoted(first)} is no number of futures: use {ROLLOUT} or {ROLLOUT}:128"
        )
    whose = f"scheduler {quoted(name)}"
    given = {
        key: OPTIONS[key](text, f"{whose}: {key} is {quoted(text)}")
        for key, text in options_of(parts, whose, OPTIONS, EXAMPLE).items()
    }
    if objective in OBJECTIVES:
        given = {"objective": objective} | given
    policy = Rollout(
        int(first), seed=seed, **{"every_s" if key == "every" else key: value for key, value in given.items()}
    )
    policy.name = name
    return policy


def options_of(parts: list[str], whose: str, known: Mapping[str, Any], example: str) -> dict[str, str]:
    """Key -> value as texts, of the parts between colons; EscalaError, of whose they are, for a key that is not known,
    or given twice."""
    found: dict[str, str] = {}
    key = ""
    for part in parts:
        if "=" in part:
            key, _, value = part.partition("=")
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}? " if near else ""
                raise EscalaError(f"{whose}: option {quoted(key)} is unknown: {hint}known are {', '.join(known)}")
            if key in found:
                raise EscalaError(f"{whose}: {key} is given twice: give it once")
            found[key] = value
        elif key:
            found[key] += f":{part}"
        else:
            raise EscalaError(f"{whose}: {quoted(part)} is no option: write KEY=VALUE, as in {example}")
    return found


def _objective(text: str, what: str) -> str:
    if text not in OBJECTIVES:
        raise EscalaError(f"{what}: use {', '.join(OBJECTIVES)}")
    return text


def _bases(text: str, what: str) -> tuple[str, ...]:
    names = tuple(text.split("+"))
    if not all(names):
        raise EscalaError(f"{what}: join names of bases by +, as in hold-back:0+sjf-fit")
    if len(set(names)) < len(names):
        raise EscalaError(f"{what}: name each base once")
    for base in names:
        try:
            base_scheduler(base)
        except EscalaError as error:
            raise EscalaError(f"{what}: {str(error).removeprefix(f'{ROLLOUT}: ')}") from None
    return names


def _count(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise EscalaError(f"{what}: give a whole number from 1 to {MOST}")
    return int(text)


def number(most: float, need: str, positive: bool = False) -> Callable[[str, str], float]:
    """A reader of numbers from 0 (or above 0) to `most`."""

    def read(text: str, what: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0.0 <= value <= most or (positive and value == 0.0):
            raise EscalaError(f"{what}: give {need}")
        return value

    return read


OPTIONS: dict[str, Callable[[str, str], Any]] = {
    "objective": _objective,
    "base": _bases,
    "horizon": _count,
    "depth": _count,
    "choices": _count,
    "optimism": number(1.0, "a share from 0 to 1"),
    "every": number(LONGEST_S, "seconds above 0", positive=True),
}
"""Key -> reader of its value (text, what to say in front of a refusal); see `Rollout` for what they do."""
