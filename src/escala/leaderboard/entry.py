"""Entries: one policy on every log of a suite, as one small file that says all that is needed to make it again."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from escala.campaigns import journal
from escala.campaigns.runs import Run
from escala.engines import engine_of
from escala.errors import EscalaError, quoted
from escala.leaderboard.judged import EASY, Judging
from escala.leaderboard.seen import FROM, TOLD, check_unseen, told_of
from escala.leaderboard.suite import SUITES, Suite, SuiteLog, name_of, read_suite
from escala.policies.files import digests_of, policy_files
from escala.policies.pairs import Begin
from escala.policies.plugins import origins
from escala.reading import own, read_json
from escala.source import source_digest
from escala.tuning.tuned import POLICY
from escala.writing import write_whole

FILE = "entry.json"
KIND, FORMAT = "entry of a leaderboard of Escala", 1
CLOSE = 1e-9
"""Figures that another processor may round otherwise are the same within this share."""
_FOLDERS = re.compile(r"(?<=[:=])/(?:[^\s:/]+/)*(?=[^\s:/]+)")
"""The folders before a file or folder in a policy's name, which tell about somebody's machine."""


@dataclass(frozen=True)
class Entry:
    """A policy on a suite.

    name: what it is called beside others; policy, shutdown: what was run, `{log}` in it stands for the name of each
    log. escala, source: the version, and the state of its files. suite: as it was written. logs: by name what `judged`
    found, the hash of the jobs (`sha256`), those of the policies' own files (`files`), and what policies in folders
    were trained or chosen on (`trained`, by role).
    """

    name: str
    policy: str
    shutdown: str
    escala: str
    source: str
    suite: Mapping[str, Any]
    logs: Mapping[str, Any]

    @property
    def knows(self) -> str:
        """What the policy knows of the future on some log; "" for an honest one."""
        return next((found["knows"] for found in self.logs.values() if found["knows"]), "")

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as a file."""
        write_whole(Path(path), json.dumps({"kind": KIND, "format": FORMAT, **asdict(self)}, indent=1) + "\n")


def enter(
    policy: str,
    out: str | os.PathLike[str],
    suite: str | os.PathLike[str] | Mapping[str, Any] = SUITES[0],
    *,
    shutdown: str = "never",
    name: str | None = None,
    logs: str | os.PathLike[str] | None = None,
    on: str = "local",
    begin: Begin | None = None,
) -> Entry:
    """Judge a policy on every log of a suite, and write the entry into `out`/entry.json.

    policy, shutdown: names, `policy:DIR`, `agent:DIR`, plug-ins'; `{log}` in them stands for the name of each log, so
    that there may be a policy for each. suite: "generated", "real", a TOML file, or a dictionary of that form. name: of
    the
    entry; by default the policy's. logs: the folder of the suite's files; those of the archive are loaded where they
    are
    not there. on: an engine, see `campaign`. What is finished is kept in `out`: the same call goes on.

    Raises:
        EscalaError: a suite or a name that is wrong, a log that is missing or another one, a policy that was trained or
            chosen on the weeks that are judged, or that fails on a log.
    """
    folder, asked = Path(out), read_suite(suite)
    shown = _FOLDERS.sub("", policy)
    called = name_of(shown if name is None else name, "name of the entry (--name)")
    engine, beside = (
        engine_of(on, folder),
        None if isinstance(suite, Mapping) or str(suite) in SUITES else Path(suite).parent,
    )
    folders = [Path(given) for given in (logs, beside) if given is not None] or [Path(".")]
    asked.check_files(folders)
    share = None if begin is None else begin("reading the logs")
    runs = list[Run]()
    for log in asked.logs:
        runs.append(_piece(asked, log, policy, shutdown, folders))
        if share is not None:
            share(len(runs) / len(asked.logs))
    found = _found(asked, runs, folder, engine, begin)
    entry = Entry(
        called,
        shown,
        _FOLDERS.sub("", shutdown),
        version("escala"),
        source_digest(),
        asked.told,
        {log.name: _about(log, run) | each for log, run, each in zip(asked.logs, runs, found, strict=True)},
    )
    entry.write(folder / FILE)
    return entry


def _piece(suite: Suite, log: SuiteLog, policy: str, shutdown: str, folders: list[Path]) -> Run:
    """A run, known by all that its judgement depends on."""
    run = suite.run(log, policy, shutdown, folders)
    check_unseen(run, suite.after)
    told = json.dumps([run.key, suite.after, suite.promise])
    return replace(run, key=hashlib.sha256(told.encode()).hexdigest())


def _files(run: Run) -> dict[str, str]:
    """The hashes of the files of its policies, by their names; those of the shutdown policy say so."""
    powers = {**digests_of(run.shutdown), **origins(run.shutdown)}
    files = {Path(path).name: digest for path, digest in policy_files(run.scheduler, "never", run.options).items()}
    return files | {f"shutdown {Path(path).name}": digest for path, digest in powers.items()}


def _about(log: SuiteLog, run: Run) -> dict[str, Any]:
    """What an entry says of a log beside its judgement."""
    trained = told_of(run)
    return {"sha256": log.sha256, "files": _files(run)} | ({"trained": trained} if trained else {})


def _found(suite: Suite, runs: list[Run], folder: Path, engine: Any, begin: Begin | None) -> list[dict[str, Any]]:
    """What is found of every run, in their order. EscalaError where one failed: the others are kept."""
    job = Judging(suite.after, suite.promise)
    with engine as each, journal.opened(folder) as kept:
        left = [run for run in {run.key: run for run in runs}.values() if run.key not in kept.found]
        share = None if begin is None else begin(f"judging on {len(left)} logs")
        errors = dict[str, str]()
        for k, (run, told) in enumerate(each(left, job)):
            if "error" in told:
                errors[run.log.name] = told["error"]
            else:
                kept.add(run.key, told)
            if share is not None:
                share((k + 1) / len(left))
        if errors:
            name, why = next(iter(errors.items()))
            raise EscalaError(
                f"log {quoted(name)}: {why}" + (f" (and {len(errors) - 1} logs more)" if len(errors) > 1 else "")
            )
        return [kept.found[run.key]["found"] for run in runs]


def read_entry(path: str | os.PathLike[str]) -> Entry:
    """An entry from its file, or the folder that `enter` wrote. EscalaError for anything else."""
    place = Path(path) / FILE if Path(path).is_dir() else Path(path)
    told = read_json(place)
    if not isinstance(told, dict) or told.get("kind") != KIND:
        raise EscalaError(f"{place}: is no entry of a leaderboard: give a file that escala leaderboard run wrote")
    if told.get("format") != FORMAT:
        raise EscalaError(
            f"{place}: format {quoted(told.get('format'))} is not {FORMAT}: enter it again with this version of Escala"
        )
    with own(place, "entry", "enter it again"):
        entry = Entry(**{name: told[name] for name in Entry.__dataclass_fields__})
        suite = read_suite(entry.suite)
        if [log.name for log in suite.logs] != list(entry.logs):
            raise ValueError("its logs are not those of its suite")
        name_of(entry.name, "name")
        if not all(
            isinstance(text, str) and text.isprintable()
            for text in (entry.policy, entry.shutdown, entry.escala, entry.source)
        ):
            raise ValueError("a text of one line is missing")
        for log in suite.logs:
            _check(entry.logs[log.name], suite, log)
    return entry


def _check(found: Mapping[str, Any], suite: Suite, log: SuiteLog) -> None:
    """ValueError, or what a missing part raises, for what no judgement holds."""
    sums = [found["by_week"][who][suite.figure] for who in (POLICY, EASY)]
    numbers = [
        *sums[0],
        *sums[1],
        *found["figures"].values(),
        *(figure for each in found["baselines"].values() for figure in each.values()),
    ]
    if found["sha256"] != log.sha256:
        raise ValueError("its jobs are not those of its suite")
    if {len(each) for each in sums} != {len(found["by_week"]["jobs"])} or not all(
        math.isfinite(number) for number in numbers
    ):
        raise ValueError("figures are missing")
    if not sum(sums[1]) > 0.0 or not sum(sums[0]) > 0.0:
        raise ValueError("figures are 0")
    for clause in found["promise"]:
        float(clause["value"]), float(clause["bound"]), bool(clause["kept"]), str(clause["clause"])
    str(found["knows"]), int(found["jobs"]), int(found["weeks"])
    if found["energy"] is not None:
        [float(part) for part in found["energy"]["ratio"]]
    for told in found.get("trained", {}).values():
        if not all(isinstance(told[part], str) and told[part].isprintable() for part in TOLD):
            raise ValueError("a text of one line is missing")
    for rows in found["who_pays"].values():
        for row in rows:
            float(row["mean_wait_before_s"]), float(row["mean_wait_s"]), float(row["work_share"]), str(row["group"])


def check(
    entry: Entry,
    *,
    policy: str | None = None,
    shutdown: str | None = None,
    logs: str | os.PathLike[str] | None = None,
    on: str = "local",
    begin: Begin | None = None,
) -> list[str]:
    """Make an entry again, from nothing, and tell what is not the same, a line each; [] where everything is. policy,
    shutdown: where they lie here, if that is elsewhere. EscalaError as of `enter`."""
    with tempfile.TemporaryDirectory() as folder:
        given = policy or entry.policy, Path(folder) / "again", entry.suite
        again = enter(*given, shutdown=shutdown or entry.shutdown, logs=logs, on=on, begin=begin)
    return [line for log in entry.logs for line in _unlike(entry.logs[log], again.logs[log], log)]


def _unlike(told: Any, found: Any, where: str) -> list[str]:
    """Where two values differ."""
    if isinstance(told, Mapping) and isinstance(found, Mapping):
        names = [name for name in dict.fromkeys([*told, *found]) if name != FROM]
        return [line for name in names for line in _unlike(told.get(name), found.get(name), f"{where}, {name}")]
    if isinstance(told, list) and isinstance(found, list) and len(told) == len(found):
        return [
            line
            for k, (one, other) in enumerate(zip(told, found, strict=True))
            for line in _unlike(one, other, f"{where} {k + 1}")
        ]
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (told, found))
    if told == found or (numbers and math.isclose(told, found, rel_tol=CLOSE, abs_tol=CLOSE)):
        return []
    return [f"{where}: {quoted(told)} in the entry, {quoted(found)} here"]
