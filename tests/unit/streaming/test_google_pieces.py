"""Google's events in pieces: the jobs are those of the events read whole, wherever the events of a task stand."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.streaming import stream
from escala.workload import read_workload
from tests.unit.streaming.alike import same
from tests.unit.streaming.forms import small_chunks
from tests.unit.streaming.test_convert import _same
from tests.unit.workload.google_events import HEADER, LATER_CODES, US, WRONG, Event, of_2011

FORMS = ("2011.csv", "2019.csv", "2019.json")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 8000)  # fifty events or more


def _events(seed: int = 1, jobs: int = 90, submitted: float = 1.0) -> list[Event]:
    """Tasks that are evicted and run again, with equal moments, updates, and some that never start or end. submitted:
    how many of those that run again are submitted again."""
    draw, begun, events = random.Random(seed), 0, list[Event]()
    for job in range(jobs):
        begun += draw.choice((0, 0, 5, 40)) if job > 3 else 0
        for task in range(draw.randrange(1, 5)):
            at, asked = float(begun), (f"{draw.randrange(1, 900) / 1e4}", draw.choice(("", f"{draw.random() / 9:.4f}")))
            for turn in range(draw.choice((1, 1, 1, 2, 3))):
                if turn == 0 or draw.random() < submitted:
                    events.append((at, "SUBMIT", job, task, *asked))
                at += draw.choice((0, 1, 30))
                if draw.random() < 0.05:
                    break
                events.append((at, "SCHEDULE", job, task, *asked))
                if draw.random() < 0.2:
                    events.append((at, "UPDATE_RUNNING", job, task, "0.9", "0.9"))
                at += draw.choice((0, 7, 200, 2000))
                if draw.random() < 0.05:
                    break
                events.append((at, draw.choice(("EVICT", "FAIL", "FINISH", "KILL", "LOST")), job, task, *asked))
                at += draw.choice((0, 0, 3))
    return sorted(events, key=lambda event: event[0])


def _collections(events: list[Event], seed: int = 2) -> list[dict[str, Any]]:
    """What is known of most of them, in several events."""
    draw, found = random.Random(seed), list[dict[str, Any]]()
    for job in sorted({event[2] for event in events}):
        for at in range(draw.randrange(3)):
            about = {"user": f"u{draw.randrange(4)}", "collection_name": f"n{job}", "alloc_collection_id": job % 3}
            said = {name: value for name, value in about.items() if draw.random() < 0.6}
            found.append({"time": at * US, "type": 0, "collection_id": job, **said})
    return found


def _text(form: str, events: list[Event], before: bool = False) -> str:
    if form == "2011.csv":
        return of_2011(events)
    if form == "2019.csv":
        rows = []
        for at, kind, job, task, cpus, memory in events:
            event = f"{round(at * US)},{LATER_CODES.index(kind)},{job},{job % 3},{task % 2},{task}"
            rows.append(f"{event},{cpus},{memory},{job % 9 == 4:d}")
        return "\n".join([HEADER, *rows]) + "\n"
    lines = []
    for at, kind, job, task, cpus, memory in events:
        asked = {name: float(value) for name, value in (("cpus", cpus), ("memory", memory)) if value}
        about = {"scheduling_class": job % 3, "instance_index": task, "resource_request": asked}
        lines.append({"time": round(at * US), "type": LATER_CODES.index(kind), "collection_id": job, **about})
    whole = [*_collections(events), *lines] if before else [*lines, *_collections(events)]
    return "".join(json.dumps(line) + "\n" for line in whole)


@pytest.fixture
def cell(tmp_path: Path) -> escala.Platform:
    (tmp_path / "cell.yaml").write_text("{name: cell, nodes: [{count: 4, cores: 100, resources: {memory: 120}}]}")
    return escala.read_platform(tmp_path / "cell.yaml")


@pytest.mark.parametrize("order", ["as logged", "any", "packed parts", "collections first"])
@pytest.mark.parametrize("form", FORMS)
def test_the_jobs_are_those_of_the_events_read_whole(
    form: str, order: str, tmp_path: Path, cell: escala.Platform
) -> None:
    events, path = _events(), tmp_path / form
    text = _text(form, events, before=order == "collections first")
    if order == "any":
        head, lines = (
            (text[: text.index("\n") + 1], text.splitlines(True)[1:])
            if form == "2019.csv"
            else ("", text.splitlines(True))
        )
        random.Random(4).shuffle(lines)
        text = head + "".join(lines)
    half = text.index("\n", len(text) // 2) + 1
    packed = gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode())
    path.write_bytes(packed if order == "packed parts" else text.encode())
    rows = _same(path, jobs=80)
    assert rows.height > 150 and rows["job_id"].str.contains("#3").any()
    told = read_workload(path).cleaning
    assert {"never started", "still running", "note: began before the trace", "repeated id"} <= set(told)
    assert ("note: unknown collection" in told) == (form == "2019.json")
    assert same(path, cell, "never", jobs=60, oversized="drop").height == rows.height


@pytest.mark.parametrize("form", FORMS)
def test_a_task_that_is_not_submitted_again_comes_when_it_ended(
    form: str, tmp_path: Path, cell: escala.Platform
) -> None:
    """Earlier than its first event: records are then in another order than submissions."""
    (tmp_path / form).write_text(_text(form, _events(7, submitted=0.5)))
    assert (
        same(tmp_path / form, cell, "never", jobs=30, moved=True, oversized="drop").height
        == _same(tmp_path / form).height
    )


@pytest.mark.parametrize("part", [{"user": "u1,u3"}, {"partition": "2"}, {"since": 900.0, "until": 1500.0}])
def test_parts_of_a_trace(part: dict[str, Any], tmp_path: Path, cell: escala.Platform) -> None:
    (tmp_path / "events.json").write_text(_text("2019.json", _events(5, jobs=140)))
    rows = _same(tmp_path / "events.json", jobs=80, **part)
    assert 20 < rows.height < 300
    assert same(tmp_path / "events.json", cell, "never", jobs=60, reading=part, oversized="drop").height == rows.height


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_errors_are_those_of_the_events_read_whole(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(text)
    with pytest.raises(EscalaError) as whole:
        read_workload(tmp_path / "events.csv")
    with pytest.raises(EscalaError, match=words) as pieces:
        stream(tmp_path / "events.csv", "4x1000", out=tmp_path / "out")
    assert str(pieces.value) == str(whole.value) and not (tmp_path / "out").exists()
