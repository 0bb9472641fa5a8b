"""Every run of a campaign, with the hash of all that its result depends on: two runs with one hash are one."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from escala.campaigns.definition import Definition, Log
from escala.engines.there import made_by
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.files import identity
from escala.policies.heeded import unheeded
from escala.policies.queues import ESTIMATES
from escala.workload import Workload


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


def digest_of(workload: Workload) -> str:
    """SHA-256 of every column of the jobs, wherever they were read."""
    stream = io.BytesIO()
    jobs = workload.jobs
    jobs.select(sorted(jobs.columns)).rechunk().write_ipc(stream, compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(stream.getbuffer()).hexdigest()


def runs_of(
    asked: Definition,
    progress: Callable[[float], None] | None = None,
    heard: Callable[[Log, Workload], None] | None = None,
) -> list[Run]:
    """Every run, in the order of the definition; each log is read once. A seed that changes nothing makes one run, not
    several, and so does an option. heard: called with each log and its jobs, those of the first seed.

    Raises EscalaError where a log cannot be read or generated.
    """
    found: list[Run] = []
    choices, program = list(_choices(asked)), made_by()
    machines = [(machine, _sha(machine.spec())) for machine in asked.platforms]
    for k, log in enumerate(asked.logs):
        digests: dict[int, str] = {}
        for drawn in asked.seeds if log.seeded else asked.seeds[:1]:
            jobs = log.load(drawn)
            if heard is not None and not digests:
                heard(log, jobs)
            digests[drawn] = digest_of(jobs)
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


class _Choice(NamedTuple):
    """What decides in a run. looks: at its seed? policies, unheeded: see `Run`."""

    scheduler: str
    shutdown: str
    options: Options
    looks: bool
    predictors: Mapping[str, str]
    policies: str
    unheeded: list[str]

    @property
    def told(self) -> dict[str, Any]:
        """The options that `policies` does not say."""
        return {name: value for name, value in self.options.told().items() if name not in (*ESTIMATES, "seed")}


def _choices(asked: Definition) -> Iterator[_Choice]:
    """Every choice of policies and options, in order; those that differ by what changes nothing are one."""
    settings = asked.settings()
    for scheduler, shutdown in itertools.product(asked.schedulers, asked.shutdowns):
        looks = scheduler in asked.drawing or shutdown in asked.drawing
        seen = set[str]()
        for given, predictors in settings:
            nothing = frozenset[str]() if predictors else unheeded(scheduler, shutdown, given)  # theirs may look at any
            options = with_options(given, **{name: getattr(Options, name) for name in nothing})
            if (choice := json.dumps([options.told(), predictors])) in seen:
                continue
            seen.add(choice)
            about = policies_digest(scheduler, shutdown, options, predictors)
            unused = [name for name in asked.options if name in nothing]
            yield _Choice(scheduler, shutdown, options, looks, predictors, about, unused)


def policies_digest(scheduler: str, shutdown: str, options: Options, predictors: Mapping[str, str]) -> str:
    """The hash of all that decides: names without folders, what lies in these, versions and code of other packages'
    policies. EscalaError for what is not there."""
    given = {"estimate": options.estimate, "order_estimate": options.order_estimate, **predictors}
    estimates = [identity(given[name], "predictor") for name in ESTIMATES]
    return _sha([identity(scheduler, "scheduler"), identity(shutdown, "shutdown"), *estimates])


def _sha(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
