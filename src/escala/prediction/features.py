"""What is known of a job when it is submitted, in numbers. Nothing of it is known later than that, or looks at a run
that has not ended.

A feature is of the job alone, of its user, or of the jobs that are alike in some respect (a *kind*: the same user, the
same user with the same cores and request, ...) and have ended. What is not known is NaN. Times are in seconds,
logarithms natural.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

KINDS: Mapping[str, tuple[str, ...]] = {
    "user": ("user",),
    "user_shape": ("user", "cores", "walltime_s"),
    "shape": ("cores", "walltime_s"),
    "program": ("program",),
    "user_program": ("user", "program"),
    "user_program_shape": ("user", "program", "cores", "walltime_s"),
    "group": ("group",),
    "account": ("account",),
    "queue": ("queue",),
    "partition": ("partition",),
    "qos": ("qos",),
}
"""Kind -> the columns in which its jobs are alike; `program` is the executable or, where the log has none, the job's
name."""
PROGRAM = ("executable", "job_name")
COLUMNS = ("user", "group", "account", "queue", "partition", "qos", *PROGRAM)
"""Columns of a log that a model may go by, beside the request and the cores."""

COUNT, MEAN_LOG, MEAN_RATIO, LAST, BEFORE, LAST_RATIO, LAST_TWO = range(7)
STATS = {
    "count": COUNT,
    "mean": MEAN_LOG,
    "ratio": MEAN_RATIO,
    "last": LAST,
    "before": BEFORE,
    "last_ratio": LAST_RATIO,
    "last2": LAST_TWO,
}
IN_WORDS = {
    "count": "log1p of how many have ended",
    "mean": "mean log of their run times",
    "ratio": "mean of run time / request",
    "last": "log of the last one's run time",
    "before": "log of the run time of the one before",
    "last_ratio": "the last one's run time / request",
    "last2": "log of the mean of the last two's run times",
}
OF_KIND = {"user": tuple(STATS), "user_shape": ("count", "mean", "last", "last2"), "shape": ("count", "mean", "ratio")}
OF_KIND |= {
    "user_program": ("count", "mean", "ratio", "last", "last2"),
    "user_program_shape": ("count", "mean", "last"),
}
REST = ("mean", "ratio")

ALONE = 100  # codes of what is not of a kind
REQUEST, CORES, HOUR, WEEKDAY, WAITING, RUNNING, PAUSE, SINCE = range(ALONE, ALONE + 8)
PLAIN = {
    "request": (REQUEST, "log of the requested time"),
    "cores": (CORES, "log of the cores"),
    "hour": (HOUR, "hour of the day (UTC), 0 to 24"),
    "weekday": (WEEKDAY, "day of the week (UTC), 0: Monday"),
    "user_waiting": (WAITING, "jobs of the user that wait"),
    "user_running": (RUNNING, "jobs of the user that run"),
    "user_pause": (PAUSE, "log1p of the time since the user's last submission"),
    "user_since": (SINCE, "log1p of the time since a job of the user ended"),
}


def _all() -> dict[str, tuple[int, int, str]]:
    """Feature -> (code, number of the kind, in words)."""
    found = {name: (code, 0, words) for name, (code, words) in PLAIN.items()}
    for number, (kind, columns) in enumerate(KINDS.items()):
        alike = "jobs with the same " + ", ".join({"walltime_s": "request"}.get(name, name) for name in columns)
        for stat in OF_KIND.get(kind, REST):
            found[f"{kind}_{stat}"] = (STATS[stat], number, f"{alike}: {IN_WORDS[stat]}")
    return found


FEATURES = _all()
"""Every feature -> (code, number of its kind, what it is)."""
DATED = ("hour", "weekday")
"""Features that need to know when a log began."""


def columns_of(feature: str) -> tuple[str, ...]:
    """The columns, beside request and cores, that a feature goes by; of `program` that word."""
    if feature in PLAIN:
        return ("user",) if feature.startswith("user_") else ()
    kind = list(KINDS.values())[FEATURES[feature][1]]
    return tuple(name for name in kind if name not in ("cores", "walltime_s"))


def known_by(columns: tuple[str, ...], dated: bool) -> tuple[str, ...]:
    """The features that these columns of `COLUMNS` tell. dated: is it known when the log began?"""
    there = {*columns, *(["program"] if set(PROGRAM) & set(columns) else [])}
    return tuple(name for name in FEATURES if there.issuperset(columns_of(name)) and (dated or name not in DATED))


def codes_of(features: tuple[str, ...]) -> NDArray[np.int64]:
    """int64 [features, 2]: code and kind of each, for compiled code."""
    return np.array([FEATURES[name][:2] for name in features], np.int64).reshape(-1, 2)
