"""Slurm accounting text (`sacct -P` or `-p`), with or without a header line, or `sacct --json`.

Taken as it occurs in practice: any choice of fields, all-field dumps, line breaks and `|` inside free-text fields, job steps, arrays, jobs
that never started, jobs still running, the same job twice. Times without a zone are taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from escala.errors import EscalaError
from escala.reading import read_text
from escala.workload import asked
from escala.workload.clean import COMPONENT, record_name
from escala.workload.filters import Keep, every
from escala.workload.heterogeneous import joined
from escala.workload.ignored import COLUMNS
from escala.workload.slurm_json import json_frame

XDMOD = (  # what Open XDMoD asks sacct for, without a header
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit", "Eligible", "Start", "End"),
    *("Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
WANTED = (
    *("jobid", "jobidraw", "submit", "eligible", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"),
    *("ncpus", "alloccpus", "reqcpus", "alloctres", "reqtres", "state", "user", "uid", "partition", "nodelist", "account", "qos"),
    *("priority", "reservation", "constraints", "licenses", "reqmem", "reqgres", "allocgres", "submitline", "group", "gid", "jobname"),
    *("arraytaskthrottle", *asked.FIELDS),
)
FREE_TEXT = ("jobname", "submitline", "comment", "admincomment", "systemcomment", "constraints", "container", "workdir", "wckey", "reason")
STATES = {
    "COMPLETED": "COMPLETED",
    **dict.fromkeys(("FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "OUT_OF_ME+", "LAUNCH_FAILED", "RECONFIG_FAIL"), "FAILED"),
    **dict.fromkeys(("CANCELLED", "PREEMPTED", "REVOKED", "REQUEUED", "STOPPED", "SPECIAL_EXIT"), "CANCELLED"),
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), "TIMEOUT"),
    **dict.fromkeys(("F", "NF", "BF", "OOM"), "FAILED"),
    **dict.fromkeys(("CA", "PR"), "CANCELLED"),
    "CD": "COMPLETED",
    "TO": "TIMEOUT",
}
WAITING = ("PENDING", "PD", "CONFIGURING", "CF")
RUNNING = ("RUNNING", "R", "COMPLETING", "CG", "SUSPENDED", "S", "RESIZING", "RS", "STAGE_OUT", "SIGNALING")
UNKNOWN = ("", "unlimited", "partition_limit", "invalid", "none", "unknown", "n/a")  # no time, or no limit
FIELDS_HINT = "columns=['JobID', 'Submit', ...] (--fields JobID,Submit,...)"
LONGEST_RECORD = 400  # lines of one record
MOST_BROKEN = 50  # pieces of records, if there are no more whole ones
MOST_SEPARATORS = 60  # in the free text of one record

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_TYPED = {
    "jobid": re.compile(r"\d+([_+.].*)?|\d+_\[.*\].*"),
    "state": re.compile(r"[A-Z][A-Z_]+\+?( by -?\w+)?"),
    **dict.fromkeys(("elapsed", "suspended", "cputime"), re.compile(r"(\d+-)?(\d+:)?\d+:\d\d(\.\d+)?|")),
    **dict.fromkeys(("exitcode", "derivedexitcode"), re.compile(r"\d+:\d+|")),
    **dict.fromkeys(("alloctres", "reqtres"), re.compile(r"(.+=.+)?")),
    **dict.fromkeys(("submit", "eligible", "start", "end"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None|N/A|\d*")),
    **dict.fromkeys(("elapsedraw", "timelimitraw", "ncpus", "alloccpus", "reqcpus"), re.compile(r"\d*|UNLIMITED|Partition_Limit")),
    **dict.fromkeys(("uid", "gid", "nnodes", "allocnodes", "reqnodes", "associd", "dbindex", "qosraw", "priority"), re.compile(r"\d*")),
}


class SlurmLog(NamedTuple):
    """Records for `clean`, what the reader dropped, and the first of each."""

    frame: pl.DataFrame
    counts: dict[str, int]
    firsts: dict[str, str]


def is_sacct(first_line: str) -> bool:
    """True for a header of sacct, or for the fields that Open XDMoD asks for."""
    names = {name.lower() for name in first_line.split("|")}
    return bool({"jobid", "jobidraw"} & names) or _is_xdmod(first_line)


def read_slurm(
    path: Path,
    columns: Sequence[str] | None = None,
    cores: Literal["allocated", "requested"] = "allocated",
    submission: Literal["submit", "eligible"] = "submit",
    keep: Keep = every,
    shapes: bool = False,
) -> SlurmLog:
    """The jobs of a sacct listing; `keep` takes part of them; `shapes`: with the columns of `asked`.

    `columns`: names of the fields, in order, where the file has no header. `cores`: allocated (AllocCPUS, NCPUS, AllocTRES) or requested
    (ReqCPUS, ReqTRES) first. `submission`: when a job counts as submitted: Submit, or Eligible (after dependencies and begin times).
    The components of a heterogeneous job that started together become one job, see `heterogeneous`.
    """
    if cores not in ("allocated", "requested") or submission not in ("submit", "eligible"):
        raise EscalaError(f"cores is {cores!r}, submission {submission!r}: give 'allocated' or 'requested', 'submit' or 'eligible'")
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return _interpret(json_frame(text, path), cores, submission, path, 0, keep, shapes)
    lines = text.splitlines()
    fields, first = _fields(lines, columns, path)
    need = [name for name in fields if name in WANTED]
    records, numbers, broken, first_broken = _records(lines, first, fields, path)
    if not records:
        raise EscalaError(f"{path}: no job records below the header: export with sacct --parsable2 and at least one job")
    at = [fields.index(name) for name in need]
    frame = pl.DataFrame(
        {name: [record[k].strip() for record in records] for name, k in zip(need, at)}, schema=dict.fromkeys(need, pl.String)
    )
    frame = frame.with_columns(line=pl.Series(numbers))
    log = _interpret(frame, cores, submission, path, broken, keep, shapes)
    return log._replace(firsts={**log.firsts, "broken record": f"line {first_broken}"}) if broken else log


def _is_xdmod(line: str) -> bool:
    """26 fields with four times where Open XDMoD has them."""
    values = line.rstrip("|").split("|")
    return (
        len(values) >= len(XDMOD)
        and all(_TYPED["submit"].fullmatch(value) for value in values[10:14])
        and bool(_STAMP.fullmatch(values[10]))
    )


def _fields(lines: list[str], columns: Sequence[str] | None, path: Path) -> tuple[list[str], int]:
    """Names of the fields in lower case, and the number of the first record's line (from 0)."""
    first = next((k for k, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise EscalaError(f"{path}: is empty: export with sacct --parsable2")
    header = [name.strip().lower() for name in lines[first].split("|")]
    if {"jobid", "jobidraw"} & set(header):
        fields, begin = header, first + 1
    elif columns is not None:
        fields, begin = [name.lower() for name in columns], first
        fields += [""] if lines[first].endswith("|") and len(header) == len(fields) + 1 else []
    elif _is_xdmod(lines[first]):
        fields, begin = [name.lower() for name in XDMOD], first
    else:
        raise EscalaError(f"{path}, line {first + 1}: no header with JobID: export with a header, or name the fields, {FIELDS_HINT}")
    for choice in (("jobid", "jobidraw"), ("submit", "eligible"), ("state", "elapsed", "elapsedraw", "end")):
        if not set(choice) & set(fields):
            raise EscalaError(
                f"{path}: no field {' or '.join(choice)}: export with sacct --format=JobID,User,Submit,Start,End,State,AllocCPUS,..."
            )
    return fields, begin


def _records(lines: list[str], first: int, fields: list[str], path: Path) -> tuple[list[list[str]], list[int], int, int]:
    """Values of each record, its line number (from 1), how many pieces were no record, and the line of the first.

    A record may run over several lines and hold the separator in a free-text field; a repeated header is passed over.
    """
    records, numbers, broken, first_broken, k = [], [], 0, 0, first
    header = [name.lower() for name in fields]
    while k < len(lines):
        line = lines[k]
        values = line.split("|")
        if len(values) == len(fields):
            if [value.lower() for value in values[:3]] != header[:3]:
                records.append(values)
                numbers.append(k + 1)
        elif line.strip():
            joined, used = _join(lines, k, fields)
            if joined is None:
                broken += 1
                first_broken = first_broken or k + 1
                if broken > MOST_BROKEN and broken > len(records):
                    raise EscalaError(f"{path}, line {k + 1}: most lines do not have the {len(fields)} fields of the header: export again")
            else:
                records.append(joined)
                numbers.append(k + 1)
                k += used - 1
        k += 1
    return records, numbers, broken, first_broken


def _join(lines: list[str], k: int, fields: list[str]) -> tuple[list[str] | None, int]:
    """The record that begins at line k and how many lines it takes; None if none fits."""
    separators, least = 0, len(fields) - 1
    for used in range(1, LONGEST_RECORD + 1):
        if k + used > len(lines):
            break
        line = lines[k + used - 1]
        here = line.count("|")
        if used > 1 and here == least and _fits(line.split("|"), fields):
            break  # a whole record of its own
        separators += here
        if separators > least + MOST_SEPARATORS:
            break  # more lines only add to them
        if separators < least:
            continue
        values = _align("\n".join(lines[k : k + used]).split("|"), fields)
        if values is not None:
            return values, used
    return None, 1


def _align(values: list[str], fields: list[str]) -> list[str] | None:
    """Values put to fields where free-text fields may hold the separator; None if no way fits.

    Of all ways in which every value of known form has that form, one in which most of these values are not empty (dynamic programming over
    fields and separators used up).
    """
    extra = len(values) - len(fields)
    if not 0 <= extra <= MOST_SEPARATORS:
        return None
    best: dict[int, tuple[int, list[str]]] = {0: (0, [])}  # separators used up -> (known values, aligned values)
    for k, name in enumerate(fields):
        form, reached = _TYPED.get(name), dict[int, tuple[int, list[str]]]()
        for used, (score, aligned) in best.items():
            for more in range(extra - used + 1) if name in FREE_TEXT else (0,):
                value = "|".join(values[k + used : k + used + more + 1])
                if form is not None and form.fullmatch(value.strip()) is None:
                    continue
                gain = score + (form is not None and value.strip() != "")
                if gain > reached.get(used + more, (-1, []))[0]:
                    reached[used + more] = (gain, [*aligned, value])
        best = reached
    return best[extra][1] if extra in best else None


def _fits(values: Iterable[str], fields: list[str]) -> bool:
    """True if every value whose form is known has it."""
    return all(_TYPED[name].fullmatch(value.strip()) is not None for name, value in zip(fields, values) if name in _TYPED)


def _interpret(frame: pl.DataFrame, cores: str, submission: str, path: Path, broken: int, keep: Keep, shapes: bool) -> SlurmLog:
    """Text -> records for `clean`."""
    have = set(frame.columns)
    more = asked.of_sacct(have, submission) if shapes else {}
    frame = frame.with_columns(job_id=pl.coalesce(_text(name, have) for name in ("jobid", "jobidraw")), word=_first_word(have))
    firsts: dict[str, str] = {}

    def noted(rule: str, which: pl.Series) -> int:
        """How many records a rule takes; the first is noted."""
        which = which.fill_null(False)
        if which.any():
            firsts[rule] = record_name(frame, int(which.arg_max() or 0))
        return int(which.sum())

    step = frame["job_id"].str.contains(r"\.")
    steps = noted("job step rows", step)
    frame = frame.filter(~step)
    frame = frame.with_columns([_seconds(name, have).alias(f"{name}_at") for name in ("submit", "eligible", "start", "end")])
    frame = frame.with_columns(elapsed_s=_elapsed(have), walltime_s=_limit(have), cores=_cores(have, cores))
    _refuse_unreadable(frame, have, path)
    first, second = ("submit_at", "eligible_at") if submission == "submit" else ("eligible_at", "submit_at")
    owners = {"user": pl.coalesce(_text(name, have) for name in ("user", "uid")), "partition": _text("partition", have)}
    owners |= {"account": _text("account", have), "submit_s": pl.coalesce(first, second)}
    frame = keep(frame.with_columns(**owners, **_ignored(have, submission, shapes), **more), 0.0)
    waiting, running = _unfinished(frame, have)
    counts = {
        "job step rows": steps,
        "broken record": broken,
        "never started": noted("never started", waiting),
        "still running": noted("still running", running & ~waiting),
    }
    frame = frame.filter(~(waiting | running))
    frame = frame.select(
        pl.col("line", "job_id", "submit_s", "walltime_s", "cores", "user"),
        pl.col("elapsed_s").alias("runtime_s"),
        (pl.col("start_at") - pl.col("submit_s")).alias("wait_s"),
        pl.col("partition").alias("queue"),
        pl.col("word").replace_strict(STATES, default=None, return_dtype=pl.String).alias("status"),
        pl.col(COLUMNS),
        pl.col(list(more)),
    )
    record = pl.struct(pl.exclude("line", *COLUMNS))
    again = ~frame.select(record.is_first_distinct().alias("first"))["first"]  # sacct --duplicates, or overlaps
    counts["repeated record"] = noted("repeated record", again)
    frame = frame.filter(~again)
    whole = joined(frame, more)
    if whole.height < frame.height:
        counts[COMPONENT] = frame.height - whole.height
        firsts[COMPONENT] = record_name(whole, int((~whole["job_id"].is_in(frame["job_id"].implode())).arg_max() or 0))
    return SlurmLog(whole, {rule: count for rule, count in counts.items() if count}, firsts)


def _ignored(have: set[str], submission: str, shapes: bool) -> dict[str, pl.Expr]:
    """What no replay looks at, and names, as the text of `ignored.COLUMNS`. With `shapes` jobs wait until they were eligible."""
    tres = [_text(name, have) for name in ("alloctres", "reqtres")]
    gres = [_text(name, have).str.extract(r"gpu[\w:]*:(\d+)") for name in ("allocgres", "reqgres")]
    line = _text("submitline", have)
    late = (pl.col("eligible_at") - pl.col("submit_at") > 1.0) if submission == "submit" else pl.lit(False)
    after = line.str.contains(r"\s(--dependency[= ]|-d ?\w)") | late.fill_null(False)
    return {
        "gpus": pl.coalesce(*(text.str.extract(r"gres/gpu[^=,]*=(\d+)") for text in tres), *gres),
        "memory": pl.coalesce(_text("reqmem", have), *(text.str.extract(r"(?:^|,)mem=([^,]+)") for text in tres)),
        "licences": pl.coalesce(_text("licenses", have), *(text.str.extract(r"(?:^|,)license/[^=,]*=(\d+)") for text in tres)),
        "features": _text("constraints", have),
        "reserved": _text("reservation", have),
        "array_throttle": pl.when(line.str.contains(asked.THROTTLE) & pl.lit(not shapes)).then(pl.lit("yes")),
        "dependency": pl.when(pl.lit(not (shapes and "eligible" in have)) & after.fill_null(late)).then(pl.lit("yes")),
        "qos": _text("qos", have),
        "group": pl.coalesce(_text(name, have) for name in ("group", "gid")),
        "job_name": _text("jobname", have),
        "executable": pl.lit(None, dtype=pl.String),
        "priority": _text("priority", have),
    }


def _text(name: str, have: set[str]) -> pl.Expr:
    """A field as text; null where it is empty or not there."""
    return pl.col(name).replace("", None) if name in have else pl.lit(None, dtype=pl.String)


def _first_word(have: set[str]) -> pl.Expr:
    """The state without who cancelled the job."""
    return _text("state", have).str.split(" ").list.first().str.to_uppercase().str.replace(r"\+$", "")


def _seconds(name: str, have: set[str]) -> pl.Expr:
    """Unix seconds of a time field: `2022-01-31T12:00:00` (as UTC) or a number; null where unknown."""
    stamp = _text(name, have)
    written = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="ms").dt.timestamp("ms") / 1000.0
    return pl.coalesce(written, stamp.cast(pl.Float64, strict=False))


def duration(stamp: pl.Expr) -> pl.Expr:
    """Seconds of `[DD-[HH:]]MM:SS[.fff]`; null where the text has another form."""
    part = stamp.str.extract_groups(r"^(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)$").struct
    days, hours, minutes, seconds = (part.field(name).cast(pl.Float64, strict=False).fill_null(0.0) for name in "dhms")
    return pl.when(part.field("m").is_not_null()).then(days * 86400 + hours * 3600 + minutes * 60 + seconds)


def _elapsed(have: set[str]) -> pl.Expr:
    """Runtime: ElapsedRaw, else Elapsed, else End - Start; s."""
    ran = pl.col("end_at") - pl.col("start_at")
    return pl.coalesce(_text("elapsedraw", have).cast(pl.Float64, strict=False), duration(_text("elapsed", have)), ran)


def _limit(have: set[str]) -> pl.Expr:
    """Requested time, s: TimelimitRaw (minutes), else Timelimit; null for UNLIMITED, Partition_Limit and the like."""
    return pl.coalesce(_text("timelimitraw", have).cast(pl.Float64, strict=False) * 60.0, duration(_text("timelimit", have)))


def _cores(have: set[str], cores: str) -> pl.Expr:
    """The first positive number among the fields that say how many."""
    allocated = [_text("alloccpus", have), _text("ncpus", have), _text("alloctres", have).str.extract(r"(?:^|,)cpu=(\d+)")]
    requested = [_text("reqcpus", have), _text("reqtres", have).str.extract(r"(?:^|,)cpu=(\d+)")]
    order = [text.cast(pl.Float64, strict=False) for text in (allocated + requested if cores == "allocated" else requested + allocated)]
    return pl.coalesce(pl.when(number > 0).then(number) for number in order)


def _unfinished(frame: pl.DataFrame, have: set[str]) -> tuple[pl.Series, pl.Series]:
    """(never started, still running): waiting, cancelled before the start, or without an end."""
    word, nowhere = pl.col("word"), _text("nodelist", have).str.to_lowercase() == "none assigned"
    unstarted = pl.col("start_at").is_null() if "start" in have else pl.lit(False)
    cancelled = (word.str.starts_with("CANCELLED") & (pl.col("elapsed_s") == 0)) if "nodelist" not in have else pl.lit(False)
    waiting = word.is_in(WAITING).fill_null(False) | nowhere.fill_null(False) | unstarted | cancelled.fill_null(False)
    open_end = pl.col("end_at").is_null() if "end" in have else pl.lit(False)
    running = word.is_in(RUNNING).fill_null(False) | open_end
    flags = frame.select(waiting.alias("waiting"), running.alias("running"))
    return flags["waiting"], flags["running"]


def _refuse_unreadable(frame: pl.DataFrame, have: set[str], path: Path) -> None:
    """A value that is neither readable nor one of Slurm's words for unknown is an error, with its line."""
    number = {name: pl.col(name).cast(pl.Float64, strict=False) for name in ("elapsedraw", "timelimitraw")}
    read = {name: pl.col(f"{name}_at") for name in ("submit", "eligible", "start", "end")}
    read |= {"elapsed": duration(pl.col("elapsed")), "timelimit": duration(pl.col("timelimit")), **number}
    for name, value in read.items():
        if name not in have:
            continue
        unknown = pl.col(name).str.to_lowercase().is_in(UNKNOWN)
        bad = frame.filter(value.is_null() & ~unknown)
        if bad.height:
            where, shown = f"{path}, line {bad['line'][0]}", bad[name][0][:40]
            raise EscalaError(f"{where}: {name} of job {bad['job_id'][0]!r} is {shown!r}: a time as sacct writes it is needed")
