"""What each metric is called, its unit, which way is better, and what it means: said once, used by tables, plots and
the page."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """One metric. `kind`: s (a time), J (an energy), W, 1 (a plain number), % (a share, kept as a fraction), n (a
    count). `better`: less, more or nothing.
    """

    name: str
    kind: str
    better: str = ""
    meaning: str = ""


QUANTITIES = {
    "mean_wait_s": Quantity("Mean wait", "s", "less", "start − submission, mean over finished jobs"),
    "p95_wait_s": Quantity(
        "Wait, 95th percentile", "s", "less", "the wait that 95 % of the finished jobs do not exceed"
    ),
    "median_wait_s": Quantity("Wait, median", "s", "less", "the wait that half of the finished jobs do not exceed"),
    "p99_wait_s": Quantity(
        "Wait, 99th percentile", "s", "less", "the wait that 99 % of the finished jobs do not exceed"
    ),
    "longest_wait_s": Quantity("Longest wait", "s", "less", "the largest wait of a finished job"),
    "area_weighted_wait_s": Quantity(
        "Area-weighted wait", "s", "less", "mean wait, each job weighted by cores × runtime"
    ),
    "bounded_slowdown": Quantity("Bounded slowdown", "1", "less", "max(turnaround / max(runtime, 10 s), 1)"),
    "max_wait_s": Quantity("Longest wait", "s", "less", "the largest wait of a finished job"),
    "mean_turnaround_s": Quantity("Mean turnaround", "s", "less", "finish − submission, mean over finished jobs"),
    "mean_runtime_s": Quantity("Mean runtime", "s", "", "what ran: min(runtime, walltime), mean over finished jobs"),
    "mean_slowdown": Quantity("Mean slowdown", "1", "less", "max(turnaround / runtime, 1), mean over finished jobs"),
    "mean_bounded_slowdown": Quantity(
        "Mean bounded slowdown", "1", "less", "max(turnaround / max(runtime, 10 s), 1), mean over finished jobs"
    ),
    "p95_bounded_slowdown": Quantity(
        "Bounded slowdown, 95th percentile", "1", "less", "not exceeded by 95 % of the finished jobs"
    ),
    "mean_pp_slowdown": Quantity(
        "Mean per-processor slowdown", "1", "less", "max(turnaround / (cores × runtime), 1), mean over finished jobs"
    ),
    "mean_stretch": Quantity("Mean stretch", "1", "less", "wait / walltime, mean over finished jobs"),
    "mean_delay_s": Quantity("Mean delay", "s", "less", "wait beyond half the walltime, mean over finished jobs"),
    "makespan_s": Quantity("Makespan", "s", "less", "last finish − first submission"),
    "window_s": Quantity("Measured span", "s", "", "the time over which energy and utilisation are measured"),
    "utilisation": Quantity("Utilisation", "%", "more", "core seconds used / (cores × measured span)"),
    "loss_of_capacity": Quantity(
        "Loss of capacity", "%", "less", "share of core seconds that were free while a job waited"
    ),
    "energy_j": Quantity("Energy", "J", "less", "electrical energy of all nodes in all states"),
    "cost": Quantity("Cost", "1", "less", "energy of all nodes, at its price of the moment"),
    "co2_kg": Quantity("CO2 (kg)", "1", "less", "energy of all nodes, at its CO2 of the moment"),
    "gpu_j": Quantity("Energy of GPUs", "J", "less", "part of the energy: of GPUs, where they have watts of their own"),
    "waste_j": Quantity("Energy waste", "J", "less", "part of the energy: of nodes that idle, switch on or switch off"),
    "mean_power_w": Quantity("Mean power", "W", "less", "energy / measured span"),
    "transitions": Quantity("Transitions", "n", "less", "switch-ons + switch-offs of nodes"),
    "n_jobs": Quantity("Submitted", "n", "", "jobs in the workload"),
    "n_completed": Quantity("Completed", "n", "", "jobs that ran to their own end"),
    "n_killed": Quantity("Killed", "n", "", "jobs stopped at their walltime, or by an outage"),
    "n_rejected": Quantity("Rejected", "n", "", "jobs that this platform can never run"),
    "n_unfinished": Quantity(
        "Unfinished", "n", "", "jobs still running, queued or not yet submitted when the run was cut"
    ),
} | {
    f"{state}_j": Quantity(f"Energy {state.replace('_', ' ')}", "J", "less")
    for state in ("computing", "idle", "off", "switching_off", "switching_on")
}

_SCALES = {
    "s": ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")),
    "J": ((3.6e12, "GWh"), (3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh"), (1.0, "J")),  # as on an electricity bill
    "W": ((1e9, "GW"), (1e6, "MW"), (1e3, "kW"), (1.0, "W")),
    "%": ((0.01, "%"),),
}
ENERGY_UNITS = frozenset(unit for _, unit in _SCALES["J"])
_ENOUGH = {"s": 2.0}  # minutes only from two minutes on, hours from two hours on


def quantity(metric: str) -> Quantity:
    """The quantity of a metric; for an unknown name one made from the name and its suffix (_s, _j, _w, _change)."""
    if metric in QUANTITIES:
        return QUANTITIES[metric]
    for suffix, kind in (("_s", "s"), ("_j", "J"), ("_w", "W"), ("_change", "%"), ("_share", "%")):
        if metric.endswith(suffix):
            return Quantity(_words(metric.removesuffix(suffix)), kind)
    return Quantity(_words(metric), "1")


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def scale(kind: str, largest: float) -> tuple[float, str]:
    """(divisor, unit) in which values up to `largest` read well: 7200 s is (3600, "h"). Plain numbers and counts have
    no unit."""
    if kind not in _SCALES:
        return 1.0, ""
    enough = _ENOUGH.get(kind, 1.0)
    for divisor, unit in _SCALES[kind]:
        if math.isfinite(largest) and abs(largest) >= enough * divisor:
            return divisor, unit
    return _SCALES[kind][-1]


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, thousands apart by a thin space, a real minus sign; "–" for what has no
    value."""
    if not math.isfinite(value):
        return "–"
    if value == 0.0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(places, 9)}f}" if abs(value) < 1e12 else f"{value:.{digits - 1}e}"
    return text.replace(",", "\u202f").replace("-", "−")


def among(kind: str, value: float, divisor: float, unit: str = "") -> str:
    """A value of a kind among others that are read in one unit, see `scale`. Where less than a hundredth of that unit
    is left of it, it stands in its own, which is named: 0.29 s among hours. unit: to be named after the others."""
    own, smaller = scale(kind, value)
    if own < divisor and 0.0 < abs(value) < divisor / 100.0:
        return f"{number(value / own)}\u202f{smaller}"
    return f"{number(value / divisor)}\u202f{unit}" if unit else number(value / divisor)


def count(value: float) -> str:
    """A whole number, thousands apart by a thin space; "–" for what has no value."""
    return f"{round(value):,}".replace(",", "\u202f").replace("-", "−") if math.isfinite(value) else "–"


def percent(fraction: float | None) -> str:
    """A change in percent with its sign: −12.3 %."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    value = 100.0 * fraction
    text = f"{value:+.0f}" if abs(value) >= 100.0 else f"{value:+.1f}"
    return (text if float(text) else "±0").replace("-", "−") + "\u202f%"


def amount(metric: str, value: float) -> str:
    """A value of a metric with its unit: 12.34 MJ."""
    what = quantity(metric)
    divisor, unit = scale(what.kind, value)
    text = count(value) if what.kind == "n" else number(value / divisor)
    return f"{text}\u202f{unit}" if unit else text
