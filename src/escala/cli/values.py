"""What is given on the command line as values, without Pydantic.

Typer (0.29) makes a Pydantic adapter for each option of a verb, also for those that are not given: an eighth of a short
run, nearly all of it imports. Here plain values are taken plainly. Whatever is odd, and may be an error, goes Typer's
own way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

WHOLE = re.compile(r"-?[0-9]{1,15}")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


def taken_plainly(parameter: Any) -> None:
    """Let a parameter of a Typer command take plain values itself. Parameters of a Typer that has no Pydantic stay as
    they are."""
    told = getattr(parameter, "type_descriptor", None)
    if told is None or told.parameter_info.parser is not None or "process_value" in vars(parameter):
        return
    several = get_origin(told.annotation) is list
    kind = get_args(told.annotation)[0] if several else told.annotation
    if kind not in PLAIN:
        return
    usual, one = parameter.process_value, PLAIN[kind]

    def process_value(context: Any, value: Any) -> Any:
        try:
            if value is None:
                found: Any = () if several else None
            elif several:
                found = [one(part, told.parameter_info) for part in _listed(value)]
            else:
                found = one(value, told.parameter_info)
        except _Odd:
            return usual(context, value)
        if parameter.required and parameter.value_is_missing(found):
            return usual(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    parameter.process_value = process_value


class _Odd(Exception):
    """A value for Typer."""


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Odd
    return value


def _text(value: Any, about: Any) -> str:
    if not isinstance(value, str):
        raise _Odd
    return value


def _switch(value: Any, about: Any) -> bool:
    if not isinstance(value, bool):
        raise _Odd
    return value


def _path(value: Any, about: Any) -> Path:
    """One that is not there, or is a file or a folder that can be read."""
    plain = not (about.exists or about.resolve_path or about.path_type or about.allow_dash or about.writable)
    if not isinstance(value, str | Path) or "\0" in str(value) or not (plain and about.file_okay and about.dir_okay):
        raise _Odd
    place = Path(value)
    if about.readable and os.path.exists(place) and not os.access(place, os.R_OK):
        raise _Odd
    return place


def _number(kind: type[int | float], form: re.Pattern[str]) -> Callable[[Any, Any], int | float]:
    def number(value: Any, about: Any) -> int | float:
        if type(value) is not kind and not (isinstance(value, str) and form.fullmatch(value)):
            raise _Odd
        found = kind(value)
        if (about.min is not None and found < about.min) or (about.max is not None and found > about.max):
            raise _Odd
        return found

    return number


PLAIN: dict[type, Callable[[Any, Any], Any]] = {
    str: _text,
    bool: _switch,
    Path: _path,
    int: _number(int, WHOLE),
    float: _number(float, NUMBER),
}
