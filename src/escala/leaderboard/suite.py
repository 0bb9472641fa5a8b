"""Suites: fixed logs, each with its machine and the hash of its jobs, and by what policies are judged on them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escala.campaigns.definition import read_definition
from escala.campaigns.runs import Run, runs_of
from escala.campaigns.work import log_of
from escala.errors import EscalaError, nearest, quoted
from escala.reading import first_twin, read_toml
from escala.tuning import DEFAULT_PROMISE
from escala.tuning.candidates import BASELINES
from escala.tuning.measures import OBJECTIVES, PERCENTILES
from escala.tuning.promise import promise_of
from escala.workload import Workload
from escala.workload.fetch import LOGS, fetch
from escala.workload.transform import share_of

SUITES = ("generated", "real")
"""The suites that come with Escala."""
KEYS = ("name", "after", "promise", "objective", "options", "logs")
OF_LOG = ("name", "platform", "sha256")
"""What each log of a suite must say, besides the file or generator that it is."""
OURS = ("file", "source", *OF_LOG)
SUMS = tuple(name for name, figure in OBJECTIVES.items() if figure not in PERCENTILES)
"""What entries can be ranked by: figures that are sums over weeks."""
ENDINGS = ("", ".gz")
PLACE = "{log}"
MOST_NAME = 200


@dataclass(frozen=True)
class SuiteLog:
    """A log of a suite. entry: of a campaign, what it is and how it is read; file: its name, None where it is
    generated; sha256: see `jobs_digest`; source: where it is to be had."""

    name: str
    entry: Mapping[str, Any]
    file: str | None
    platform: str
    sha256: str
    source: str


@dataclass(frozen=True)
class Suite:
    """What policies are judged by. after: the share of each log's time that is its past; promise: on waits, see
    `escala.tuning.promise`;
    objective: what entries are ranked by; told: all of it as it was written."""

    name: str
    after: str
    promise: str
    objective: str
    options: Mapping[str, Any]
    logs: tuple[SuiteLog, ...]
    told: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says."""
        return hashlib.sha256(json.dumps(self.told, sort_keys=True).encode()).hexdigest()

    @property
    def figure(self) -> str:
        """What the objective makes small."""
        return OBJECTIVES[self.objective]

    def check_files(self, folders: list[Path]) -> None:
        """EscalaError, with where they are to be had, where files are missing that no archive has."""
        files = [log for log in self.logs if log.file is not None and _stem(log) not in LOGS]
        missing = [log for log in files if _at_hand(log, folders) is None]
        if missing:
            told = ", ".join(f"{log.file} ({log.source})" if log.source else str(log.file) for log in missing)
            number = f"{len(missing)} logs of the suite are" if len(missing) > 1 else "a log of the suite is"
            raise EscalaError(f"{number} missing in {_listed(folders)}: {told}: put them there (--logs DIR)")

    def run(self, log: SuiteLog, policy: str, shutdown: str, folders: list[Path]) -> Run:
        """A policy on one of the logs, read where it lies. EscalaError where the log is missing or another one, and for
        what campaigns refuse."""
        path = {} if log.file is None else {"path": str(_found(log, folders))}
        asked = {
            "logs": [{**log.entry, **path, "name": log.name}],
            "platforms": [log.platform],
            "schedulers": [policy.replace(PLACE, log.name)],
            "shutdowns": [shutdown.replace(PLACE, log.name)],
            "options": dict(self.options),
        }
        (run,) = runs_of(read_definition(asked, f"log {log.name!r}"))
        if (found := jobs_digest(log_of(run))) != log.sha256:
            raise EscalaError(
                f"suite {self.name!r}: log {log.name!r} holds other jobs than the suite's (sha256 = {found}, not "
                f"{log.sha256[:12]}...): take the file from {log.source or 'where the suite has it'}, or a version of "
                "Escala that makes it"
            )
        return run


def jobs_digest(log: Workload) -> str:
    """SHA-256 of the jobs of a log, however their file is packed: what a simulation sees of them, their users and
    queues, and the date at which their clock begins."""
    told = json.dumps([log.digest(), log.column_digests(("user", "queue")), log.origin_s], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def read_suite(spec: str | os.PathLike[str] | Mapping[str, Any] = SUITES[0]) -> Suite:
    """A suite: "generated", "real", a TOML file, or a dictionary of the same form. EscalaError, one line, for what is
    wrong in it."""
    if isinstance(spec, Mapping):
        told, where = dict(spec), "suite"
    elif str(spec) in SUITES:
        told, where = read_toml(Path(__file__).with_name("suites") / f"{spec}.toml"), str(spec)
    elif not Path(spec).suffix:
        raise EscalaError(
            f"unknown suite {quoted(str(spec))} (--suite): {nearest(str(spec), SUITES)}give {', '.join(SUITES)} or a "
            "TOML file"
        )
    else:
        told, where = read_toml(Path(spec)), str(spec)
    try:
        return _suite(told)
    except EscalaError as error:
        raise EscalaError(f"{where}: {error}") from None


def _suite(told: dict[str, Any]) -> Suite:
    for key in told:
        if key not in KEYS:
            raise EscalaError(f"unknown key {quoted(key)}: {nearest(str(key), KEYS)}known are {', '.join(KEYS)}")
    given = {"after": "60%", "promise": DEFAULT_PROMISE, "objective": "slowdown", **told}
    name, after, promise, objective = (_text(given, key) for key in ("name", "after", "promise", "objective"))
    promise_of(promise, BASELINES)
    share_of(after)
    if objective not in SUMS:
        raise EscalaError(f"objective = {quoted(objective)}: use one of {', '.join(SUMS)}")
    options = told.get("options", {})
    if not isinstance(options, Mapping):
        raise EscalaError(f"[options] is {quoted(options)}: a table of names and values is needed")
    for option, value in options.items():
        if option in ("until_s", "start_off") or isinstance(value, list):
            raise EscalaError(
                f"[options] {option} = {quoted(value)}: whole logs are replayed, all in one way: give single values, "
                "and no end"
            )
    return Suite(
        name, after, promise, objective, options, _logs(told.get("logs")), json.loads(json.dumps(told, default=str))
    )


def _logs(entries: Any) -> tuple[SuiteLog, ...]:
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, Mapping) for entry in entries):
        raise EscalaError("logs are missing: give each as a table, [[logs]]")
    logs = tuple(map(_log, entries))
    if (twin := first_twin([log.name for log in logs])) is not None:
        raise EscalaError(f"two logs are called {quoted(twin)}: give each a name of its own")
    return logs


def _log(entry: Mapping[str, Any]) -> SuiteLog:
    name = _text(entry, "name")
    if len(entry_of := [key for key in ("file", "generator") if key in entry]) != 1:
        raise EscalaError(f"log {quoted(name)} needs file = or generator =, one of the two")
    platform, sha256 = (_text(entry, key) for key in OF_LOG[1:])
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise EscalaError(
            f"log {quoted(name)}: sha256 = {quoted(sha256)}: 64 hexadecimal digits are needed, of its jobs"
        )
    told = {key: value for key, value in entry.items() if key not in OURS}
    file = _text(entry, "file") if entry_of == ["file"] else None
    return SuiteLog(name, told, file, platform, sha256, str(entry.get("source", "")))


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    if value is None:
        raise EscalaError(f"{key} is missing: a text is needed")
    return name_of(value, f"{key} =")


def name_of(value: Any, what: str) -> str:
    """The value, where it can be a name: a text of one line. EscalaError, which begins with `what`, for another."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_NAME or not value.isprintable():
        raise EscalaError(f"{what} {quoted(value)}: a text of 1 to {MOST_NAME} characters of one line is needed")
    return value


def _found(log: SuiteLog, folders: list[Path]) -> Path:
    """The file of a log: in one of the folders, plain or gzipped, else from the archive that has it."""
    if (path := _at_hand(log, folders)) is not None:
        return path
    try:
        return fetch(LOGS[_stem(log)]).path
    except EscalaError as error:
        why = str(error).partition(";")[0]
        raise EscalaError(
            f"log {log.name!r}: there is no {log.file} in {_listed(folders)} (--logs DIR), and {why}: put it there"
        ) from None


def _at_hand(log: SuiteLog, folders: list[Path]) -> Path | None:
    return next(
        (path for folder in folders for ending in ENDINGS if (path := folder / f"{log.file}{ending}").is_file()), None
    )


def _stem(log: SuiteLog) -> str:
    """What the archive calls it."""
    return (log.file or "").removesuffix(".swf")


def _listed(folders: list[Path]) -> str:
    return " or ".join(map(str, folders))
