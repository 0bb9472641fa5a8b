"""What `tune` found: the policy, what it gives on the later weeks, and what each of its parts gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from escala.policies.schedulers import Scheduler
from escala.tuning import judge
from escala.tuning.choice import REFERENCE, Tried
from escala.tuning.measures import OBJECTIVES, Figures
from escala.tuning.parts import Part
from escala.tuning.promise import Promise
from escala.tuning.steps import Step

POLICY, RULE = "policy", "rule"


@dataclass(frozen=True)
class Tuned:
    """What `tune` chose, and what it gives on the later weeks.

    chosen: the policy's name; scheduler: what every parameter takes that takes a scheduler: the name, or one with a
    fitted model or a score of its own (then the name tells its files in the policy's folder). rule: the best rule that
    keeps the promise on the past. tried: the rules on the past; steps: what was tried beyond them, and without: why not
    all was ("": it was); see `steps`. past: figures there of what the promise can name. later: "policy", the baselines
    and the rule -> figures of the jobs submitted after the split, in one continuous replay. ratio: of the policy's
    figures to each of them, (value, low, high), intervals from 1 000 resamples of whole weeks, paired.
    parts: what each part of the policy gives there. groups, users: who pays, against easy; see `judge`. about: what was
    asked, and of which log. recorded: the log's own waits beside easy's on the later weeks
    (`metrics.recorded.recorded_waits`), None where it tells none.
    """

    chosen: str
    scheduler: str | Scheduler
    rule: str
    objective: str
    promise: Promise
    tried: list[Tried]
    steps: list[Step]
    without: str
    past: dict[str, Figures]
    later: dict[str, Figures]
    ratio: dict[str, dict[str, judge.Ratio]]
    parts: list[Part]
    groups: dict[str, pl.DataFrame]
    users: dict[str, float] | None
    about: dict[str, Any]
    recorded: dict[str, Any] | None = None

    @property
    def gain(self) -> judge.Ratio:
        """The objective's ratio to easy, with its interval."""
        figure = OBJECTIVES[self.objective]
        return self.ratio[REFERENCE][next(name for name, of in judge.RATIOS.items() if of == figure)]

    @property
    def ahead(self) -> bool:
        """Is the policy ahead of easy by the whole interval?"""
        high = self.gain[2]
        return high is not None and high < 1.0

    @property
    def behind(self) -> bool:
        """Is it behind easy by the whole interval?"""
        low = self.gain[1]
        return low is not None and low > 1.0

    @property
    def clauses(self) -> list[dict[str, Any]]:
        """The promise on the later weeks: of each condition what the figure is, what it may be, and whether it is
        kept."""
        return self.promise.judged(self.later[POLICY], self.later)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "chosen": self.chosen,
            "rule": self.rule,
            "objective": self.objective,
            "promise": self.clauses,
            "ahead": self.ahead,
            "later": self.later,
            "ratio": {
                against: {name: list(found) for name, found in each.items()} for against, each in self.ratio.items()
            },
            "parts": [part.as_dict() for part in self.parts],
            "steps": [step.as_dict() for step in self.steps],
            "without": self.without,
            "who_pays": {**{name: table.to_dicts() for name, table in self.groups.items()}, "users": self.users},
            "undecided": [list(pair) for pair in judge.undecided(self.ratio)],
            "recorded_waits": self.recorded,
            "about": self.about,
        }

    def save(self, folder: str | Path) -> Path:
        """Write the policy into a folder, at once: `simulate(..., scheduler="policy:FOLDER")` runs it. A folder of
        `tune` is replaced."""
        from escala.tuning.folder import VERB, write
        from escala.writing import saved_folder

        with saved_folder(Path(folder), VERB) as work:
            write(self, work)
        return Path(folder)
