"""Checks of options that environments share: each gives the plain value, or says in one line what was given and what to
give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise EscalaError(f"option {name}={quoted(value)}: give a whole number >= {least}")
    return int(value)


def at_most(name: str, value: int, most: int) -> None:
    """EscalaError for more than `most`: what would fill the memory is refused before it does."""
    if value > most:
        raise EscalaError(f"option {name}={quoted(value)}: at most {most}")


def environments(num_envs: Any) -> int:
    """How many environments run beside each other: 1 to a million."""
    count = whole_number("num_envs", num_envs, 1)
    at_most("num_envs", count, 1_000_000)
    return count


def number(value: Any) -> bool:
    """Is it a finite real number?"""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def above_zero(name: str, given: Any, example: str) -> list[float]:
    """One number or several, all above 0."""
    values: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not values or not all(number(v) and v > 0 for v in values):
        raise EscalaError(f"option {name}={given!r}: give numbers above 0, for instance {example}")
    return [float(v) for v in values]


def chosen_actions(given: Any, rows: int, n: int, least: int = 0, what: str = "actions") -> NDArray[np.int64]:
    """One action least..n - 1 of each of the rows, [rows]."""
    if (
        rows == 1
        and type(given) is list
        and len(given) == 1
        and type(given[0]) in (int, np.int64)
        and least <= given[0] < n
    ):
        return np.array(given, np.int64)  # a single environment's step, without the reductions below
    try:
        actions = np.asarray(given)
    except ValueError:  # of different lengths
        actions = np.zeros(0)
    if actions.dtype.kind not in "iu" or actions.shape != (rows,) or actions.min() < least or actions.max() >= n:
        many = "one whole number" if rows == 1 else f"{rows} whole numbers"
        raise EscalaError(f"{what} must be {many} in {least}..{n - 1}; got {given!r:.200}")
    return actions.astype(np.int64, copy=False)


def choice(name: str, given: Any, n: int) -> int:
    """The action 0..n - 1 that a function chose."""
    try:
        action = index(given)
    except TypeError:
        action = -1
    if not 0 <= action < n:
        raise EscalaError(f"{name}: its function chose {given!r}: return one whole number in 0..{n - 1}")
    return action


def wanted_lists(given: Any, rows: int, lists: int) -> NDArray[np.int64]:
    """Reset option `list`: the number of a job list, or one for each of the rows. Returns one for each row."""
    asked = np.asarray(given)
    if (
        asked.dtype.kind not in "iu"
        or asked.shape not in ((), (rows,))
        or (asked.size and (asked.min() < 0 or asked.max() >= lists))
    ):
        raise EscalaError(
            f"reset option list={given}: give the number of a list, 0 to {lists - 1}, or one for each of {rows} "
            "episodes"
        )
    return np.ascontiguousarray(np.broadcast_to(asked.astype(np.int64), (rows,)))
