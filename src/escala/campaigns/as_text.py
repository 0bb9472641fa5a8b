"""Runs, logs and platforms as plain text, see `escala.engines.by_text`."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from escala.campaigns.definition import Log
from escala.campaigns.runs import Run
from escala.errors import EscalaError, quoted
from escala.options import Options
from escala.platform import Platform
from escala.workload import CleaningRules, Workload

ABOUT = ("name", "origin_s", "max_cores", "source", "cleaning", "first_cleaned", "ignored")
"""What is written of a workload beside its jobs."""


def written(runs: Sequence[Run]) -> str:
    """The runs as JSON; what several share stands there once. EscalaError for a setting of a log that is no plain
    value."""
    tables: dict[str, dict[str, int]] = {"logs": {}, "platforms": {}, "options": {}}

    def place(table: str, told: Any) -> int:
        text = json.dumps(told, default=_spec)
        return tables[table].setdefault(text, len(tables[table]))

    specs = {id(machine): machine.spec() for machine in {id(run.platform): run.platform for run in runs}.values()}
    rows = [
        [
            place("logs", [run.log.name, run.log.path, run.log.generator, run.log.settings]),
            place("platforms", specs[id(run.platform)]),
            place("options", run.options.told()),
            *(run.scheduler, run.shutdown, run.seed, run.digest, run.key, run.predictors, run.policies, run.unheeded),
        ]
        for run in runs
    ]
    return json.dumps({**{name: [json.loads(text) for text in table] for name, table in tables.items()}, "runs": rows})


def read(text: str) -> list[Run]:
    """The runs of such a text."""
    told = json.loads(text)
    logs = [Log(*entry) for entry in told["logs"]]
    platforms = [Platform.from_spec(spec) for spec in told["platforms"]]
    options = [Options(**given) for given in told["options"]]
    return [
        Run(logs[i], platforms[j], scheduler, shutdown, options[k], *rest)
        for i, j, k, scheduler, shutdown, *rest in told["runs"]
    ]


def _spec(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, CleaningRules):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise EscalaError(
        f"{quoted(value)} cannot be sent to another machine as text: give plain values (texts, numbers, lists)"
    )


def values_written(told: Any) -> str:
    """Plain values, workloads and platforms as JSON: what is there several times stands there once. Tuples become
    lists."""
    shared: list[Any] = []
    places: dict[int, int] = {}

    def place(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if not isinstance(value, Workload | Platform):
            return _spec(value)
        if id(value) not in places:
            places[id(value)] = len(shared)
            shared.append(
                {"platform": value.spec()} if isinstance(value, Platform) else {"workload": _workload_spec(value)}
            )
        return {"$": places[id(value)]}

    text = json.dumps(told, default=place)
    return json.dumps([shared, json.loads(text)])


def values_read(text: str) -> Any:
    """The values of such a text."""
    shared, told = json.loads(text)
    made = [
        Platform.from_spec(one["platform"]) if "platform" in one else _workload_of(one["workload"]) for one in shared
    ]
    return json.loads(json.dumps(told), object_hook=lambda one: made[one["$"]] if "$" in one else one)


def _workload_spec(log: Workload) -> dict[str, Any]:
    stream = io.BytesIO()
    log.jobs.write_ipc(stream, compression="zstd", compat_level=pl.CompatLevel.oldest())
    return {"jobs": base64.b64encode(stream.getbuffer()).decode(), **{name: getattr(log, name) for name in ABOUT}}


def _workload_of(told: Mapping[str, Any]) -> Workload:
    jobs = pl.read_ipc(io.BytesIO(base64.b64decode(told["jobs"])))
    return Workload(jobs, **{name: told[name] for name in ABOUT})
