"""The log's own waits beside those of its replay."""

from __future__ import annotations

import pytest

import escala
from escala.metrics.recorded import recorded_waits, resembles
from escala.report import recorded

JOBS = {"submit_s": [0.0, 0.0, 0.0, 0.0], "runtime_s": [100.0] * 4, "cores": [1] * 4, "queue": ["a", "a", "b", "b"]}


@pytest.mark.parametrize(
    ("recorded_s", "replayed_s", "alike"),
    [(0.0, 60.0, True), (0.0, 61.0, False), (1800.0, 0.0, False), (100.0, 200.0, True), (100.0, 201.0, False), (30.0, 80.0, True)],
)
def test_the_rule(recorded_s: float, replayed_s: float, alike: bool) -> None:
    assert resembles(recorded_s, replayed_s) is alike


def test_both_waits_over_the_jobs_that_have_a_recorded_one() -> None:
    log = escala.Workload.from_jobs({**JOBS, "wait_s": [1000.0, 2000.0, 3000.0, None]})
    jobs = escala.simulate(log, "2x1").jobs  # two jobs wait 0 s, two 100 s
    found = recorded_waits(jobs)
    assert found is not None and (found["jobs"], found["of"], found["resembles"]) == (3, 4, False)
    assert (found["mean_recorded_s"], found["median_recorded_s"], found["mean_replayed_s"]) == (2000.0, 2000.0, pytest.approx(100 / 3))
    assert [(q["queue"], q["jobs"], q["mean_recorded_s"], q["mean_replayed_s"]) for q in found["queues"]] == [
        ("a", 2, 1500.0, 0.0),
        ("b", 1, 3000.0, 100.0),
    ]
    told = recorded.sentence({"easy + never": found})
    assert told.startswith("This replay does not resemble the log: ") and "3 of 4 jobs whose wait was recorded" in told
    alike = {**found, "mean_replayed_s": 1900.0, "resembles": True}
    assert recorded.sentence({"x": found, "y": alike}) == ""
    assert recorded.sentence({"x": found, "y": found}).startswith("None of these replays resembles the log: ")


def test_a_log_without_waits_has_none() -> None:
    assert recorded_waits(escala.simulate(escala.Workload.from_jobs(JOBS), "2x1").jobs) is None
