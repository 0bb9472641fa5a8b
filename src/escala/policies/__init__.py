"""Policies: scores, the names of schedulers and shutdown policies, and running them."""

from escala.policies.bounds import LogBound, bound
from escala.policies.compose import SCHEDULERS, SHUTDOWN_FORMS, hold
from escala.policies.pairs import Comparison, compare
from escala.policies.rollout import Rollout
from escala.policies.run import rerun, simulate

__all__ = ["SCHEDULERS", "SHUTDOWN_FORMS", "Comparison", "LogBound", "Rollout", "bound", "compare", "hold", "rerun", "simulate"]
