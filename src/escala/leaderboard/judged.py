"""One policy on one log, judged on its later weeks: figures, ratios with intervals, the promise, who pays, and sums by
week."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from escala.campaigns import as_text
from escala.campaigns.runs import Run
from escala.campaigns.work import options_of, replayed, tried
from escala.engines.threads import Threads
from escala.errors import EscalaError
from escala.policies.pairs import Named
from escala.tuning.candidates import BASELINES
from escala.tuning.judge import RATIOS, ratios, users, who_pays
from escala.tuning.later import judge as later_pairs
from escala.tuning.measures import PERCENTILES, Floats, Jobs, figures, jobs_of, weekly
from escala.tuning.promise import promise_of
from escala.tuning.split import Split, split_of
from escala.tuning.tuned import POLICY
from escala.workload import Workload
from escala.writing.files import finite

EASY, ON = BASELINES[0], "never"


@dataclass(frozen=True)
class Judging:
    """By what runs are judged: called with one it gives `found` and `seconds`, or `error`, in whatever process. See
    `escala.campaigns.work.tried` and `escala.engines.by_text.ByText`."""

    after: str
    promise: str

    module: ClassVar[str] = "escala.leaderboard.task"

    def __call__(self, run: Run, /) -> dict[str, Any]:
        return tried(run, lambda log: finite(_judged(run, log, self.after, self.promise)))

    def key(self, run: Run, /) -> str:
        """Of a run, which holds what it is judged by."""
        return run.key

    def written(self, runs: Sequence[Run], /) -> str:
        """All of it, and runs, as text."""
        return json.dumps([self.after, self.promise, as_text.written(runs)])

    @staticmethod
    def read(text: str) -> tuple[Judging, list[Run]]:
        """What was written."""
        after, promise, runs = json.loads(text)
        return Judging(after, promise), as_text.read(runs)


def _judged(run: Run, log: Workload, after: str, promise: str) -> dict[str, Any]:
    split = split_of(log, after)
    jobs = jobs_of(log, run.platform, run.options)
    later = jobs.submit_s >= split.at_s
    part, week = jobs.part(later), split.later_weeks(jobs.submit_s[later])

    def waits(result: Any) -> Floats:
        return result.jobs["wait_s"].to_numpy()[jobs.row][later]

    own = replayed(run, log)
    ours = waits(own)
    theirs = {name: waits(replayed(replace(run, scheduler=name, shutdown=ON), log)) for name in BASELINES}
    found = {name: figures(part, each) for name, each in theirs.items()}
    if not theirs[EASY].sum() > 0.0:
        raise EscalaError(
            f"log {run.log.name!r}: nobody waits under easy in its later weeks: such a log judges no policy"
        )
    return {
        "jobs": len(ours),
        "weeks": len(np.unique(week)),
        "past_days": (split.at_s - split.first_s) / 86400.0,
        "figures": figures(part, ours),
        "baselines": found,
        "ratio": {
            name: {what: list(r) for what, r in ratios(part, ours, each, week).items()} for name, each in theirs.items()
        },
        "promise": promise_of(promise, BASELINES).judged(figures(part, ours), found),
        "who_pays": {name: table.to_dicts() for name, table in who_pays(part, ours, theirs[EASY]).items()},
        "users": users(part, ours, theirs[EASY]),
        "by_week": {"jobs": _counted(week), POLICY: _sums(part, ours, week), EASY: _sums(part, theirs[EASY], week)},
        "energy": _energy(run, log, split) if run.shutdown != ON else None,
        "knows": own.knows,
    }


def _energy(run: Run, log: Workload, split: Split) -> dict[str, Any]:
    """Energies of the later weeks, of the policy and of easy with all nodes on, and their ratio with its interval over
    weeks."""
    options = {name: value for name, value in options_of(run).items() if name not in ("record", "until_s")}
    pairs = [Named(EASY, EASY, ON), Named(POLICY, run.scheduler, run.shutdown)]
    easy, policy = later_pairs(log, run.platform, split, pairs, options, each=Threads(1)).pairs.values()
    return {POLICY: policy.energy_j, EASY: easy.energy_j, "ratio": list(policy.energy)}


def _counted(week: Any) -> list[int]:
    counts = np.bincount(week)
    return [int(count) for count in counts[counts > 0]]


def _sums(jobs: Jobs, waits: Floats, week: Any) -> dict[str, list[float]]:
    """The sums of each mean figure in each week that has jobs; their weights are the same for any policy."""
    counted = np.bincount(week) > 0
    names = [figure for figure in RATIOS.values() if figure not in PERCENTILES]
    return {figure: weekly(jobs, waits, figure, week)[0][counted].tolist() for figure in names}
