"""`campaign`: every run that is not there yet, each kept as soon as it is finished, and one table of all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from escala.campaigns import journal
from escala.campaigns.definition import Definition, Log, read_definition
from escala.campaigns.runs import Choice, Run, runs_of
from escala.campaigns.trial import refuse_misfits
from escala.campaigns.work import ENERGIES, FIGURES, Replays
from escala.engines import engine_of
from escala.errors import number_of
from escala.foresight import known_to
from escala.policies.pairs import Begin
from escala.policies.queues import ESTIMATES
from escala.workload import Workload
from escala.writing import whole_file

RUNS, SECONDS = "runs.parquet", "seconds.parquet"
MOST_NAMED = 3  # platforms in one line
TEXTS = ("log", "platform", "scheduler", "shutdown")


@dataclass(frozen=True)
class Campaign:
    """What a campaign found.

    runs: one row a run, in the order of the definition: log, platform, scheduler, shutdown, each option of the
    definition, seed (null where it changes nothing), the figures, knows, error (null for a run that ended well), key.
    options: the names of those columns.
    power: whose watts, a line for each. done: simulations made now; kept: made before; failed: simulations that failed
    now, twice.
    others: kept in the folder too, of another definition or another state of the program; they stay in its journal.
    remarks: what was left out or changed of each log when it was read, and what no replay looks at.
    """

    runs: pl.DataFrame
    options: tuple[str, ...]
    power: tuple[str, ...]
    done: int
    kept: int
    failed: int
    others: int
    remarks: tuple[str, ...] = ()


def campaign(
    spec: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    on: str = "local",
    *,
    begin: Begin | None = None,
) -> Campaign:
    """Run what a campaign defines, and nothing twice: results in `out` of the same jobs, platform, policies, options
    and state of the program are used again, also when the definition has grown.

    spec: a TOML file or a dictionary of the same form, see docs/how-to/scale.md. out: the folder; it gets
    `runs.journal` (finished runs, line by line), `runs.parquet` (`Campaign.runs`) and `seconds.parquet` (processor
    seconds by key). on: "local" (a process for each core), "local:N", "ray", "ray:HOST:PORT" or "slurm"; the table is
    the same for any. A run that fails is tried once more, then named in the table.

    Raises:
        EscalaError: a contradiction in the definition, a log that cannot be read, a job that can never run on one of
        the platforms, an agent of another machine, a folder of something else, another campaign in it, an engine that
        is not there.
    """
    folder = Path(out)
    engine, asked = engine_of(on, folder), read_definition(spec)
    remarks: list[str] = []

    def heard(log: Log, jobs: Workload, choices: Sequence[Choice]) -> None:
        remarks.extend(f"{log.name}: {line}" for line in log.remarks(jobs))
        for machine in asked.platforms:
            refuse_misfits(log.name, jobs, machine, choices)

    runs = runs_of(asked, None if begin is None else begin("reading the logs"), heard)
    with engine as each, journal.opened(folder) as kept:
        unique = {run.key: run for run in runs}
        left = [run for key, run in unique.items() if key not in kept.found]
        share = None if begin is None else begin(number_of(len(left), "simulation"))
        errors: dict[str, str] = {}
        for k, (run, told) in enumerate(each(_by_log(left), Replays())):
            if "error" in told:
                errors[run.key] = told["error"]
            else:
                kept.add(run.key, told)
            if share is not None:
                share((k + 1) / len(left))
        table = _table(asked, runs, kept.found, errors)
        seconds = {key: kept.found[key]["seconds"] for key in unique if key in kept.found}
        spent = pl.DataFrame({"key": list(seconds), "processor_s": list(seconds.values())})
        for name, frame in ((RUNS, table), (SECONDS, spent)):
            with whole_file(folder / name) as aside:
                frame.write_parquet(aside)
    power = dict.fromkeys(machine.power_line for machine in asked.platforms if machine.has_energy)
    if bare := sorted({machine.name for machine in asked.platforms if not machine.has_energy}):
        power[_no_power(bare)] = None
    others = len(kept.found.keys() - unique.keys())
    counts = len(left) - len(errors), len(unique) - len(left), len(errors), others
    return Campaign(table, tuple(asked.options), tuple(power), *counts, tuple(remarks))


def _no_power(bare: Sequence[str]) -> str:
    """What is not told of platforms without a power profile, and how to give one."""
    more = f" and {len(bare) - MOST_NAMED} more" if len(bare) > MOST_NAMED else ""
    return (
        f"power: no profile for {', '.join(bare[:MOST_NAMED])}{more}, so no energy, money or CO2 is told there; name "
        'one in the campaign\'s file, a preset (power = "grid5000", or platforms = ["64x1:grid5000"]) or measured '
        'watts of a node (power = "computing=410,idle=160,...", or a YAML file)'
    )


def _by_log(runs: Sequence[Run]) -> list[Run]:
    """Runs of the same jobs one after the other."""
    place: dict[str, int] = {}
    for run in runs:
        place.setdefault(run.digest, len(place))
    return sorted(runs, key=lambda run: place[run.digest])


def _table(
    asked: Definition, runs: Sequence[Run], found: Mapping[str, Mapping[str, Any]], errors: Mapping[str, str]
) -> pl.DataFrame:
    """One row a run."""
    figures = {**FIGURES, **(ENERGIES if any(machine.has_energy for machine in asked.platforms) else {})}
    rows = [
        (
            run.log.name,
            run.platform.name,
            asked.as_written(run.scheduler),
            asked.as_written(run.shutdown),
            run.seed,
            errors.get(run.key),
            run.key,
            *_figures(run, found, figures),
        )
        for run in runs
    ]
    about = {**dict.fromkeys(TEXTS, pl.String), "seed": pl.Int64, "error": pl.String, "key": pl.String}
    table = pl.DataFrame(rows, schema={**about, **figures, "knows": pl.String}, orient="row")
    options = [pl.Series(name, [_cell(asked.as_written(run.option(name))) for run in runs]) for name in asked.options]
    return table.with_columns(options).select(*TEXTS, *asked.options, "seed", *figures, "knows", "error", "key")


def _figures(run: Run, found: Mapping[str, Mapping[str, Any]], figures: Mapping[str, Any]) -> list[Any]:
    """Of a run: its figures, null where it failed, and what its policies know."""
    if run.key not in found:
        knows = known_to(run.scheduler, run.shutdown, *map(run.option, ESTIMATES))
        return [*[None] * len(figures), knows]
    told = found[run.key]["found"]
    return [*(told.get(name) for name in figures), told["knows"]]


def _cell(value: Any) -> Any:
    """A value of an option as it stands in the table."""
    return json.dumps(value) if isinstance(value, list | tuple) else value
