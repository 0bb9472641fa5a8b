"""Head-room of compared policies: the share of what is possible that each gains, beside the interval that the proved
bound leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from escala.cli.tables import amount, number
from escala.cli.terminal import Begin
from escala.errors import EscalaError, nearest
from escala.reading import read_json

Objective = Annotated[
    str | None,
    typer.Option(
        "--headroom",
        metavar="OBJECTIVE",
        help="also the share of what is possible (see escala bound) in slowdown, bounded-slowdown, wait, makespan or "
        "waste (energy)",
        show_default=False,
    ),
]
Stretch = Annotated[
    float | None,
    typer.Option(
        "--stretch",
        metavar="X",
        help="--headroom waste: no job waits longer than X times its requested time, or than under the first policy "
        "[0.5]",
        show_default=False,
    ),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", metavar="SECONDS", help="--headroom: time to prove and to search [60]", show_default=False),
]


class Wanted(NamedTuple):
    """Of what head-room is asked for, if of anything, within what waits and in what time."""

    objective: str | None
    stretch: float | None
    limit_s: float | None


LIMIT_S = 60.0
FILE = "headroom.json"
WASTE = "waste"
COLUMNS = {"headroom": "shares", "headroom_proved": "proved", "late_jobs": "late"}
"""Column of the tables -> what was measured, by policy."""


def check(wanted: Wanted, options: Mapping[str, Any]) -> None:
    """Refuse, before anything is read, what has no head-room."""
    from escala.bounds.schedule_bound import METRIC

    objective, stretch, limit_s = wanted
    if limit_s is not None and objective is None:
        raise EscalaError("--limit is the time for --headroom: give that too, or leave it out")
    if limit_s is not None and not 0.0 < limit_s < math.inf:
        raise EscalaError(f"--limit is {limit_s:g}: give seconds above 0")
    if stretch is not None and objective != WASTE:
        raise EscalaError("--stretch limits the waits behind --headroom waste: leave it out, or give that")
    if objective is None:
        return
    if objective not in METRIC and objective != WASTE:
        hint = nearest(objective, (*METRIC, WASTE))
        raise EscalaError(f"--headroom {objective} is unknown: {hint}use {', '.join(METRIC)} or {WASTE}")
    if options["until_s"] is not None:
        raise EscalaError("--headroom needs whole runs: leave out --stop-at")
    if objective == WASTE and not options["start_off"]:
        raise EscalaError(
            "--headroom waste counts every switch: give --start-off, so that all nodes are off at the start"
        )


def check_inputs(objective: str | None, log: Any, machine: Any) -> None:
    """Refuse, before anything is replayed, a log or a platform that cannot be bounded."""
    from escala.admit import refuse_speeds
    from escala.bounds import waste_bound

    if objective is not None:
        refuse_speeds(machine, "bounds are")
    if objective == WASTE:
        waste_bound.check(log, machine)


def telling(begin: Begin) -> Callable[[Any], None]:
    """What says on the progress line what each step of a bound has proved."""

    def tell(step: Any) -> None:
        begin(
            f"{step.name} done: at least {number(step.lower, 4)}, found {number(step.found, 4)} (in the solver's units)"
        )

    return tell


def measure(
    wanted: Wanted,
    runs: Mapping[str, Any],
    log: Any,
    machine: Any,
    options: dict[str, Any],
    progress: Callable[[Any], None] | None = None,
) -> Any:
    """Head-room of each policy against the first, as plain data; None where none is wanted. runs: policy -> Result of
    this log. Ctrl-C keeps what was proved.

    The truth lies between shares[policy] = (first - policy) / (first - best found), which is the share if nothing
    better than the best found exists, and proved[policy], the same with the proved bound. None: nothing better than the
    first policy was found (is possible).
    Waste: no schedule is searched for, so there are no shares of the best found; late: jobs that a policy starts past
    the limit.
    """
    from escala.bounds.schedule_bound import METRIC, bound_of_runs

    objective, stretch, limit_s = wanted
    if objective is None:
        return None
    within = LIMIT_S if limit_s is None else limit_s
    if objective == WASTE:
        return _of_waste(runs, log, machine, stretch, within, options)
    same = {name: options[name] for name in ("oversized", "start_off")}
    best = bound_of_runs(runs, log, machine, objective, limit_s=within, progress=progress, **same)
    values = best.policies
    first = next(iter(values.values()))

    def shares(least: float | None) -> dict[str, float | None]:
        room = 0.0 if least is None else first - least
        return {name: (first - value) / room if room > 1e-12 else None for name, value in values.items()}

    return {
        "objective": objective, "metric": METRIC[objective], "status": best.status, "found": best.found,
        "found_by": best.found_by,
        "lower": best.lower, "values": values, "shares": shares(best.found), "proved": shares(best.lower),
        "relaxations": list(best.relaxations), "cut": best.detail.cut, "interrupted": best.detail.interrupted,
        "knows": best.knows,
    }  # fmt: skip


def _of_waste(
    runs: Mapping[str, Any], log: Any, machine: Any, stretch: float | None, limit_s: float, options: dict[str, Any]
) -> dict[str, Any]:
    from escala.bounds import waste_bound as waste_bound

    best = waste_bound.waste_of_runs(log, machine, runs, stretch=stretch, limit_s=limit_s, **options)
    first = next(iter(runs))
    return {
        "objective": WASTE, "metric": "waste_j", "values": best.policies, "status": best.status, "found": best.found,
        "lower": best.lower,
        "proved": {name: best.headroom(name, first) for name in runs}, "late": best.late, "stretch": best.stretch,
        "relaxations": list(best.relaxations), "cut": best.detail.cut, "interrupted": best.detail.interrupted,
    }  # fmt: skip


def remark(measured: Mapping[str, Any]) -> str:
    """What the figures are shares of."""
    metric, found, lower = (measured[name] for name in ("metric", "found", "lower"))
    told = "-" if found is None else amount(metric, found)
    least = "-" if lower is None else amount(metric, lower, down=True)
    if measured["objective"] == WASTE:
        return (
            f"Head-room proved in waste: 0 is the first policy, 1 the proved bound ({least}; least of these policies: "
            f"{told}). Perhaps no schedule wastes as little as that, so of what is possible a policy gains at least "
            f"this share (below 0: it loses at least this). Limit: no job waits longer than {measured['stretch']:g} x "
            "its requested time, or than under the first policy; a policy with late jobs is no schedule within it and "
            "has no share."
        )
    from escala.report import marks

    by = marks.shown(measured.get("found_by") or "search", measured.get("knows", {}))
    best = f"schedule found, that of {by}" if by != "search" else "schedule found"
    return (
        f"Head-room in {measured['objective']}: 0 is the first policy, 1 the best {best} ({told}; proved: none below "
        f"{least}, of which the share is headroom proved). The truth lies between the two."
    )


def left_out(measured: Mapping[str, Any]) -> str:
    """The relaxations, as a sentence."""
    return "What the bound leaves out: " + "; ".join(measured["relaxations"]) + "."


def save(measured: Mapping[str, Any], folder: Path) -> None:
    """Beside the runs, for `escala report`."""
    (folder / FILE).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def columns(measured: Mapping[str, Any] | None) -> dict[str, dict[str, float | None]]:
    """Columns of the tables: name -> policy -> value."""
    if measured is None:
        return {}
    return {name: measured[kept] for name, kept in COLUMNS.items() if kept in measured}


def told(measured: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """For --json: what the head-room is of, and the policy's own value of it."""
    kept = {name: measured.get(name) for name in ("objective", "metric", "status", "lower", "found", "found_by")}
    return {**kept, "value": measured["values"][policy]}


def saved(folder: Path, verb: str) -> Any:
    """What `save` wrote, None where it wrote nothing. verb: that writes such a file."""
    if not (folder / FILE).exists():
        return None
    try:
        return read_json(folder / FILE)
    except EscalaError as error:
        raise EscalaError(f"{error}; or run escala {verb} again") from None


def section(folder: Path) -> list[Any]:
    """The part of the page, where `escala compare --headroom` measured any."""
    import polars as pl

    from escala.report.parts import Section

    if (measured := saved(folder, "compare")) is None:
        return []
    found = columns(measured)
    rows = [
        {"policy": name, **{column: values[name] for column, values in found.items()}} for name in measured["proved"]
    ]
    table = pl.DataFrame(rows, schema={"policy": pl.String, **dict.fromkeys(found, pl.Float64)})
    return [Section("Head-room", remark(measured), tables=[(table, left_out(measured))])]
