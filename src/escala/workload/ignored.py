"""What a log says of its jobs and no replay looks at: named with the number of jobs, so that nobody takes the replay
for the machine.

Readers put these columns beside those of the workload; they are counted over the jobs that are kept, and go. A label (a
partition, a QOS) tells something where the log has several of them, an amount where it is not 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import number_of
from escala.workload.columns import NAMED
from escala.workload.found import Found
from escala.workload.shapes import FEATURES, LATER
from escala.workload.transform import OF_WHOLE, of_whole

NODES = "nodes"
AMOUNTS = {
    "on_nodes": NODES,
    "gpus": "GPUs",
    "memory": "memory",
    "licences": "licences",
    "constraints": "features of nodes",
    "reserved": "reservations",
    "waits_for": "dependencies or begin times",
    "array_throttle": "limits of arrays",
}
LABELS = {"partition": "partitions", "queue": "queues", "qos": "QOS", "rank": "priorities"}
SCORED = ("partitions", "queues", "QOS")
"""Of these, what a score file may give priorities by name."""
OF_NODES = ("GPUs", "memory")
"""And, where the log was read with `shapes`, what counts on a platform that has it."""
PARTED = ("partitions", "queues")
"""And what says on which nodes of a site a job may lie."""
SHAPED = ("reservations", "QOS")
"""And what Slurm's rules heed on a site that describes it."""
COLUMNS = (*AMOUNTS, "rank", *NAMED)
KEPT = (*LATER, FEATURES, "nice")
"""Text columns of a reader's frame beside those that every workload has; of `NAMED` it keeps what tells something
(`said_nothing`)."""
DROPPED = tuple(name for name in COLUMNS if name not in NAMED)
Keys = NDArray[np.uint64]

NAMES = {  # how tables and JSON call them: lower case, letters only
    **dict.fromkeys(("gpus", "gpu", "gpusreq", "reqgpus", "numgpus", "numgpu", "ngpus", "gres"), "gpus"),
    **dict.fromkeys(
        ("memory", "mem", "memreq", "reqmem", "memorymib", "memorymb", "memorygb", "requestedmemory"), "memory"
    ),
    **dict.fromkeys(("licenses", "licences", "license", "licence"), "licences"),
    **dict.fromkeys(("features", "feature", "constraints", "constraint", "gpuspec", "nodetype"), "constraints"),
    **dict.fromkeys(("reservation", "reservationname", "reservationid"), "reserved"),
    **dict.fromkeys(("dependency", "dependencies", "depend", "depends"), "waits_for"),
    **dict.fromkeys(("partition", "partitionname"), "partition"),
    **dict.fromkeys(("qos", "qosname"), "qos"),
    **dict.fromkeys(("priority", "prio"), "rank"),
    **dict.fromkeys(("account", "accountname", "project"), "account"),
    **dict.fromkeys(("group", "groupname", "usergroup"), "group"),
    **dict.fromkeys(("jobname",), "job_name"),
    **dict.fromkeys(("executable", "executablename", "application"), "executable"),
}
NOTHING = r"(?i)^(-?[0.]+ ?[a-z]*|-1|none|null|\(null\)|nan|n/?a|unknown|false|)$"
"""Values that say that a job has none."""


def column_of(name: str) -> str | None:
    """The one of `COLUMNS` that a column of this name is, None for any other."""
    return NAMES.get(re.sub(r"[^a-z]", "", name[:100].lower()))


class Tally:
    """What the jobs of a log that comes in pieces have there: see `ignored_in` and `said_nothing`, which it tells of
    all of them."""

    def __init__(self) -> None:
        self.jobs = 0  # until now
        self._jobs: dict[str, int] = {}  # how many have it, by column
        self._values: dict[str, Keys] = {}  # hashes of a label's values
        self._said: dict[str, bool] = {}  # has a job something in the column?
        self._twin: bool | None = None  # is the queue another word for the partition?

    def note(self, jobs: pl.DataFrame) -> None:
        """The jobs of another piece."""
        self.jobs += jobs.height
        if "queue" in jobs.columns:
            self._twin = _is_twin(jobs) and self._twin is not False
        for name in (*COLUMNS, *KEPT):
            if name in jobs.columns:
                self._said[name] = self._said.get(name, False) or jobs[name].null_count() < jobs.height
        for name in (*AMOUNTS, *LABELS):
            if name in jobs.columns:
                given = jobs[name].drop_nulls().cast(pl.String).str.strip_chars()
                given = given.filter(~given.str.contains(NOTHING)) if name in AMOUNTS else given.filter(given != "")
                self._jobs[name] = self._jobs.get(name, 0) + len(given)
                if name in LABELS:
                    values = given.unique().hash(seed=0).to_numpy()
                    self._values[name] = np.union1d(self._values.get(name, values), values)

    def ignored(self, before: Found | None = None) -> dict[str, dict[str, int]]:
        """See `ignored_in`."""
        found: dict[str, dict[str, int]] = {}
        kept: Mapping[str, dict[str, int]] = {} if before is None else before.ignored
        if before is not None and self.jobs < before.rows:
            kept = of_whole(kept)
        for name, told in (AMOUNTS | LABELS).items():
            if name not in self._jobs and told in kept:
                found[told] = kept[told]
            count, values = self._jobs.get(name, 0), len(self._values.get(name, ()))
            if (values > 1 if name in LABELS else count > 0) and not (name == "queue" and self._twin):
                found[told] = {"jobs": count, **({"values": values} if name in LABELS else {})}
        return found

    def said_nothing(self) -> list[str]:
        """See `said_nothing`."""
        return [
            name
            for name, said in self._said.items()
            if name in DROPPED or not said or (name == "partition" and self._twin)
        ]


def ignored_in(jobs: pl.DataFrame, before: Found | None = None) -> dict[str, dict[str, int]]:
    """What no replay looks at, by its name: `jobs`, how many have it, and for labels `values`, how many there are.
    before: what was read, which says it of columns that its table has no more."""
    return _tally(jobs).ignored(before)


def said_nothing(jobs: pl.DataFrame) -> list[str]:
    """The columns that a workload does not keep: amounts, what no job has, and partitions that are the queues."""
    return _tally(jobs).said_nothing()


def _tally(jobs: pl.DataFrame) -> Tally:
    found = Tally()
    found.note(jobs)
    return found


def _is_twin(jobs: pl.DataFrame) -> bool:
    """Is the queue of a job another word for its partition?"""
    return "partition" in jobs.columns and jobs["queue"].equals(jobs["partition"])


def jobs_told(about: Mapping[str, int]) -> str:
    """How many jobs have it, in words."""
    return number_of(about["jobs"], "job") + (" of the whole log" if about.get(OF_WHOLE) else "")


def told(ignored: Mapping[str, Mapping[str, Any]], shapes: bool = False, parted: bool = False) -> str:
    """In one sentence; "" where nothing was ignored. shapes: the log was read with them. parted: on a site that
    describes partitions, where these count."""
    slurm = "the scheduler slurm alone looks at, as far as the site describes it"
    nodes = "counts where the platform has it"
    site = "counts on a site alone (--platform site.toml; on any other, and in a stream, jobs take cores of any nodes)"
    described = "counts on a site that describes it, else score files alone look at it"
    who = ("no replay looks at", "score files alone look at", slurm, nodes, site, described)
    parts: dict[str, list[str]] = {one: [] for one in who}
    nobody, scores, shaped, of_nodes, on_site, partly = parts.values()
    for name, about in ignored.items():
        if parted and name in PARTED:
            continue
        several = f"{about['values']:,} " if "values" in about else ""
        heeded = of_nodes if shapes and name in OF_NODES else shaped if shapes and name in SHAPED else None
        heeded = on_site if name == NODES else partly if name in PARTED else heeded
        heeded = heeded if heeded is not None else scores if name in SCORED else nobody
        heeded.append(f"{several}{name} ({jobs_told(about)})")
    said = [f"{who}: {', '.join(what)}" for who, what in parts.items() if what]
    return f"the log has what {'; and what '.join(said)}" if said else ""
