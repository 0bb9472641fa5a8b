"""Every run of a campaign, with the hash of all that its result depends on: two runs with one hash are one."""

from __future__ import annotations

import hashlib
import inspect
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from escala.campaigns.definition import Definition, Log
from escala.engines.there import made_by
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.files import identity
from escala.policies.heeded import unheeded
from escala.policies.queues import ESTIMATES
from escala.workload import Workload
from escala.workload.generate import GENERATORS


@dataclass(frozen=True)
class Run:
    """One run. seed: None where it changes nothing. digest: of the jobs; key: of all that the result depends on;
    predictors: options that are predictors of other packages, by name; policies: the hash of all that decides, wherever
    its files lie; unheeded: options of the definition that change nothing, which stand at their defaults."""

    log: Log
    platform: Platform
    scheduler: str
    shutdown: str
    options: Options
    seed: int | None
    digest: str
    key: str
    predictors: Mapping[str, str]
    policies: str
    unheeded: list[str]

    def option(self, name: str) -> Any:
        """The value of an option; None where it changes nothing."""
        if name in self.unheeded:
            return None
        return self.predictors.get(name, getattr(self.options, name))


class Choice(NamedTuple):
    """What decides in a run. looks: at its seed? policies, unheeded: see `Run`."""

    scheduler: str
    shutdown: str
    options: Options
    looks: bool
    predictors: Mapping[str, str]
    policies: str
    unheeded: list[str]

    @property
    def given(self) -> dict[str, Any]:
        """The options as `simulate` takes them."""
        return given_to(self.options, 0, self.predictors)

    @property
    def told(self) -> dict[str, Any]:
        """The options that `policies` does not say."""
        return {name: value for name, value in self.options.told().items() if name not in (*ESTIMATES, "seed")}


def log_digest(log: Log, seed: int, jobs: Workload | None = None) -> str:
    """The hash of what a log holds: of a file of its jobs, which are read where they are not given; of a generated one
    of all that they depend on beside the state of Escala, so that none need be generated."""
    if log.generator is None:
        return digest_of(log.load(seed) if jobs is None else jobs)
    return _sha([log.generator, _settled(log, seed), np.__version__])


def _settled(log: Log, seed: int) -> dict[str, Any]:
    """All settings of a generator, those left out too."""
    own = inspect.signature(GENERATORS[str(log.generator)]).bind(**{"seed": seed, **log.settings})
    own.apply_defaults()
    return own.arguments


def digest_of(workload: Workload) -> str:
    """SHA-256 of every column of the jobs and of the date at which their clock begins, which predictions by hour and
    weekday and Slurm's closed hours look at, wherever they were read."""
    stream = io.BytesIO()
    jobs = workload.jobs
    jobs.select(sorted(jobs.columns)).rechunk().write_ipc(stream, compat_level=pl.CompatLevel.oldest())
    stream.write(repr(workload.origin_s).encode())
    return hashlib.sha256(stream.getbuffer()).hexdigest()


def runs_of(
    asked: Definition,
    progress: Callable[[float], None] | None = None,
    heard: Callable[[Log, Workload, Sequence[Choice]], None] | None = None,
) -> list[Run]:
    """Every run, in the order of the definition; each log is read once, a generated one with the first seed. A seed
    that changes nothing makes one run, not several, and so does an option. heard: called with each log, its jobs (those
    of the first seed) and all choices of policies and options.

    Raises EscalaError where a log cannot be read or generated.
    """
    found: list[Run] = []
    choices, program = list(_choices(asked)), made_by()
    machines = [(machine, _sha(machine.spec())) for machine in asked.platforms]
    for k, log in enumerate(asked.logs):
        jobs = log.load(asked.seeds[0])
        if heard is not None:
            heard(log, jobs, choices)
        digests = {seed: log_digest(log, seed, jobs) for seed in (asked.seeds if log.seeded else asked.seeds[:1])}
        for machine, spec in machines:
            for one in choices:
                for seed in asked.seeds if one.looks or log.seeded else (None,):
                    digest = digests[seed if seed is not None and log.seeded else asked.seeds[0]]
                    key = _sha([program, spec, digest, one.policies, one.told, seed if one.looks else None])
                    decides = one.predictors, one.policies, one.unheeded
                    found.append(Run(log, machine, *one[:3], seed, digest, key, *decides))
        if progress is not None:
            progress((k + 1) / len(asked.logs))
    return found


def _choices(asked: Definition) -> Iterator[Choice]:
    """Every choice of policies and options, in order; those that differ by what changes nothing are one."""
    settings = asked.settings()
    for scheduler, shutdown in itertools.product(asked.schedulers, asked.shutdowns):
        looks = scheduler in asked.drawing or shutdown in asked.drawing
        seen = set[str]()
        for given, predictors in settings:
            nothing = frozenset[str]() if predictors else unheeded(scheduler, shutdown, given)  # theirs may look at any
            unused = [name for name in asked.options if name in nothing]
            options = with_options(given, **{name: getattr(Options, name) for name in unused}) if unused else given
            if (choice := json.dumps([options.told(), predictors])) in seen:
                continue
            seen.add(choice)
            about = policies_digest(scheduler, shutdown, options, predictors)
            yield Choice(scheduler, shutdown, options, looks, predictors, about, unused)


def given_to(options: Options, seed: int, predictors: Mapping[str, str]) -> dict[str, Any]:
    """The options of a run as `simulate` takes them. Which nodes a job had enters no figure, and is not recorded."""
    settled = with_options(options, seed=seed, record=False)
    return {name: getattr(settled, name) for name in settled.__dataclass_fields__} | dict(predictors)


def policies_digest(scheduler: str, shutdown: str, options: Options, predictors: Mapping[str, str]) -> str:
    """The hash of all that decides: names without folders, what lies in these, versions and code of other packages'
    policies. EscalaError for what is not there."""
    given = {"estimate": options.estimate, "order_estimate": options.order_estimate, **predictors}
    estimates = [identity(given[name], "predictor") for name in ESTIMATES]
    return _sha([identity(scheduler, "scheduler"), identity(shutdown, "shutdown"), *estimates])


def _sha(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
