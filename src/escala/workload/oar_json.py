"""JSON of OAR's own tools, whatever their version calls the fields: the jobs of a file, one by one.

| command | what it prints | fields |
|---|---|---|
| `oarstat -f -J` of OAR 2.5 | an object of jobs by number | `Job_Id`, `submissionTime`, `assigned_resources` |
| the same with `--format 3` | the same | `id`, `submission_time`, `assigned_resources` |
| `oarstat --gantt "FROM, TO" -J` of OAR 2.5 | `jobs` by number, `resources` | `submission_time`, `resource_id` |
| `oarstat -f -J` of OAR 3 | an object of jobs by number | its table of jobs: neither resources nor walltime |
| `GET /jobs/details` (2.5), `/jobs?details=true` (3) | `items` | `id`, `submission_time`, `resources` |

A list of such jobs is taken as well. Known from the sources of both (oar-team/oar, branch 2.5: OAR/Stat.pm, OAR/IO.pm,
api.rst; oar-team/oar3: oarstat.py, models.py, routers/job.py), and from printed examples in public repositories.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from escala.errors import EscalaError, quoted
from escala.workload.json_list import Entry, parts

HINT = "give what oarstat -f -J prints"
OPENED = {"": "[", "jobs": "[{", "items": "[", "resources": "["}
SIGNS = re.compile(
    r'"(?:submissionTime|launchingDirectory|launching_directory|assigned_network_address|assigned_moldable_job|'
    r'cpuset_name|dead_resources|next_finaud_decision|resubmit_job_id|wanted_resources)"\s*:'
)
SUBMIT = ("submissionTime", "submission_time")
MOST = 1e15
DEFAULT = "default"
"""The type of resources that compute; others are VLANs, disks, licences."""


class Resource(NamedTuple):
    type: str
    host: str | None


def is_oar_json(head: str) -> bool:
    """Do these first characters look like what OAR prints?"""
    return SIGNS.search(head) is not None


def resources_of(path: Path) -> dict[str, Resource]:
    """Those that the Gantt form lists, by number; none of other forms."""
    found: dict[str, Resource] = {}
    for part in parts(path, OPENED):
        if part.key not in ("jobs", "resources", "dead_resources") or (found and part.key != "resources"):
            break
        about = part.entry.value
        if part.key == "resources" and isinstance(about, Mapping):
            kind, host = about.get("type"), about.get("network_address")
            found[str(about.get("resource_id"))] = Resource(
                kind if isinstance(kind, str) else DEFAULT, host if isinstance(host, str) and host else None
            )
    return found


def jobs_of(path: Path) -> Iterator[Job]:
    """All, in the order of the file; EscalaError for a file without, and for what is none."""
    there = False
    for part in parts(path, OPENED):
        listed = part.key in ("", "jobs", "items")
        if listed and part.name is None:
            if part.entry.text not in ("[", "{"):
                raise EscalaError(f"{path}: JSON whose {part.key!r} is no list of jobs: {HINT}")
        elif listed or part.key.isdecimal() or _is_job(part.entry.value):
            there = True
            yield Job(path, (part.name or "") if listed else part.key, part.entry)
    if not there:
        raise EscalaError(f"{path}: is JSON without jobs by their number: {HINT} of at least one")


def _is_job(value: Any) -> bool:
    return isinstance(value, Mapping) and not value.keys().isdisjoint(SUBMIT)


class Job:
    """One of the document. line: where it begins."""

    def __init__(self, path: Path, name: str, entry: Entry) -> None:
        self._where, self.line = f"{path}, line {entry.line}", entry.line
        if not isinstance(entry.value, Mapping):
            raise EscalaError(f"{self._where}: job {quoted(name)} is {quoted(entry.value)}, not an object: {HINT}")
        self._fields = entry.value
        self.job_id = self.text("Job_Id", "job_id", "id") or name
        if not self.job_id:
            raise EscalaError(f"{self._where}: a job without a number (Job_Id, id): {HINT}")

    def has(self, *names: str) -> bool:
        """Is there a field of one of these names?"""
        return any(name in self._fields for name in names)

    def wrong(self, what: str, needed: str) -> EscalaError:
        return EscalaError(f"{self._where}: job {quoted(self.job_id)} {what}: {needed}")

    def text(self, *names: str) -> str | None:
        """The first of these fields that says something; null where it is neither text nor a number."""
        for name in names:
            value = self._fields.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = quoted(value)
            if isinstance(value, str) and value.strip():
                return value.strip()
        return None

    def number(self, *names: str) -> float | None:
        """The first of these fields that is there; null where it is empty. EscalaError for what is no number."""
        name = next((name for name in names if self._fields.get(name) not in (None, "")), None)
        if name is None:
            return None
        value = self._fields[name]
        if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,300}(\.\d{1,300})?\s*", value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"has {name} = {quoted(value)}", "a number is needed, as oarstat -J writes it")
        if isinstance(value, float) and math.isnan(value):
            return None
        return float(value) if -MOST < value < MOST else math.inf if value > 0 else -math.inf

    def moment(self, *names: str) -> float | None:
        """A Unix time, s; null where it is 0, by which OAR says that there is none."""
        found = self.number(*names)
        return found if found is not None and found > 0 else None

    def names(self, *names: str) -> list[str] | None:
        """The first of these lists that is there, of numbers or texts, or of objects that have them as `id` or
        `network_address`; the names of an object. EscalaError for what is no list."""
        name = next((name for name in names if self._fields.get(name) is not None), None)
        if name is None:
            return None
        value = self._fields[name]
        if isinstance(value, Mapping):
            value = list(value)
        if not isinstance(value, list):
            raise self.wrong(f"has {name} = {quoted(value)}", "a list is needed, as oarstat -J writes it")
        plain = [_named(one) for one in value]
        return [one for one in plain if one]

    def events(self) -> set[str]:
        """The types of what befell it."""
        told = self._fields.get("events")
        return {str(one.get("type")) for one in told if isinstance(one, Mapping)} if isinstance(told, list) else set()


def _named(one: Any) -> str:
    if isinstance(one, Mapping):
        one = one.get("id", one.get("network_address"))
    if isinstance(one, str):
        return one.strip()
    return quoted(one) if isinstance(one, int) and not isinstance(one, bool) else ""
