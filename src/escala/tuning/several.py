"""What `tune_several` found: one policy for several logs, and what it gives on the later weeks of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escala.policies.schedulers import Scheduler
from escala.tuning.choice import REFERENCE, Ranked
from escala.tuning.judge import RATIOS
from escala.tuning.measures import OBJECTIVES
from escala.tuning.steps import Step
from escala.tuning.tuned import Tuned


@dataclass(frozen=True)
class Several:
    """One policy for several logs.

    chosen, scheduler, steps, without: as of `Tuned`, of all logs together. rule: the best rule that keeps the promise
    on the past of every log; rules: all of them on these pasts. logs: of each log what the policy gives on its later
    weeks; there `rule` is the best rule of this log alone.
    """

    chosen: str
    scheduler: str | Scheduler
    rule: str
    rules: list[Ranked]
    steps: list[Step]
    without: str
    logs: list[Tuned]

    @property
    def objective(self) -> str:
        """What was made small."""
        return self.logs[0].objective

    def ratio(self, against: str = REFERENCE, name: str | None = None) -> float | None:
        """The geometric mean over the logs of one of `judge.RATIOS` against a scheduler, "rule": the best of each log;
        by default of the objective. None where no log has one."""
        asked = name or next(ratio for ratio, of in RATIOS.items() if of == OBJECTIVES[self.objective])
        found = [value for one in self.logs if (value := one.ratio[against][asked][0]) is not None]
        if not found:
            return None
        return math.exp(sum(map(math.log, found)) / len(found)) if all(value > 0.0 for value in found) else 0.0

    @property
    def kept(self) -> list[bool]:
        """Of each log: is the promise kept on its later weeks?"""
        return [all(clause["kept"] for clause in one.clauses) for one in self.logs]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        against = [name for name in self.logs[0].ratio if all(name in one.ratio for one in self.logs)]
        return {
            "chosen": self.chosen,
            "rule": self.rule,
            "objective": self.objective,
            "ratio": {name: {ratio: self.ratio(name, ratio) for ratio in RATIOS} for name in against},
            "promise_kept": sum(self.kept),
            "ahead": sum(one.ahead for one in self.logs),
            "behind": sum(one.behind for one in self.logs),
            "steps": [step.as_dict() for step in self.steps],
            "without": self.without,
            "logs": [
                {key: value for key, value in one.as_dict().items() if key not in ("steps", "without")}
                for one in self.logs
            ],
        }

    def save(self, folder: str | Path) -> Path:
        """Write the policy into a folder, at once: `simulate(..., scheduler="policy:FOLDER")` runs it. A folder of
        `tune` is replaced."""
        from escala.tuning.folder import VERB, write
        from escala.writing import saved_folder

        with saved_folder(Path(folder), VERB) as work:
            write(self, work)
        return Path(folder)
