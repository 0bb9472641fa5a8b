"""What decides under a name, made: schedulers and shutdown policies of Escala, trained agents, policies of other
packages."""

from __future__ import annotations

from typing import Any

from escala.errors import EscalaError
from escala.options import Options
from escala.policies.compose import scheduler, shutdown
from escala.policies.plugins import is_plugin, plugin
from escala.policies.rollout import Rollout
from escala.policies.rollout_names import rollout_of
from escala.policies.shutdown import RandomReservation
from escala.policy import name_of
from escala.registry import is_trained, trained


def made(name: str, role: str, options: Options) -> Any:
    """The object that decides outside the kernel, new, or the kernel's own scheduler; None for a shutdown policy within
    it.

    role: "scheduler" or "shutdown". EscalaError for a name that is none of this role, a folder without an agent, a
    package that is not there.
    """
    if is_plugin(name):
        return of_role(plugin(name, role), role)
    if is_trained(name):
        return of_role(trained(name, options.seed), role)
    if role == "shutdown":
        return shutdown(name, options)[1]
    ahead = rollout_of(name, options.seed)
    return scheduler(name) if ahead is None else ahead


def of_role(policy: Any, role: str) -> Any:
    """A policy that says what it decides (`role`) decides nothing else: in the other place it would do nothing, and
    look valid."""
    own = getattr(policy, "role", role)
    if own != role:
        raise EscalaError(f"{name_of(policy)} is a {own} policy, given as {role}: give it as {own}")
    return policy


def draws(name: str, role: str) -> bool:
    """Does what decides under a name draw by the seed of its run? EscalaError as of `made`."""
    policy = made(name, role, Options())
    if is_plugin(name):
        return False
    if is_trained(name):
        return bool(policy.draws)
    return isinstance(policy, RandomReservation | Rollout) or bool(getattr(policy, "random", False))
