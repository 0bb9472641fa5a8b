"""Arguments and options that several verbs share, described once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.errors import EscalaError

Log = Annotated[
    Path,
    typer.Argument(metavar="WORKLOAD", help="job log: SWF, Batsim JSON, sacct text, CSV or Parquet, plain or gzipped", show_default=False),
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
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="folder for the output, written whole or not at all", show_default=False)
]
OutNeeded = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="folder for the output, written whole or not at all", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="replace an output folder that holds other files")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of tables")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="seed of everything random")]

Rules = Annotated[
    str, typer.Option("--rules", metavar="BUNDLE", help="escala, or batsched: the reference engine's conventions", rich_help_panel="Rules")
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
        "--depth", min=1, help="conservative: reservations for that many first jobs only", show_default=False, rich_help_panel="Rules"
    ),
]
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="conservative: plan all waiting jobs anew at each decision", rich_help_panel="Rules")
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
Estimate = Annotated[
    str,
    typer.Option("--estimate", metavar="WHAT", help="what policies see as a job's length: walltime or runtime", rich_help_panel="Rules"),
]
Until = Annotated[
    float | None,
    typer.Option(
        "--until", metavar="SECONDS", help="stop the clock here; by default run to completion", show_default=False, rich_help_panel="Rules"
    ),
]
StartOff = Annotated[bool, typer.Option("--start-off", help="all nodes are off at the start", rich_help_panel="Rules")]
Oversized = Annotated[
    str,
    typer.Option(
        "--oversized", metavar="WHAT", help="jobs that can never fit: error, or drop (kept as REJECTED rows)", rich_help_panel="Rules"
    ),
]


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
    until: Until = None,
    start_off: StartOff = False,
    oversized: Oversized = "error",
    seed: Seed = 0,
) -> dict[str, Any]:
    """The options of `escala.simulate` from those of the command line."""
    return {
        "rules": rules,
        "head": head,
        "depth": depth,
        "rebuild": rebuild,
        "plan_margin_s": plan_margin,
        "estimate": estimate,
        "until_s": until,
        "start_off": start_off,
        "oversized": oversized,
        "seed": seed,
    }


def replaying(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of `rules_of` behind its own, and pass them to it as one argument, `options`.

    Typer reads the signature of what it registers, so the wrapper carries the signature of both.
    """
    own = inspect.signature(verb, eval_str=True)
    added = inspect.signature(rules_of, eval_str=True).parameters

    @functools.wraps(verb)
    def wrapper(**given: Any) -> None:
        options = rules_of(**{name: given.pop(name) for name in added})
        verb(**given, options=options)

    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, parameter in own.parameters.items() if name != "options"]
    wrapper.__signature__ = own.replace(parameters=[*kept, *added.values()])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *added.values()]} | {"return": None}
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper
