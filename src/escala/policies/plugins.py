"""Policies of other packages: `plugin:NAME[:REST]` is what an installed distribution announces under that name.

A distribution names its policies as entry points of the groups `escala.schedulers`, `escala.shutdowns` and `escala.predictors`. Each is
called with what stands behind the name ("" for nothing) and gives an object: with `decide(view, act)`, or, for the last, with
`estimate(view, job)`. Every run calls it anew.
"""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from escala.errors import EscalaError, quoted

PREFIX = "plugin:"
GROUPS = {"scheduler": "escala.schedulers", "shutdown": "escala.shutdowns", "predictor": "escala.predictors"}
METHODS = {"scheduler": "decide", "shutdown": "decide", "predictor": "estimate"}


def is_plugin(name: Any) -> bool:
    """Is this the name of a policy of another package?"""
    return isinstance(name, str) and name.startswith(PREFIX)


def installed(role: str) -> dict[str, EntryPoint]:
    """Name -> what is announced for a role of `GROUPS`."""
    return {point.name: point for point in entry_points(group=GROUPS[role])}


def listed() -> list[dict[str, str]]:
    """Every policy of other packages: name, role, and the distribution with its version."""
    return [
        {"plugin": f"{PREFIX}{name}", "role": role, "from": _origin(point)}
        for role in GROUPS
        for name, point in sorted(installed(role).items())
    ]


def origins(*names: Any) -> dict[str, str]:
    """Of those among these that name a policy of another package: the distribution and its version."""
    found = {name: point for name in names if is_plugin(name) for role in ("scheduler", "shutdown") if (point := _point(name, role))}
    return {name: _origin(point) for name, point in found.items()}


def _point(name: str, role: str) -> EntryPoint | None:
    return installed(role).get(name.removeprefix(PREFIX).partition(":")[0])


def plugin(name: str, role: str) -> Any:
    """A new object of the policy of this name; EscalaError where none is installed, it cannot be loaded, or it is no policy."""
    called, _, rest = name.removeprefix(PREFIX).partition(":")
    known = installed(role)
    if called not in known:
        near = difflib.get_close_matches(called, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}? " if near else ""
        have = f"installed are {', '.join(sorted(known))}" if known else f"no installed package announces one (entry points {GROUPS[role]})"
        raise EscalaError(f"unknown {role} {quoted(name)}: {hint}{have}")
    point = known[called]
    try:
        made = point.load()(rest)
    except EscalaError:
        raise
    except Exception as error:  # of somebody else's code, whatever it is
        raise EscalaError(
            f"{role} {quoted(name)} of {_origin(point)} cannot be made: {type(error).__name__}: {quoted(str(error))}"
        ) from error
    if not callable(getattr(made, METHODS[role], None)):
        raise EscalaError(f"{role} {quoted(name)} of {_origin(point)} has no method {METHODS[role]}: it is no {role}")
    if not getattr(made, "name", None):
        made.name = name
    return made


def _origin(point: EntryPoint) -> str:
    """The distribution and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
