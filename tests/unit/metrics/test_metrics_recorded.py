"""The log's own waits beside those of its replay."""

from __future__ import annotations

import pytest

import escala
from escala.metrics.recorded import recorded_waits, resembles
from escala.report import recorded

JOBS = {"submit_s": [0.0, 0.0, 0.0, 0.0], "runtime_s": [100.0] * 4, "cores": [1] * 4, "queue": ["a", "a", "b", "b"]}


@pytest.mark.parametrize(
    ("recorded_s", "replayed_s", "alike"),
    [
        (0.0, 60.0, True),
        (0.0, 61.0, False),
        (1800.0, 0.0, False),
        (100.0, 200.0, True),
        (100.0, 201.0, False),
        (30.0, 80.0, True),
    ],
)
def test_the_rule(recorded_s: float, replayed_s: float, alike: bool) -> None:
    assert resembles(recorded_s, replayed_s) is alike


def test_both_waits_over_the_jobs_that_have_a_recorded_one() -> None:
    log = escala.Workload.from_jobs({**JOBS, "wait_s": [1000.0, 2000.0, 3000.0, None]})
    jobs = escala.simulate(log, "2x1").jobs  # two jobs wait 0 s, two 100 s
    found = recorded_waits(jobs)
    assert found is not None and (found["jobs"], found["of"], found["resembles"]) == (3, 4, False)
    assert (found["mean_recorded_s"], found["median_recorded_s"], found["mean_replayed_s"]) == (
        2000.0,
        2000.0,
        pytest.approx(100 / 3),
    )
    assert [(q["queue"], q["jobs"], q["mean_recorded_s"], q["mean_replayed_s"]) for q in found["queues"]] == [
        ("a", 2, 1500.0, 0.0),
        ("b", 1, 3000.0, 100.0),
    ]
    told = recorded.sentence({"easy + never": found})
    assert told.startswith("This replay does not resemble the log: ") and "3 of 4 jobs whose wait was recorded" in told
    alike = {**found, "mean_replayed_s": 1900.0, "resembles": True}
    first = recorded.sentence({"x": found, "y": alike})
    assert (
        first.startswith("The replay under x, the reference, does not resemble the log: ")
        and "That y comes nearer" in first
    )
    assert recorded.verdict({"x": found, "y": alike}) == first == recorded.sentence({"y": alike, "x": found}, "x")
    assert recorded.sentence({"y": alike, "x": found}) == ""
    assert recorded.verdict({"y": alike, "x": found}).startswith(
        "The replay under y, the reference, is like the log by its mean wait"
    )
    assert recorded.sentence({"x": found, "y": found}).startswith("None of these replays resembles the log: ")


def test_queues_stand_in_rows() -> None:
    queues = [f"q{k}" for k in range(recorded.MOST_QUEUES + 2)]
    jobs = {
        "submit_s": [0.0] * len(queues),
        "runtime_s": [100.0] * len(queues),
        "cores": [1] * len(queues),
        "queue": queues,
    }
    log = escala.Workload.from_jobs({**jobs, "wait_s": [50.0] * len(queues)})
    waits = {name: recorded_waits(escala.simulate(log, "1x1").jobs) for name in "abcd"}
    whole, by_queue = recorded.tables({name: found for name, found in waits.items() if found is not None})
    assert [row[0].text for row in whole.rows] == [recorded.THE_LOG, *waits] and whole.rows[1][
        0
    ].note == "does not resemble the log"
    assert [name for name, _, _ in by_queue.headers] == ["Queue", "Jobs", "The log itself", "a", "b", "c"]
    assert [[cell.text for cell in row[:3]] for row in by_queue.rows[:2]] == [
        ["q0", "1", "50.00\u202fs"],
        ["q1", "1", "50.00\u202fs"],
    ]
    assert len(by_queue.rows) == recorded.MOST_QUEUES
    assert by_queue.caption.endswith("Left out: 2 of 10 queues (those with the fewest jobs) and 1 of 4 policies.")


def test_a_log_without_queues_has_one_table() -> None:
    one = recorded_waits(
        escala.simulate(escala.Workload.from_jobs({**JOBS, "queue": ["a"] * 4, "wait_s": [0.0] * 4}), "2x1").jobs
    )
    assert one is not None and len(recorded.tables({"easy": one})) == 1


def test_a_log_without_waits_has_none() -> None:
    assert recorded_waits(escala.simulate(escala.Workload.from_jobs(JOBS), "2x1").jobs) is None
