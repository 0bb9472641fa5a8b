"""The names of engines. Each is a function that gives every piece of work with what a job found of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from escala.engines import on_ray, on_slurm, pool
from escala.engines.again import Again, Share
from escala.engines.threads import Threads
from escala.errors import EscalaError, quoted
from escala.extras import need

Each = Callable[[Sequence[Any], Callable[[Any], dict[str, Any]]], Iterator[tuple[Any, dict[str, Any]]]]
"""Gives every piece of work, such as a run, with what a job gives of it. A piece whose process ends before its time is
tried once more, and then has an `error`. Pieces have a `key`, each another one."""
Where = str | Again | Share | None
"""The name of an engine for replays, or what a command is given for Slurm (`escala.cli.elsewhere`)."""
MOST = 1024
_ENGINE = re.compile(
    r"(?P<local>local(:(?P<n>[0-9]{1,9}))?)|ray(:(?P<address>[^\s:/]+:[0-9]{1,5}))?|(?P<slurm>slurm)(:(?P<options>.+))?"
)


def slurm_in(on: str | None) -> str | None:
    """The options of sbatch in the name of an engine, "" for none; None where it is not Slurm. EscalaError for an
    unknown one."""
    found = None if on is None else _read(on)
    return None if found is None or found["slurm"] is None else found["options"] or ""


def engine_of(on: str, folder: Path, tasks: int = on_slurm.TASKS) -> AbstractContextManager[Each]:
    """The engine of a name, open inside the block: `local` a process for each core, `local:N` N of them, `ray` Ray on
    this machine (or the cluster that RAY_ADDRESS names), `ray:HOST:PORT` a cluster, `slurm[:KEY=VALUE...]` an array of
    jobs that work in the folder, of so many tasks if it says no other number. EscalaError for any other name; on
    entering, where no cluster answers."""
    found = _read(on)
    if found["slurm"] is not None:
        return on_slurm.arrays(found["options"] or "", folder, tasks)
    if found["local"] is None:
        return _cluster(found)
    n = _processes(on, found)
    return nullcontext(lambda pieces, job: pool.each(pieces, n, job))


def checked(on: str | None = None, jobs: int | None = None) -> None:
    """EscalaError for an engine that there is none of, Ray where it is not installed, jobs below 1, and both
    together."""
    if jobs is not None:
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
            raise EscalaError(f"jobs={jobs!r} (--jobs): give the number of replays to run side by side, at least 1")
        if on is not None:
            raise EscalaError(
                f"on={quoted(on)} (--on) and jobs={jobs} (--jobs): give one of the two; --jobs {jobs} is --on "
                f"local:{jobs}"
            )
    elif on is not None:
        found = _read(on)
        if found["slurm"] is not None:
            on_slurm.options_of(found["options"] or "")
        elif found["local"] is None:
            need("--on ray", "ray")


def replays_on(on: Where = None, jobs: int | None = None) -> AbstractContextManager[Each | Share]:
    """The engine for replays of one log that is in memory, whose results are tables: `local` and `local:N` are threads
    of this process, `ray` as `engine_of` has it. jobs: the N of `local:N`, where no engine is named. EscalaError as
    there, and for the name of Slurm."""
    if isinstance(on, Again | Share):
        return nullcontext(on)
    if jobs is not None:
        checked(on, jobs)
        return nullcontext(Threads(jobs))
    on = "local" if on is None else on
    found = _read(on)
    if found["slurm"] is not None:
        raise EscalaError(on_slurm.TAKES)
    return _cluster(found) if found["local"] is None else nullcontext(Threads(_processes(on, found)))


def _read(on: str, known: str = "local, local:N for N processes, ray, ray:HOST:PORT, or slurm") -> re.Match[str]:
    found = _ENGINE.fullmatch(on) if isinstance(on, str) else None
    if found is None:
        raise EscalaError(f"unknown engine {quoted(on)} (--on): give {known}")
    return found


def _cluster(found: re.Match[str]) -> AbstractContextManager[Each]:
    """RAY_ADDRESS as Ray has it: HOST:PORT, `auto` for the cluster of this machine, `local` for none."""
    named = os.environ.get("RAY_ADDRESS", "")
    if found["address"] is None and named not in ("", "auto", "local"):
        if (read := _ENGINE.fullmatch(f"ray:{named}")) is None:
            raise EscalaError(
                f"RAY_ADDRESS={quoted(named)} (--on ray): give HOST:PORT as `ray start` told it, auto, or local"
            )
        found = read
    return on_ray.cluster(found["address"] or (named if named == "auto" else None))


def _processes(on: str, found: re.Match[str]) -> int:
    n = cores() if found["n"] is None else int(found["n"])
    if not 1 <= n <= MOST:
        raise EscalaError(f"engine {on!r} (--on): give 1 to {MOST:,} processes")
    return n


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
