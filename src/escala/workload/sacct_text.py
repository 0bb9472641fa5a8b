"""The records of sacct's text (`sacct -P` or `-p`), with or without a header line: which fields there are, and where
each record ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from escala.errors import EscalaError
from escala.workload import asked

XDMOD = (  # what Open XDMoD asks sacct for, without a header
    *(
        "JobID",
        "JobIDRaw",
        "Cluster",
        "Partition",
        "QOS",
        "Account",
        "Group",
        "GID",
        "User",
        "UID",
        "Submit",
        "Eligible",
        "Start",
        "End",
    ),
    *(
        "Elapsed",
        "ExitCode",
        "State",
        "NNodes",
        "NCPUS",
        "ReqCPUS",
        "ReqMem",
        "ReqTRES",
        "AllocTRES",
        "Timelimit",
        "NodeList",
        "JobName",
    ),
)
WANTED = (
    *("jobid", "jobidraw", "submit", "eligible", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"),
    *(
        "ncpus",
        "alloccpus",
        "reqcpus",
        "alloctres",
        "reqtres",
        "state",
        "user",
        "uid",
        "partition",
        "nodelist",
        "account",
        "qos",
    ),
    *(
        "priority",
        "dependency",
        "reservation",
        "constraints",
        "licenses",
        "reqmem",
        "reqgres",
        "allocgres",
        "submitline",
        "group",
        "gid",
        "jobname",
    ),
    *("arraytaskthrottle", "consumedenergyraw", *asked.FIELDS),
)
FREE_TEXT = (
    "jobname",
    "submitline",
    "comment",
    "admincomment",
    "systemcomment",
    "constraints",
    "container",
    "workdir",
    "wckey",
    "reason",
)
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
    **dict.fromkeys(
        ("submit", "eligible", "start", "end"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None|N/A|\d*")
    ),
    **dict.fromkeys(
        ("elapsedraw", "timelimitraw", "ncpus", "alloccpus", "reqcpus"), re.compile(r"\d*|UNLIMITED|Partition_Limit")
    ),
    **dict.fromkeys(
        ("uid", "gid", "nnodes", "allocnodes", "reqnodes", "associd", "dbindex", "qosraw", "priority"),
        re.compile(r"\d*"),
    ),
}


def is_sacct(first_line: str) -> bool:
    """True for a header of sacct, or for the fields that Open XDMoD asks for."""
    names = {name.lower() for name in first_line.split("|")}
    return bool({"jobid", "jobidraw"} & names) or _is_xdmod(first_line)


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
        raise EscalaError(
            f"{path}, line {first + 1}: no header with JobID: export with a header, or name the fields, {FIELDS_HINT}"
        )
    for choice in (("jobid", "jobidraw"), ("submit", "eligible"), ("state", "elapsed", "elapsedraw", "end")):
        if not set(choice) & set(fields):
            raise EscalaError(
                f"{path}: no field {' or '.join(choice)}: export with sacct "
                "--format=JobID,User,Submit,Start,End,State,AllocCPUS,..."
            )
    return fields, begin


class Scan:
    """Records found in lines of text that come piece by piece. found: how many there were."""

    def __init__(self, lines: list[str], columns: Sequence[str] | None, path: Path) -> None:
        self.fields, first = _fields(lines, columns, path)
        self._path, self._lines, self._before = path, lines[first:], first  # lines before those
        self.found = self._broken = self._first_broken = 0

    def more(self, lines: list[str]) -> None:
        """Lines behind those that are there."""
        self._lines += lines

    @property
    def broken(self) -> dict[str, int]:
        """How many pieces of text were no record."""
        return {"broken record": self._broken} if self._broken else {}

    @property
    def first_broken(self) -> dict[str, str]:
        return {"broken record": f"line {self._first_broken}"} if self._broken else {}

    def frame(self, whole: bool) -> pl.DataFrame:
        """The fields in use of the records that are complete by now, as text, and the `line` (from 1) where each
        begins. whole: no lines will follow."""
        records, numbers, used = self._records(len(self._lines) if whole else len(self._lines) - LONGEST_RECORD)
        self._lines, self._before = self._lines[used:], self._before + used
        need = [name for name in self.fields if name in WANTED]
        at = [self.fields.index(name) for name in need]
        values = {name: [record[k].strip() for record in records] for name, k in zip(need, at)}
        return pl.DataFrame(values, schema=dict.fromkeys(need, pl.String)).with_columns(
            line=pl.Series(numbers, dtype=pl.Int64)
        )

    def _records(self, end: int) -> tuple[list[list[str]], list[int], int]:
        """Values of each record that begins before line `end`, its line number, and how many lines are read.

        A record may run over several lines and hold the separator in a free-text field; a repeated header is passed
        over.
        """
        lines, fields, k = self._lines, self.fields, 0
        records, numbers = list[list[str]](), list[int]()
        header = [name.lower() for name in fields]
        while k < end:
            line = lines[k]
            values = line.split("|")
            if len(values) == len(fields):
                if [value.lower() for value in values[:3]] != header[:3]:
                    records.append(values)
                    numbers.append(self._before + k + 1)
            elif line.strip():
                joined, used = _join(lines, k, fields)
                if joined is None:
                    self._note_broken(self._before + k + 1, self.found + len(records))
                else:
                    records.append(joined)
                    numbers.append(self._before + k + 1)
                    k += used - 1
            k += 1
        self.found += len(records)
        return records, numbers, k

    def _note_broken(self, line: int, found: int) -> None:
        self._broken += 1
        self._first_broken = self._first_broken or line
        if self._broken > MOST_BROKEN and self._broken > found:
            raise EscalaError(
                f"{self._path}, line {line}: most lines do not have the {len(self.fields)} fields of the header: "
                "export again"
            )


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

    Of all ways in which every value of known form has that form, one in which most of these values are not empty
    (dynamic programming over fields and separators used up).
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
    return all(
        _TYPED[name].fullmatch(value.strip()) is not None for name, value in zip(fields, values) if name in _TYPED
    )
