"""Google's cluster traces: events of tasks and collections, made up here in the published columns, become a job for
each run of a task."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import escala
from escala.errors import EscalaError
from escala.workload import read_workload
from tests.unit.workload.google_events import (
    CLEANED,
    EVENTS,
    GOOD,
    JOBS,
    WRONG,
    Event,
    as_json,
    of_2011,
    of_2019,
    of_collections,
    read,
    rows,
)


def test_events_of_2011(tmp_path: Path) -> None:
    log = read(tmp_path, of_2011(EVENTS))
    assert rows(log) == JOBS and log.jobs["single_node"].all()
    assert log.cleaning == CLEANED and log.first_cleaned["still running"] == "job '9-0'"
    assert log.ignored == {}
    assert log.jobs["job_name"].to_list() == ["7", "3", "3", "3", "6"] and log.jobs["user"][0] == "u7"


@pytest.mark.parametrize("words", [False, True])
def test_instance_events_of_2019_leave_alloc_sets_out(tmp_path: Path, words: bool) -> None:
    log = read(tmp_path, of_2019(EVENTS, words))
    assert rows(log) == JOBS and log.cleaning == {"alloc instance": 1, **CLEANED}
    plain = read(tmp_path, of_2019(EVENTS, words).replace("resource_request.", ""))
    assert rows(plain) == JOBS


@pytest.mark.parametrize("texts", [True, False])
def test_instance_events_of_2019_as_json(tmp_path: Path, texts: bool) -> None:
    log = read(tmp_path, as_json(EVENTS, texts))
    assert rows(log) == JOBS and log.cleaning == {"alloc instance": 1, **CLEANED}
    assert log.jobs["queue"].to_list() == ["1"] * len(JOBS) and log.read_as["format"] == "google"
    lines = as_json(EVENTS, texts).splitlines(keepends=True)
    packed = b"".join(gzip.compress("".join(part).encode()) for part in (lines[8:], ["\n"], lines[:8]))
    (tmp_path / "instance_events-000.json.gz").write_bytes(packed)
    assert rows(read_workload(tmp_path / "instance_events-000.json.gz")) == JOBS


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("texts", [True, False])
def test_collection_events_tell_of_their_tasks(tmp_path: Path, texts: bool, first: bool) -> None:
    """Before the events of instances or behind them; what an event of a task says counts first."""
    parts = [of_collections(texts), as_json(EVENTS, texts)]
    log = read(tmp_path, "".join(parts if first else parts[::-1]))
    assert rows(log) == JOBS
    assert log.cleaning == {"alloc instance": 1, **CLEANED, "note: unknown collection": 1}
    names = ("user", "group", "queue", "job_name", "executable")
    told = {row[0]: row[1:] for row in log.jobs.select("job_id", *names).rows()}
    assert told["3-0"] == told["3-0#2"] == told["3-1"] == ("v", "7", "1", "n3", "n")
    assert told["7-0"] == ("u+/=", None, "1", "7", None) and told["6-0"] == (None, None, "1", "6", None)
    assert log.ignored == {"reservations": {"jobs": 3}}
    part = read(tmp_path, "".join(parts), user="v,u+/=")
    assert set(rows(part)) == {"7-0", "3-0", "3-1", "3-0#2"} and part.cleaning["filtered out"] == 4


def test_what_instances_do_not_say_of_themselves_their_collection_says(tmp_path: Path) -> None:
    bare = [json.loads(line) for line in as_json(EVENTS).splitlines()]
    bare = [
        {name: value for name, value in event.items() if name not in ("priority", "scheduling_class")} for event in bare
    ]
    alloc = {"time": "1", "type": "0", "collection_id": "7", "collection_type": "1"}
    text = "".join(json.dumps(event) + "\n" for event in bare if event["collection_id"] != "70")
    log = read(tmp_path, of_collections(True) + text)
    assert log.jobs["queue"].to_list() == [None, "2", "2", "2", None] and log.ignored["priorities"] == {
        "jobs": 4,
        "values": 2,
    }
    without = text.replace('"collection_type": "0", ', "")
    assert "7-0" not in rows(read(tmp_path, json.dumps(alloc) + "\n" + without))


def test_names_of_collections_in_csv(tmp_path: Path) -> None:
    header, *lines = of_2019(EVENTS).splitlines()
    text = "\n".join(
        [
            f"{header},user,collection_name,alloc_collection_id",
            *(f"{line},me,job,{k % 2}" for k, line in enumerate(lines)),
        ]
    )
    log = read(tmp_path, text + "\n")
    assert rows(log) == JOBS and set(log.jobs["user"]) == {"me"} and set(log.jobs["job_name"]) == {"job"}
    with_collections = f"{text}\n5,0,3,2,1,,,,0,,,\n"
    assert read(tmp_path, with_collections).cleaning["note: unknown collection"] == 2


def test_an_attempt_that_is_not_submitted_again_waits_from_the_end_of_the_last(tmp_path: Path) -> None:
    again: list[Event] = [
        (10, "SUBMIT", 1, 0, "0.1", "0.1"),
        (11, "SCHEDULE", 1, 0, "0.1", "0.1"),
        (20, "EVICT", 1, 0, "0.1", "0.1"),
    ]
    again += [(25, "SCHEDULE", 1, 0, "0.1", "0.1"), (31, "FINISH", 1, 0, "0.1", "0.1")]
    log = read(tmp_path, of_2019(again))
    assert [row[:2] + row[4:] for row in rows(log).values()] == [
        (0.0, 9.0, 1.0, "CANCELLED"),
        (10.0, 6.0, 5.0, "COMPLETED"),
    ]


def test_parts_of_a_trace_stand_one_behind_the_other_packed(tmp_path: Path) -> None:
    """As the parts are published, in any order: events are sorted by time."""
    lines = of_2011(EVENTS).splitlines(keepends=True)
    parts = [gzip.compress("".join(part).encode()) for part in (lines[8:], lines[:8])]
    (tmp_path / "events.csv.gz").write_bytes(b"".join(parts))
    assert rows(read_workload(tmp_path / "events.csv.gz")) == JOBS


def test_a_part_that_begins_in_the_middle(tmp_path: Path) -> None:
    log = read(tmp_path, of_2011(EVENTS[4:]))
    assert log.cleaning["no submission time"] == 2 and set(rows(log)) == {"3-0", "6-0"}


def test_parts_of_a_log(tmp_path: Path) -> None:
    assert set(rows(read(tmp_path, of_2011(EVENTS), user="u3", until=650))) == {"3-0", "3-1"}


def test_machines_are_thousandths_too(tmp_path: Path) -> None:
    log = read(tmp_path, of_2011(EVENTS))
    machine = "{name: cell, nodes: [{count: 2, cores: 500, resources: {memory: 250}}]}"
    (tmp_path / "cell.yaml").write_text(machine)
    done = escala.simulate(log, tmp_path / "cell.yaml", "easy")
    assert done.summary()["mean_wait_s"] == 0.0
    with pytest.raises(EscalaError, match="demands 'memory', which platform"):
        escala.simulate(log, "2x500", "easy")


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_bad_input_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(EscalaError, match=words) as told:
        read(tmp_path, text)
    assert "\n" not in str(told.value) and "events.csv" in str(told.value)


def test_a_named_format_refuses_other_files(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="need one column time, and have 0"):
        read(tmp_path, "a,b\n1,2\n", format="google")
    with pytest.raises(EscalaError, match="is read as google, which takes no unit="):
        read(tmp_path, GOOD, unit="ms")
