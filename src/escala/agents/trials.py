"""Several trainings of one task, presets x settings x seeds, side by side on an engine, each judged on the same
days."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from escala.agents import checkpoint, proposals
from escala.agents.agent import MANIFEST, load_agent
from escala.agents.evaluate import evaluate
from escala.agents.networks.build import check_request
from escala.agents.presets import preset_of
from escala.agents.training.train import train
from escala.campaigns.as_text import values_read, values_written
from escala.engines import engine_of
from escala.engines.there import made_by
from escala.errors import EscalaError, one_line, quoted
from escala.policies.pairs import Begin
from escala.reading import first_twin
from escala.writing import claimed, write_whole

TABLE = "trials.csv"
SAME = ("algorithm", "steps", "num_envs")
"""What else must be the same of a training that is not made again, where it is given."""
JUDGED = ("energy_j", "mean_wait_s", "mean_bounded_slowdown", "unstarted")


@dataclass(frozen=True)
class Trial:
    """One training, and the folder of its agent; the key is that folder's name."""

    preset: str
    seed: int
    folder: Path
    learn: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of its folder."""
        return self.folder.name


def trials(
    env_id: str,
    workload: Any,
    platform: Any,
    *,
    presets: Sequence[str] = ("tuned",),
    seeds: Sequence[int] = (0,),
    settings: Mapping[str, Sequence[Any]] | None = None,
    n_trials: int | None = None,
    out: str | Path,
    on: str = "local",
    resume: bool = False,
    judged: Sequence[Any] = (),
    begin: Begin | None = None,
    **how: Any,
) -> pl.DataFrame:
    """Train an agent for each preset, setting and seed; one row each: preset, seed, the settings by their names, agent
    (its folder in `out`), decisions, train_s, mean_return, validation_return (with days of `validation`), error, and,
    where there are days to judge on, means over them (`JUDGED`, of what `evaluate` gives of the agent, acting as its
    preset evaluates better). The table is in `out`/trials.csv too.

    presets, seeds: each once. settings: of the learner, by name, the values to try, every one with every other; or,
    with n_trials, what so many settings are proposed from by Optuna (extra `[optuna]`), a few at a time: lists, and
    spans ("0.0001..0.01"). More is better of validation_return, the best look at the days of `validation`, in the mean
    over the seeds; of mean_return without such days. on: "local", "local:N", "ray", "ray:HOST:PORT" or
    "slurm:KEY=VALUE...", see `campaign`; the agents are the same for any, each that of `train` with its preset and
    seed. resume: go on: agents that are there are judged only, checkpoints are gone on from. judged: days of which no
    agent learns. how: more for `train`. A training that fails has an `error`, and the others go on.

    Raises:
        EscalaError: unknown presets or settings, a list that is empty or names something twice, an engine that is not
            there, a folder that holds files (without resume).
    """
    folder, wanted = Path(out), _wanted(env_id, presets, seeds, settings or {}, n_trials, Path(out))
    if not resume and folder.is_dir() and os.listdir(folder):
        raise EscalaError(
            f"{folder}: holds files already: go on with them (resume=True, --resume) or give another folder"
        )
    job = Training(env_id, workload, platform, list(judged), how)
    found: dict[str, dict[str, Any]] = {}
    rounds: Iterable[list[Trial]] = (
        [wanted] if n_trials is None else _proposed(wanted, settings or {}, n_trials, worth_of(how), found)
    )
    n = len(wanted) * (n_trials or 1)
    share = None if begin is None else begin(f"training {n} agents")
    made: list[Trial] = []
    with engine_of(on, folder) as each, claimed(folder):
        for some in rounds:
            new = [trial for trial in some if trial.key not in found]
            for trial, told in each(new, job):
                found[trial.key] = told
                if share is not None:
                    share(len(found) / n)
            made += new
        table = _table(made, found)
        write_whole(folder / TABLE, table.write_csv())
    return table


def worth_of(how: Mapping[str, Any]) -> str:
    """What proposed settings are judged by."""
    return "mean_return" if how.get("validation") is None else "validation_return"


def _proposed(
    like: Sequence[Trial], settings: Mapping[str, Any], n: int, worth: str, found: Mapping[str, Mapping[str, Any]]
) -> Iterator[list[Trial]]:
    """Rounds of trials, those of a setting like the given ones: with its seeds."""
    told: list[float | None] = []
    for some in proposals.proposed(settings, n, like[0].seed, told):
        asked = [[_trial(one.preset, one.seed, learn, one.folder.parent) for one in like] for learn in some]
        yield list({trial.key: trial for trials in asked for trial in trials}.values())
        for each in asked:
            values = [value for trial in each if (value := found[trial.key].get(worth)) is not None]
            told.append(math.fsum(values) / len(values) if values else None)


def _trial(preset: str, seed: int, learn: Mapping[str, Any], out: Path) -> Trial:
    told = [preset, *(f"{name}-{value}" for name, value in learn.items()), f"seed-{seed}"]
    return Trial(preset, seed, out / "-".join(told), learn)


def _wanted(
    env_id: str,
    presets: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    n_trials: int | None,
    out: Path,
) -> list[Trial]:
    """All trials; or, where settings are proposed, those of none of them."""
    spans = [f"{name}={values}" for name, values in settings.items() if proposals.is_span(values)]
    if n_trials is None and spans:
        raise EscalaError(
            f"settings: {spans[0]} is a span: say how many settings to propose from it (n_trials, --trials), or give "
            "values"
        )
    tried = proposals.ends(settings)
    for what, given in (
        ("presets", presets),
        ("seeds", seeds),
        *((f"settings: {name}", values) for name, values in tried.items()),
    ):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise EscalaError(f"{what} is {quoted(given)}: give a list")
        if not given:
            raise EscalaError(f"{what} is an empty list: name at least one")
        if (twin := first_twin([str(one) for one in given])) is not None:
            raise EscalaError(f"{what} names {quoted(twin)} twice: name it once")
    for preset in presets:
        preset_of(env_id, preset)
    for seed, *values in product(seeds, *tried.values()):
        check_request(0, seed, None, dict(zip(tried, values, strict=True)))
    if n_trials is not None:
        proposals.check(n_trials, settings, presets)
        return [_trial(presets[0], seed, {}, out) for seed in seeds]
    return [
        _trial(preset, seed, dict(zip(settings, values, strict=True)), out)
        for preset, *values, seed in product(presets, *settings.values(), seeds)
    ]


@dataclass(frozen=True, eq=False)
class Training:
    """What is asked of every trial: called with one, it gives what the trial's row says, in whatever process; `error`,
    one line, where it cannot be trained or judged. A checkpoint in the trial's folder is gone on from. See
    `escala.engines.by_text.ByText`."""

    env_id: str
    workload: Any
    platform: Any
    judged: Sequence[Any]
    how: Mapping[str, Any]

    module: ClassVar[str] = "escala.agents.task"

    def __call__(self, trial: Trial, /) -> dict[str, Any]:
        asked = {**self.how, "preset": trial.preset, "seed": trial.seed, "out": trial.folder}
        asked |= {"learn": {**(self.how.get("learn") or {}), **trial.learn}} if trial.learn else {}
        try:
            if (trial.folder / MANIFEST).is_file():
                agent = _there(trial, self.env_id, self.how)
            else:
                begun = (trial.folder / checkpoint.FILE).is_file()
                agent = train(self.env_id, self.workload, self.platform, resume=begun, **asked)
            told = agent.manifest
            row = {"decisions": told["steps_done"], "train_s": told["elapsed_s"], "mean_return": told["mean_return"]}
            row |= (
                {"validation_return": max(value for _, value in told["validation"])} if told.get("validation") else {}
            )
            return row | (_judged(agent, list(self.judged), self.platform) if self.judged else {})
        except EscalaError as error:
            return {"error": str(error)}
        except Exception as error:  # the other trials go on
            return {"error": one_line(f"{type(error).__name__}: {error}")}

    @cached_property
    def _told(self) -> str:
        return values_written([self.env_id, self.workload, self.platform, self.judged, self.how])

    def key(self, trial: Trial, /) -> str:
        """Hash of all that a trial's row depends on."""
        told = json.dumps([made_by(), self._told, _row(trial)])
        return hashlib.sha256(told.encode()).hexdigest()

    def written(self, trials: Sequence[Trial], /) -> str:
        """All of it, and trials, as text."""
        return json.dumps([self._told, [_row(trial) for trial in trials]])

    @staticmethod
    def read(text: str) -> tuple[Training, list[Trial]]:
        """What was written."""
        told, rows = json.loads(text)
        return Training(*values_read(told)), [
            Trial(preset, seed, Path(folder), learn) for preset, seed, folder, learn in rows
        ]


def _row(trial: Trial) -> list[Any]:
    return [trial.preset, trial.seed, str(trial.folder), dict(trial.learn)]


def _there(trial: Trial, env_id: str, how: Mapping[str, Any]) -> Any:
    """The agent of a trial that has ended; EscalaError where it is of another training."""
    agent = load_agent(trial.folder)
    given = {name: how[name] for name in SAME if how.get(name) is not None}
    held = {**agent.manifest["learn"], **agent.manifest}
    for name, value in {"env_id": env_id, "preset": trial.preset, "seed": trial.seed, **given, **trial.learn}.items():
        if held.get(name) != value:
            told = f"{trial.folder}: holds an agent of {name} {quoted(held.get(name))}, not {quoted(value)}"
            raise EscalaError(f"{told}: give another folder")
    return agent


def _judged(agent: Any, days: list[Any], platform: Any) -> dict[str, float]:
    """Means over the days of the agent's figures, greedy or sampled as its preset says."""
    sampled = bool(agent.manifest["sampled"])
    played = evaluate(agent, days, platform, runs=4 if sampled else 1, argmax=not sampled)
    own = played.filter(policy="agent" if sampled else "agent (argmax)")
    return {name: float(own[name].mean()) for name in JUDGED if name in own.columns}


def _table(wanted: Sequence[Trial], found: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """A row a trial, in their order."""
    figures = [
        name
        for name in ("decisions", "train_s", "mean_return", "validation_return", *JUDGED)
        if any(name in told for told in found.values())
    ]
    kinds = {
        "preset": pl.String,
        "seed": pl.Int64,
        **dict.fromkeys(wanted[0].learn, pl.Float64),
        "agent": pl.String,
        **dict.fromkeys(figures, pl.Float64),
        "error": pl.String,
    }
    kinds |= {"decisions": pl.Int64} if "decisions" in figures else {}
    rows = [
        {
            "preset": trial.preset,
            "seed": trial.seed,
            **trial.learn,
            "agent": trial.key,
            **{name: found[trial.key].get(name) for name in (*figures, "error")},
        }
        for trial in wanted
    ]
    return pl.DataFrame(rows, schema=kinds)
