"""Google's cluster traces, made up in the published columns: events of tasks and collections, right and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from escala.workload import read_workload

US = 1_000_000
AFTER = 2**63 - 1
CODES = {
    "SUBMIT": 0,
    "SCHEDULE": 1,
    "EVICT": 2,
    "FAIL": 3,
    "FINISH": 4,
    "KILL": 5,
    "LOST": 6,
    "UPDATE_PENDING": 7,
    "UPDATE_RUNNING": 8,
}
LATER_CODES = (
    "SUBMIT",
    "QUEUE",
    "ENABLE",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
)
Event = tuple[float, str, int, int, str, str]

EVENTS: list[Event] = [  # seconds, event, job, task, cores, memory
    (0, "SUBMIT", 7, 0, "0.5", "0.25"),  # runs when the trace begins
    (0, "SCHEDULE", 7, 0, "0.5", "0.25"),
    (600, "SUBMIT", 3, 0, "0.0125", "0.0159"),  # is evicted, and fails when it runs again
    (600, "SUBMIT", 3, 1, "0.03125", ""),
    (601, "SCHEDULE", 3, 0, "0.0125", "0.0159"),
    (605, "SCHEDULE", 3, 1, "0.03125", ""),
    (650, "UPDATE_RUNNING", 3, 1, "0.9", "0.9"),  # is not looked at
    (700, "EVICT", 3, 0, "0.0125", "0.0159"),
    (700, "SUBMIT", 3, 0, "0.0125", "0.0159"),
    (710, "FINISH", 3, 1, "0.03125", ""),
    (720, "SCHEDULE", 3, 0, "0.0125", "0.0159"),
    (800, "FAIL", 3, 0, "0.0125", "0.0159"),
    (800, "KILL", 7, 0, "0.5", "0.25"),
    (900, "SUBMIT", 9, 0, "0", "0.01"),  # runs when the trace ends
    (901, "SCHEDULE", 9, 0, "0", "0.01"),
    (950, "SUBMIT", 8, 0, "0.1", "0.01"),  # never starts
    (960, "SUBMIT", 6, 0, "0", "0.01"),  # asks for nothing
    (960, "SCHEDULE", 6, 0, "0", "0.01"),
    (970, "LOST", 6, 0, "0", "0.01"),
]

JOBS = {  # id -> submission, runtime, cores, memory, wait, status
    "7-0": (0.0, 800.0, 500, 250, None, "CANCELLED"),
    "3-0": (600.0, 99.0, 13, 16, 1.0, "CANCELLED"),
    "3-1": (600.0, 105.0, 32, 0, 5.0, "COMPLETED"),
    "3-0#2": (700.0, 80.0, 13, 16, 20.0, "FAILED"),
    "6-0": (960.0, 10.0, 1, 10, 0.0, None),
}

CLEANED = {
    "never started": 1,
    "still running": 1,
    "note: began before the trace": 1,
    "no request": 5,
    "fractional processors": 3,
    "repeated id": 1,
}

HEADER = (
    "time,type,collection_id,scheduling_class,priority,instance_index,resource_request.cpus,resource_request.memory,"
    "collection_type"
)


def of_2011(events: list[Event]) -> str:
    rows = [
        f"{round(at * US)},,{job},{task},,{CODES[kind]},u{job},1,9,{cpus},{memory},0.001,0"
        for at, kind, job, task, cpus, memory in events
    ]
    return "".join(f"{row}\n" for row in [*rows, f"{AFTER},,9,0,,4,u9,1,9,0,0.01,0.001,0"])


def of_2019(events: list[Event], words: bool = False) -> str:
    def code(kind: str) -> Any:
        return kind if words else LATER_CODES.index(kind)

    rows = [
        f"{round(at * US)},{code(kind)},{job},1,9,{task},{cpus},{memory},0"
        for at, kind, job, task, cpus, memory in events
    ]
    allocs = [f"{600 * US},{code(kind)},70,1,9,0,0.5,0.5,1" for kind in ("SUBMIT", "SCHEDULE", "KILL")]
    return "\n".join([HEADER, *rows, *allocs]) + "\n"


def as_json(events: list[Event], texts: bool = True) -> str:
    """As the archive has them. texts: whole numbers stand as texts."""

    def event(at: int, kind: int, job: int, task: int, asked: dict[str, float], collection: int = 0) -> dict[str, Any]:
        whole = {
            "time": at,
            "type": kind,
            "collection_id": job,
            "scheduling_class": 1,
            "priority": 9,
            "instance_index": task,
        }
        whole |= {"collection_type": collection, "machine_id": 5}
        return {
            **{name: str(value) if texts else value for name, value in whole.items()},
            "resource_request": asked,
            "constraint": [],
        }

    rows = [
        event(
            round(at * US),
            LATER_CODES.index(kind),
            job,
            task,
            {n: float(v) for n, v in (("cpus", cpus), ("memory", memory)) if v},
        )
        for at, kind, job, task, cpus, memory in events
    ]
    rows += [event(600 * US, code, 70, 0, {"cpus": 0.5, "memory": 0.5}, 1) for code in (0, 3, 7)]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def read(folder: Path, text: str, **options: Any) -> Any:
    (folder / "events.csv").write_text(text)
    return read_workload(folder / "events.csv", **options)


def rows(log: Any) -> dict[str, tuple[Any, ...]]:
    return {
        row[0]: row[1:]
        for row in log.jobs.select(
            "job_id", "submit_s", "runtime_s", "cores", "demand_memory", "wait_s", "status"
        ).rows()
    }


COLLECTIONS: list[dict[str, Any]] = [  # job 6 is not among them
    {"time": 0, "type": 0, "collection_id": 7, "user": "u+/=", "priority": 200, "parent_collection_id": 0},
    {
        "time": 600 * US,
        "type": 0,
        "collection_id": 3,
        "scheduling_class": 2,
        "collection_type": 0,
        "priority": 1,
        "user": "v",
    },
    {
        "time": 601 * US,
        "type": 3,
        "collection_id": 3,
        "user": "w",
        "collection_name": "n3",
        "collection_logical_name": "n",
    },
    {
        "time": 800 * US,
        "type": 5,
        "collection_id": 3,
        "alloc_collection_id": 70,
        "parent_collection_id": 7,
        "max_per_machine": 1,
    },
    {
        "time": 900 * US,
        "type": 0,
        "collection_id": 9,
        "user": "x",
        "start_after_collection_ids": ["3"],
        "vertical_scaling": 3,
    },
]


def of_collections(texts: bool) -> str:
    rows = (
        {name: str(value) if texts and isinstance(value, int) else value for name, value in row.items()}
        for row in COLLECTIONS
    )
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


GOOD = of_2011(EVENTS)
JSON = as_json(EVENTS)
EVENT = JSON.splitlines()[3]
WRONG = [
    (
        GOOD.replace("\n700000000,,3,0,,0,", "\n700000000,,3,0,,9,"),
        r"line 9: type is '9': one of SUBMIT, SCHEDULE, .* is needed",
    ),
    (GOOD.replace("\n710000000,", "\n7.1e8,"), r"line 10: time is '7.1e8': whole microseconds, 0 or more is needed"),
    (GOOD.replace("\n710000000,", "\n-1,"), "line 10: time is '-1'"),
    (GOOD.replace("\n710000000,", "\n,"), "line 10: time is ''"),
    (GOOD.replace("\n710000000,,", "\n710000000,,,,,,,"), "line 10: not a readable table"),
    (of_2019(EVENTS).replace("resource_request.cpus", "cores"), "need one column cpus, and have 0"),
    (of_2019(EVENTS).replace("resource_request.memory", "cpus"), "need one column cpus, and have 2"),
    (of_2019(EVENTS).replace(f"{650 * US},10,", f"{650 * US},11,"), "line 8: type is '11'"),
    (
        GOOD.replace(",0.0159,", ",1e300,")
        .replace(",0.25,", ",nan,")
        .replace(",0.01,", ",-1,")
        .replace("0.03125,,", "0.03125,x,"),
        "no job is left",
    ),
    (
        GOOD.replace(",0.0125,", ",1e300,")
        .replace(",0.03125,", ",inf,")
        .replace(",0.5,", ",x,")
        .replace(",0,0.01", ",,0.01"),
        "no processors",
    ),
    (
        JSON.replace(f'"{650 * US}","type":"10"', f'"{650 * US}","type":"11"'),
        "line 7: type is '11': one of SUBMIT, QUEUE, .* is needed",
    ),
    (JSON.replace(f'"{650 * US}"', '"6.5e8"'), r"line 7: time is '6.5e8': whole microseconds, 0 or more is needed"),
    (
        as_json(EVENTS, False).replace(f":{650 * US},", ":650000000.5,"),
        "line 7: time is '?6.*, and a whole number elsewhere",
    ),
    (JSON.replace('"cpus":0.1,', '"cpus":{},'), "line 16: cpus is .*, and a number elsewhere"),
    (JSON.replace(f'"time":"{650 * US}",', ""), "line 7: time is ''"),
    (f"{EVENT}\n\n{EVENT.replace('600000000', 'x')}\n", "line 3: time is 'x'"),
    (JSON.replace('"priority":"9"', '"priority":', 3), "line 1: not valid JSON"),
    (JSON[:-30], "line 22: not valid JSON"),
    (f"{EVENT}\n[1]\n", "line 2: is no JSON object: give instance_events, an event a line"),
    ("\n".join([EVENT, EVENT.replace('{"cpus":0.03125}', "5")]), "line 2: resource_request is no object"),
    (
        JSON.replace('"instance_index"', '"index"'),
        "no event names its instance_index: of the trace's tables give instance_events",
    ),
    (JSON.replace('"time"', '"at"'), "line 1: time is ''"),
    (
        JSON.replace('"collection_type"', '"kind"').replace('"priority"', '"class"').replace('"type"', '"event"'),
        "line 1: type is ''",
    ),
    (
        of_collections(True),
        "no event names its instance_index: .* with collection_events behind them if you like, which alone have no",
    ),
    (
        JSON + of_collections(True).replace('"600000000"', '"x"'),
        "line 24: time is 'x': whole microseconds, 0 or more is needed",
    ),
    (JSON + of_collections(True).replace('"type":"3"', '"type":"30"'), "line 25: type is '30'"),
    (JSON + of_collections(True)[:-9], "line 27: not valid JSON"),
    (
        JSON.replace('"memory":0.0159', '"memory":1e300')
        .replace('"memory":0.25', '"memory":-5')
        .replace("0.01}", "-1}")
        .replace("0.03125}", '0.03125,"memory":-1}'),
        "no job is left",
    ),
    (JSON.replace('"resource_request":{', '"resources":{'), "no job is left|no processors"),
    (f"{EVENT[:20]}\0{EVENT[20:]}\n", "a byte 0 in a text|is binary"),
]
