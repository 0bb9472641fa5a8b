"""Replays of one log under many schedulers, side by side, each kept as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from escala.engines import Each
from escala.engines.again import Share
from escala.engines.threads import Threads
from escala.options import Options
from escala.parquet import note_written, read_table
from escala.platform import Platform
from escala.policies.kept_pieces import KeptPieces
from escala.policies.pairs import Begin, Named, Told, play
from escala.policies.run import simulate
from escala.policy import name_of
from escala.tuning.measures import Floats, Jobs, jobs_of
from escala.workload import Workload
from escala.writing import Pieces

PAST, WHOLE = "past", "whole"
COLUMN = "wait_s"
T = TypeVar("T")


def replay(
    log: Workload,
    platform: Platform,
    schedulers: Sequence[Any],
    jobs: Jobs,
    options: Mapping[str, Any],
    *,
    part: str = WHOLE,
    keep: Pieces | None = None,
    progress: Told | None = None,
    each: Each | Share | None = None,
) -> dict[str, Floats]:
    """Waits of the jobs under each scheduler, s, by its name. part: what of a log these replays are of; keep: where
    they go."""

    def run(pair: Named) -> Floats:
        result = simulate(log, platform, pair.scheduler, record=False, **options)
        return result.jobs[COLUMN].to_numpy()[jobs.row]

    return play(
        [Named(name_of(one), one, "never") for one in schedulers], run, kept_waits(keep, f"{part} "), progress, each
    )


def kept_waits(pieces: Pieces | None, of: str) -> KeptPieces[Floats] | None:
    """Runs whose results are numbers, such as a wait of each job. of: what stands before their names."""
    return None if pieces is None else KeptPieces(pieces, of, _write, _waits)


def _write(path: Path, waits: Floats) -> None:
    pl.DataFrame({COLUMN: waits}).write_parquet(path)
    note_written(path)


def _waits(path: Path) -> Floats:
    return read_table(path)[COLUMN].to_numpy()


def watching(begin: Begin | None, what: str) -> Told | None:
    """The progress of one piece of work."""
    share = None if begin is None else begin(what)
    return None if share is None else lambda _, done: share(done)


@dataclass(frozen=True)
class Replays:
    """How replays are made. engine: where; of: what stands before the names of what is kept."""

    machine: Platform
    how: Options
    options: Mapping[str, Any]
    keep: Pieces | None
    begin: Begin | None
    engine: Each | Share | None
    of: str = ""

    def __reduce__(self) -> Any:
        """What another process needs to make one: it keeps nothing, tells nobody, and has one processor."""
        return Replays, (self.machine, self.how, self.options, None, None, Threads(1), self.of)

    def jobs(self, log: Workload) -> Jobs:
        """The jobs of a log as they run here."""
        return jobs_of(log, self.machine, self.how)

    def waits(self, log: Workload, jobs: Jobs, scheduler: Any) -> Floats:
        """Waits of the jobs under one scheduler, s: a replay that is not kept."""
        return simulate(log, self.machine, scheduler, record=False, **self.options).jobs[COLUMN].to_numpy()[jobs.row]

    def each(self, schedulers: Sequence[Any], run: Callable[[Any], T]) -> list[T]:
        """What `run` gives for each scheduler, side by side, for work of a moment: it stays in this process."""
        here = self.engine if self.engine is None or isinstance(self.engine, Threads) else Threads(1)
        found = play(
            [Named(str(k), one, "never") for k, one in enumerate(schedulers)],
            lambda pair: run(pair.scheduler),
            each=here,
        )
        return list(found.values())

    def play(self, part: str, log: Workload, schedulers: Sequence[Any], what: str) -> tuple[Jobs, dict[str, Floats]]:
        """(jobs, waits under each scheduler)."""
        jobs = self.jobs(log)
        watched, kept = watching(self.begin, what), self.keep
        named, how = self.of + part, self.options
        waits = replay(
            log, self.machine, schedulers, jobs, how, part=named, keep=kept, progress=watched, each=self.engine
        )
        return jobs, waits
