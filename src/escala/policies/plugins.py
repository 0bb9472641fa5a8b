"""Policies of other packages: `plugin:NAME[:REST]` is what an installed distribution announces under that name.

A distribution names its policies as entry points of the groups `escala.schedulers`, `escala.shutdowns` and
`escala.predictors`. Each is called with what stands behind the name ("" for nothing) and gives an object: with
`decide(view, act)`, or, for the last, with `estimate(view, job)`. Every run calls it anew.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted

PREFIX = "plugin:"
GROUPS = {"scheduler": "escala.schedulers", "shutdown": "escala.shutdowns", "predictor": "escala.predictors"}
METHODS = {"scheduler": "decide", "shutdown": "decide", "predictor": "estimate"}


def is_plugin(name: Any) -> bool:
    """Is this the name of a policy of another package?"""
    return isinstance(name, str) and name.startswith(PREFIX)


def is_installed(name: Any, role: str) -> bool:
    """Does an installed distribution announce a policy of this name and role?"""
    return is_plugin(name) and _point(name, role) is not None


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
    found = {
        name: point
        for name in names
        if is_plugin(name)
        for role in ("scheduler", "shutdown")
        if (point := _point(name, role))
    }
    return {name: _origin(point) for name, point in found.items()}


def code_of(name: str, role: str) -> tuple[str, str]:
    """The distribution and its version, and SHA-256 of the code of its package; EscalaError where none is installed."""
    point = _point(name, role)
    if point is None:
        raise _unknown(name, role)
    return _origin(point), _code(point.module)


@functools.cache
def _code(module: str) -> str:
    """SHA-256 of the code of the package that a module is part of, as a process first found it; "" where it lies in no
    files."""
    package, spec = "", None
    for part in module.split("."):  # of a name space that several packages share, the first that is one
        package = f"{package}.{part}".lstrip(".")
        spec = find_spec(package)
        if spec is None or spec.origin is not None:
            break
    if spec is None or spec.origin is None:
        return ""
    own, folders = Path(spec.origin), list(spec.submodule_search_locations or [])
    found = {
        path.relative_to(folder).as_posix(): path for folder in folders for path in sorted(Path(folder).rglob("*"))
    }
    digest = hashlib.sha256()
    for name, path in (found or {own.name: own}).items():
        if path.is_file() and path.name.endswith((".py", *EXTENSION_SUFFIXES)):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _point(name: str, role: str) -> EntryPoint | None:
    return installed(role).get(name.removeprefix(PREFIX).partition(":")[0])


def plugin(name: str, role: str) -> Any:
    """A new object of the policy of this name; EscalaError where none is installed, it cannot be loaded, or it is no
    policy."""
    point, rest = _point(name, role), name.removeprefix(PREFIX).partition(":")[2]
    if point is None:
        raise _unknown(name, role)
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


def _unknown(name: str, role: str) -> EscalaError:
    """What to say where no installed distribution announces one of this name."""
    known, called = installed(role), name.removeprefix(PREFIX).partition(":")[0]
    near = difflib.get_close_matches(called, known, n=1)
    hint = f"did you mean {PREFIX}{near[0]}? " if near else ""
    have = (
        f"installed are {', '.join(sorted(known))}"
        if known
        else f"no installed package announces one (entry points {GROUPS[role]})"
    )
    return EscalaError(f"unknown {role} {quoted(name)}: {hint}{have}")


def _origin(point: EntryPoint) -> str:
    """The distribution and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
