"""The sweep over lengths of episodes of R3: the same jobs in shorter and longer ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from escala.studies.deepshutdown2020 import longer
from escala.studies.lab import lengths
from escala.studies.lab import r3_inputs as inputs

KEPT = Path(__file__).resolve().parents[3] / "docs" / "studies"
SOURCE: dict[str, Any] = {"name": "orion", "traces": None, "generated_days": 40, "most": None}


def test_every_length_has_the_jobs_of_the_held_out_days() -> None:
    test = inputs.days(**SOURCE).test
    jobs = sum(len(day) for day in test)
    whole, _, length = lengths.held_out(SOURCE, None)
    assert len(whole) == 1 and length >= len(test)
    gaps = {days: sum(len(one) for one in lengths.held_out(SOURCE, days)[0]) for days in (1.0, 2.0, 7.0)}
    assert gaps[1.0] == jobs and all(jobs <= found <= len(whole[0]) for found in gaps.values())
    for days in (0.25, 2.0):
        episodes, _, _ = lengths.held_out(SOURCE, days)
        assert all(
            one.jobs["submit_s"].min() >= 0.0 and one.jobs["submit_s"].max() < days * 86400.0 for one in episodes
        )
    day, first = lengths.held_out(SOURCE, 1.0)[0][0], test[0]
    assert day.jobs["submit_s"].to_list() == first.jobs["submit_s"].to_list()


def test_an_input_whose_days_are_no_log_is_refused_in_one_line() -> None:
    with pytest.raises(inputs.EscalaError, match="real log"):
        lengths.held_out(SOURCE | {"name": "kth"}, 1.0)


@pytest.mark.slow
def test_a_sweep_has_the_agent_and_the_rules_on_the_same_jobs() -> None:
    found = longer.played(SOURCE, 2.0, str(KEPT / "deepshutdown2020" / "agents" / "orion-1-0"))
    assert set(found) == {*longer.RULES, longer.AGENT}
    assert len({tuple(columns["jobs"]) for columns in found.values()}) == 1
    assert all(sum(columns["unstarted"]) == 0 for columns in found.values())
    table = longer.frame({"length/orion/2": found})
    assert table.filter(policy="timeout:0")["waste_vs_t0"].item() == 0.0
    agent = table.filter(policy="agent").row(0, named=True)
    t0 = sum(found["timeout:0"]["waste_j"])
    assert agent["waste_vs_t0"] == pytest.approx(sum(found["agent"]["waste_j"]) / t0 - 1)
    assert agent["episodes"] == len(found["agent"]["jobs"]) and (agent["waste_vs_t0_low"] is None) == (
        agent["episodes"] < lengths.LEAST
    )
