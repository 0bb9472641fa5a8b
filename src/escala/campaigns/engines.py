"""Engines: where the runs of a campaign are made. Each is a name, and a function that gives every run with what `work` found."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from escala.campaigns import on_ray, on_slurm, pool
from escala.errors import EscalaError, quoted
from escala.policies.pairs import cores

Each = Callable[[Sequence[Any], Callable[[Any], dict[str, Any]]], Iterator[tuple[Any, dict[str, Any]]]]
"""Gives every piece of work, such as a run, with what a job gives of it. A piece whose process ends before its time is tried once more, and
then has an `error`. Pieces have a `key`, each another one."""
MOST = 1024
_ENGINE = re.compile(r"(?P<local>local(:(?P<n>[0-9]{1,9}))?)|ray(:(?P<address>[^\s:/]+:[0-9]{1,5}))?|(?P<slurm>slurm)(:(?P<options>.+))?")


def engine_of(on: str, folder: Path) -> AbstractContextManager[Each]:
    """The engine of a name, open inside the block: `local` a process for each core, `local:N` N of them, `ray` Ray on this machine (or the
    cluster that RAY_ADDRESS names), `ray:HOST:PORT` a cluster, `slurm[:KEY=VALUE...]` an array of jobs that work in the campaign's folder.
    EscalaError for any other name; on entering, where no cluster answers."""
    found = _ENGINE.fullmatch(on) if isinstance(on, str) else None
    if found is None:
        raise EscalaError(f"unknown engine {quoted(on)} (--on): give local, local:N for N processes, ray, ray:HOST:PORT, or slurm")
    if found["slurm"] is not None:
        return on_slurm.arrays(found["options"] or "", folder)
    if found["local"] is None:
        return on_ray.cluster(found["address"] or os.environ.get("RAY_ADDRESS") or None)
    n = cores() if found["n"] is None else int(found["n"])
    if not 1 <= n <= MOST:
        raise EscalaError(f"engine {on!r} (--on): give 1 to {MOST:,} processes")
    return nullcontext(lambda pieces, job: pool.each(pieces, n, job))
