"""Score files: linear scores that people read and edit, as `easy:queue=score:FILE` names them.

form = "linear"                     # the smallest score first
every_s = 300                       # computed anew every 5 minutes; left out: at each decision
[weights]
log_wait_over_estimate = -0.5       # see `escala.policies.linear.FEATURES`
log_estimate = 0.04

form = "multifactor"                # priorities in Slurm's terms, the largest first: `escala.policies.linear.Multifactor`
max_age_s = 604800
[weights]
age = 1000
fair_share = 10000
[queues]
debug = 10
batch = 1
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.policies.linear import FACTORS, FEATURES, SIZES, Linear, Multifactor
from escala.reading import guarded, read_text

PREFIX = "score:"
FORMS = {
    "linear": ("form", "every_s", "column", "weights"),
    "multifactor": ("form", "every_s", "max_age_s", "half_life_s", "size", "nice", "weights", "shares", "queues", "qos"),
}
"""Form -> the keys that a file may have."""
MOST_WEIGHT = 1e15
MOST_S = 1e10


def read_score(path: Path) -> Linear | Multifactor:
    """The score of a file; EscalaError, one line, for what makes no sense in it."""
    with guarded(path, "a score file"):
        try:
            told = tomllib.loads(read_text(path))
        except tomllib.TOMLDecodeError as error:
            raise EscalaError(f"{path}: not valid TOML ({error}): mend the file") from None
        form = told.get("form")
        if form not in FORMS:
            raise EscalaError(f'{path}: form {quoted(form)} is not known: write form = "{next(iter(FORMS))}" or "{[*FORMS][1]}"')
        _known(path, told, FORMS[form], "key")
        return _linear(path, told) if form == "linear" else _multifactor(path, told)


def _linear(path: Path, told: Mapping[str, Any]) -> Linear:
    weights = _weights(path, told, FEATURES)
    column = _text(path, told, "column", "")
    if bool(column) != ("column" in dict(weights)):
        raise EscalaError(f'{path}: a column needs both, column = "NAME" and a weight of that feature: give both or neither')
    return Linear(weights, column, _seconds(path, told, "every_s", 0.0))


def _multifactor(path: Path, told: Mapping[str, Any]) -> Multifactor:
    weights = _weights(path, told, FACTORS)
    size = _text(path, told, "size", SIZES[0])
    if size not in SIZES:
        raise EscalaError(f"{path}: size {quoted(size)} is not known: use one of {', '.join(SIZES)}")
    every, max_age = _seconds(path, told, "every_s", 300.0), _seconds(path, told, "max_age_s", 7 * 86400.0)
    if max_age <= 0:
        raise EscalaError(f"{path}: max_age_s = {told['max_age_s']}: more than 0 s is needed")
    if every <= 0 and dict(weights).get("fair_share", 0.0) != 0.0:
        raise EscalaError(f"{path}: every_s = {told['every_s']}: fair shares change all the time: give seconds above 0, such as 300")
    tables = {name: _numbers(path, told, name) for name in ("shares", "queues", "qos")}
    for name, table in tables.items():
        if any(value < 0 for _, value in table):
            raise EscalaError(f"{path}: [{name}] has a number below 0: give 0 or more")
    for name, table in (("queue", tables["queues"]), ("qos", tables["qos"])):
        if dict(weights).get(name, 0.0) != 0.0 and not table:
            raise EscalaError(f"{path}: a weight of {name} needs [{'queues' if name == 'queue' else name}], their priorities by name")
    half_life = _seconds(path, told, "half_life_s", 7 * 86400.0)
    return Multifactor(weights, max_age, size, half_life, **tables, nice=_text(path, told, "nice", ""), every_s=every)


def _known(path: Path, given: Iterable[str], known: Iterable[str], what: str) -> None:
    """EscalaError for the first name that is none of the known."""
    names = list(known)
    for name in given:
        if name not in names:
            raise EscalaError(f"{path}: unknown {what} {quoted(name)}: {nearest(name, names)}known are {', '.join(names)}")


def _weights(path: Path, told: Mapping[str, Any], known: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """The section of weights: at least one."""
    found = _numbers(path, told, "weights")
    _known(path, dict(found), known, "feature")
    if not found:
        raise EscalaError(f"{path}: no weights: give [weights] and lines such as {next(iter(known))} = 1.0")
    return found


def _numbers(path: Path, told: Mapping[str, Any], section: str) -> tuple[tuple[str, float], ...]:
    """A section of finite numbers by name."""
    entries = told.get(section, {})
    if not isinstance(entries, dict):
        raise EscalaError(f"{path}: {section} = {quoted(entries)}: a section [{section}] with a number by name is needed")
    for name, value in entries.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > MOST_WEIGHT:
            raise EscalaError(f"{path}: [{section}] {quoted(name)} = {quoted(value)}: a finite number is needed, at most {MOST_WEIGHT:g}")
    return tuple((name, float(value)) for name, value in entries.items())


def _text(path: Path, told: Mapping[str, Any], key: str, default: str) -> str:
    value = told.get(key, default)
    if not isinstance(value, str):
        raise EscalaError(f'{path}: {key} = {quoted(value)}: a text is needed, {key} = "..."')
    return value


def _seconds(path: Path, told: Mapping[str, Any], key: str, default: float) -> float:
    value = told.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_S:
        raise EscalaError(f"{path}: {key} = {quoted(value)}: a number of seconds from 0 to {MOST_S:g} is needed")
    return float(value)
