"""What is said before a replay: options, dates and predictions that change nothing, or mean something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from escala.cli.terminal import remark

FLAG = {"depth": "--depth", "rebuild": "--rebuild", "head": "--head", "plan_margin_s": "--plan-margin"}
WHO = {
    "depth": "conservative looks at it",
    "rebuild": "conservative looks at it",
    "head": "the EASY family but easy-fast looks at it",
    "plan_margin_s": "schedulers that plan ahead look at it (the EASY family, conservative), and shutdown policies "
    "but never",
}


def unused(schedulers: Iterable[str], shutdowns: Iterable[str], options: dict[str, Any]) -> list[str]:
    """The given options that none of these schedulers looks at."""
    from escala.errors import EscalaError
    from escala.options import Options
    from escala.policies.heeded import heeded

    usual, switching = Options(), list(shutdowns)
    try:
        looks = frozenset().union(*(heeded(name, shutdown) for name in schedulers for shutdown in switching))
    except EscalaError:
        return []  # an unknown name is refused later
    return [name for name in FLAG if options[name] != getattr(usual, name) and name not in looks]


def tell_until(read: dict[str, Any]) -> None:
    """A remark where `--until` is a number, which once stopped the clock of simulate and compare."""
    until = read.get("until")
    if until is not None and str(until).replace(".", "", 1).isdigit():
        remark(
            f"--until {until} leaves out the jobs submitted from then on; to stop the replay's clock, as it once did: "
            f"--stop-at {until}"
        )


def _tell_users(schedulers: Iterable[str], options: dict[str, Any], log: Any) -> None:
    """A remark where a prediction goes by users, and the log names none."""
    from escala.errors import EscalaError
    from escala.estimates import LAST2
    from escala.policies.compose import scheduler

    if log.jobs["user"].null_count() < len(log):
        return
    asked = {options.get("estimate"), options.get("order_estimate")}
    for name in schedulers:
        try:
            asked |= {scheduler(name).estimate, scheduler(name).order_estimate}
        except EscalaError:
            continue  # no scheduler of the kernel
    if LAST2 in asked:
        remark("the log names no users: last2 is the requested time of every job")


def tell_unused(schedulers: Iterable[str], shutdowns: Iterable[str], options: dict[str, Any], log: Any) -> None:
    """A remark for each option that changes nothing, and for predictions by users where the log names none."""
    names = list(schedulers)
    for name in unused(names, shutdowns, options):
        remark(f"{FLAG[name]} changes nothing with {', '.join(names)}: only {WHO[name]}")
    _tell_users(names, options, log)
