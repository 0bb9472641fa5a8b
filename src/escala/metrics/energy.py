"""Energy metrics: joules by node state, waste, transitions, and what a year of it costs. They read the `power` table of
a Result.

Waste is what R3 calls so (equation 4.4): the energy of nodes that idle, switch off or switch on. R3's table 5 counts in
W min, which is offered beside joules.
"""

from __future__ import annotations

import polars as pl

from escala.errors import EscalaError
from escala.metrics.jobs import require

STATES = ("computing", "idle", "off", "switching_off", "switching_on")
WASTE = ("idle", "switching_off", "switching_on")
JOULES_PER_KWH = 3.6e6
YEAR_S = 365.25 * 86400.0


def _by_state(power: pl.DataFrame, column: str) -> dict[str, float]:
    require(power, "state", column, name="power")
    sums = dict(power.group_by("state").agg(pl.col(column).sum()).iter_rows())
    unknown = set(sums) - set(STATES)
    if unknown:
        raise EscalaError(
            f"the power table has the unknown node state {min(unknown)!r}; the states are {', '.join(STATES)}"
        )
    return {state: float(sums.get(state, 0.0)) for state in STATES}


def counted(power: pl.DataFrame) -> bool:
    """False where no energy was counted: the platform has nodes without a power profile, and the table no column
    `joules`."""
    return "joules" in power.columns


def joules(power: pl.DataFrame) -> dict[str, float]:
    """Energy in each node state, J."""
    return _by_state(power, "joules")


def node_seconds(power: pl.DataFrame) -> dict[str, float]:
    """Time that nodes spent in each state, node seconds."""
    return _by_state(power, "seconds")


def total_j(power: pl.DataFrame) -> float:
    """Energy over all states, J."""
    return sum(joules(power).values())


def waste_j(power: pl.DataFrame) -> float:
    """Energy waste E_idle + E_switching-off + E_switching-on, J (R3, equation 4.4)."""
    by_state = joules(power)
    return sum(by_state[state] for state in WASTE)


def waste_w_min(power: pl.DataFrame) -> float:
    """Energy waste in W min, the unit behind the "J" of R3's table 5."""
    return waste_j(power) / 60.0


def transitions(power: pl.DataFrame) -> int:
    """Switch-offs + switch-ons of all nodes (entries into switching_off and switching_on)."""
    require(power, "transitions", name="power")
    return int(power.get_column("transitions").sum() or 0)


def to_one_end(days: pl.DataFrame) -> pl.DataFrame:
    """Runs of the same days, the energy of each day counted until the last of its runs ends, with all nodes off from a
    run's own end on: a run that takes longer for the same jobs would else count for more of what nodes draw that are
    off.

    days: columns episode (number of the day), window_s (how long energy was counted, s) and asleep_w (what the platform
    draws while all nodes are off, W); of energy_j and off_j those that are there grow, and window_s becomes that of the
    last. Done twice it changes nothing more.
    """
    require(days, "episode", "window_s", "asleep_w", name="days")
    last = pl.col("window_s").max().over("episode")
    more = (last - pl.col("window_s")) * pl.col("asleep_w")
    grown = [(pl.col(name) + more).alias(name) for name in ("energy_j", "off_j") if name in days.columns]
    return days.with_columns(*grown, window_s=last)


def kwh(energy_j: float) -> float:
    """J to kWh."""
    return energy_j / JOULES_PER_KWH


def per_year(energy_j: float, span_s: float, *, price_per_kwh: float, kg_co2_per_kwh: float) -> dict[str, float]:
    """What a year costs if it goes on as in the span: `kwh_per_year`, `price_per_year` (in the currency of the price)
    and `kg_co2_per_year`.

    A straight line through one measured span: fit for orders of magnitude, not for a budget. The year has 365.25 days.
    """
    if span_s <= 0.0:
        raise EscalaError(
            f"cannot extrapolate from a span of {span_s:g} s to a year; give a run that lasts longer than 0 s"
        )
    energy = kwh(energy_j) * YEAR_S / span_s
    return {
        "kwh_per_year": energy,
        "price_per_year": energy * price_per_kwh,
        "kg_co2_per_year": energy * kg_co2_per_kwh,
    }
