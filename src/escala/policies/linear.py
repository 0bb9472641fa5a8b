"""Linear scores: weights over named features, the smallest score first. `Linear` is the general form, `Multifactor` an
operator's present priorities in Slurm's terms. `escala.policies.score_files` reads both; `Terms` is what the kernel
gets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, nearest, quoted
from escala.estimates import WALLTIME, lengths_us, way_of
from escala.kernel import codes

if TYPE_CHECKING:
    from escala.options import Options, Terms
    from escala.workload import Workload

FEATURES = {
    "log_estimate": "log(estimate / 1 h)",
    "log_cores": "log(cores / cores of the machine)",
    "log_estimate_x_log_cores": "the product of these two",
    "log_wait": "log1p(wait / 1 h)",
    "log_wait_over_estimate": "log1p(wait / estimate)",
    "user_share": "cores that the user's jobs have now / cores of the machine",
    "log_user_waiting": "log1p(the user's waiting jobs)",
    "log_request": "log(requested time / 1 h)",
    "column": "the column of the log that the file names",
}
"""Features of a linear score, and what they are. `estimate` is what is expected of a job for the order of the queue."""
LATER = ("runtime_s", "wait_s", "status", "flops", "limited")
"""Columns of a log that nobody knows before a job has ended, or that say nothing of it."""
FACTORS = {
    "age": "wait / max_age_s, at most 1",
    "fair_share": "2^(-U / S): U the user's part of all core time used, decayed; S of all shares",
    "job_size": "cores / cores of the machine, see size",
    "queue": "the job's queue in [queues] / the largest there",
    "qos": "the job's QOS in [qos] / the largest there",
}
"""Factors of a multifactor priority, each 0 to 1."""
SIZES = ("large", "small", "per-time")
MOST_WEIGHT = 1e15
MOST_S, LEAST_EVERY_S = 1e10, 1.0
HOUR_US = 3.6e9
MINUTE_S = 60.0

Fixed = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class Linear:
    """A linear score: the sum of weight x feature over (feature, weight) of `weights`, see `FEATURES`. column: the
    column of the feature of that name. every_s: computed anew in each stretch of so many seconds, 1 or more, 0: at each
    decision. EscalaError for what makes no sense."""

    weights: tuple[tuple[str, float], ...]
    column: str = ""
    every_s: float = 0.0

    def __post_init__(self) -> None:
        weights = _weights(self.weights, FEATURES)
        _text(self.column, "column")
        if bool(self.column) != ("column" in weights):
            raise EscalaError('a column needs both, column = "NAME" and a weight of that feature: give both or neither')
        _every(self.every_s)

    def __str__(self) -> str:
        return _shown("linear", self.weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the log that it looks at, beside those that every run does."""
        return (self.column,) if self.column else ()

    def terms(self, workload: Workload, options: Options) -> Terms:
        """As the kernel knows it. EscalaError: the log lacks the column, or has no number there."""
        from escala.options import Terms

        weight = dict.fromkeys(FEATURES, 0.0) | dict(self.weights)
        later = way_of(options.ordered_by) != codes.BEFOREHAND
        return Terms(
            self._fixed(workload, options, weight, later),
            length=weight["log_estimate"] if later else 0.0,
            length_cores=weight["log_estimate_x_log_cores"] if later else 0.0,
            log_wait=weight["log_wait"],
            log_ratio=weight["log_wait_over_estimate"],
            running=weight["user_share"],
            queued=weight["log_user_waiting"],
            every_s=self.every_s,
        )

    def _fixed(self, workload: Workload, options: Options, weight: Mapping[str, float], later: bool) -> Fixed:
        """What never changes, by job, for a machine of so many cores. later: estimates become known at submission, and
        are left out."""
        from escala.kernel.logs import logs

        jobs = workload.jobs
        column = _column(workload, self.column) if weight["column"] != 0.0 else 0.0
        estimate, request = (
            logs(np.maximum(lengths_us(which, jobs), 1) / HOUR_US) for which in (options.ordered_by, WALLTIME)
        )
        cores = jobs["cores"].to_numpy()

        def fixed(machine: int) -> NDArray[np.float64]:
            share = logs(cores / machine)
            rest = weight["log_cores"] * share + weight["log_request"] * request + weight["column"] * column
            by_length = weight["log_estimate"] * estimate + weight["log_estimate_x_log_cores"] * (estimate * share)
            return np.asarray(rest if later else by_length + rest)

        return fixed


@dataclass(frozen=True)
class Multifactor:
    """A priority as Slurm's plugin priority/multifactor computes it
    (https://slurm.schedmd.com/priority_multifactor.html), the largest first: the sum of weight x factor over `weights`,
    see `FACTORS`, less the job's nice value.

    max_age_s: PriorityMaxAge. size: of the factor job_size: "large", the more cores the larger; "small"
    (PriorityFavorSmall), 1 less that; "per-time" (SMALL_RELATIVE_TO_TIME), cores / minutes requested / cores of the
    machine. half_life_s: PriorityDecayHalfLife, 0: core time does not decay. shares: of users, by name, 1 for the
    others; a user's fair-share factor is Slurm's classic one (NO_FAIR_TREE) with all users on one level. queues, qos:
    their priorities, by name, 0 for the others. nice: the column of the log that holds nice values.
    every_s: PriorityCalcPeriod, 1 or more, 0: at each decision (not with fair_share). EscalaError for what makes no
    sense.

    Not modelled: accounts and associations, the fair tree, site and TRES factors, the partition's tier, preemption,
    resets of usage, the rounding of priorities to whole numbers. Jobs of no known user have a fair-share factor of 0.
    """

    weights: tuple[tuple[str, float], ...]
    max_age_s: float = 7 * 86400.0
    size: str = "large"
    half_life_s: float = 7 * 86400.0
    shares: tuple[tuple[str, float], ...] = ()
    queues: tuple[tuple[str, float], ...] = ()
    qos: tuple[tuple[str, float], ...] = ()
    nice: str = ""
    every_s: float = 300.0

    def __post_init__(self) -> None:
        weights = _weights(self.weights, FACTORS)
        for name, value in weights.items():
            if value < 0:
                raise EscalaError(
                    f"weights: {name} = {value:g}: Slurm's weights are 0 or more; a linear score may have less"
                )
        if self.size not in SIZES:
            raise EscalaError(f"size {quoted(self.size)} is not known: use one of {', '.join(SIZES)}")
        _text(self.nice, "nice")
        if _seconds(self.max_age_s, "max_age_s") == 0:
            raise EscalaError(f"max_age_s = {self.max_age_s}: more than 0 s is needed")
        _seconds(self.half_life_s, "half_life_s")
        if _every(self.every_s) == 0 and weights.get("fair_share", 0.0) != 0.0:
            raise EscalaError(
                f"every_s = {self.every_s}: fair shares change all the time: give 1 s or more, such as 300"
            )
        for table, name, factor in (
            (self.shares, "shares", ""),
            (self.queues, "queues", "queue"),
            (self.qos, "qos", "qos"),
        ):
            if any(value < 0 for value in _numbers(table, name).values()):
                raise EscalaError(f"[{name}] has a number below 0: give 0 or more")
            if weights.get(factor, 0.0) != 0.0 and not table:
                raise EscalaError(f"a weight of {factor} needs [{name}], their priorities by name")

    def __str__(self) -> str:
        return _shown("multifactor", self.weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the log that it looks at, beside those that every run does."""
        return tuple(name for name, value in self.weights if name in ("queue", "qos") and value != 0.0) + (
            (self.nice,) if self.nice else ()
        )

    def terms(self, workload: Workload, options: Options) -> Terms:
        """As the kernel knows it: the priority's negative. EscalaError: the log lacks a column."""
        from escala.options import Terms

        weight = dict.fromkeys(FACTORS, 0.0) | dict(self.weights)
        return Terms(
            self._fixed(workload, weight),
            age=-weight["age"],
            max_age_s=self.max_age_s,
            fair=-weight["fair_share"],
            shares=self._shares(workload),
            half_life_s=self.half_life_s,
            every_s=self.every_s,
        )

    def _fixed(self, workload: Workload, weight: Mapping[str, float]) -> Fixed:
        """What never changes, by job, for a machine of so many cores."""
        jobs = workload.jobs
        nice = _column(workload, self.nice) if self.nice else 0.0
        named = weight["queue"] * _named(workload, "queue", self.queues) if weight["queue"] != 0.0 else 0.0
        named = named + (weight["qos"] * _named(workload, "qos", self.qos) if weight["qos"] != 0.0 else 0.0)
        cores = jobs["cores"].to_numpy()
        minutes = jobs["walltime_s"].to_numpy() / MINUTE_S

        def fixed(machine: int) -> NDArray[np.float64]:
            share = cores / machine
            size = {"large": share, "small": 1.0 - share, "per-time": share / np.maximum(minutes, 1.0)}[self.size]
            return np.asarray(nice - named - weight["job_size"] * size, np.float64)

        return fixed

    def _shares(self, workload: Workload) -> NDArray[np.float64]:
        """Shares by user, in the order of `Workload.user_ranks`."""
        given = dict(self.shares)
        return np.array(
            [given.get(name, 1.0) for name in workload.jobs["user"].unique().drop_nulls().sort()], np.float64
        )


def _shown(form: str, weights: tuple[tuple[str, float], ...]) -> str:
    """As a score stands in tables."""
    return f"{form}({', '.join(f'{name}={value:g}' for name, value in weights)})"


def _numbers(given: object, what: str) -> dict[str, float]:
    """Pairs of a name and a finite number, by name."""
    try:
        pairs = [(name, value) for name, value in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise EscalaError(f"{what} = {quoted(given)}: pairs of a name and a number are needed") from None
    for name, value in pairs:
        if not isinstance(name, str):
            raise EscalaError(f"[{what}] {quoted(name)}: a name is a text")
        if not _is_number(value) or abs(value) > MOST_WEIGHT:
            raise EscalaError(
                f"[{what}] {quoted(name)} = {quoted(value)}: a finite number is needed, at most {MOST_WEIGHT:g}"
            )
    found = dict(pairs)
    if len(found) < len(pairs):
        raise EscalaError(f"{what} = {quoted(given)}: a name stands there twice")
    return found


def _weights(given: object, known: Mapping[str, str]) -> dict[str, float]:
    """Weights of known features or factors, at least one."""
    found = _numbers(given, "weights")
    for name in found:
        if name not in known:
            raise EscalaError(
                f"unknown feature {quoted(name)}: {nearest(name, list(known))}known are {', '.join(known)}"
            )
    if not found:
        raise EscalaError(f"no weights: give [weights] and lines such as {next(iter(known))} = 1.0")
    return found


def _text(given: object, key: str) -> None:
    if not isinstance(given, str):
        raise EscalaError(f'{key} = {quoted(given)}: a text is needed, {key} = "..."')


def _seconds(given: object, key: str) -> float:
    if not _is_number(given) or not 0 <= given <= MOST_S:
        raise EscalaError(f"{key} = {quoted(given)}: a number of seconds from 0 to {MOST_S:g} is needed")
    return given


def _every(given: object) -> float:
    every = _seconds(given, "every_s")
    if 0 < every < LEAST_EVERY_S:
        raise EscalaError(f"every_s = {quoted(given)}: give {LEAST_EVERY_S:g} s or more, or 0 for each decision")
    return every


def _is_number(given: object) -> TypeGuard[float]:
    """A finite number; True is none. An int beyond floats is no number either."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return abs(given) <= sys.float_info.max


def _column(workload: Workload, name: str) -> NDArray[np.float64]:
    """A column of numbers; EscalaError where the log has none of this name, or a job without a number there."""
    known = [each for each, kind in workload.jobs.schema.items() if kind.is_numeric() and each not in LATER]
    if name not in known:
        why = "is known only when a job has ended" if name in LATER else "is no column of numbers"
        raise EscalaError(
            f"workload {workload.name!r}: column {quoted(name)} {why}: {nearest(name, known)}there are "
            f"{', '.join(known)}"
        )
    values = workload.jobs[name].cast(float)
    bad = values.is_null() | ~values.fill_null(0.0).is_finite()
    if bad.any():
        job = workload.jobs["job_id"][int(bad.arg_max() or 0)]
        raise EscalaError(
            f"workload {workload.name!r}: job {quoted(job)} has no number in column {quoted(name)}: a score needs one"
        )
    return values.to_numpy()


def _named(workload: Workload, column: str, priorities: tuple[tuple[str, float], ...]) -> NDArray[np.float64]:
    """The priority of each job's queue or QOS, of the largest; 0 for one without."""
    if column not in workload.jobs.columns or workload.jobs[column].null_count() == len(workload):
        raise EscalaError(f"workload {workload.name!r} tells no {column} of its jobs: leave the weight of {column} out")
    largest = max((value for _, value in priorities), default=0.0)
    shares = {name: value / largest for name, value in priorities} if largest > 0 else {}
    return np.array([shares.get(name, 0.0) for name in workload.jobs[column]], np.float64)
