"""Settings of generators: each is looked at before anything is drawn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from escala.errors import EscalaError, quoted

MOST = 10**9
"""Of a whole number: products of two of them are still whole numbers of 64 bits."""

P = ParamSpec("P")
R = TypeVar("R")


def checked(generator: Callable[P, R]) -> Callable[P, R]:
    """The generator, which refuses numbers that are not finite, are no whole ones where its annotation says int, or are
    absurd; and jobs beyond the memory."""
    parameters = inspect.signature(generator).parameters
    numbers = {
        name: each
        for name, each in parameters.items()
        if name != "seed" and str(each.annotation).startswith(("int", "float"))
    }

    @functools.wraps(generator)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = dict(zip(parameters, args, strict=False)) | kwargs
        for name, value in given.items():
            if name in numbers and value is not None:
                _check(name, value, numbers[name].annotation == "int")
        try:
            return generator(*args, **kwargs)
        except MemoryError:
            raise EscalaError(
                f"{_shown(given)}: needs more memory than there is: ask for fewer jobs, steps or days"
            ) from None

    return guarded


def _check(name: str, value: Any, whole: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        raise EscalaError(f"setting {name}={quoted(value)}: a {'whole ' * whole}number is needed")
    size: Any = abs(value)
    if not size <= MOST:  # NaN neither
        raise EscalaError(f"setting {name}={quoted(value)}: a number of at most {MOST:,} is needed")


def _shown(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in given.items()) or "this log"
