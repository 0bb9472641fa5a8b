"""`read_workload`: any log of jobs -> a `Workload`. The format is found from the content, never from the name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import polars as pl

from escala.errors import EscalaError, nearest, quoted
from escala.forks import check_fork
from escala.reading import HEAD_BYTES, file_name, first_data, guarded, read_head
from escala.workload.clean import ABSURD_SIZE, FAITHFUL, CleaningRules, clean, remarks
from escala.workload.filters import Filters, Names, Time
from escala.workload.found import Found
from escala.workload.ignored import ignored_in, said_nothing
from escala.workload.shapes import clocked
from escala.workload.table import MOST_CORES, Workload

FLAGS = {"columns": "--column, --fields"} | {
    name: f"--{name}" for name in ("unit", "select", "speed", "cores", "submission")
}  # how the command line calls an option
RULE_FLAGS = "--zero-runtime, --no-request, --longest, --most-cores"
TAKES = {  # format -> options that mean something there
    "swf": {"cores"},
    "batsim": {"speed"},
    "slurm": {"columns", "cores", "submission"},
    "pbs": {"cores", "submission"},
    "oar": {"cores", "submission"},
    "google": set(),
    "csv": {"columns", "units", "unit", "select"},
    "parquet": {"columns", "units", "unit", "select"},
}
SHAPED = ("slurm", "pbs", "oar")
Columns = Mapping[str, str] | Sequence[str] | None
SUFFIXES = (".gz", ".swf", ".json", ".csv", ".parquet", ".txt", ".log")
OTHER_PACKERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}


def read_workload(
    path: str | Path,
    *,
    format: str | None = None,
    columns: Columns = None,
    units: Mapping[str, float | str] | None = None,
    unit: str | None = None,
    select: Mapping[str, Any] | None = None,
    speed: float | None = None,
    cores: Literal["allocated", "requested"] | None = None,
    submission: Literal["submit", "eligible"] | None = None,
    partition: Names | None = None,
    user: Names | None = None,
    account: Names | None = None,
    since: Time | None = None,
    until: Time | None = None,
    rules: CleaningRules | None = None,
    strict: bool = False,
    shapes: bool = False,
    shift: bool | None = None,
    name: str | None = None,
    max_cores: int | None = None,
) -> Workload:
    """Jobs of a log: SWF, Batsim JSON, Slurm's sacct (text, JSON), PBS/TORQUE, OAR, Google, CSV, Parquet; gzipped.

    `format`: swf, batsim, slurm, pbs, oar, google, csv, parquet; found from the content if not given.
    `columns`, `units`, `unit`, `select`: tables only, see `tabular.read_table`; `columns`: the fields of bare sacct.
    `speed`: Batsim only, flop/s of one core; without it jobs given in flops wait for `Workload.at_speed`.
    `cores`: SWF, Slurm, PBS, OAR: "allocated" (default) or "requested" processors first, else the other.
    `submission`: Slurm, PBS, OAR: "submit" (default) or "eligible".
    `partition`, `user`, `account`, `since`, `until`: only these jobs, see `filters.Filters`; several names with commas.
    `rules`: see `clean`; what they did is in `Workload.cleaning` (counts) and `first_cleaned` (the first job of each).
    `strict`: refuse a log of which a job would be left out or changed.
    `shapes`: Slurm, PBS, OAR: with what jobs ask of a site (`shapes.SHAPES`), and the `hosts` where they ran.
    `shift`: does the first submission become time 0? By default not for Batsim's files, packs of days, own tables.
    `name`, `max_cores`: in place of what the file says.

    Raises `EscalaError`, one line: what, where, how to mend it.
    """
    where = _path(path)
    asked = {"columns": columns, "units": units, "unit": unit, "select": select}
    options = _given(**asked, speed=speed, cores=cores, submission=submission)
    with guarded(where, "a log of jobs"):
        kind = chosen_kind(where, format, columns, options)
        keep = Filters(partition=partition, user=user, account=account, since=since, until=until)
        shaped = {"shapes": True} if shapes and kind in SHAPED else {}
        found = noted_size(READERS[kind](where, {**options, "keep": keep, **shaped}))
        kept, counts, firsts = _cleaned(where, found, keep, rules, strict)
        beside = _beside(rules, shift, name, max_cores, shapes or None)
        workload = Workload.from_jobs(
            kept.drop(said_nothing(kept)),
            name=name or stem(where),
            max_cores=max_cores or found.max_cores,
            source=f"{file_name(where)}: {found.note}",
            cleaning=counts,
            first_cleaned=firsts,
            ignored=ignored_in(kept, found),
            read_as={"path": os.path.abspath(where), "format": kind, **options, **keep.given, **beside},
        )
        return _placed(workload, found, shift)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise EscalaError(
            f"a workload is a Workload or the path of a log, not {type(path).__name__}: give one of these"
        )
    return Path(path)


def _cleaned(
    where: Path, found: Found, keep: Filters, rules: CleaningRules | None, strict: bool
) -> tuple[pl.DataFrame, dict[str, int], dict[str, str]]:
    """The jobs that are kept, what was done to others, the first job of each kind. EscalaError where none is left, or
    `strict` forbids."""
    kept, counts, firsts = clean(found.frame, rules or CleaningRules())
    counts, firsts = {**keep.counts, **found.counts, **counts}, {**found.firsts, **firsts}
    if strict:
        refuse_touched(where, counts, firsts, rules)
    if kept.is_empty():
        raise nothing_left(where, remarks(counts, firsts, rules))
    return kept, counts, firsts


def nothing_left(where: Path, reasons: list[str]) -> EscalaError:
    if not reasons:
        return EscalaError(f"{where}: has no jobs: give a log with at least one")
    told = "; ".join(reasons)
    return EscalaError(
        f"{where}: no job is left after cleaning ({told}): check the file, or read it by other rules= ({RULE_FLAGS})"
    )


def chosen_kind(where: Path, format: str | None, columns: Columns, options: Mapping[str, Any]) -> str:
    """The format of a file, given or found; refused where an option means nothing there."""
    check_fork()
    kind = detect(where, columns) if format is None else format
    if kind not in TAKES:
        hint = nearest(str(kind), TAKES)
        raise EscalaError(f"{where}: format {quoted(kind)} is not known: {hint}give one of {', '.join(TAKES)}")
    foreign = sorted(set(options) - TAKES[kind])
    if foreign:
        flag = f" ({FLAGS[foreign[0]]})" if foreign[0] in FLAGS else ""
        raise EscalaError(
            f"{where}: is read as {kind}, which takes no {foreign[0]}={flag}: leave it out, or name the format= "
            "(--format)"
        )
    return kind


def _placed(workload: Workload, found: Found, shift: bool | None) -> Workload:
    """On its own clock, or with its first submission as time 0."""
    first = float(workload.jobs["submit_s"][0])
    origin = found.origin_s(first)
    if found.shift if shift is None else shift:
        return workload.with_jobs(workload.jobs.with_columns(clocked(workload.jobs) - first), origin_s=origin + first)
    return workload.with_jobs(workload.jobs, origin_s=origin) if origin else workload


def noted_size(found: Found) -> Found:
    """Without a size of the machine that no machine has, which is counted."""
    if found.max_cores is None or found.max_cores <= MOST_CORES:
        return found
    counts = {**found.counts, ABSURD_SIZE: 1}
    return found._replace(
        max_cores=None, counts=counts, firsts={**found.firsts, ABSURD_SIZE: f"{quoted(found.max_cores)} cores"}
    )


def _beside(
    rules: CleaningRules | None, shift: bool | None, name: str | None, max_cores: int | None, shapes: bool | None
) -> dict[str, Any]:
    """The other options, where they were given."""
    return _given(
        rules=None if rules is None else asdict(rules), shift=shift, name=name, max_cores=max_cores, shapes=shapes
    )


def _given(**options: Any) -> dict[str, Any]:
    """Those that are."""
    return {option: value for option, value in options.items() if value is not None}


def refuse_touched(
    path: Path, counts: Mapping[str, int], firsts: Mapping[str, str], rules: CleaningRules | None
) -> None:
    """`EscalaError` for the first rule that leaves a job out or changes it."""
    touched = {rule: count for rule, count in counts.items() if rule not in FAITHFUL}
    if touched:
        first = remarks(touched, firsts, rules)[0]
        raise EscalaError(f"{path}: {first}: mend the log, or read it without strict=True (--strict)")


def _swf(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.swf import found_of, read_swf

    return found_of(read_swf(path, **options))


def _batsim(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.batsim import found_of, read_batsim

    return found_of(read_batsim(path, **options))


def _slurm(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.sacct_text import FIELDS_HINT
    from escala.workload.slurm import NOTE, read_slurm

    if isinstance(options.get("columns"), Mapping):
        raise EscalaError(f"{path}: is sacct text: give {FIELDS_HINT}, the list of its fields in order")
    log = read_slurm(path, **options)
    return Found(log.frame, log.counts, True, NOTE, firsts=log.firsts)


def _pbs(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.pbs import NOTE, read_pbs

    return Found(read_pbs(path, **options), {}, True, NOTE)


def _oar(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.oar import NOTE, read_oar

    log = read_oar(path, **options)
    return Found(log.frame, log.counts, True, NOTE, firsts=log.firsts)


def _table(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.tabular import found_of, read_table

    if isinstance(options.get("columns"), Sequence):
        raise EscalaError(
            f"{path}: is a table: say which column a field is in, columns={{'submit_s': 'subtime', ...}} (--column "
            "submit_s=subtime)"
        )
    return found_of(read_table(path, **options))


def _google(path: Path, options: dict[str, Any]) -> Found:
    from escala.workload.google import found_of, read_google

    return found_of(read_google(path, **options))


READERS: dict[str, Callable[[Path, dict[str, Any]], Found]] = {
    "swf": _swf,
    "batsim": _batsim,
    "slurm": _slurm,
    "pbs": _pbs,
    "oar": _oar,
    "google": _google,
    "csv": _table,
    "parquet": _table,
}


COMMENT = ";#"


def detect(path: Path, columns: Columns = None) -> str:
    """The format of a file, from its first bytes; `EscalaError` if it is none that Escala reads. `columns`: as for
    `read_workload`."""
    head = read_head(path)
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if not text:
        raise EscalaError(f"{path}: is empty: give a log of jobs")
    if head[:4] == b"PAR1":
        return "parquet"
    for magic, packer in OTHER_PACKERS.items():
        if head.startswith(magic):
            raise EscalaError(f"{path}: is packed with {packer}: unpack it first (gzip is read as it is)")
    if b"\0" in head:
        raise EscalaError(
            f"{path}: is binary and not Parquet: give a log of jobs (SWF, Batsim JSON, sacct, PBS, OAR, CSV, Parquet)"
        )
    if text[0] in "{[":
        from escala.workload.google_json import is_google_json
        from escala.workload.oar_json import is_oar_json
        from escala.workload.slurm_json import is_sacct_json

        if is_google_json(text):
            return "google"
        return "slurm" if is_sacct_json(text) else "oar" if is_oar_json(text) else "batsim"
    if text[0] == "<":
        raise EscalaError(f"{path}: is XML (a platform?), not a log of jobs")
    lines = _of_data(text.splitlines())
    if not lines and len(head) == HEAD_BYTES:
        lines = _of_data(first_data(path, COMMENT))
    return _detect_lines(lines, path, columns)


def _of_data(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.strip() and line.lstrip()[0] not in COMMENT]


def _detect_lines(data: list[str], path: Path, columns: Columns) -> str:
    """The format of a text by its first lines of data."""
    from escala.workload.google import is_google
    from escala.workload.layouts import is_known
    from escala.workload.pbs import RECORD
    from escala.workload.sacct_text import FIELDS_HINT, is_sacct

    if not data:
        raise EscalaError(f"{path}: has comments only: give a log with jobs")
    first = data[0]
    if RECORD.match(first):
        return "pbs"
    if columns is None and is_google(first):
        return "google"
    if first.startswith("-dt ") and "submit_batch_job" in first:
        raise EscalaError(
            f"{path}: is a Slurm simulator's list of events, which Escala does not read: give sacct text or SWF"
        )
    if "|" in first:
        if is_sacct(first) or isinstance(columns, Sequence):
            return "slurm"
        if columns is None:
            bars = f"has {first.count('|') + 1} fields between bars but no header of sacct"
            raise EscalaError(f"{path}: {bars}: export with a header, or name the fields, {FIELDS_HINT}")
    if isinstance(columns, Mapping):
        return "csv"
    numbers = [bool(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", token, re.IGNORECASE)) for token in first.split()[:18]]
    if (len(numbers) >= 18 and sum(numbers) >= 14) or (len(numbers) >= 10 and all(numbers)):
        return "swf"
    if first.count(";") >= 17 and all(re.fullmatch(r"-?\d+", value) for value in first.split(";")[:5]):
        raise EscalaError(
            f"{path}: is SWF with semicolons, which no standard knows: replace ';' by spaces and text users by numbers"
        )
    separator = max(",;\t", key=first.count)
    names = [value.strip().strip('"') for value in first.split(separator)]
    even = len(data) > 1 and data[1].count(separator) == first.count(separator)
    plain = all(re.fullmatch(r"[\w .:%()/-]{1,40}", value) for value in names)
    if len(names) > 1 and (is_known(names) or (even and plain)):
        return "csv"
    raise EscalaError(
        f"{path}: no log of jobs that Escala knows (begins {quoted(first.strip()[:40])}): give SWF, Batsim JSON, "
        "sacct text, PBS or a table"
    )


def stem(path: Path) -> str:
    """The name of the file without the endings that say what it is."""
    stem = file_name(path)
    while stem.endswith(SUFFIXES):
        stem = stem[: stem.rindex(".")]
    return stem or file_name(path)
