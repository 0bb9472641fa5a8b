"""Policies: scores, the names of schedulers and shutdown policies, and running them. Each public name is loaded when it
is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from escala.lazy import loaded_when_used

if TYPE_CHECKING:
    from escala.bounds.schedule_bound import LogBound, bound
    from escala.policies.again import rerun
    from escala.policies.compose import SHUTDOWN_FORMS, hold
    from escala.policies.linear import Linear, Multifactor
    from escala.policies.pairs import Comparison, compare
    from escala.policies.queues import queue, queue_by
    from escala.policies.rollout import Rollout
    from escala.policies.run import simulate
    from escala.policies.schedulers import SCHEDULERS

__all__ = [
    "SCHEDULERS",
    "SHUTDOWN_FORMS",
    "Comparison",
    "Linear",
    "LogBound",
    "Multifactor",
    "Rollout",
    "bound",
    "compare",
    "hold",
    "queue",
    "queue_by",
    "rerun",
    "simulate",
]

_HOME = {
    "Comparison": "escala.policies.pairs",
    "Linear": "escala.policies.linear",
    "LogBound": "escala.bounds.schedule_bound",
    "Multifactor": "escala.policies.linear",
    "Rollout": "escala.policies.rollout",
    "SCHEDULERS": "escala.policies.schedulers",
    "SHUTDOWN_FORMS": "escala.policies.compose",
    "bound": "escala.bounds.schedule_bound",
    "compare": "escala.policies.pairs",
    "hold": "escala.policies.compose",
    "queue": "escala.policies.queues",
    "queue_by": "escala.policies.queues",
    "rerun": "escala.policies.again",
    "simulate": "escala.policies.run",
}
"""Public name -> the module that defines it."""


__getattr__ = loaded_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
