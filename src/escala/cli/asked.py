"""The options of policies that are asked from outside: those of a run that are no matter of its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.estimates import Corrections, Estimate, OrderEstimate

Scheduler = Annotated[str, typer.Option("--scheduler", metavar="NAME", help="fcfs, sjf, easy, saf, ..., or policy:DIR")]
Shutdown = Annotated[str, typer.Option("--shutdown", metavar="NAME", help="never, timeout:SECONDS, hold:FRACTION, ...")]


def asked_of(
    *,
    rules: opt.Rules = "escala",
    head: opt.Head = "lowest-id",
    depth: opt.Depth = None,
    rebuild: opt.Rebuild = False,
    plan_margin: opt.PlanMargin = None,
    estimate: Estimate = "walltime",
    order_estimate: OrderEstimate = None,
    corrections: Corrections = None,
    seed: opt.Seed = 0,
) -> dict[str, Any]:
    """The options of a desk from those of the command line."""
    given = opt.rules_of(
        rules=rules,
        head=head,
        depth=depth,
        rebuild=rebuild,
        plan_margin=plan_margin,
        estimate=estimate,
        order_estimate=order_estimate,
        corrections=corrections,
        seed=seed,
    )
    return {name: value for name, value in given.items() if name not in ("until_s", "start_off", "oversized")}


def asking(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of a desk, as its argument `options`."""
    return opt.added(verb, "options", asked_of)
