"""Replays of one log under many schedulers, side by side, each kept as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.platform import Platform
from escala.policies.pairs import Named, Told, digest_of, folder_of, play
from escala.policies.run import simulate
from escala.policy import name_of
from escala.tuning.measures import Floats, Jobs
from escala.workload import Workload
from escala.writing import Kept

PAST, WHOLE = "past", "whole"
COLUMN = "wait_s"


class KeptWaits:
    """Finished replays in the work folder of a `writing.output_folder(..., keeps=True)`: the waits of each in a file.

    work: the folder. about: what all replays depend on besides the jobs, the platform and the options. identity: of policies whose names
    do not say all of them, name -> the hash of what they are.
    """

    def __init__(self, work: Path, about: Mapping[str, Any], identity: Mapping[str, str] | None = None) -> None:
        self._kept, self._work, self._about, self._identity = Kept(work), work, dict(about), dict(identity or {})
        self._requests: dict[str, Any] = {}
        self._found: set[str] = set()
        self.resumed = 0
        """Replays that an interrupted run had finished."""
        self.done = 0

    def begin(self, parts: Mapping[str, Workload], names: Iterable[str], platform: Platform, options: Mapping[str, Any]) -> None:
        """Find what was kept for these replays, and forget all else. parts: `PAST` and `WHOLE` -> the jobs."""
        about = {**self._about, "platform": platform.spec(), "options": dict(options)}
        for part, log in parts.items():
            jobs = digest_of(log)
            for name in names:
                request = {**about, "jobs": jobs, "scheduler": name, "identity": self._identity.get(name)}
                self._requests[_file(part, name)] = request
        self._found = set(self._kept.only(self._requests))
        self.done = self.resumed = len(self._found)

    def of(self, part: str, names: Sequence[str]) -> PartKept:
        """The replays of one part."""
        return PartKept(self, part, names)

    def has(self, file: str) -> bool:
        """Was this replay kept?"""
        return file in self._found

    def read(self, file: str) -> Floats:
        """Waits that were kept."""
        return pl.read_parquet(self._work / file)[COLUMN].to_numpy()

    def write(self, file: str, waits: Floats) -> None:
        """Keep the waits of a replay that is finished."""
        self._kept.keep(file, self._requests[file], pl.DataFrame({COLUMN: waits}).write_parquet)
        self.done += 1

    def drop(self) -> None:
        """Remove the replays: the work is done."""
        for file in self._requests:
            (self._work / file).unlink(missing_ok=True)


class PartKept:
    """The kept replays of one part, as `policies.pairs.play` takes them."""

    def __init__(self, kept: KeptWaits, part: str, names: Sequence[str]) -> None:
        self._kept, self._part = kept, part
        self.found = [name for name in names if kept.has(_file(part, name))]

    def load(self, name: str) -> Floats:
        """The waits of a replay that was kept."""
        return self._kept.read(_file(self._part, name))

    def keep(self, name: str, result: Floats) -> None:
        """Keep a replay that is finished."""
        self._kept.write(_file(self._part, name), result)


def _file(part: str, name: str) -> str:
    return f"{part} {folder_of(name)}.parquet"


def replay(
    log: Workload,
    platform: Platform,
    schedulers: Sequence[Any],
    jobs: Jobs,
    options: Mapping[str, Any],
    *,
    keep: PartKept | None = None,
    progress: Told | None = None,
    threads: int | None = None,
) -> dict[str, Floats]:
    """Waits of the jobs under each scheduler, s, by its name."""

    def run(pair: Named) -> Floats:
        result = simulate(log, platform, pair.scheduler, record=False, **options)
        return result.jobs[COLUMN].to_numpy()[jobs.row]

    return play([Named(name_of(one), one, "never") for one in schedulers], run, keep, progress, threads)


Begin = Callable[[str], Callable[[float], None] | None]
"""Called with what is done now; gives what to call with the share of it that is done, or None where nobody watches."""


def watching(begin: Begin | None, what: str) -> Told | None:
    """The progress of one piece of work."""
    share = None if begin is None else begin(what)
    return None if share is None else lambda _, done: share(done)
