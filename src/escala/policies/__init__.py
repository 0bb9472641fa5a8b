"""Policies: scores, the names of schedulers and shutdown policies, and running them. Each public name is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from escala.policies.bounds import LogBound, bound
    from escala.policies.compose import SHUTDOWN_FORMS, hold
    from escala.policies.pairs import Comparison, compare
    from escala.policies.rollout import Rollout
    from escala.policies.run import rerun, simulate
    from escala.policies.schedulers import SCHEDULERS

__all__ = ["SCHEDULERS", "SHUTDOWN_FORMS", "Comparison", "LogBound", "Rollout", "bound", "compare", "hold", "rerun", "simulate"]

_HOME = {
    "Comparison": "pairs",
    "LogBound": "bounds",
    "Rollout": "rollout",
    "SCHEDULERS": "schedulers",
    "SHUTDOWN_FORMS": "compose",
    "bound": "bounds",
    "compare": "pairs",
    "hold": "compose",
    "rerun": "run",
    "simulate": "run",
}
"""Public name -> the module of this package that defines it."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'escala.policies' has no attribute {name!r}")
    value = getattr(import_module(f"escala.policies.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
