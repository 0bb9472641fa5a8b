"""What is said before a replay: options, dates, predictions and shapes that change nothing, or mean something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from escala.cli.terminal import remark

FLAG = {"depth": "--depth", "rebuild": "--rebuild", "head": "--head", "plan_margin_s": "--plan-margin"}
WHO = {
    "depth": "conservative looks at it",
    "rebuild": "conservative looks at it",
    "head": "the EASY family looks at it (easy-fast counts cores, as latest-released)",
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


def tell_unused(
    schedulers: Iterable[str], shutdowns: Iterable[str], options: dict[str, Any], log: Any, machine: Any
) -> None:
    """A remark for each option that changes nothing, for predictions by users where the log names none, and for what
    jobs ask for and nobody sees."""
    names = list(schedulers)
    for name in unused(names, shutdowns, options):
        remark(f"{FLAG[name]} changes nothing with {', '.join(names)}: only {WHO[name]}")
    _tell_users(names, options, log)
    _tell_shapes(names, log, machine)


def _tell_shapes(schedulers: list[str], log: Any, machine: Any) -> None:
    """A remark where jobs ask for nodes, memory or GPUs, and a scheduler looks at their cores and begin times alone;
    and one for what none but Slurm's rules look at on this machine."""
    from escala.parts import counting
    from escala.policies.heeded import goes_by_nodes
    from escala.slurm.named import is_slurm
    from escala.workload.shapes import BEGIN, OF_NODES, SHAPES

    asked = [
        name for name in SHAPES if name != BEGIN and name in log.jobs.columns and log.jobs[name].null_count() < len(log)
    ]
    others = [name for name in schedulers if not is_slurm(name)]
    blind = [name for name in others if not goes_by_nodes(name)]
    if asked and blind:
        remark(f"what jobs ask for by {', '.join(asked)} does not count under {', '.join(blind)}: cores of any nodes")
    seeing = [name for name in others if name not in blind]
    of_slurm = [name for name in asked if name not in OF_NODES]
    if of_slurm and seeing:
        remark(f"what jobs ask for by {', '.join(of_slurm)} counts under the scheduler slurm alone")
    for why, names in _absent(counting(log.jobs, machine)).items():
        if seeing:
            said = f"what jobs ask for by {', '.join(names)} does not count under {', '.join(seeing)}"
            remark(f"{said}: platform {machine.name!r} {why}")


def _absent(counting: dict[str, str]) -> dict[str, list[str]]:
    """Why columns do not count -> these."""
    found: dict[str, list[str]] = {}
    for name, why in counting.items():
        if why:
            found.setdefault(why, []).append(name)
    return found
