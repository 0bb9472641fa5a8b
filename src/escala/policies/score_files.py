"""Score files: linear scores that people read and edit, as `easy:queue=score:FILE` names them.

form = "linear"                     # the smallest score first
every_s = 300                       # computed anew every 5 minutes; left out: at each decision
[weights]
log_wait_over_estimate = -0.5       # see `escala.policies.linear.FEATURES`
log_estimate = 0.04

form = "multifactor"                # priorities in Slurm's terms, the largest first:
`escala.policies.linear.Multifactor` max_age_s = 604800
[weights]
age = 1000
fair_share = 10000
[queues]
debug = 10
batch = 1
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.policies.linear import FEATURES, Linear, Multifactor
from escala.reading import guarded, read_toml

PREFIX = "score:"
FORMS = {
    "linear": ("form", "every_s", "column", "weights"),
    "multifactor": (
        "form",
        "every_s",
        "max_age_s",
        "half_life_s",
        "size",
        "nice",
        "weights",
        "shares",
        "queues",
        "qos",
    ),
}
"""Form -> the keys that a file may have."""


def read_score(path: Path) -> Linear | Multifactor:
    """The score of a file; EscalaError, one line, for what makes no sense in it."""
    with guarded(path, "a score file"):
        told = read_toml(path)
        form = told.pop("form", None)
        if not isinstance(form, str) or form not in FORMS:
            raise EscalaError(
                f'{path}: form {quoted(form)} is not known: write form = "{next(iter(FORMS))}" or "{[*FORMS][1]}"'
            )
        for key in told:
            if key not in FORMS[form]:
                known = FORMS[form]
                raise EscalaError(
                    f"{path}: unknown key {quoted(key)}: {nearest(key, list(known))}known are {', '.join(known)}"
                )
        return _linear(told) if form == "linear" else _multifactor(told)


def written(score: Linear, *comments: str) -> str:
    """The text of a score file, as `read_score` reads it. comments: lines above it."""
    lines = [*(f"# {line}" for line in comments), 'form = "linear"']
    lines += [f"column = {json.dumps(score.column)}"] if score.column else []
    lines += [f"every_s = {score.every_s!r}"] if score.every_s else []
    width = max(len(name) for name, _ in score.weights)
    rows = [f"{name:{width}} = {float(value)!r:8}  # {FEATURES[name]}" for name, value in score.weights]
    return "\n".join([*lines, "[weights]", *rows]) + "\n"


def _linear(told: Mapping[str, Any]) -> Linear:
    return Linear(_pairs(told, "weights"), told.get("column", ""), told.get("every_s", 0.0))


def _multifactor(told: Mapping[str, Any]) -> Multifactor:
    tables: dict[str, Any] = {name: _pairs(told, name) for name in ("weights", "shares", "queues", "qos")}
    return Multifactor(**tables, **{key: value for key, value in told.items() if key not in tables})


def _pairs(told: Mapping[str, Any], section: str) -> tuple[tuple[str, float], ...]:
    """What a section says by name."""
    entries = told.get(section, {})
    if not isinstance(entries, dict):
        raise EscalaError(f"{section} = {quoted(entries)}: a section [{section}] with a number by name is needed")
    return tuple(entries.items())
