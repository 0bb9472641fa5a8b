"""Options of environments as fields of a dataclass. A field says once what it is for and what it may be: the check, the
help of the command line and the documentation come from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import cleandoc
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from escala.envs.core.checks import at_most, number, whole_number
from escala.errors import EscalaError, nearest, quoted
from escala.foresight import plain

ABOUT, ALLOWED, CHECK = "about", "allowed", "check"  # what a field's metadata holds; the check gives the plain value
LARGEST = 1e9
Documented = TypeVar("Documented", bound=type)


def option(default: Any, allowed: str, about: str, check: Callable[[str, Any], Any] | None = None) -> Any:
    """An option that may be what `allowed` says; without a check it is checked where it is used."""
    return field(default=default, metadata={ABOUT: about, ALLOWED: allowed, CHECK: check})


def choice(default: str | None, *others: str, about: str) -> Any:
    """One of some words, the default first."""
    words = (default, *others)

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, str | None) or value not in words:
            hint = nearest(value, filter(None, words), alike=0.75) if isinstance(value, str) else ""
            raise EscalaError(
                f"option {name}={quoted(value)} is not known: {hint}use one of {', '.join(map(str, words))}"
            )
        return value

    return option(default, " or ".join(map(str, words)), about, check)


def flag(default: bool | None, *, about: str) -> Any:
    """True or False; or None where that is the default."""

    def check(name: str, value: Any) -> bool | None:
        if not isinstance(value, bool | np.bool_) and not (value is None and default is None):
            raise EscalaError(f"option {name}={value!r}: give True or False")
        return None if value is None else bool(value)

    return option(default, "True or False", about, check)


def whole(default: int, least: int = 0, most: int | None = None, *, about: str) -> Any:
    """A whole number within bounds."""

    def check(name: str, value: Any) -> int:
        plain = whole_number(name, value, least)
        if most is not None:
            at_most(name, plain, most)
        return plain

    return option(
        default, f"a whole number >= {least}" + (f", at most {most}" if most is not None else ""), about, check
    )


def real(default: float, *, allowed: str, least: float, about: str) -> Any:
    """A finite number of at least `least`, and not beyond what any sum can hold."""

    def check(name: str, value: Any) -> float:
        if not number(value) or not least <= value <= LARGEST:
            raise EscalaError(f"option {name}={value!r}: give {allowed}, at most {LARGEST:g}")
        return value

    return option(default, allowed, about, check)


seconds = partial(real, allowed="seconds, at least 1e-6", least=1e-6)
share = partial(real, allowed="a share of the walltime, at least 0", least=0.0)
nonnegative = partial(real, allowed="a number of at least 0", least=0.0)
weight = partial(real, allowed="a finite number, for instance -1", least=-LARGEST)


@dataclass(frozen=True)
class EnvOptions:
    """Options of an environment; `of` takes them by name."""

    env: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for entry in fields(self):
            object.__setattr__(self, entry.name, plain(getattr(self, entry.name)))
            check = entry.metadata[CHECK]
            if check is not None:
                object.__setattr__(self, entry.name, check(entry.name, getattr(self, entry.name)))

    @classmethod
    def check_names(cls, given: Mapping[str, Any]) -> None:
        """EscalaError for a name that is no option."""
        known = [entry.name for entry in fields(cls)]
        for name in given:
            if name not in known:
                raise EscalaError(f"unknown option {name!r} of {cls.env}: use one of {', '.join(known)}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Options by name; EscalaError for a name that is none, or a value that is not allowed."""
        cls.check_names(given)
        return cls(**given)

    @classmethod
    def described(cls) -> list[tuple[str, str, str]]:
        """Of each option `name=default`, what it is for, and what it may be."""
        return [
            (f"{entry.name}={entry.default}", entry.metadata[ABOUT], entry.metadata[ALLOWED]) for entry in fields(cls)
        ]


def documented(options: type[EnvOptions], **texts: str) -> Callable[[Documented], Documented]:
    """Writes the list of options into the docstring of an environment, at {options}, and texts that stand beside their
    code, at {name}."""

    def write(environment: Documented) -> Documented:
        listed = "\n".join(f"- `{name}`: {about}; {allowed}" for name, about, allowed in options.described())
        written = cleandoc(environment.__doc__ or "")
        for name, text in {"options": listed, **texts}.items():
            written = written.replace(f"{{{name}}}", cleandoc(text))
        environment.__doc__ = written
        return environment

    return write
