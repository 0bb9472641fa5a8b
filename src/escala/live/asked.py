"""Which policies may be asked from outside: those to whom a snapshot, and what a desk carries from one to the next, say
all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from escala.errors import EscalaError, quoted
from escala.estimates import LAST2, WALLTIME
from escala.foresight import plain
from escala.kernel import codes
from escala.options import Options, Plan, with_options
from escala.platform import Platform
from escala.policies.compose import scheduler as named
from escala.policies.run import Pair, check_power, pair
from escala.policies.schedulers import Scheduler
from escala.policy import is_insider, name_of
from escala.workload import Workload

OPTIONS = ("rules", "head", "depth", "rebuild", "plan_margin_s", "estimate", "order_estimate", "corrections_s", "seed")
"""Options of `simulate` that a desk takes; the others are about a run."""


@dataclass(frozen=True)
class Asked:
    """A scheduler and a shutdown policy that are asked from outside. own: the scheduler inside the kernel, None for an
    object."""

    pair: Pair
    own: Scheduler | None
    options: Options

    @property
    def plan(self) -> Plan:
        """As the kernel knows them."""
        return self.pair.plan

    @cached_property
    def objects(self) -> dict[str, Any]:
        """Who decides outside the kernel: "scheduler", "shutdown"."""
        both = {"scheduler": self.pair.scheduler, "shutdown": self.pair.shutdown}
        return {who: policy for who, policy in both.items() if policy is not None}

    @cached_property
    def remembers(self) -> bool:
        """Do rows of jobs have to stay, for policies that may remember them?"""
        return any(getattr(policy, "remembers_rows", True) for policy in self.objects.values())

    @cached_property
    def tidied(self) -> bool:
        """May rows be given anew? Those who see a View know jobs by numbers that stay; others have to be told
        (`renumber`)."""
        return all(hasattr(policy, "renumber") for policy in self.insiders if getattr(policy, "remembers_rows", True))

    @cached_property
    def insiders(self) -> list[Any]:
        """Those among them that decide on the tables themselves."""
        return [policy for policy in self.objects.values() if is_insider(policy)]

    @cached_property
    def by_node(self) -> bool:
        """Have the tables to be those of jobs of one node from the first decision on? For policies that look at their
        demands."""
        return any(getattr(policy, "by_node", False) for policy in self.insiders)

    @cached_property
    def sets_fraction(self) -> bool:
        """Does a policy say for what share of their walltime jobs are held?"""
        return bool(self.insiders) and self.plan.shutdown == codes.HOLD

    @cached_property
    def knows_users(self) -> bool:
        """Does anybody look at users?"""
        return bool(self.objects) or self.plan.by_user or self.guesses

    @cached_property
    def guesses(self) -> bool:
        """Do lengths become known at submission?"""
        return codes.LAST2 in self.options.under(self.plan).ways


def asked(platform: Platform, scheduler: Any, shutdown: Any, log: Workload, given: dict[str, Any]) -> Asked:
    """The policies, ready to be asked; EscalaError for those that cannot be. log: jobs that stand for those to come."""
    left = [name for name in given if name in Options.__dataclass_fields__ and name not in OPTIONS]
    if left:
        raise EscalaError(
            f"option {left[0]}: it is about a whole run, which a desk has not: it takes {', '.join(OPTIONS)}"
        )
    options = replace(with_options(Options(), **given), record=False, start_off=platform.has_switches)
    scheduler, shutdown = plain(scheduler), plain(shutdown)
    check_power(platform, [shutdown])
    chosen = pair(log, scheduler, shutdown, options)
    own = None
    if chosen.scheduler is None:
        own = scheduler if isinstance(scheduler, Scheduler) else named(scheduler)
    _refuse(chosen, own, options)
    return Asked(chosen, own, options)


def _refuse(chosen: Pair, own: Scheduler | None, options: Options) -> None:
    """EscalaError for what depends on more than can be told from outside."""
    told = options.under(chosen.plan)
    if what := chosen.knows(told.estimate, told.ordered_by):
        raise EscalaError(
            f"{chosen.name} knows {what}, which nobody can tell it beside a machine: take a policy that does not"
        )
    for policy in (chosen.scheduler, chosen.shutdown):
        if why := getattr(policy, "unasked", ""):
            raise EscalaError(f"{name_of(policy)} {why}")
    for estimate in (told.estimate, told.ordered_by):
        if estimate not in (WALLTIME, LAST2):
            raise EscalaError(f"estimate {quoted(estimate)} cannot be told by a snapshot: use {WALLTIME} or {LAST2}")
    if own is None:
        return
    if own.random:
        raise EscalaError(
            "scheduler random draws a number for each job's place in a log, and a machine has no log: take another"
        )
    if own.queueing == codes.CONSERVATIVE and not options.rebuild:
        raise EscalaError(
            "conservative backfilling goes by reservations that it gave before, which a snapshot does not tell: "
            "give rebuild=True (--rebuild), which plans all jobs anew at each decision"
        )
    if any(terms is not None and terms.fair != 0.0 for terms in chosen.plan.terms):
        raise EscalaError(
            "a score with fair_share goes by core time that users had before, which a snapshot does not tell: leave "
            "it out"
        )
