"""Options of environments whose episodes are days of a log."""

from __future__ import annotations

from dataclasses import dataclass

from escala.envs.core.options import EnvOptions, choice, flag, nonnegative, seconds, whole


@dataclass(frozen=True)
class DayOptions(EnvOptions):
    """What a day is, and how it begins and ends."""

    window: str = choice("cut", "drain", about="end with the day, or with its last job")
    day_s: float = seconds(86400.0, about="an episode's length")
    period_s: float = seconds(60.0, about="time between two decisions")
    drain_days: float = nonnegative(7.0, about="window=drain: cut after so many more days")
    start_off: bool = flag(True, about="all nodes are off at the start")
    oversized: str = choice("error", "drop", about="jobs that can never run")
    min_jobs: int = whole(2, 1, about="days with fewer jobs are left out")
