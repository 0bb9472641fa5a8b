"""What the energy of saved runs costs: at one price, at prices that change, with the site's overhead, and what is
refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import escala
from tests.cli.program import Escala

DAY_S = 86400.0


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    log = escala.workload.generate.lublin(jobs=80, cores=16, load=0.5, seed=1)
    for name, shutdown in (("on", "never"), ("off", "timeout:300")):
        escala.simulate(log, "16x1:grid5000", "easy", shutdown).save(tmp_path / name)
    return [tmp_path / "on", tmp_path / "off"]


def _told(outcome: object) -> list[dict[str, float]]:
    assert outcome.status == 0, outcome.err  # type: ignore[attr-defined]
    return json.loads(outcome.out)["runs"]  # type: ignore[attr-defined]


def test_one_price_is_energy_times_price(escala_: Escala, runs: list[Path]) -> None:
    found = _told(escala_("bill", *runs, "--price", "0.25", "--carbon", "350", "--pue", "1.5", "--json"))
    for row, folder in zip(found, runs, strict=True):
        kwh = 1.5 * escala.Result.load(folder).summary()["energy_kwh"]
        assert row["energy_kwh"] == pytest.approx(kwh)
        assert row["cost"] == pytest.approx(0.25 * kwh, rel=1e-9)
        assert row["co2_kg"] == pytest.approx(0.35 * kwh, rel=1e-9)
    assert found[1]["cost"] < found[0]["cost"]
    told = escala_("bill", *runs, "--price", "0.25", "--currency", "EUR").out
    assert "cost (EUR)" in told and "−" in told and "a preset, not measured on this machine" in told


def test_prices_that_change_bill_each_stretch_by_its_own(escala_: Escala, runs: list[Path], tmp_path: Path) -> None:
    """Night at 0, day at 1: what is drawn in the second half of the run, where nodes that idle draw the same all the
    time."""
    nodes = escala.Result.load(runs[0]).nodes
    first, last = nodes["from_s"].min(), nodes["to_s"].max()
    half = (first + last) / 2  # type: ignore[operator]
    prices = tmp_path / "prices.csv"
    pl.DataFrame({"time_s": [first, half], "per_kwh": [0.0, 1.0]}).write_csv(prices)
    (late,) = _told(escala_("bill", runs[0], "--price", prices, "--json"))
    pl.DataFrame({"time_s": [first, half], "per_kwh": [1.0, 0.0]}).write_csv(prices)
    (early,) = _told(escala_("bill", runs[0], "--price", prices, "--json"))
    assert early["cost"] > 0.0 and late["cost"] > 0.0
    assert early["cost"] + late["cost"] == pytest.approx(late["energy_kwh"], rel=1e-9)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--price", "nowhere.csv"], "is neither a number nor a file"),
        (["--price", "-1"], "give a number from 0 to"),
        (["--price", "1e300"], "give a number from 0 to"),
        (["--price", "nan"], "give a number from 0 to"),
        (["--carbon", "1e300"], "give a number from 0 to"),
        (["--price", "1", "--currency", "\x1b[2JE"], r"--currency '\x1b[2JE': give at most 8 letters"),
        (["--price", "1", "--currency", "E" * 100_000], "give at most 8 letters"),
        (["--price", "1", "--currency", "E\nE"], "give at most 8 letters"),
        (["--pue", "0.5"], "give a number from 1 to 10"),
        (["--currency", "EUR"], "give --price too"),
    ],
)
def test_what_makes_no_sense_is_one_line(escala_: Escala, runs: list[Path], more: list[str], message: str) -> None:
    outcome = escala_("bill", runs[0], *more)
    assert outcome.status == 2 and message in outcome.err and outcome.err.count("\n") == 1


@pytest.mark.parametrize("currency", ["EUR", "€", "US$", "zł", "Kč"])
def test_currencies(escala_: Escala, runs: list[Path], currency: str) -> None:
    assert f"({currency})" in escala_("bill", runs[0], "--price", "1", "--currency", currency).out


def test_a_price_of_a_file_beyond_any_is_refused(escala_: Escala, runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("time_s,per_kwh\n0,1\n5,-1e300\n")
    outcome = escala_("bill", runs[0], "--price", tmp_path / "prices.csv")
    assert outcome.status == 2 and "row 2: per_kwh -1e+300 is beyond" in outcome.err


def test_names_reach_the_terminal_as_text(escala_: Escala, runs: list[Path]) -> None:
    odd = runs[0].rename(runs[0].with_name("\x1b[2Jon"))
    told = escala_("bill", odd, "--price", "1").out
    assert "\x1b" not in told and r"\x1b[2Jon" in told


def test_a_run_without_watts_has_no_bill(escala_: Escala, tmp_path: Path) -> None:
    log = escala.workload.generate.lublin(jobs=20, cores=16, load=0.5, seed=1)
    escala.simulate(log, "16x1").save(tmp_path / "run")
    outcome = escala_("bill", tmp_path / "run", "--price", "0.25")
    assert outcome.status == 2 and "no energy was counted in this run" in outcome.err


def test_a_folder_of_several_runs_is_named_for_what_it_is(escala_: Escala, tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    escala.workload.write_swf(escala.workload.generate.lublin(jobs=30, cores=16, load=0.5, seed=1), log)
    asked = ("compare", log, "--platform", "16x1:grid5000", "--schedulers", "easy", "--shutdowns", "never,timeout:300")
    assert escala_(*asked, "--out", tmp_path / "out").status == 0
    told = escala_("bill", tmp_path / "out", "--price", "0.2")
    assert (
        told.status == 2
        and "was written by escala compare, and is not one run" in told.err
        and "such as 'easy + never' in it" in told.err
    )
    assert escala_("bill", tmp_path / "out" / "easy + never", "--price", "0.2").status == 0
