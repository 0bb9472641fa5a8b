"""Every run of a campaign, with the hash of all that its result depends on: two runs with one hash are one."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from escala.campaigns.definition import Definition, Log
from escala.engines.there import made_by
from escala.options import Options
from escala.platform import Platform
from escala.policies.files import identity
from escala.policies.queues import ESTIMATES
from escala.workload import Workload


@dataclass(frozen=True)
class Run:
    """One run. seed: None where it changes nothing. digest: of the jobs; key: of all that the result depends on;
    predictors: options that are predictors of other packages, by name; policies: the hash of all that decides, wherever
    its files lie."""

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

    def option(self, name: str) -> Any:
        """The value of an option."""
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
    several. heard: called with each log and its jobs, those of the first seed.

    Raises EscalaError where a log cannot be read or generated.
    """
    found: list[Run] = []
    policies, program = list(_policies(asked)), made_by()
    machines = [(machine, _sha(machine.spec())) for machine in asked.platforms]
    for k, log in enumerate(asked.logs):
        digests: dict[int, str] = {}
        for drawn in asked.seeds if log.seeded else asked.seeds[:1]:
            jobs = log.load(drawn)
            if heard is not None and not digests:
                heard(log, jobs)
            digests[drawn] = digest_of(jobs)
        for machine, spec in machines:
            for scheduler, shutdown, options, predictors, looks, about in policies:
                told = {name: value for name, value in options.told().items() if name not in (*ESTIMATES, "seed")}
                for seed in asked.seeds if looks or log.seeded else (None,):
                    digest = digests[seed if seed is not None and log.seeded else asked.seeds[0]]
                    key = _sha([program, spec, digest, about, told, seed if looks else None])
                    found.append(Run(log, machine, scheduler, shutdown, options, seed, digest, key, predictors, about))
        if progress is not None:
            progress((k + 1) / len(asked.logs))
    return found


def _policies(asked: Definition) -> Iterator[tuple[str, str, Options, dict[str, str], bool, str]]:
    """(scheduler, shutdown policy, options, predictors, whether it looks at its seed, hash of what decides), in
    order."""
    choices = asked.settings()
    for scheduler in asked.schedulers:
        for shutdown in asked.shutdowns:
            looks = scheduler in asked.drawing or shutdown in asked.drawing
            for options, predictors in choices:
                yield (
                    scheduler,
                    shutdown,
                    options,
                    predictors,
                    looks,
                    policies_digest(scheduler, shutdown, options, predictors),
                )


def policies_digest(scheduler: str, shutdown: str, options: Options, predictors: Mapping[str, str]) -> str:
    """The hash of all that decides: names without folders, what lies in these, versions and code of other packages'
    policies. EscalaError for what is not there."""
    given = {"estimate": options.estimate, "order_estimate": options.order_estimate, **predictors}
    estimates = [identity(given[name], "predictor") for name in ESTIMATES]
    return _sha([identity(scheduler, "scheduler"), identity(shutdown, "shutdown"), *estimates])


def _sha(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
