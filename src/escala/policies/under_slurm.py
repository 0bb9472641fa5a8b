"""Running by Slurm's rules, also with the queue in the order of a score or of a tuned policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from escala.errors import EscalaError, quoted
from escala.options import Options
from escala.platform import Platform
from escala.policies.compose import order_under_slurm, plan_for
from escala.policies.files import digests_of
from escala.policies.queues import span_of
from escala.policies.slurm_names import EVERY, split_slurm
from escala.result import Result
from escala.slurm.in_name import changed
from escala.slurm.orders import Order
from escala.slurm.run import run_slurm
from escala.slurm.settings import Settings
from escala.workload import Workload


def simulate_slurm(
    workload: Workload,
    platform: Platform,
    scheduler: Any,
    options: Options,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """As `run_slurm`, with all forms of the scheduler's name."""
    rest, order = (scheduler, None) if not isinstance(scheduler, str) else rules_and_order(scheduler)
    return run_slurm(workload, platform, rest, options, progress, order)


def rules_and_order(name: str) -> tuple[str, Order | None]:
    """The part of the name that says the rules, and the order of the queue, None: that of the site, or a setting."""
    rest, parts = split_slurm(name)
    if not parts:
        return name, None
    chosen = order_under_slurm(name, parts)
    changed(Settings(), rest, name)
    every_s = span_of(parts[EVERY], name, EVERY) if EVERY in parts else None
    if every_s is not None and every_s < 1:
        raise EscalaError(f"scheduler {quoted(name)}: {EVERY}={parts[EVERY]} is too short: give 1 s or more")
    return rest, Order(name, partial(plan_of, chosen), every_s, digests_of(name))


def plan_of(chosen: Any, jobs: Workload) -> Any:
    """The order of these jobs as the kernel knows it."""
    return plan_for(chosen, {}, jobs, Options())
