"""Batsim's workload JSON some jobs at a time. Its profiles are all in memory, as texts: they may stand behind the jobs,
so the file is read twice."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from escala.reading import HALF, characters
from escala.workload.batsim import BatsimLog, Document, check_speed, columns_of, no_jobs, parts_of
from escala.workload.filters import Keep
from escala.workload.json_list import parts
from escala.workload.slurm_json import is_json

OPENED = {"jobs": "[", "profiles": "{"}


def batsim_pieces(path: Path, speed: float | None, keep: Keep, rows: int) -> Iterator[BatsimLog]:
    """What `read_batsim` gives, so many jobs at a time."""
    if speed is not None:
        check_speed(speed)
    if not is_json(path):
        parts_of([], path)
    said, columns, profiles = dict[str, Any](), dict[str, str](), dict[str, str]()
    keys = set[str]()  # of jobs until now
    for part in parts(path, OPENED):
        if part.name is None:
            opened = {"[": list, "{": dict}.get(part.entry.text)
            said[part.key] = part.entry.value if opened is None else opened()
        elif part.key == "profiles":
            profiles[part.name] = part.entry.text
        elif isinstance(part.entry.value, dict) and part.entry.value.keys() - keys:
            keys |= part.entry.value.keys()
            columns = columns_of([part.entry.value], columns)
    parts_of(said, path)
    document = Document(path, said, _Texts(profiles), columns)
    jobs = (part.entry.value for part in parts(path, OPENED) if part.key == "jobs" and part.name is not None)
    first = 0
    while some := list(itertools.islice(jobs, rows)):
        yield document.log(some, first, speed, keep)
        first += len(some)
    if not first:
        raise no_jobs(path)


class _Texts(Mapping[str, Any]):
    """Values by name, kept as their texts, which take less."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> Any:
        text = self._texts[name]
        value = json.loads(text)
        return characters(value) if HALF.search(text) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
