"""Runs as plain text, for processes that no object reaches: JSON, never a pickle, so that reading it can run nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from escala.campaigns.definition import Log
from escala.campaigns.runs import Run
from escala.errors import EscalaError, quoted
from escala.options import Options
from escala.platform import Platform
from escala.workload import CleaningRules


def written(runs: Sequence[Run]) -> str:
    """The runs as JSON; what several share stands there once. EscalaError for a setting of a log that is no plain value."""
    tables: dict[str, dict[str, int]] = {"logs": {}, "platforms": {}, "options": {}}

    def place(table: str, told: Any) -> int:
        text = json.dumps(told, default=_plain)
        return tables[table].setdefault(text, len(tables[table]))

    specs = {id(machine): machine.spec() for machine in {id(run.platform): run.platform for run in runs}.values()}
    rows = [
        [
            place("logs", [run.log.name, run.log.path, run.log.generator, run.log.settings]),
            place("platforms", specs[id(run.platform)]),
            place("options", run.options.told()),
            *(run.scheduler, run.shutdown, run.seed, run.digest, run.key),
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
    return [Run(logs[i], platforms[j], scheduler, shutdown, options[k], *rest) for i, j, k, scheduler, shutdown, *rest in told["runs"]]


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, CleaningRules):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise EscalaError(f"{quoted(value)} cannot be sent to another machine as text: give plain values (texts, numbers, lists)")
