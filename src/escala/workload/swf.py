"""Standard Workload Format (SWF), read and written.

Format: Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999; version 2.2
at https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Taken as they occur in practice: more than 18 columns,
tabs, no header, indented comments, ids that are text (`job_12`), fractional numbers, absolute times, unsorted jobs,
empty lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from escala.errors import EscalaError, quoted
from escala.reading import guarded, reading
from escala.workload.clean import record_name
from escala.workload.files import write_atomic
from escala.workload.filters import ABSOLUTE_FROM_S, Keep, every
from escala.workload.found import Found
from escala.workload.lines import line_chunks
from escala.workload.shapes import MOST_S
from escala.workload.table import Workload
from escala.workload.unsayable import refuse_unsayable, warn_unwritten

FIELDS = {
    "job number": 1,
    "submit time": 2,
    "wait time": 3,
    "run time": 4,
    "allocated processors": 5,
    "requested processors": 8,
}
FIELDS |= {"requested time": 9, "requested memory": 10, "status": 11, "user": 12, "group": 13, "executable": 14}
FIELDS |= {"queue": 15, "partition": 16, "preceding job": 17}  # all in the order of the scanner's rows
LABELS = ("job number", "user", "group", "executable", "queue", "partition", "requested memory", "preceding job")
CODE_OF_STATUS = {"FAILED": 0, "TIMEOUT": 0, "COMPLETED": 1, "CANCELLED": 5}
PARTIAL = (2.0, 3.0, 4.0)  # one of several executions of a job
PARTS = "partial execution"  # the rule that leaves them out

CoresField = Literal["allocated", "requested"]


class SwfLog(NamedTuple):
    """A log as it is in the file: records for `clean`, header fields (name -> values), what the reader already dropped,
    and the first of it."""

    frame: pl.DataFrame
    header: dict[str, list[str]]
    counts: dict[str, int]
    firsts: dict[str, str]


class Names(NamedTuple):
    """What a log means by its fields 15 to 17, which only all of its lines show."""

    queue: str  # the field that is the queue
    partitions: bool  # are there several, besides
    before: bool  # do jobs wait for others? Some logs fill the field with 1
    partial: bool  # are there lines of partial executions?


def read_swf(path: Path, cores: CoresField = "allocated", keep: Keep = every) -> SwfLog:
    """The job lines of an SWF file. `cores`: the field preferred, 5 (allocated) or 8 (requested); the other where it is
    not positive.
    `keep`: takes part of them. The account is field 13 (group); the partition field 16 where it has several values,
    else 15 (queue)."""
    header: dict[str, list[str]] = {}
    frames = list(_lines(path, header, cores))
    frame = pl.concat(frames, how="vertical") if frames else pl.DataFrame()
    if frame.is_empty():
        raise _no_lines(path)
    names = _names([frame])
    kept = keep(*_records(frame, names, header))
    return _log(kept, header, _twofold(lambda: [kept]))


def swf_pieces(path: Path, cores: CoresField, keep: Keep, look: Keep | None) -> Iterator[SwfLog]:
    """The same some megabytes at a time, in the order of the file.

    look: a `Keep` as `keep`, for a look ahead at all lines, which are then read twice, and four times where there are
    partial executions.
    None: queues and partitions are told apart by the lines of the first piece, and partial executions are left out
    where the whole job stands in the same piece.
    """
    header, ahead = dict[str, list[str]](), dict[str, list[str]]()
    names = twofold = None
    if look is not None:
        found = names = _names(_lines(path, ahead, cores))
        twofold = _twofold(
            lambda: (look(*_records(frame, found, ahead)) for frame in _lines(path, {}, cores)), found.partial
        )
    empty = True
    for frame in _lines(path, header, cores):
        names = names or _names([frame])
        empty = empty and frame.is_empty()
        kept = keep(*_records(frame, names, header))
        yield _log(kept, header, _twofold([kept].__iter__) if twofold is None else twofold)
    if empty:
        raise _no_lines(path)


def _no_lines(path: Path) -> EscalaError:
    return EscalaError(f"{path}: no job lines: an SWF line has 18 numbers")


def _lines(path: Path, header: dict[str, list[str]], cores: CoresField) -> Iterator[pl.DataFrame]:
    """The fields of the job lines, some megabytes at a time; `header` is filled meanwhile."""
    if cores not in ("allocated", "requested"):
        raise EscalaError(f"cores is {cores!r}: give 'allocated' (field 5 first) or 'requested' (field 8 first)")
    with reading(path) as stream:
        for text, first_line in line_chunks(stream, path):
            yield _parse(text, first_line, path, header, cores)


def _names(frames: Iterable[pl.DataFrame]) -> Names:
    queued, partial, partitions, before = False, False, set[str](), set[str | None]()
    for frame in frames:
        queued = queued or frame["queue"].null_count() < frame.height
        partial = partial or bool(frame["status"].is_in(PARTIAL).any())
        partitions |= set(frame["partition"].drop_nulls().unique().head(2))
        before |= set(frame["preceding job"].unique().head(2))
    return Names("queue" if queued else "partition", len(partitions) > 1, len(before) > 1, partial)


def _records(frame: pl.DataFrame, names: Names, header: dict[str, list[str]]) -> tuple[pl.DataFrame, float | None]:
    """Lines as records for a `Keep`, and the Unix time of their clock's 0."""
    partition = ["partition"] if names.partitions else []
    before = [pl.col("preceding job").alias("waits_for")] if names.before else []
    records = frame.select(
        pl.col("job number").alias("job_id"),
        pl.col("submit time").alias("submit_s"),
        pl.col("run time").alias("runtime_s"),
        pl.col("requested time").alias("walltime_s"),
        pl.col("wait time").alias("wait_s"),
        pl.col(names.queue).alias("queue"),
        pl.col("requested memory").alias("memory"),
        pl.col("cores", "user", "group", "executable", "status", "line", *partition),
        *before,
    )
    return records, header_number(header, "UnixStartTime") or None


def _twofold(frames: Callable[[], Iterable[pl.DataFrame]], partial: bool = True) -> pl.Series:
    """The jobs that have lines of partial executions and one of their own. frames: all records, from the beginning each
    time; partial: may there be such lines?"""
    split = pl.Series(dtype=pl.String)
    for frame in frames() if partial else ():
        split = pl.concat([split, frame.filter(pl.col("status").is_in(PARTIAL))["job_id"]]).unique()
    whole = split.clear()
    for frame in frames() if len(split) else ():
        own = frame.filter(~pl.col("status").is_in(PARTIAL), pl.col("job_id").is_in(split.implode()))
        whole = pl.concat([whole, own["job_id"]]).unique()
    return whole


def _log(frame: pl.DataFrame, header: dict[str, list[str]], twofold: pl.Series) -> SwfLog:
    """Records for `clean`, with words for status codes; partial executions (codes 2, 3, 4) of the jobs `twofold` are
    left out."""
    code = pl.col("status")
    counts, firsts = dict[str, int](), dict[str, str]()
    if len(twofold):
        extra = frame.select((code.is_in(PARTIAL) & pl.col("job_id").is_in(twofold.implode())).alias("extra"))["extra"]
        if extra.any():
            counts, firsts = {PARTS: int(extra.sum())}, {PARTS: record_name(frame, int(extra.arg_max() or 0))}
            frame = frame.filter(~extra)
    failed = pl.when(code == 0).then(pl.lit("FAILED"))
    ended = (
        failed.when(code.is_in((1.0, 3.0)))
        .then(pl.lit("COMPLETED"))
        .when(code.is_in((4.0, 5.0)))
        .then(pl.lit("CANCELLED"))
    )
    return SwfLog(frame.with_columns(status=ended), header, counts, firsts)


def read_header(path: str | Path) -> dict[str, list[str]]:
    """The header of an SWF file: `; Name: value` lines, name -> values in order. Reading stops at the first job."""
    header: dict[str, list[str]] = {}
    path = Path(path)
    with guarded(path, "SWF"), reading(path) as stream:
        for text, _ in line_chunks(stream, path):
            for raw in text.split(b"\n"):
                line = raw.strip()
                if line and not line.startswith((b";", b"#")):
                    return header
                _note(header, line)
    return header


def header_number(header: dict[str, list[str]], *names: str) -> float | None:
    """The first of the named fields that begins with a number (thousands separators allowed), or None."""
    for name in names:
        for value in header.get(name, []):
            found = re.match(r"-?\d[\d,]*(\.\d+)?", value)
            if found:
                return float(found[0].replace(",", ""))
    return None


def found_of(log: SwfLog) -> Found:
    """A log with what its header says of it."""
    size = header_number(log.header, "MaxProcs", "MaxNodes")
    facts = [value for key in ("Version", "Computer", "Installation") for value in log.header.get(key, [])[:1] if value]
    note = ", ".join(["SWF", *facts])
    most = int(min(size, 1e300)) if size and size > 0 else None
    return Found(log.frame, log.counts, True, note, lambda first_s: origin(log.header, first_s), most, log.firsts)


def origin(header: dict[str, list[str]], first_submit_s: float) -> float:
    """Unix time (where the log allows) of the submission that becomes time 0; the log's own first time otherwise."""
    if first_submit_s >= ABSOLUTE_FROM_S:
        return 0.0
    start = header_number(header, "UnixStartTime") or 0.0
    return start if abs(start) <= MOST_S else 0.0


def _parse(text: bytes, first_line: int, path: Path, header: dict[str, list[str]], cores: CoresField) -> pl.DataFrame:
    """One chunk as a frame of records."""
    from escala.workload.swf_scan import scan_text  # compiling needs Numba, which is slow to import

    scanned = scan_text(text)
    for at in scanned.comments:
        _note(header, text[at : text.index(b"\n", at)].strip())
    if scanned.short >= 0:
        found = len(text.split(b"\n", scanned.short + 1)[scanned.short].split())
        raise EscalaError(
            f"{path}, line {first_line + scanned.short}: {found} fields: an SWF job line has 18; complete or remove "
            "the line"
        )
    columns = {"line": pl.Series("line", scanned.lines) + first_line}
    for row, name in enumerate(FIELDS):
        values = scanned.numbers[row]
        odd = np.flatnonzero(np.isnan(values)).tolist()
        tokens = [_token(text, int(at)) for at in scanned.starts[row, odd]]
        if name in LABELS:
            columns[name] = _label(values, odd, tokens, keep_negative=name == "job number")
        else:
            _mend(values, odd, tokens, name, [f"{path}, line {first_line + int(scanned.lines[job])}" for job in odd])
            columns[name] = pl.Series(name, values)
    first, second = ("allocated", "requested") if cores == "allocated" else ("requested", "allocated")
    preferred, other = columns.pop(f"{first} processors"), columns.pop(f"{second} processors")
    return pl.DataFrame(columns).with_columns(cores=preferred.zip_with(preferred > 0, other))


def _token(text: bytes, start: int) -> bytes:
    """The token that begins at `start`."""
    return text[start : start + 256].split(maxsplit=1)[0]


def _mend(values: npt.NDArray[np.float64], odd: list[int], tokens: list[bytes], name: str, where: list[str]) -> None:
    """Numbers that the scanner left (exponents, many digits), in place; what is no number is an error."""
    for job, token, place in zip(odd, tokens, where):
        try:
            values[job] = float(token)
        except ValueError:
            shown = quoted(token.decode(errors="replace"))
            raise EscalaError(f"{place}: field {FIELDS[name]} ({name}) is {shown}: a number is needed") from None


def _label(values: npt.NDArray[np.float64], odd: list[int], tokens: list[bytes], keep_negative: bool) -> pl.Series:
    """Numbers as text ("12"), negative ones null unless they are ids; what is text in the file as it is."""
    whole = pl.Series(values, nan_to_null=True).cast(pl.Int64)
    if not keep_negative:
        whole = whole.set(whole < 0, None)
    labels = whole.cast(pl.String)
    return labels.scatter(odd, [token.decode(errors="replace") for token in tokens]) if odd else labels


def _note(header: dict[str, list[str]], line: bytes) -> None:
    """Keep a `; Name: value` comment."""
    found = re.match(r";\s*([A-Za-z]\w*)\s*:\s*(.*)", line.decode("utf-8", errors="replace"))
    if found:
        header.setdefault(found[1], []).append(found[2].strip())


def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as SWF 2.2 (gzipped if the name ends in `.gz`; the whole file or nothing).

    Ids, users, queues and other names that are not whole numbers are numbered by first appearance. Cores go to fields 5
    and 8; a job without a limit has the requested time -1. Accounts stand in for groups, and jobs' names for
    executables, where there are none. SWF has no place for loads (the header says so where one is not 1) and calls
    TIMEOUT "failed"; single-node jobs, further resources, begin times after submission and unknown runtimes are
    refused. Dependencies and priorities are not written (`EscalaWarning`).
    """
    jobs = workload.jobs
    refuse_unsayable(workload, "SWF")
    base = min(0.0, float(jobs["submit_s"].min() or 0.0))  # type: ignore[arg-type]
    minus = pl.lit("-1")
    asked = pl.when("limited").then("walltime_s") if "limited" in jobs.columns else pl.col("walltime_s")
    code = pl.col("status").replace_strict(
        {key: str(value) for key, value in CODE_OF_STATUS.items()}, default="-1", return_dtype=pl.String
    )
    fields = [
        pl.lit(_numbered(jobs["job_id"])),
        _plain(pl.col("submit_s") - base),
        _plain(pl.col("wait_s")).fill_null("-1"),
        _plain(pl.col("runtime_s")),
        pl.col("cores").cast(pl.String),
        *(minus, minus),
        pl.col("cores").cast(pl.String),
        _plain(asked).fill_null("-1"),
        *(minus, code.fill_null("-1")),
        *(
            _named(jobs, *names)
            for names in (("user",), ("group", "account"), ("executable", "job_name"), ("queue",), ("partition",))
        ),
        *(minus, minus),
    ]
    header = _header(workload, base)
    warn_unwritten(workload, "SWF")

    def pieces() -> Iterator[bytes]:
        yield header.encode()
        lines = jobs.select(
            pl.concat_str([field.alias(str(k)) for k, field in enumerate(fields)], separator=" ").alias("line")
        )["line"]
        for part in lines.to_frame().iter_slices(100_000):
            yield ("\n".join(part["line"].to_list()) + "\n").encode()

    write_atomic(path, pieces())


def _plain(value: pl.Expr) -> pl.Expr:
    """Shortest text that gives the same number back; without a fraction where there is none."""
    whole = (value % 1 == 0) & (value.abs() < 2**53)
    return pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))


def _named(jobs: pl.DataFrame, *names: str) -> pl.Expr:
    """The field of the first of these columns that a workload has; -1 for none."""
    name = next((name for name in names if name in jobs.columns), None)
    return pl.lit("-1") if name is None else pl.lit(_numbered(jobs[name])).fill_null("-1")


def _numbered(labels: pl.Series) -> pl.Series:
    """Labels that are whole numbers unchanged; else every label replaced by the rank (from 1) of its first
    appearance."""
    known = labels.drop_nulls()
    if bool(known.str.contains(r"^(0|[1-9]\d{0,14})$").all()):
        return labels
    seen = known.unique(maintain_order=True)
    ranks = pl.int_range(1, len(seen) + 1, eager=True).cast(pl.String)
    return labels.replace_strict(seen, ranks, default=None, return_dtype=pl.String)


def _header(workload: Workload, base: float) -> str:
    """Header comments of SWF 2.2."""
    start = workload.origin_s + base
    cores = workload.max_cores or int(workload.jobs["cores"].max() or 0)  # type: ignore[arg-type]
    lines = [
        "Version: 2.2",
        "Conversion: Escala",
        f"Note: workload {workload.name!r}",
        f"MaxJobs: {len(workload)}",
        f"MaxRecords: {len(workload)}",
        f"UnixStartTime: {int(start) if start == int(start) else start}",
        f"MaxProcs: {cores}",
    ]
    lines += [f"Note: {rule}: {count} jobs" for rule, count in workload.cleaning.items()]
    if bool((workload.jobs["load"] != 1.0).any()):
        lines.append("Note: some jobs have a load other than 1, which SWF cannot say")
    return "".join(f"; {' '.join(line.split())}\n" for line in lines)
