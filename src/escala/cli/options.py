"""Arguments and options that several verbs share, described once."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli.cleaning import Longest, MostCores, NoRequest, ZeroRuntime, _rules
from escala.cli.estimates import Corrections, Estimate, OrderEstimate, spans
from escala.cli.part import Account, Partition, Since, Until, User
from escala.errors import EscalaError, quoted

Log = Annotated[
    Path,
    typer.Argument(
        metavar="WORKLOAD",
        help="job log: SWF, Batsim JSON, sacct text, CSV or Parquet, plain or gzipped",
        show_default=False,
    ),
]
PlatformSpec = Annotated[
    str,
    typer.Option(
        "--platform",
        metavar="SPEC",
        help="preset (orion, taurus, ...), NODESxCORES[:POWER], or a platform file; #N keeps the first N nodes",
        show_default=False,
    ),
]
PlatformOfLog = Annotated[
    str | None,
    typer.Option("--platform", metavar="SPEC", help="machine for the utilisation [the log's]", show_default=False),
]
Power = Annotated[
    str | None,
    typer.Option(
        "--power",
        metavar="PROFILE",
        help="watts of a node: a preset (grid5000, taurus), computing=W,idle=W,..., or a YAML file [the platform's; "
        "none is assumed]",
        show_default=False,
    ),
]
_OUT: Any = typer.Option(
    "--out",
    metavar="DIR",
    help="folder for the output, written whole or not at all",
    show_default=False,
    rich_help_panel="Output",
)
Out = Annotated[Path | None, _OUT]
OutNeeded = Annotated[Path, _OUT]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="replace an output folder that holds other files; they are kept beside it",
        rich_help_panel="Output",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="print one JSON document instead of tables", rich_help_panel="Output")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="seed of everything random")]

Rules = Annotated[
    str,
    typer.Option(
        "--rules",
        metavar="BUNDLE",
        help="escala, or batsched: the reference engine's conventions",
        rich_help_panel="Rules",
    ),
]
Head = Annotated[
    str,
    typer.Option(
        "--head",
        metavar="CHOICE",
        help="cores that the head of the EASY family reserves: lowest-id or latest-released",
        rich_help_panel="Rules",
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        min=1,
        help="conservative: reservations for that many first jobs only",
        show_default=False,
        rich_help_panel="Rules",
    ),
]
Rebuild = Annotated[
    bool,
    typer.Option(
        "--rebuild", help="conservative: plan all waiting jobs anew at each decision", rich_help_panel="Rules"
    ),
]
PlanMargin = Annotated[
    float | None,
    typer.Option(
        "--plan-margin",
        metavar="SECONDS",
        help="added to walltimes in plans [5 with --rules batsched]",
        show_default=False,
        rich_help_panel="Rules",
    ),
]
StopAt = Annotated[
    float | None,
    typer.Option(
        "--stop-at",
        metavar="SECONDS",
        help="stop the clock here; by default run to completion",
        show_default=False,
        rich_help_panel="Rules",
    ),
]
StartOff = Annotated[bool, typer.Option("--start-off", help="all nodes are off at the start", rich_help_panel="Rules")]
Oversized = Annotated[
    str,
    typer.Option(
        "--oversized",
        metavar="WHAT",
        help="jobs that can never fit: error, or drop (kept as REJECTED rows)",
        rich_help_panel="Rules",
    ),
]

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="CSV, Parquet: which column holds a field; repeat",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="NAME=VALUE",
        help="CSV, Parquet: only rows with this value; repeat",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        metavar="UNIT",
        help="CSV, Parquet: unit of the times: ms, s, min, h, d",
        show_default=False,
        rich_help_panel="Reading",
    ),
]

Cores = Annotated[
    str | None,
    typer.Option(
        "--cores",
        metavar="WHICH",
        help="SWF, Slurm, PBS, OAR: a job's size is what was allocated (first) or requested",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Submission = Annotated[
    str | None,
    typer.Option(
        "--submission",
        metavar="WHEN",
        help="Slurm, PBS, OAR: a job comes at submit or eligible time",
        show_default=False,
        rich_help_panel="Reading",
    ),
]

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="swf, batsim, slurm, pbs, oar, google, csv or parquet [found from the content]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="A,B,...",
        help="sacct text without a header: its fields in order, such as JobID,Submit,Start,End,State,AllocCPUS",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(
        "--speed",
        metavar="FLOPS",
        help="Batsim JSON: flop/s of one core [the platform's]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="refuse a log of which a job would be left out or changed", rich_help_panel="Reading"
    ),
]

Price = Annotated[
    float | None,
    typer.Option("--price", min=0.0, metavar="X", help="price of a kWh: what a year would save", show_default=False),
]
Carbon = Annotated[
    float | None,
    typer.Option("--carbon", min=0.0, metavar="G", help="g CO2 of a kWh: what a year would save", show_default=False),
]
Currency = Annotated[str, typer.Option("--currency", metavar="NAME", help="of --price, as EUR", show_default=False)]


MOST_PRICE = 1e9
"""Of a kWh, in whatever currency or in g of CO2."""
CURRENCY = re.compile(r"[^\W\d_]{1,8}|(?:[^\W\d_]{1,4}[. ]?)?[$€£¥₩₹₺₽₴₫₱₪₦¢]")


def check_price(price: float | None, currency: str, carbon: float | None = None) -> None:
    """EscalaError for a currency that is none, or without a price, and for a price or carbon beyond any."""
    if currency and not CURRENCY.fullmatch(currency):
        raise EscalaError(f"--currency {quoted(currency)}: give at most 8 letters or a sign, such as EUR or €")
    if currency and price is None:
        raise EscalaError(f"--currency {currency} is of a price: give --price too, or leave it out")
    for flag, value in (("--price", price), ("--carbon", carbon)):
        if value is not None and not 0.0 <= value <= MOST_PRICE:
            raise EscalaError(f"{flag} {value:g}: give a number from 0 to {MOST_PRICE:g}, of a kWh")


def names(text: str, option: str) -> list[str]:
    """The entries of a list given as "a,b,c".

    Raises:
        EscalaError: no entry, or an entry twice.
    """
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if not entries:
        raise EscalaError(f"{option} is empty; name at least one, such as {option} easy")
    for entry in entries:
        if entries.count(entry) > 1:
            raise EscalaError(f"{option} names {entry!r} twice; name it once")
    return entries


def rules_of(
    *,
    rules: Rules = "escala",
    head: Head = "lowest-id",
    depth: Depth = None,
    rebuild: Rebuild = False,
    plan_margin: PlanMargin = None,
    estimate: Estimate = "walltime",
    order_estimate: OrderEstimate = None,
    corrections: Corrections = None,
    stop_at: StopAt = None,
    start_off: StartOff = False,
    oversized: Oversized = "error",
    seed: Seed = 0,
) -> dict[str, Any]:
    """The options of `escala.simulate` from those of the command line."""
    given = {} if order_estimate is None else {"order_estimate": order_estimate}
    return {
        **given,
        **({} if corrections is None else {"corrections_s": spans(corrections)}),
        "rules": rules,
        "head": head,
        "depth": depth,
        "rebuild": rebuild,
        "plan_margin_s": plan_margin,
        "estimate": estimate,
        "until_s": stop_at,
        "start_off": start_off,
        "oversized": oversized,
        "seed": seed,
    }


def pairs(texts: list[str], option: str, example: str = "submit_s=subtime") -> dict[str, str]:
    """NAME=VALUE entries."""
    found = dict(text.partition("=")[::2] for text in texts)
    if len(found) < len(texts):
        raise EscalaError(f"{option} names something twice: give it once for each name")
    if any(not name or not value for name, value in found.items()):
        raise EscalaError(f"{option} needs NAME=VALUE, such as {option} {example}; give it once for each name")
    return found


def reading_of(
    *,
    format: Format = None,
    columns: Columns = None,
    fields: Fields = None,
    select: Select = None,
    unit: Unit = None,
    cores: Cores = None,
    submission: Submission = None,
    speed: Speed = None,
    no_request: NoRequest = None,
    zero_runtime: ZeroRuntime = None,
    longest: Longest = None,
    most_cores: MostCores = None,
    strict: Strict = False,
    partition: Partition = None,
    user: User = None,
    account: Account = None,
    since: Since = None,
    until: Until = None,
) -> dict[str, Any]:
    """The options of `escala.read_workload` from those of the command line; only those that were given."""
    if columns and fields:
        raise EscalaError("--column is for tables and --fields for sacct text without a header: give one of them")
    named: Any = names(fields, "--fields") if fields is not None else pairs(columns or [], "--column")
    given = {
        "format": format,
        "columns": named or None,
        "select": pairs(select or [], "--select") or None,
        "unit": unit,
        "cores": cores,
        "submission": submission,
        "speed": speed,
        "rules": _rules(no_request, zero_runtime, longest, most_cores),
        "strict": strict or None,
        "partition": partition,
        "user": user,
        "account": account,
        "since": since,
        "until": until,
    }
    return {name: value for name, value in given.items() if value is not None}


def added(verb: Callable[..., None], argument: str, source: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """The verb with the options of `source` behind its own; `source` makes of them the verb's argument.

    Typer reads the signature of what it registers, so the wrapper carries the signature of both.
    """
    own = inspect.signature(verb, eval_str=True)
    added = inspect.signature(source, eval_str=True).parameters

    @functools.wraps(verb)
    def wrapper(**given: Any) -> None:
        made = source(**{name: given.pop(name) for name in added})
        verb(**given, **{argument: made})

    kept = [
        entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, entry in own.parameters.items() if name != argument
    ]
    wrapper.__signature__ = own.replace(parameters=[*kept, *added.values()])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {entry.name: entry.annotation for entry in [*kept, *added.values()]} | {"return": None}
    del wrapper.__wrapped__
    return wrapper


def replaying(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the rules of a run, as its argument `options`."""
    return added(verb, "options", rules_of)


def reading(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the ways to read a log, as its argument `read`."""
    return added(verb, "read", reading_of)
