"""What a campaign is asked to do: a TOML file or a dictionary, checked before anything is read or run."""

from __future__ import annotations

import inspect
import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from escala.campaigns.beside import beside
from escala.errors import EscalaError, nearest, quoted
from escala.options import Options, with_options
from escala.platform import Platform, read_platform
from escala.policies.named import draws
from escala.policies.plugins import is_plugin, plugin
from escala.policies.queues import ESTIMATES
from escala.policies.run import check_power
from escala.reading import first_twin, read_toml
from escala.workload import CleaningRules, Workload, read_workload
from escala.workload.clean import remarks
from escala.workload.generate import GENERATORS, by_name
from escala.workload.ignored import told as ignored_told
from escala.workload.read import SUFFIXES

KEYS = ("logs", "platforms", "power", "schedulers", "shutdowns", "options", "seeds", "reading")
NONE = "none"
APART = ("record", "seed")
"""Options of a run that a campaign decides itself: it keeps no records, and seeds stand in a list of their own."""
NO_VALUE = tuple(field.name for field in fields(Options) if field.default is None)
"""Options that may have no value, which TOML cannot say: there it is the text "none"."""
READING = tuple(name for name in inspect.signature(read_workload).parameters if name not in ("path", "name"))
MOST_RUNS = 10_000_000
UNASKED = "no request"


@dataclass(frozen=True)
class Log:
    """A log of a campaign. settings: how it is read, or what its generator is given."""

    name: str
    path: str | None
    generator: str | None
    settings: Mapping[str, Any]

    @property
    def seeded(self) -> bool:
        """Does each seed of the campaign make another log of it?"""
        return self.generator is not None and "seed" not in self.settings

    def load(self, seed: int) -> Workload:
        """The jobs. seed: of a generated log whose settings name none."""
        if self.generator is not None:
            return by_name(self.generator, **({"seed": seed} if self.seeded else {}), **self.settings)
        assert self.path is not None
        return read_workload(self.path, **_ruled(self.settings))

    def remarks(self, jobs: Workload) -> list[str]:
        """A line for each rule of cleaning that touched a job, and one for what the log has and no replay looks at."""
        counts = dict(jobs.cleaning)
        if self.generator is not None and (unlimited := _unlimited(jobs)):
            counts.setdefault(UNASKED, unlimited)
        lines = remarks(counts, jobs.first_cleaned, _ruled(self.settings).get("rules"))
        return [*lines, *([ignored_told(jobs.ignored)] if jobs.ignored else [])]


@dataclass(frozen=True)
class Definition:
    """A campaign, in the order of its file. options: name -> the values that it takes in turn. drawing: the schedulers
    and shutdown policies that draw by the seed of their run. written: names of policies with their paths as they are
    found from the current folder -> as they are written."""

    logs: tuple[Log, ...]
    platforms: tuple[Platform, ...]
    schedulers: tuple[str, ...]
    shutdowns: tuple[str, ...]
    options: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]
    drawing: frozenset[str] = frozenset()
    written: Mapping[str, str] = field(default_factory=dict)

    def as_written(self, value: Any) -> Any:
        """A name of a policy as it is written; all else as it is."""
        return self.written.get(value, value) if isinstance(value, str) else value

    def settings(self) -> list[tuple[Options, dict[str, str]]]:
        """Every choice of options, the last of them changing fastest; beside each those that are predictors of other
        packages, by name."""
        found = []
        for values in itertools.product(*self.options.values()):
            told = dict(zip(self.options, values, strict=True))
            others = {name: told.pop(name) for name in ESTIMATES if is_plugin(told.get(name))}
            found.append((with_options(Options(record=False), **told), others))
        return found


def read_definition(spec: str | os.PathLike[str] | Mapping[str, Any], name: str = "campaign") -> Definition:
    """The campaign of a TOML file, whose relative paths begin in its folder, or of a dictionary of the same form, whose
    begin in the current one; name: what errors call that.

    Raises EscalaError, one line: no such file, unknown keys, names or values, an empty list, something twice, a
    shutdown policy without a power profile.
    """
    written: dict[str, str] = {}
    if isinstance(spec, Mapping):
        told, where = dict(spec), name
    else:
        told, where = read_toml(Path(spec)), str(spec)
        if (folder := Path(spec).parent) != Path():
            told, written = beside(told, folder)
    try:
        for key in told:
            if key not in KEYS:
                raise EscalaError(f"unknown key {quoted(key)}: {nearest(str(key), KEYS)}known are {', '.join(KEYS)}")
        found = Definition(
            logs=_logs(told),
            platforms=_platforms(told),
            schedulers=tuple(_listed(told, "schedulers", str)),
            shutdowns=tuple(_listed(told, "shutdowns", str, ["never"])),
            options=_options(told.get("options", {})),
            seeds=_seeds(told),
            written=written,
        )
        return replace(found, drawing=_checked(found))
    except EscalaError as error:
        raise EscalaError(f"{where}: {error}") from None


def _unlimited(jobs: Workload) -> int:
    """Jobs of which no limit is known."""
    return int((~jobs.jobs["limited"]).sum()) if "limited" in jobs.jobs.columns else 0


def _seeds(told: Mapping[str, Any]) -> tuple[int, ...]:
    """A list of seeds, or the text "FIRST..LAST" for all from one to another."""
    given = told.get("seeds")
    if not isinstance(given, str):
        return tuple(_listed(told, "seeds", int, [0]))
    ends = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", given)
    first, last = (int(ends[1]), int(ends[2])) if ends else (1, 0)
    if not 0 <= last - first < MOST_RUNS:
        raise EscalaError(f'seeds is {quoted(given)}: give a list of whole numbers, or "FIRST..LAST", such as "0..99"')
    return tuple(range(first, last + 1))


def _listed(told: Mapping[str, Any], key: str, kind: Any, default: list[Any] | None = None) -> list[Any]:
    """The list of this key: not empty, every entry of that type, none of them twice."""
    entries = told.get(key, default)
    what = {str: "texts", int: "whole numbers"}.get(kind, "texts or tables")
    if not isinstance(entries, list | tuple):
        missing = "is missing" if entries is None else f"is {quoted(entries)}"
        raise EscalaError(f"{key} {missing}: give a list of {what}, {key} = [...]")
    if not entries:
        raise EscalaError(f"{key} is an empty list: name at least one")
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, kind):
            raise EscalaError(f"{key} holds {quoted(entry)}: a list of {what} is needed")
    if (twin := first_twin([repr(entry) for entry in entries])) is not None:
        raise EscalaError(f"{key} names {twin[:80]} twice: name it once")
    return list(entries)


def _logs(told: Mapping[str, Any]) -> tuple[Log, ...]:
    """The logs: paths, or tables with `path` and ways to read it, or with `generator` and its settings."""
    reading = told.get("reading", {})
    _known(reading, READING, "[reading]")
    logs = [_log(entry, reading) for entry in _listed(told, "logs", str | Path | Mapping)]
    if (twin := first_twin([log.name for log in logs])) is not None:
        raise EscalaError(
            f'two logs are called {quoted(twin)}: give each a name of its own, {{path = "...", name = "..."}}'
        )
    if reading and all(log.path is None for log in logs):
        raise EscalaError("[reading] is for logs in files, and all of these are generated: leave it out")
    return tuple(logs)


def _log(entry: Any, reading: Mapping[str, Any]) -> Log:
    own = dict(entry) if isinstance(entry, Mapping) else {"path": str(entry)}
    name, path, generator = (own.pop(key, None) for key in ("name", "path", "generator"))
    for key, value in (("name", name), ("path", path), ("generator", generator)):
        if value is not None and (not isinstance(value, str) or not value):
            raise EscalaError(f"a log has {key} = {quoted(value)}: a text is needed")
    if (path is None) == (generator is None):
        raise EscalaError(f"a log needs path = or generator =, one of the two: {quoted(entry)}")
    if path is not None:
        _known(own, READING, f"log {quoted(path)}")
        if not os.path.isfile(path):
            raise EscalaError(f"log {quoted(path)}: no such file: check the path")
        settings = {**reading, **own}
        _ruled(settings)
        return Log(name or _stem(path), path, None, settings)
    if generator not in GENERATORS:
        raise EscalaError(
            f"unknown generator {quoted(generator)}: {nearest(generator, GENERATORS)}known are {', '.join(GENERATORS)}"
        )
    _known(own, inspect.signature(GENERATORS[generator]).parameters, f"generator {generator}")
    return Log(name or generator, None, generator, own)


def _stem(path: str) -> str:
    """The name of a file without the endings that say what it is."""
    name = Path(path).name
    while name.endswith(SUFFIXES):
        name = name[: name.rindex(".")]
    return name or path


def _known(told: Any, known: Iterable[str], what: str) -> None:
    if not isinstance(told, Mapping):
        raise EscalaError(f"{what} is {quoted(told)}: a table of names and values is needed")
    for key in told:
        if key not in known:
            raise EscalaError(
                f"{what}: unknown key {quoted(key)}: {nearest(str(key), known)}known are {', '.join(known)}"
            )


def _ruled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `read_workload`; the table `rules` becomes rules of cleaning."""
    given = dict(settings)
    if isinstance(rules := given.get("rules"), Mapping):
        _known(rules, [field.name for field in fields(CleaningRules)], "reading.rules")
        given["rules"] = CleaningRules(**rules)
    return given


def _platforms(told: Mapping[str, Any]) -> tuple[Platform, ...]:
    power = told.get("power")
    if power is not None and not isinstance(power, str):
        raise EscalaError(f"power = {quoted(power)}: a text is needed, as after --power")
    machines = [read_platform(spec, power) for spec in _listed(told, "platforms", str | Platform)]
    if (twin := first_twin([machine.name for machine in machines])) is not None:
        raise EscalaError(f"two platforms are called {quoted(twin)}: give each a name of its own")
    return tuple(machines)


def _options(told: Any) -> dict[str, tuple[Any, ...]]:
    """Name -> values; a single value is a list of one."""
    if isinstance(told, Mapping) and "seed" in told:
        raise EscalaError("[options] has a seed: give seeds = [...] beside it")
    _known(told, [field.name for field in fields(Options) if field.name not in APART], "[options]")
    return {name: _values(name, given) for name, given in told.items()}


def _values(name: str, given: Any) -> tuple[Any, ...]:
    """The values of an option, each once, and of a kind that a file can hold."""
    values = list(given) if isinstance(given, list | tuple) else [given]
    if name == "corrections_s" and values and not isinstance(values[0], list | tuple):
        values = [values]
    if not values:
        raise EscalaError(f"[options] {name} is an empty list: give at least one value, or leave it out")
    for value in values:
        if name in ESTIMATES and not isinstance(value, str):
            raise EscalaError(f"[options] {name} holds {quoted(value)}: a campaign takes estimates by their names")
    plain = [None if isinstance(value, str) and value == NONE and name in NO_VALUE else value for value in values]
    taken = [_taken(name, value) for value in plain]
    if first_twin(taken) is not None:
        raise EscalaError(f"[options] {name} = {quoted(given)} names a value twice: name it once")
    return tuple(plain)


def _taken(name: str, value: Any) -> str:
    """A value as a run takes it; EscalaError for one that the option cannot have."""
    if name in ESTIMATES and is_plugin(value):
        plugin(value, "predictor")
        return repr(value)
    return repr(getattr(with_options(Options(), **{name: value}), name))


def _checked(found: Definition) -> frozenset[str]:
    """Every name and every choice of options, together; gives what draws by its seed."""
    given = (("scheduler", found.schedulers), ("shutdown", found.shutdowns))
    drawing = frozenset(name for role, names in given for name in names if draws(name, role))
    if bad := [seed for seed in found.seeds if not 0 <= seed < 2**63]:
        raise EscalaError(f"seeds holds {quoted(bad[0])}: give whole numbers of at least 0 (below 2^63)")
    lists = (found.logs, found.platforms, found.schedulers, found.shutdowns, found.seeds, *found.options.values())
    total = math.prod(len(one) for one in lists)
    if total > MOST_RUNS:
        raise EscalaError(f"{total:,} runs are more than the {MOST_RUNS:,} of a campaign: make its lists shorter")
    off = any(options.start_off for options, _ in found.settings())
    for machine in found.platforms:
        check_power(machine, found.shutdowns, off)
    return drawing
