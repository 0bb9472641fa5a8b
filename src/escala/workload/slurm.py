"""Slurm accounting text (`sacct -P` or `-p`), with or without a header line, or `sacct --json`.

Taken as it occurs in practice: any choice of fields, all-field dumps, line breaks and `|` inside free-text fields, job
steps, arrays, jobs that never started, jobs still running, the same job twice. Times without a zone are taken as UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from escala.errors import EscalaError
from escala.reading import read_text, reading
from escala.workload import asked
from escala.workload.clean import COMPONENT, record_name
from escala.workload.columns import HOSTS, MEASURED
from escala.workload.filters import Keep, every
from escala.workload.heterogeneous import joined
from escala.workload.ignored import COLUMNS
from escala.workload.lines import line_chunks
from escala.workload.ordering import PLACE
from escala.workload.sacct_text import Scan
from escala.workload.shapes import SHAPES
from escala.workload.slurm_json import is_json, json_frames

NOTE = "sacct text"
Cores = Literal["allocated", "requested"]
Submission = Literal["submit", "eligible"]

STATES = {
    "COMPLETED": "COMPLETED",
    **dict.fromkeys(
        ("FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "OUT_OF_ME+", "LAUNCH_FAILED", "RECONFIG_FAIL"), "FAILED"
    ),
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


class SlurmLog(NamedTuple):
    """Records for `clean`, what the reader dropped, and the first of each."""

    frame: pl.DataFrame
    counts: dict[str, int]
    firsts: dict[str, str]


def read_slurm(
    path: Path,
    columns: Sequence[str] | None = None,
    cores: Cores = "allocated",
    submission: Submission = "submit",
    keep: Keep = every,
    shapes: bool = False,
) -> SlurmLog:
    """The jobs of a sacct listing; `keep` takes part of them; `shapes`: with the columns of `asked`.

    `columns`: names of the fields, in order, where the file has no header. `cores`: allocated (AllocCPUS, NCPUS,
    AllocTRES) or requested (ReqCPUS, ReqTRES) first. `submission`: when a job counts as submitted: Submit, or Eligible
    (after dependencies and begin times). The components of a heterogeneous job that started together become one job,
    see `heterogeneous`.
    """
    if is_json(path):
        log = _interpret(pl.concat(json_frames(path)), cores, submission, path, keep, shapes)
    else:
        scan = Scan(read_text(path).splitlines(), columns, path)
        log = _interpret(scan.frame(whole=True), cores, submission, path, keep, shapes)
        if not scan.found:
            raise _no_records(path)
        log = SlurmLog(log.frame, scan.broken | log.counts, log.firsts | scan.first_broken)
    frame, counts, firsts = together(log.frame)
    return SlurmLog(frame, log.counts | counts, log.firsts | firsts)


def slurm_pieces(
    path: Path, columns: Sequence[str] | None, cores: Cores, submission: Submission, keep: Keep
) -> Iterator[SlurmLog]:
    """The same some megabytes at a time, in the order of the file. What belongs together (`together`) is not yet
    joined."""
    if is_json(path):
        for frame in json_frames(path):
            yield _interpret(frame, cores, submission, path, keep, False)
        return
    scan: Scan | None = None
    with reading(path) as stream:
        for text, _ in line_chunks(stream, path):
            lines = text.decode("utf-8", errors="replace").splitlines()
            if scan is not None:
                scan.more(lines)
            elif any(line.strip() for line in lines):
                scan = Scan(lines, columns, path)
            if scan is not None:
                yield _interpret(scan.frame(whole=False), cores, submission, path, keep, False)
    scan = scan or Scan([], columns, path)
    log = _interpret(scan.frame(whole=True), cores, submission, path, keep, False)
    if not scan.found:
        raise _no_records(path)
    yield SlurmLog(log.frame, scan.broken | log.counts, log.firsts | scan.first_broken)


def together(frame: pl.DataFrame) -> SlurmLog:
    """Records for `clean`: a record once, and the components of a heterogeneous job as one. All that were submitted at
    one instant are needed to know it."""
    firsts: dict[str, str] = {}
    shapes = [name for name in frame.columns if name in (*SHAPES, HOSTS, MEASURED) and name not in COLUMNS]
    record = pl.struct(pl.exclude("line", PLACE, *COLUMNS))
    again = ~frame.select(record.is_first_distinct().alias("first"))["first"]  # sacct --duplicates, or overlaps
    counts = {"repeated record": _noted("repeated record", frame, again, firsts)}
    frame = frame.filter(~again)
    whole = joined(frame, shapes)
    if whole.height < frame.height:
        counts[COMPONENT] = frame.height - whole.height
        firsts[COMPONENT] = record_name(whole, int((~whole["job_id"].is_in(frame["job_id"].implode())).arg_max() or 0))
    return SlurmLog(whole, {rule: count for rule, count in counts.items() if count}, firsts)


def _no_records(path: Path) -> EscalaError:
    return EscalaError(f"{path}: no job records below the header: export with sacct --parsable2 and at least one job")


def _noted(rule: str, frame: pl.DataFrame, which: pl.Series, firsts: dict[str, str]) -> int:
    """How many records a rule takes; the first is noted."""
    which = which.fill_null(False)
    if which.any():
        firsts[rule] = record_name(frame, int(which.arg_max() or 0))
    return int(which.sum())


def _interpret(frame: pl.DataFrame, cores: str, submission: str, path: Path, keep: Keep, shapes: bool) -> SlurmLog:
    """Text -> records for `together`."""
    if cores not in ("allocated", "requested") or submission not in ("submit", "eligible"):
        raise EscalaError(
            f"cores is {cores!r}, submission {submission!r}: give 'allocated' or 'requested', 'submit' or 'eligible'"
        )
    have = set(frame.columns)
    more = asked.of_sacct(have, submission) if shapes else {}
    frame = frame.with_columns(
        job_id=pl.coalesce(_text(name, have) for name in ("jobid", "jobidraw")), word=_first_word(have)
    )
    firsts: dict[str, str] = {}
    step = frame["job_id"].str.contains(r"\.")
    counts = {"job step rows": _noted("job step rows", frame, step, firsts)}
    frame = frame.filter(~step)
    frame = frame.with_columns(
        [_seconds(name, have).alias(f"{name}_at") for name in ("submit", "eligible", "start", "end")]
    )
    frame = frame.with_columns(elapsed_s=_elapsed(have), walltime_s=_limit(have), cores=_cores(have, cores))
    _refuse_unreadable(frame, have, path)
    first, second = ("submit_at", "eligible_at") if submission == "submit" else ("eligible_at", "submit_at")
    owners = {"user": pl.coalesce(_text(name, have) for name in ("user", "uid")), "partition": _text("partition", have)}
    owners |= {"account": _text("account", have), "submit_s": pl.coalesce(first, second)}
    frame = keep(frame.with_columns(**owners, **_ignored(have, submission, more), **more), 0.0)
    waiting, running = _unfinished(frame, have)
    counts["never started"] = _noted("never started", frame, waiting, firsts)
    counts["still running"] = _noted("still running", frame, running & ~waiting, firsts)
    frame = frame.filter(~(waiting | running)).select(
        pl.col("line", "job_id", "submit_s", "walltime_s", "cores", "user"),
        pl.col("elapsed_s").alias("runtime_s"),
        (pl.col("start_at") - pl.col("submit_s")).alias("wait_s"),
        pl.col("partition").alias("queue"),
        pl.col("word").replace_strict(STATES, default=None, return_dtype=pl.String).alias("status"),
        pl.col(COLUMNS),
        pl.col(list(more)),
    )
    return SlurmLog(frame, {rule: count for rule, count in counts.items() if count}, firsts)


def _ignored(have: set[str], submission: str, more: dict[str, pl.Expr]) -> dict[str, pl.Expr]:
    """What no replay looks at, and names, as the text of `ignored.COLUMNS`. more: what is taken with `shapes`, by which
    jobs wait until they were eligible."""
    tres = [_text(name, have) for name in ("alloctres", "reqtres")]
    gres = [_text(name, have).str.extract(r"gpu[\w:]*:(\d+)") for name in ("allocgres", "reqgres")]
    line = _text("submitline", have)
    late = (pl.col("eligible_at") - pl.col("submit_at") > 1.0) if submission == "submit" else pl.lit(False)
    after = line.str.contains(r"\s(--dependency[= ]|-d ?\w)") | late.fill_null(False)
    after = after.fill_null(late) | _text("dependency", have).is_not_null()
    shapes, nothing = bool(more), pl.lit(None, dtype=pl.String)
    waits = more.get("dependency", nothing).is_not_null() | pl.lit(shapes and "eligible" in have)
    return {
        "on_nodes": pl.when(pl.lit(not shapes)).then(asked.nodes_of(have).cast(pl.String)),
        "gpus": pl.coalesce(*(text.str.extract(r"gres/gpu[^=,]*=(\d+)") for text in tres), *gres),
        "memory": pl.coalesce(_text("reqmem", have), *(text.str.extract(r"(?:^|,)mem=([^,]+)") for text in tres)),
        "licences": pl.coalesce(
            _text("licenses", have), *(text.str.extract(r"(?:^|,)license/[^=,]*=(\d+)") for text in tres)
        ),
        "constraints": pl.when(more.get("features", nothing).is_null()).then(_text("constraints", have)),
        "reserved": _text("reservation", have),
        "array_throttle": pl.when(line.str.contains(asked.THROTTLE) & pl.lit(not shapes)).then(pl.lit("yes")),
        "waits_for": pl.when(~waits & after).then(pl.lit("yes")),
        "qos": _text("qos", have),
        "group": pl.coalesce(_text(name, have) for name in ("group", "gid")),
        "job_name": _text("jobname", have),
        "executable": pl.lit(None, dtype=pl.String),
        "rank": _text("priority", have),
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
    return pl.coalesce(
        _text("timelimitraw", have).cast(pl.Float64, strict=False) * 60.0, duration(_text("timelimit", have))
    )


def _cores(have: set[str], cores: str) -> pl.Expr:
    """The first positive number among the fields that say how many."""
    allocated = [
        _text("alloccpus", have),
        _text("ncpus", have),
        _text("alloctres", have).str.extract(r"(?:^|,)cpu=(\d+)"),
    ]
    requested = [_text("reqcpus", have), _text("reqtres", have).str.extract(r"(?:^|,)cpu=(\d+)")]
    order = [
        text.cast(pl.Float64, strict=False)
        for text in (allocated + requested if cores == "allocated" else requested + allocated)
    ]
    return pl.coalesce(pl.when(number > 0).then(number) for number in order)


def _unfinished(frame: pl.DataFrame, have: set[str]) -> tuple[pl.Series, pl.Series]:
    """(never started, still running): waiting, cancelled before the start, or without an end."""
    word, nowhere = pl.col("word"), _text("nodelist", have).str.to_lowercase() == "none assigned"
    unstarted = pl.col("start_at").is_null() if "start" in have else pl.lit(False)
    cancelled = (
        (word.str.starts_with("CANCELLED") & (pl.col("elapsed_s") == 0)) if "nodelist" not in have else pl.lit(False)
    )
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
            raise EscalaError(
                f"{where}: {name} of job {bad['job_id'][0]!r} is {shown!r}: a time as sacct writes it is needed"
            )
