"""What a run's energy costs where prices, or the CO2 of a kWh, change over time: a series from a CSV file, and the bill
of a run."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.metrics.energy import JOULES_PER_KWH, STATES
from escala.metrics.machine import mean_power_by_state
from escala.reading import guarded, read_all

TIME, VALUE = "time_s", "per_kwh"
COLUMNS = (TIME, VALUE)
COST, CO2, GRAMS = "cost", "co2_kg", 1000.0
MOST = 1e9  # of a kWh, in whatever unit


@dataclass(frozen=True)
class Series:
    """What a kWh costs over time, in any unit. time_s: s on the log's clock, rising, [n]; per_kwh: from each time to
    the next, the last for good, [n]."""

    time_s: NDArray[np.float64]
    per_kwh: NDArray[np.float64]

    def since(self, begin_s: float) -> Series:
        """The same from a time on, and nothing before it."""
        at = int(np.searchsorted(self.time_s, begin_s, side="right"))
        times = np.concatenate([[-np.inf, begin_s], self.time_s[at:]])
        return Series(times, np.concatenate([[0.0, self.per_kwh[max(at - 1, 0)]], self.per_kwh[at:]]))


FLAT = Series(np.array([-np.inf]), np.array([1.0]))


@dataclass(frozen=True)
class Prices:
    """Series of the price of a kWh, and of its CO2 (g); None: not known."""

    money: Series | None = None
    carbon: Series | None = None

    def __bool__(self) -> bool:
        return self.money is not None or self.carbon is not None

    def of(self, nodes: pl.DataFrame, power: pl.DataFrame) -> dict[str, float]:
        """What a run costs, as far as known: `cost`, `co2_kg`. nodes, power: as of `bill`."""
        found = {} if self.money is None else {COST: bill(nodes, power, self.money)}
        return found if self.carbon is None else found | {CO2: bill(nodes, power, self.carbon) / GRAMS}


def read_series(path: str | Path) -> Series:
    """The series of a CSV file with the columns `time_s` and `per_kwh`. EscalaError, one line, for what makes no sense
    in it."""
    with guarded(path, "a series of prices"):
        table = pl.read_csv(io.BytesIO(read_all(Path(path))), infer_schema=False)
        if missing := [name for name in COLUMNS if name not in table.columns]:
            raise EscalaError(
                f"{path}: has no column {missing[0]}: give {TIME} (s on the log's clock) and {VALUE} (of a kWh)"
            )
        return Series(*(_numbers(table, name, path) for name in COLUMNS)) if table.height else _empty(path)


def _empty(path: str | Path) -> Series:
    raise EscalaError(f"{path}: holds no row: give {TIME} and {VALUE}")


def _numbers(table: pl.DataFrame, name: str, path: str | Path) -> NDArray[np.float64]:
    """A column of finite numbers; times rise."""
    values = table[name].str.strip_chars().cast(pl.Float64, strict=False)
    bad = values.is_null() | ~values.is_finite().fill_null(False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise EscalaError(f"{path}: row {row + 1}: {name} {quoted(table[name][row])} is no number")
    found = values.to_numpy()
    if name == VALUE and (beyond := np.abs(found) > MOST).any():
        row = int(np.argmax(beyond))
        raise EscalaError(f"{path}: row {row + 1}: {VALUE} {found[row]:g} is beyond {MOST:g}: give a price of a kWh")
    if name == TIME and (np.diff(found) <= 0.0).any():
        row = int(np.argmax(np.diff(found) <= 0.0)) + 1
        raise EscalaError(
            f"{path}: row {row + 1}: {TIME} {found[row]:g} is not later than the row before: sort the rows, each time "
            "once"
        )
    return found


def mean_price(nodes: pl.DataFrame, power: pl.DataFrame, series: Series, begin_s: float) -> float:
    """What a kWh cost in the mean that a run drew from a time on; 0 where it drew nothing. As `bill`."""
    drawn = bill(nodes, power, FLAT.since(begin_s))
    return bill(nodes, power, series.since(begin_s)) / drawn if drawn > 0.0 else 0.0


def bill(nodes: pl.DataFrame, power: pl.DataFrame, series: Series) -> float:
    """What the energy of a run costs, in the unit of the series: the sum over its steps of kWh x per_kwh. nodes, power:
    of a Result. A busy node draws its mean of the run (see `power_by_state`). EscalaError: no energy was counted, or
    the series begins after the run."""
    if "joules" not in power.columns:
        raise EscalaError("no energy was counted in this run: give a platform with watts, such as 16x1:grid5000")
    if nodes.is_empty():
        return 0.0
    first, last = float(nodes["from_s"].min()), float(nodes["to_s"].max())  # type: ignore[arg-type]
    if series.time_s[0] > first:
        raise EscalaError(
            f"the series begins at {series.time_s[0]:g} s and the run at {first:g} s: give prices from its beginning on"
        )
    inside = (series.time_s > first) & (series.time_s < last)
    edges = np.array([first, *series.time_s[inside], last])
    if edges[-1] <= edges[0]:
        return 0.0
    drawn = mean_power_by_state(nodes, power, edges)
    watts = drawn.select(pl.sum_horizontal(STATES)).to_series().to_numpy()
    per_kwh = series.per_kwh[np.searchsorted(series.time_s, edges[:-1], side="right") - 1]
    return float((watts * np.diff(edges) / JOULES_PER_KWH) @ per_kwh)
