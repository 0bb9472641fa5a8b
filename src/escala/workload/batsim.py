"""Batsim's workload JSON, read and written, with the profile names of all its versions.

A job names a profile; the profile says what the job does. Escala needs of it a runtime, or work in flops, and how hard
the cores work:

| profile | runtime | load |
|---|---|---|
| delay | its delay | 0 |
| parallel, homogeneous, homogeneous total | flops of the busiest core / speed | 1, or mean / largest amount of a core |
| composed (sequence) | sum of its parts x `repeat` | mean over time |

Communication beside computation is left out and counted ("note: communication ignored"): its time depends on a network
model. A profile that only communicates, moves data or replays a trace is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from escala.errors import EscalaError, quoted
from escala.reading import parse_json, read_text
from escala.workload.filters import Keep, every
from escala.workload.found import Found
from escala.workload.ignored import column_of

KINDS: dict[str, str] = {
    **dict.fromkeys(("delay", "DelayProfile"), "delay"),
    **dict.fromkeys(("parallel", "msg_par", "ptask", "ParallelTaskProfile"), "parallel"),
    **dict.fromkeys(
        ("parallel_homogeneous", "msg_par_hg", "ptask_homogeneous", "ParallelTaskHomogeneousProfile"), "homogeneous"
    ),
    **dict.fromkeys(("parallel_homogeneous_total", "msg_par_hg_tot", "ptask_homogeneous_total"), "total"),
    **dict.fromkeys(("composed", "sequence", "composed_sequential", "SequentialCompositionProfile"), "sequence"),
}
PROFILE_NAMES = {
    "v4": ("delay", "parallel_homogeneous", "parallel", "composed"),
    "v5": ("DelayProfile", "ParallelTaskHomogeneousProfile", "ParallelTaskProfile", "SequentialCompositionProfile"),
}
SPREAD = "DefinedAmountsSpreadUniformly"  # the amounts of a homogeneous task are totals (since Batsim 5)
RECORD = {
    "job_id": pl.String(),
    **dict.fromkeys(("submit_s", "runtime_s", "walltime_s", "cores"), pl.Float64()),
    "user": pl.String(),
    **dict.fromkeys(("load", "flops"), pl.Float64()),
    "communicates": pl.Boolean(),
}
COMMUNICATION = "note: communication ignored"
DEEPEST = 100  # sequences within sequences
MOST_PARTS = 2_000_000  # unfolded again, for jobs of another number of cores: some 5 s


class Effort(NamedTuple):
    """What one execution of a profile on some cores takes."""

    delay_s: float
    flops: float  # of the busiest core
    mean_flops: float  # over the cores
    communicates: bool
    alike: bool = True  # on any number of cores


class BatsimLog(NamedTuple):
    """Records for `clean`, `nb_res`, Unix time of time 0 where Escala wrote it, counts of notes, and the first job of
    each."""

    frame: pl.DataFrame
    nb_res: int | None
    origin_s: float
    counts: dict[str, int]
    firsts: dict[str, str]


def check_speed(speed: float) -> None:
    """`EscalaError` unless it is a finite number of flop/s above 0."""
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not (math.isfinite(speed) and speed > 0):
        raise EscalaError(f"speed is {speed!r} flop/s: give a finite number above 0, such as 1e9")


def read_batsim(path: Path, speed: float | None = None, keep: Keep = every) -> BatsimLog:
    """The jobs; `keep` takes part of them. `speed`: flop/s of one core, to turn work into runtimes at once (needed
    where a sequence mixes both)."""
    if speed is not None:
        check_speed(speed)
    document = parse_json(read_text(path), path)
    jobs, profiles = parts_of(document, path)
    if not jobs:
        raise no_jobs(path)
    return Document(path, document, profiles, columns_of(jobs, {})).log(jobs, 0, speed, keep)


def no_jobs(path: Path) -> EscalaError:
    return EscalaError(f"{path}: no jobs: a Batsim workload needs at least one")


class Document:
    """What a document says beside its jobs. columns: as of `columns_of`, of all jobs."""

    def __init__(
        self, path: Path, document: Mapping[str, Any], profiles: Mapping[str, Any], columns: Mapping[str, str]
    ) -> None:
        self._path, self._columns, self._efforts = path, columns, _Efforts(profiles, path)
        self._origin_s = _number(document.get("origin_s", 0.0), str(path), "origin_s")
        size = document.get("nb_res")
        if size is not None and (isinstance(size, bool) or not isinstance(size, int)):
            raise EscalaError(f"{path}: nb_res is {quoted(size)}: give a whole number of hosts, or leave it out")
        self._nb_res = size if size is not None and size > 0 else None

    def log(self, jobs: list[Any], first: int, speed: float | None, keep: Keep) -> BatsimLog:
        """These jobs as records; the first is number `first` of all, from 0."""
        rows = [_row(job, k, self._efforts, speed, self._path) for k, job in enumerate(jobs, first)]
        further = [
            pl.Series(column, [_plain(job.get(key)) for job in jobs], dtype=pl.String)
            for column, key in self._columns.items()
        ]
        frame = pl.DataFrame(rows, schema=RECORD, orient="row").with_columns(further)
        frame = keep(frame, self._origin_s or None)
        talking = frame.filter("communicates")["job_id"]
        counts = {COMMUNICATION: len(talking)} if len(talking) else {}
        firsts = {COMMUNICATION: f"job {talking[0]!r}"} if len(talking) else {}
        works = frame["flops"].null_count() < frame.height
        frame = frame.drop("communicates") if works else frame.drop("communicates", "flops")
        return BatsimLog(frame, self._nb_res, self._origin_s, counts, firsts)


def found_of(log: BatsimLog) -> Found:
    """What a reader gives."""
    return Found(log.frame, log.counts, False, "Batsim workload", lambda first_s: log.origin_s, log.nb_res, log.firsts)


def columns_of(jobs: Iterable[Any], before: Mapping[str, str]) -> dict[str, str]:
    """Column -> the first key of jobs that tells what Batsim does not know: `queue`, and the columns of `ignored`.
    before: of earlier jobs."""
    columns = dict(before)
    for key in dict.fromkeys(key for job in jobs if isinstance(job, dict) for key in job):
        column = "queue" if key == "queue" else column_of(key)
        if column is not None:
            columns.setdefault(column, key)
    return columns


def _plain(value: Any) -> str | None:
    """A value of any kind as text, null where it is empty."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value).encode(errors="replace").decode() if isinstance(value, str) else quoted(value)
    return "yes" if value else None


def parts_of(document: Any, path: Path) -> tuple[list[Any], Mapping[str, Any]]:
    """The jobs and the profiles of a parsed document."""
    keys = sorted(document) if isinstance(document, dict) else []
    if not (
        isinstance(document, dict)
        and isinstance(document.get("jobs"), list)
        and isinstance(document.get("profiles"), dict)
    ):
        shown = ", ".join(" ".join(key.split())[:30] for key in keys[:5]) or type(document).__name__
        raise EscalaError(
            f"{path}: JSON without a list 'jobs' and an object 'profiles' (found: {shown}): not a Batsim workload"
        )
    return document["jobs"], document["profiles"]


def _row(job: Any, k: int, efforts: _Efforts, speed: float | None, path: Path) -> tuple[Any, ...]:
    """One job as a record."""
    if not isinstance(job, dict):
        raise EscalaError(f"{path}: job number {k + 1} is not an object: a job has id, subtime, res, profile")
    for key in ("id", "subtime", "res", "profile"):
        if key not in job:
            raise EscalaError(
                f"{path}: job {quoted(job.get('id', k + 1))} has no {key!r}: a job has id, subtime, res, profile"
            )
    label = _label(job["id"], f"{path}: job number {k + 1}", "id")
    where = f"{path}: job {quoted(job['id'])}"
    submit, cores = _number(job["subtime"], where, "subtime"), _number(job["res"], where, "res")
    walltime = job.get("walltime")
    walltime = None if walltime is None else _number(walltime, where, "walltime")
    name = _label(job["profile"], where, "profile")
    effort = efforts.of(name, cores)
    profile = f"{path}: profile {quoted(name)}"
    if effort.communicates and effort.flops == 0 and effort.delay_s == 0:
        kind = efforts.type_of(name)
        raise EscalaError(
            f"{profile} ({kind}) only communicates: its runtime needs a network model; remove job {quoted(label)}"
        )
    runtime, flops, load = _runtime(effort, speed, profile)
    user = job.get("user", job.get("user_id"))
    return (
        label,
        submit,
        runtime,
        walltime,
        cores,
        None if user is None else _label(user, where, "user"),
        load,
        flops,
        effort.communicates,
    )


def _runtime(effort: Effort, speed: float | None, where: str) -> tuple[float, float | None, float]:
    """(runtime or NaN, flops or null, load)."""
    if effort.flops == 0:
        return effort.delay_s, None, 0.0
    share = min(1.0, effort.mean_flops / effort.flops)
    if speed is None:
        if effort.delay_s > 0:
            raise EscalaError(
                f"{where} mixes delays and computation: give the flop/s of one core when reading, speed=1e9 (--speed "
                "1e9)"
            )
        return math.nan, effort.flops, share
    busy = effort.flops / speed
    return effort.delay_s + busy, None, share * busy / (effort.delay_s + busy) if effort.delay_s else share


class _Efforts:
    """What the profiles of a file take. Each is unfolded once, and again for each further number of cores where it says
    what all cores do together; that within `MOST_PARTS`."""

    def __init__(self, profiles: Mapping[str, Any], path: Path) -> None:
        self._profiles, self._path = profiles, path
        self._known: dict[tuple[str, float | None], Effort] = {}
        self._seen: set[str] = set()  # sequences that have been unfolded
        self._again = 0  # parts of profiles unfolded once more

    def of(self, name: str, cores: float, within: tuple[str, ...] = ()) -> Effort:
        """What profile `name` takes on that many cores. `within`: the sequences being unfolded."""
        known = self._known.get((name, None)) or self._known.get((name, cores))
        if known is None:
            known = self._unfolded(name, cores, within)
            if KINDS[str(self._profiles[name]["type"])[:60]] in ("sequence", "parallel"):  # others: found again as soon
                self._known[name, None if known.alike else cores] = known
        return known

    def type_of(self, name: str) -> str:
        """The type of a profile, as a message quotes it."""
        return quoted(self._profiles[name]["type"])

    def _unfolded(self, name: str, cores: float, within: tuple[str, ...]) -> Effort:
        profile, where = self._profiles.get(name), f"{self._path}: profile {quoted(name)}"
        if not isinstance(profile, dict) or "type" not in profile:
            raise EscalaError(f"{where} is named by a job but not defined (or has no type): define it under 'profiles'")
        kind = KINDS.get(str(profile["type"])[:60])
        if kind == "delay":
            return Effort(_amount(profile.get("delay"), where, "delay"), 0.0, 0.0, False)
        if kind in ("homogeneous", "total"):
            flops, com = _amount(profile.get("cpu"), where, "cpu"), _amount(profile.get("com", 0), where, "com")
            together = kind == "total" or profile.get("generation_strategy") == SPREAD
            flops = flops / max(cores, 1.0) if together else flops
            return Effort(0.0, flops, flops, com > 0, not together)
        if kind == "parallel":
            return self._uneven(profile, cores, where)
        if kind == "sequence":
            return self._sequence(profile, name, cores, within)
        raise EscalaError(
            f"{where} has type {quoted(profile['type'])}, whose runtime needs a network, storage or trace model: "
            "remove its jobs"
        )

    def _uneven(self, profile: Mapping[str, Any], cores: float, where: str) -> Effort:
        """A parallel task with an amount for each core."""
        amounts, com = profile.get("cpu") or [], profile.get("com") or []
        if not isinstance(amounts, list) or not isinstance(com, list):
            raise EscalaError(f"{where}: cpu and com must be lists of amounts")
        if amounts and len(amounts) != cores:
            raise EscalaError(
                f"{where} has {len(amounts)} cpu amounts but a job of {cores:g} cores: give one amount a core"
            )
        flops = [_amount(value, where, "cpu") for value in amounts]
        return Effort(
            0.0,
            max(flops, default=0.0),
            sum(flops) / max(len(flops), 1),
            any(_amount(value, where, "com") > 0 for value in com),
            not amounts,
        )

    def _sequence(self, profile: Mapping[str, Any], name: str, cores: float, within: tuple[str, ...]) -> Effort:
        """The parts of a sequence, one after the other."""
        where = f"{self._path}: profile {quoted(name)}"
        if name in within:
            raise EscalaError(f"{where} contains itself: mend its 'seq'")
        if len(within) >= DEEPEST:
            raise EscalaError(f"{where}: sequences within sequences, more than {DEEPEST} deep: write them as one")
        parts, repeat = profile.get("seq"), profile.get("repeat", 1)
        if not isinstance(parts, list) or not isinstance(repeat, int) or repeat < 1:
            raise EscalaError(f"{where}: 'seq' must be a list of profile names and 'repeat' a positive whole number")
        if name in self._seen:
            self._count(len(parts), where)
        self._seen.add(name)
        times = _amount(repeat, where, "repeat")
        efforts = [self.of(_label(part, where, "a part of 'seq'"), cores, (*within, name)) for part in parts]
        try:
            delay, flops, mean = (
                (math.fsum(column) * times for column in list(zip(*efforts))[:3]) if efforts else (0.0, 0.0, 0.0)
            )
        except OverflowError:
            delay = flops = mean = math.inf
        if not math.isfinite(delay + flops):
            raise EscalaError(f"{where} repeats its parts to more than any number can say: mend its 'repeat'")
        talks, alike = any(one.communicates for one in efforts), all(one.alike for one in efforts)
        return Effort(delay, flops, mean, talks, alike)

    def _count(self, parts: int, where: str) -> None:
        self._again += parts
        if self._again > MOST_PARTS:
            raise EscalaError(
                f"{where}: its sequences say what all cores do together, and unfold to more than {MOST_PARTS:,} parts "
                "for jobs of other numbers of cores: give each job a profile of its own, or amounts of one core"
            )


def _label(value: Any, where: str, what: str) -> str:
    """An id or a name: text or a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EscalaError(f"{where}: {what} is {quoted(value)}: text or a number is needed")
    text = str(value)
    # half a pair of surrogates is no character
    return text if text.isascii() else text.encode(errors="replace").decode()


def _number(value: Any, where: str, what: str) -> float:
    """A JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EscalaError(f"{where}: {what} is {quoted(value)}: a number is needed")
    try:
        return float(value)
    except OverflowError:
        raise EscalaError(
            f"{where}: {what} has hundreds of digits: a number of seconds, cores or flops is needed"
        ) from None


def _amount(value: Any, where: str, what: str) -> float:
    """A JSON number, finite and 0 or more."""
    number = _number(value, where, what)
    if not (math.isfinite(number) and number >= 0):
        raise EscalaError(f"{where}: {what} is {quoted(value)}: a finite number, 0 or more, is needed")
    return number
