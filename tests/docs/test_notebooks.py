"""The notebooks run through, and what they conclude is so."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("marimo", reason="the extra [notebooks] is not installed")

import escala

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def _run(name: str) -> tuple[list[Any], dict[str, Any]]:
    """What the cells show, and the names they define."""
    shown, names = runpy.run_path(str(FOLDER / f"{name}.py"))["app"].run()
    return [entry for entry in shown if entry is not None], dict(names)


def _text(shown: list[Any]) -> str:
    return "\n".join(entry.text for entry in shown if isinstance(getattr(entry, "text", None), str))


def _has_units(figure: Any) -> bool:
    """Every axis of a figure that has a label at its side says what it is; none of the figure is without any."""
    labels = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel()) if text]
    return bool(labels) and any("(" in text for text in labels)


@pytest.mark.slow
def test_operators() -> None:
    shown, names = _run("operators")
    yearly = {row["policy"]: row for row in names["yearly"].iter_rows(named=True)}
    summaries = names["summaries"]
    assert len(yearly) == 12 and yearly["easy + never"]["saved (kWh)"] == 0
    kept, idle = summaries["easy + hold:0.25"], summaries["easy + never"]
    years = idle["window_s"] / (365.25 * 86400)
    assert yearly["easy + hold:0.25"]["saved (kWh)"] == pytest.approx(
        (idle["energy_j"] - kept["energy_j"]) / 3.6e6 / years, abs=0.5
    )
    assert yearly["easy + hold:0.25"]["saved (money)"] == pytest.approx(
        0.25 * yearly["easy + hold:0.25"]["saved (kWh)"], abs=1
    )
    again = escala.simulate(names["log"], "orion", scheduler="easy", shutdown="hold:0.25").summary()
    assert again["energy_j"] == kept["energy_j"]
    assert all(_has_units(names[name]) for name in ("energy", "frontier", "load", "power"))
    assert f"{yearly['easy + hold:0.25']['saved (kWh)']:,} kWh a year" in _text(shown)
    change = {
        (row["metric"], row["policy"]): row["change_high"]
        for row in names["change"].drop_nulls("change").iter_rows(named=True)
    }
    assert change["waste_j", "hold:0.25"] < 0, "the text says that waste goes down, with its interval"


@pytest.mark.long
@pytest.mark.learn
def test_researchers() -> None:
    pytest.importorskip("stable_baselines3")
    shown, names = _run("researchers")
    mean = {name: float(rows["slowdown"].mean()) for name, rows in names["everybody"].items()}
    assert mean["hold-back"] < mean["sjf"] < mean["fcfs"]
    assert mean["agent, taught"] < mean["sjf"] < mean["agent from nothing"], "as the notebook says"
    assert names["rewards"] and all(reward <= 0 for reward in names["rewards"])
    lower, found, sjf = names["lower"], names["found"], names["on_these"]["sjf"]
    assert (lower <= found + 1e-9).all() and (found <= sjf + 1e-9).all(), "proved bound, best found, rule"
    share = names["shares"]["agent, taught"]
    expected = (sjf.sum() - names["on_these"]["agent, taught"].sum()) / (sjf.sum() - found.sum())
    assert share.value == pytest.approx(expected) and share.low <= share.value <= share.high
    assert np.isfinite(names["points"]["value"].to_numpy()).all()
    assert "proved" in _text(shown)
