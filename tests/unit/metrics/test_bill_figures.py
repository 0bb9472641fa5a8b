"""Bills where prices change: against sums by hand, against a constant price, and bad files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import escala
from escala.metrics.bill import Series, bill, read_series

LOG = {"submit_s": [0.0, 100.0], "runtime_s": [3600.0, 1800.0], "walltime_s": [3600.0, 3600.0], "cores": [1, 1]}


def _run(shutdown: str = "never") -> escala.Result:
    return escala.simulate(escala.Workload.from_jobs(LOG, name="two"), "1x1:grid5000", "easy", shutdown)


def test_a_constant_price_is_the_energy_times_it() -> None:
    run = _run()
    energy = float(run.summary()["energy_j"])
    one, two = (Series(np.array(times), np.full(len(times), 0.25)) for times in ([0.0], [-50.0, 40.0, 4000.0, 1e6]))
    assert bill(run.nodes, run.power, one) == pytest.approx(energy / 3.6e6 * 0.25)
    assert bill(run.nodes, run.power, two) == pytest.approx(energy / 3.6e6 * 0.25)


def test_each_hour_has_its_own_price() -> None:
    """One node computes for 5 400 s without a pause: an hour at 1 a kWh, half an hour at 3."""
    run = _run()
    watts = float(run.summary()["energy_j"]) / 5400.0
    by_hand = watts * 3600.0 / 3.6e6 * 1.0 + watts * 1800.0 / 3.6e6 * 3.0
    assert bill(run.nodes, run.power, Series(np.array([0.0, 3600.0]), np.array([1.0, 3.0]))) == pytest.approx(by_hand)


def test_a_series_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("time_s,per_kwh,note\n0,0.1,night\n 3600 ,-0.02,wind\n", encoding="utf-8")
    found = read_series(path)
    assert found.time_s.tolist() == [0.0, 3600.0] and found.per_kwh.tolist() == [0.1, -0.02]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("time_s,price\n0,1\n", "has no column per_kwh"),
        ("time_s,per_kwh\n", "holds no row"),
        ("time_s,per_kwh\n0,1\n5,cheap\n", "row 2: per_kwh 'cheap' is no number"),
        ("time_s,per_kwh\n0,1\n5,inf\n", "row 2: per_kwh 'inf' is no number"),
        ("time_s,per_kwh\n5,1\n5,2\n", "row 2: time_s 5 is not later"),
    ],
)
def test_what_is_no_series_is_one_line(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(escala.EscalaError, match=why):
        read_series(path)


def test_what_cannot_be_billed_says_why() -> None:
    run = _run()
    with pytest.raises(escala.EscalaError, match="begins at 10 s"):
        bill(run.nodes, run.power, Series(np.array([10.0]), np.array([1.0])))
    dark = escala.simulate(escala.Workload.from_jobs(LOG, name="two"), "1x1", "easy")
    with pytest.raises(escala.EscalaError, match="no energy was counted"):
        bill(dark.nodes, dark.power, Series(np.array([0.0]), np.array([1.0])))
