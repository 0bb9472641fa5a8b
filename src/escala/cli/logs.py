"""Verbs on job logs: describe, convert, generate, fetch."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from escala.cli import options as opt
from escala.cli.fetch import fetch
from escala.cli.policies import generator_lines
from escala.cli.reading import read_log, read_of, tell_read
from escala.cli.slurm import from_slurm
from escala.cli.tables import amount, facts_table, rows_table
from escala.cli.terminal import emit, progress
from escala.cli.verbs import Verb
from escala.errors import EscalaError
from escala.report.quantities import quantity
from escala.writing import output_file

if TYPE_CHECKING:
    from escala.workload import Description, Workload
    from escala.workload.to_parquet import Converted

FORMATS = {".swf": "SWF", ".json": "Batsim JSON", ".parquet": "a table"}

OutFile = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="NAME.swf or NAME.json (Batsim), with .gz packed, or NAME.parquet",
        show_default=False,
    ),
]
HashNames = Annotated[
    bool,
    typer.Option(
        "--hash-names",
        help="users, groups, accounts, job names and executables as hashes of theirs, by a key that is not kept",
    ),
]
Speed = Annotated[
    float | None, typer.Option("--speed", metavar="FLOPS", help="NAME.json: flop/s of one core", show_default=False)
]


class _ListsGenerators(Verb):
    """Ends its help with the generators and their settings; they are loaded only for that."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The example, and the generators with their settings and defaults."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Generators"):
            formatter.write_dl(
                [(name, f"{what}. Settings: {settings}") for name, (what, settings) in generator_lines().items()]
            )


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `workload`."""
    group = typer.Typer(
        help="Describe, convert, generate and fetch job logs.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(opt.reading(describe))
    group.command()(opt.reading(convert))
    group.command(cls=_ListsGenerators)(generate)
    group.command()(fetch)
    group.command("from-slurm")(from_slurm)
    app.add_typer(group, name="workload")


def describe(
    workload: opt.Log,
    read: dict[str, Any],
    platform: opt.PlatformOfLog = None,
    as_json: opt.Json = False,
) -> None:
    """What a log is like: sizes, times, use of the machine, bursts, groups of days, and what was cleaned."""
    import escala

    with progress() as begin:
        begin(f"reading {workload}")
        machine = None if platform is None else escala.read_platform(platform)
        log = read_log(workload, read, machine)
        description = escala.describe(log, machine)
    emit(as_json, {**description, **read_of(log)}, *description_tables(description, log.cleaning))


def description_tables(description: Description, cleaning: Mapping[str, int]) -> list[Table]:
    """A description as tables: the figures, the days by group, the years, the distributions, and what was cleaned."""
    facts = list(itertools.takewhile(lambda row: not row[0].startswith("days in group"), description.rows()))
    groups = [
        {"days by share of sequential submissions": group, "days": days}
        for group, days in description["day_groups"].items()
    ]
    years = [{"year": year, **shares} for year, shares in description["years"].items()]
    spread = [
        {"distribution": quantity(name).name, **{statistic: amount(name, value) for statistic, value in values.items()}}
        for name, values in description["quantiles"].items()
        if values["max"] is not None
    ]
    words = [fact for fact in facts if isinstance(fact[1], str)]
    figures = [fact for fact in facts if not isinstance(fact[1], str)]
    tables = [
        facts_table(words, values="left"),
        facts_table(figures),
        rows_table(groups),
        rows_table(years),
        rows_table(spread, text="right"),
    ]
    if cleaning:
        tables.append(rows_table([{"cleaned": rule, "jobs": count} for rule, count in cleaning.items()]))
    return tables


def convert(
    workload: opt.Log,
    read: dict[str, Any],
    out: OutFile,
    first: Annotated[
        int | None, typer.Option("--first", metavar="N", min=1, help="only the first N jobs", show_default=False)
    ] = None,
    hash_names: HashNames = False,
    node_cores: Annotated[
        int | None,
        typer.Option(
            "--node-cores",
            metavar="N",
            min=1,
            help="Batsim: hosts are nodes of N cores, of which jobs take whole ones",
            show_default=False,
        ),
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write a log, or its first jobs, in another format.

    Batsim JSON counts work in flops: --speed turns it into times when it is read, and times into work when it is
    written. --node-cores writes jobs of whole nodes as jobs of hosts. A table is written piece by piece.
    """
    from escala.workload import to_parquet
    from escala.workload.read import detect

    write = _writer(out, read.get("speed"), node_cores)
    timed = _suffix(out) != ".json"
    with output_file(out, force=force) as work, progress() as begin:
        begin(f"reading {workload}")
        kind = read.get("format") or detect(workload, read.get("columns"))
        if _suffix(out) == ".parquet" and set(read) <= set(to_parquet.OPTIONS):
            found = to_parquet.convert(workload, work, first=first, hash_names=hash_names, **read)
            tell_read(workload, found, read)
            return _tell(as_json, found.jobs, found, out)
        unread = {"speed"} if kind != "batsim" and not timed else set()  # then the speed is for the writer alone
        how = {name: value for name, value in read.items() if name not in unread}
        how |= {"shapes": True} if node_cores is not None else {}
        log = read_log(workload, how, needs_times=timed)
        log = log if first is None else log.head(first)
        log = log.hash_names() if hash_names else log
        begin(f"writing {out}")
        write(log, work)
    _tell(as_json, len(log), log, out)


def generate(
    generator: Annotated[
        str, typer.Argument(metavar="GENERATOR", help="grid5000, lublin, bernoulli, ...", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...", help="settings of the generator, such as cluster=orion", show_default=False
        ),
    ] = None,
    *,
    out: OutFile,
    seed: opt.Seed = 0,
    speed: Speed = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write a generated log; the same seed gives the same log."""
    from escala.workload.generate import by_name

    write = _writer(out, speed)
    given = _settings(generator, settings or [])
    with output_file(out, force=force) as work, progress() as begin:
        begin(f"generating {generator}")
        log = by_name(generator, seed=seed, **given)
        write(log, work)
    _tell(as_json, len(log), log, out)


def _tell(as_json: bool, jobs: int, log: Workload | Converted, out: Path) -> None:
    facts = {"file": str(out), "jobs": jobs, "days": log.span_s / 86400.0, **read_of(log)}
    emit(as_json, facts, f"{out}: {jobs:,} jobs over {log.span_s / 86400.0:.1f} days")


def _suffix(out: Path) -> str:
    """The ending of a name that says the format."""
    return Path(out.stem).suffix if out.suffix == ".gz" else out.suffix


def _writer(out: Path, speed: float | None, node_cores: int | None = None) -> Callable[[Workload, Path], None]:
    """What writes the format that the file's name asks for."""
    from escala.workload import write_batsim, write_parquet, write_swf
    from escala.workload.batsim import check_speed

    suffix = _suffix(out)
    if speed is not None:
        check_speed(speed)
    if suffix not in FORMATS or (suffix == ".parquet" and out.suffix == ".gz"):
        known = ", ".join(f"{end} ({name})" for end, name in FORMATS.items())
        raise EscalaError(f"{out}: the name must say the format: {known}; texts also with .gz")
    if node_cores is not None and suffix != ".json":
        raise EscalaError(f"--node-cores is about the hosts of Batsim's JSON: {out} is none: leave it out")
    if suffix == ".parquet":
        return write_parquet
    if suffix == ".swf":
        return write_swf
    return lambda log, path: write_batsim(log, path, speed=speed, node_cores=node_cores)


def _settings(generator: str, texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE entries as the generator's arguments, each of the type of its default."""
    from escala.workload.generate import GENERATORS

    known = inspect.signature(GENERATORS[generator]).parameters if generator in GENERATORS else {}
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise EscalaError(f"{text!r} is no setting; write NAME=VALUE, such as days=30")
        default = known[name].default if name in known else None
        try:
            given[name] = type(default)(value) if isinstance(default, int | float) else _plain(value)
        except ValueError:
            need = "a whole number" if isinstance(default, int) else "a number"
            raise EscalaError(f"setting {name}={value}: {need} is needed, such as {name}={default}") from None
    return given


def _plain(value: str) -> Any:
    """A number where the text is one."""
    try:
        return float(value)
    except ValueError:
        return value
