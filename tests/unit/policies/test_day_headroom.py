"""Head-room over judged days: by hand, as the study of R3 measures it, and what a limit or Ctrl-C leaves of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.bounds import headroom as day_headroom
from escala.bounds import waste_bound
from escala.bounds.headroom import of_days
from escala.errors import EscalaError
from escala.studies.deepshutdown2020 import headroom as study
from escala.studies.lab.days import days_of, simulated

RULES = ("timeout:0", "timeout:300", "hold:0.25")


def played(
    days: list[escala.Workload], machine: Any, pairs: dict[str, tuple[str, str]]
) -> tuple[pl.DataFrame, dict[Any, Any]]:
    """Every day under every pair of scheduler and shutdown policy, once: rows, and starts."""
    rows, starts = [], {}
    for name, (scheduler, shutdown) in pairs.items():
        for k, day in enumerate(days):
            result = escala.simulate(day, machine, scheduler=scheduler, shutdown=shutdown, start_off=True)
            rows.append(
                {
                    "policy": name,
                    "run": 0,
                    "episode": k,
                    **{m: float(result.summary()[m]) for m in ("waste_j", "mean_wait_s")},
                }
            )
            starts[name, 0, k] = result.jobs["start_s"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return pl.DataFrame(rows), starts


@pytest.fixture(scope="module")
def orion() -> tuple[list[escala.Workload], Any, pl.DataFrame, dict[Any, Any]]:
    days = days_of(escala.workload.generate.grid5000(cluster="orion", days=6, seed=3))[:3]
    machine = escala.read_platform("orion")
    return days, machine, *played(days, machine, {rule: ("saf", rule) for rule in RULES})


def _two(days: Any, machine: Any, rows: Any, starts: Any) -> tuple[Any, Any, Any, Any]:
    """The first two days alone."""
    return (
        days[:2],
        machine,
        rows.filter(pl.col("episode") < 2),
        {key: one for key, one in starts.items() if key[2] < 2},
    )


def test_two_equal_days_by_hand() -> None:
    """Two jobs hours apart on one node: idling between them is lost, and switching off is the best of the two."""
    submit, n = [100.0, 20000.0, 86500.0, 106400.0], 4
    log = escala.Workload.from_jobs(
        {"submit_s": submit, "runtime_s": [600.0] * n, "walltime_s": [900.0] * n, "cores": [12] * n}
    )
    days = log.split_days()
    machine = escala.read_platform("2x12:grid5000")
    rows, starts = played(days, machine, {"idle": ("saf", "never"), "off": ("saf", "timeout:0")})
    told = of_days(days, machine, rows, starts, "waste")
    assert told["reference"] == "idle" and told["bounded"] == [day.name for day in days] and not told["cut"]
    off = told["policies"]["off"]
    assert 0.0 < off["proved"] <= 1.0 + 1e-9 and off["proved_low"] == pytest.approx(off["proved_high"]), (
        "both days are alike"
    )
    assert off["found"] == 1.0 and off["bound"] <= off["mean"] + 1e-3
    assert told["policies"]["idle"]["proved"] == 0.0


@pytest.mark.slow
def test_as_the_study_measures_it(orion: Any) -> None:
    days, machine, rows, starts = _two(*orion)
    told = of_days(days, machine, rows, starts, "waste")
    rules = {rule: simulated(days, machine, "saf", rule, "drain") for rule in RULES}
    for rule in RULES:
        theirs = study.possible(SimpleNamespace(test=days, platform=machine), rules[rule], rules)  # type: ignore[arg-type]
        t0, wasted, found, lower = (np.array(theirs[name]) for name in ("t0", "waste", "found", "lower"))
        ours = told["policies"][rule]
        assert ours["bound"] == pytest.approx(lower.mean()) and ours["mean"] == pytest.approx(wasted.mean())
        assert ours["proved"] == pytest.approx((t0 - wasted).sum() / (t0 - lower).sum())
        assert ours["proved_low"] <= ours["proved"] <= ours["proved_high"]
        if t0.sum() > found.sum():
            assert ours["found"] == pytest.approx((t0 - wasted).sum() / (t0 - found).sum())
            assert abs(ours["proved"]) <= abs(ours["found"]) + 1e-9


@pytest.mark.slow
def test_more_waiting_leaves_more_to_save_and_late_jobs_are_counted(orion: Any) -> None:
    days, machine, rows, starts = _two(*orion)
    own, longer = (of_days(days, machine, rows, starts, "waste", stretch=stretch)["policies"] for stretch in (0.0, 0.5))
    for rule in RULES:
        assert longer[rule]["bound"] <= own[rule]["bound"] * (1 + 1e-6) + 1e-3
        assert own[rule]["late"] >= longer[rule]["late"]
    assert own["timeout:0"]["late"] == 0.0 < own["hold:0.25"]["late"], (
        "no job is later than under the first policy itself"
    )


def test_no_time_bounds_nothing_and_an_interrupt_keeps_whole_days(orion: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    days, machine, rows, starts = orion
    none = of_days(days, machine, rows, starts, "waste", limit_s=1e-6)
    assert none["cut"] and none["bounded"] == [] and none["policies"]["hold:0.25"]["proved"] is None
    bound_at, asked = waste_bound.bound_at, []

    def once(day: Any, *given: Any, **options: Any) -> Any:
        asked.append(day.name)
        if len(set(asked)) == 2:
            raise KeyboardInterrupt
        return bound_at(day, *given, **options)

    monkeypatch.setattr(day_headroom.waste_bound, "bound_at", once)
    told = of_days(days, machine, rows, starts, "waste")
    assert told["interrupted"] and told["bounded"] == [days[0].name]
    assert told["policies"]["hold:0.25"]["proved"] is not None


def test_a_day_that_cannot_be_bounded_is_left_out_and_says_why(orion: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    days, machine, rows, starts = orion
    bound_at = waste_bound.bound_at

    def refuses(day: Any, *given: Any, **options: Any) -> Any:
        if day.name == days[1].name:
            raise EscalaError("lasts too long")
        return bound_at(day, *given, **options)

    monkeypatch.setattr(day_headroom.waste_bound, "bound_at", refuses)
    told = of_days(days, machine, rows, starts, "waste")
    assert told["bounded"] == [days[0].name, days[2].name] and told["refused"] == "lasts too long" and not told["cut"]


def test_waits_have_the_share_of_the_bound_alone(orion: Any) -> None:
    days, machine, *_ = orion
    rows, starts = played(days[:2], machine, {name: (name, "timeout:300") for name in ("first-fit", "sjf-fit")})
    told = of_days(days[:2], machine, rows, starts, "wait", limit_s=4.0)
    other = told["policies"]["sjf-fit"]
    assert told["policies"]["first-fit"]["proved"] == 0.0 and "found" not in other
    assert other["bound"] <= other["mean"] and any("boot" in line for line in told["relaxations"])


@pytest.mark.parametrize(
    ("objective", "more", "word"),
    [
        ("makespan", {}, "unknown"),
        ("wait", {"stretch": 0.5}, "stretch"),
        ("waste", {"stretch": -1.0}, "stretch"),
        ("waste", {"limit_s": 0.0}, "limit_s"),
    ],
)
def test_bad_requests_are_one_line(orion: Any, objective: str, more: dict[str, Any], word: str) -> None:
    with pytest.raises(EscalaError, match=word):
        of_days(*orion, objective, **more)


def test_a_platform_of_which_the_waste_cannot_be_bounded_is_refused(orion: Any) -> None:
    days, _, rows, starts = orion
    with pytest.raises(EscalaError, match="no power data"):
        of_days(days, escala.read_platform("4x12:none"), rows, starts, "waste")
