"""What the policies of a run were trained or chosen on, as their folders say, and whether a suite judges them by
that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.campaigns.runs import Run
from escala.campaigns.work import log_of
from escala.described import POLICY, Contents, contents
from escala.errors import EscalaError
from escala.loading import folder_in
from escala.policies.slurm_names import tuned_of
from escala.policies.tuned import PREFIX
from escala.registry import is_trained
from escala.tuning.split import DAY_S, split_of
from escala.workload import Workload

FROM = "from"
TOLD = ("what", "on", "escala", FROM)
LEAST_DAYS, LEAST_ON_DAY = 7, 2
"""So many days have to be just as a manifest counts them, before a log of another name is taken for the same; a day is
one with so many jobs."""


def folders_of(run: Run) -> dict[str, Contents]:
    """By role, what stands in the folders of its policies; none for others."""
    named = {"scheduler": run.scheduler, "shutdown": run.shutdown}
    folders = {
        role: folder_in(name) if is_trained(name) else tuned_of(name).removeprefix(PREFIX)
        for role, name in named.items()
        if is_trained(name) or tuned_of(name)
    }
    return {role: contents(folder) for role, folder in folders.items()}


def told_of(run: Run) -> dict[str, dict[str, str]]:
    """By role: what a policy in a folder is, what it was trained or chosen on, by which version of Escala, and where it
    was pulled from."""
    found = folders_of(run)
    parts = {role: (one.what, one.trained_on, one.version, one.pulled_from) for role, one in found.items()}
    return {role: dict(zip(TOLD, told, strict=True)) for role, told in parts.items()}


def check_unseen(run: Run, after: str) -> None:
    """EscalaError for a policy that was trained or chosen on weeks of this very log which are judged, as far as its
    folder says. after: the share of the log's time that is its past."""
    for found in folders_of(run).values():
        log = log_of(run)
        tuned, at_s = found.kind == POLICY, split_of(log, after).at_s + 1.0
        until_s = _tuned_until(found.manifest, log) if tuned else _trained_until(found.manifest, run, log)
        if until_s is None or until_s <= at_s:
            continue
        what, advice = "chosen on weeks", f"tune it with --after {after} of the log"
        if not tuned:
            past = sum(_last_s(day, log) <= at_s for _, day in _days_of(log))
            what, advice = "trained on days", f"train it on the first {past} at most (--days {past})"
        raise EscalaError(f"{found.folder}: was {what} of {run.log.name} that the suite judges it by: {advice}")


def _tuned_until(manifest: Mapping[str, Any], log: Workload) -> float | None:
    """When the past ended that a tuned policy was chosen on, s on the clock of the log; None where that was another
    log."""
    told = manifest.get("log")
    at_s = told.get("at_s") if isinstance(told, Mapping) and told.get("sha256") == log.digest() else None
    return float(at_s) if isinstance(at_s, int | float) else None


def _trained_until(manifest: Mapping[str, Any], run: Run, log: Workload) -> float | None:
    """When the last job was submitted that an agent learnt from, or that its weights were chosen by, s on the clock of
    the log; None where that was another log, drawn lists, or nobody can know."""
    told = [about for name in ("workload", "validation_days") if isinstance(about := manifest.get(name), Mapping)]
    found = [until_s for about in told if (until_s := _until(about, run, log)) is not None]
    return max(found, default=None)


def _until(about: Mapping[str, Any], run: Run, log: Workload) -> float | None:
    path, jobs = run.log.path, about.get("jobs")
    if "path" in about:
        return (
            float(log.jobs["submit_s"][-1])
            if path is not None and Path(str(about["path"])).name == Path(path).name
            else None
        )
    if "name" in about:
        same = (about["name"], about.get("source")) == (log.name, log.source)
        return (
            float(log.jobs["submit_s"][jobs - 1]) if same and isinstance(jobs, int) and 0 < jobs <= len(log) else None
        )
    first, last = (_numbered(about.get(end)) for end in ("first", "last"))
    count = about.get("days")
    if first is None or last is None or not isinstance(jobs, int) or not isinstance(count, int):
        return None
    days = [day for number, day in _days_of(log) if first[1] <= number <= last[1]]
    there = len(days), sum(map(len, days))
    whole = there == (count, jobs) and (len(days) >= LEAST_DAYS or last[0] == log.name)
    part = path is not None and last[0] == log.name and count <= there[0] and jobs <= there[1]
    return _last_s(days[-1], log) if days and (whole or part) else None


def _numbered(name: Any) -> tuple[str, int] | None:
    """The log and the number in the name of a day, NAME#NUMBER."""
    log, _, number = name.rpartition("#") if isinstance(name, str) else ("", "", "")
    return (log, int(number)) if log and number.removeprefix("-").isdecimal() else None


def _days_of(log: Workload) -> list[tuple[int, Workload]]:
    """The days of a log that agents are trained on, with their numbers."""
    days = log.split_days(origin_s=-(log.origin_s % DAY_S))
    return [(int(day.name.rpartition("#")[2]), day) for day in days if len(day) >= LEAST_ON_DAY]


def _last_s(day: Workload, log: Workload) -> float:
    """The last submission of a day, s on the clock of its log."""
    return float(day.origin_s - log.origin_s + day.jobs["submit_s"][-1])
