"""Each rule of cleaning on records made for it."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.workload.clean import CleaningRules, clean, dropped

GOOD: dict[str, Any] = {"job_id": "1", "submit_s": 5.0, "runtime_s": 10.0, "walltime_s": 20.0, "cores": 2.0}


def one(change: dict[str, Any], rules: CleaningRules | None = None) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The cleaned records and counts of one good record beside a changed one."""
    schema = {"job_id": pl.String, **dict.fromkeys(("submit_s", "runtime_s", "walltime_s", "cores"), pl.Float64)}
    frame = pl.DataFrame([GOOD, {**GOOD, "job_id": "2", **change}], schema=schema)
    kept, counts, firsts = clean(frame, rules or CleaningRules())
    assert firsts == dict.fromkeys((rule for rule in counts if rule != "over request"), "job '2'"), (
        "each rule names the record that it touched"
    )
    assert kept.height + dropped(counts) == frame.height
    return kept.to_dicts()[1:], counts


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        *(({"submit_s": value}, "no submission time") for value in (-1.0, None, math.nan)),
        *(({"submit_s": value}, "absurd submission") for value in (1.6e12, math.inf)),
        ({"runtime_s": -1.0}, "negative runtime"),
        *(({"runtime_s": value}, "no runtime") for value in (None, math.nan)),
        *(({"runtime_s": value}, "absurd runtime") for value in (1.1e9, math.inf)),
        *(({"cores": value}, "no processors") for value in (-1.0, 0.0, None, math.nan)),
        *(({"cores": value}, "absurd processors") for value in (3e9, math.inf)),
    ],
)
def test_dropped(change: dict[str, Any], rule: str) -> None:
    assert one(change) == ([], {rule: 1})


def test_a_job_is_counted_once() -> None:
    assert one({"runtime_s": -1.0, "cores": -1.0}) == ([], {"negative runtime": 1})


def test_zero_runtime() -> None:
    kept, counts = one({"runtime_s": 0.0})
    assert (kept[0]["runtime_s"], counts) == (1.0, {"zero runtime": 1})
    assert one({"runtime_s": 0.0}, CleaningRules(zero_runtime_s=0.25))[0][0]["runtime_s"] == 0.25
    assert one({"runtime_s": 0.0}, CleaningRules(zero_runtime_s=None)) == ([], {"zero runtime (dropped)": 1})


def test_fractional_runtimes_stay() -> None:
    assert one({"runtime_s": 1e-6}) == ([{**GOOD, "job_id": "2", "runtime_s": 1e-6, "cores": 2}], {})


@pytest.mark.parametrize("walltime", [-1.0, 0.0, None, math.nan])
def test_no_request(walltime: float | None) -> None:
    kept, counts = one({"walltime_s": walltime})
    assert (kept[0]["walltime_s"], counts) == (10.0, {"no request": 1})
    assert one({"walltime_s": walltime}, CleaningRules(no_request=3600))[0][0]["walltime_s"] == 3600.0
    assert one({"walltime_s": walltime}, CleaningRules(no_request="drop")) == ([], {"no request (dropped)": 1})


def test_zero_runtime_without_request() -> None:
    kept, counts = one({"runtime_s": 0.0, "walltime_s": -1.0})
    assert (kept[0]["runtime_s"], kept[0]["walltime_s"]) == (1.0, 1.0)
    assert counts == {"zero runtime": 1, "no request": 1}


def test_absurd_request_is_capped() -> None:
    kept, counts = one({"walltime_s": 4.2e9 * 60})
    assert (kept[0]["walltime_s"], counts) == (1e9, {"absurd request": 1})


def test_over_request_is_kept_and_counted() -> None:
    kept, counts = one({"runtime_s": 21.0})
    assert (kept[0]["runtime_s"], kept[0]["walltime_s"], counts) == (21.0, 20.0, {"over request": 1})


def test_fractions_of_processors_are_rounded_up() -> None:
    kept, counts = one({"cores": 1.5})
    assert (kept[0]["cores"], counts) == (2, {"fractional processors": 1})


def test_repeated_ids_are_renamed() -> None:
    frame = pl.DataFrame([{**GOOD, "job_id": name} for name in ("a", "b", "a", "a")])
    kept, counts, firsts = clean(frame, CleaningRules())
    assert kept["job_id"].to_list() == ["a", "b", "a#2", "a#3"]
    assert counts == {"repeated id": 2} and firsts == {"repeated id": "job 'a'"}


@pytest.mark.parametrize(
    "options",
    [
        {"zero_runtime_s": 0},
        {"no_request": "never"},
        {"no_request": -5},
        {"longest_s": math.inf},
        {"longest_s": 1e12},
        {"most_cores": 0},
        {"most_cores": 10**30},
    ],
)
def test_refused_rules(options: dict[str, Any]) -> None:
    with pytest.raises(EscalaError):
        CleaningRules(**options)
