"""Head-room in `escala evaluate`: the share of what could be saved over the first policy, with its interval over
days."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli.headroom import WASTE, Wanted, saved
from escala.errors import EscalaError

LIMIT_S = 300.0

Objective = Annotated[
    str | None,
    typer.Option(
        "--headroom",
        metavar="OBJECTIVE",
        help="also the share of what is possible over the first policy: waste, or of schedulers slowdown, "
        "bounded-slowdown, wait",
        show_default=False,
    ),
]
Stretch = Annotated[
    float | None,
    typer.Option(
        "--stretch",
        metavar="X",
        help="--headroom waste: a job may wait X times its requested time [no longer than under the policy or the "
        "first one]",
        show_default=False,
    ),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", metavar="SECONDS", help="--headroom: time for all bounds [300]", show_default=False),
]

PROVED, FOUND, LATE = "head-room proved", "head-room of best found", "late jobs"


def check(wanted: Wanted, window: str) -> None:
    """Refuse, before anything is read, what has no head-room."""
    from escala.bounds.headroom import OBJECTIVES

    objective, stretch, limit_s = wanted
    if objective is None:
        for option, given in (("--stretch", stretch), ("--limit", limit_s)):
            if given is not None:
                raise EscalaError(f"{option} is of --headroom: give that too, or leave it out")
        return
    if objective not in OBJECTIVES:
        raise EscalaError(f"--headroom {objective} is unknown for days: use {', '.join(OBJECTIVES)}")
    if stretch is not None and objective != WASTE:
        raise EscalaError("--stretch limits the waits behind --headroom waste: leave it out, or give that")
    if stretch is not None and not 0.0 <= stretch < 1e6:
        raise EscalaError(f"--stretch {stretch}: give the longest wait as a share of the requested time, from 0 on")
    if limit_s is not None and not limit_s > 0.0:
        raise EscalaError(f"--limit {limit_s}: give seconds above 0")
    if window == "cut":
        raise EscalaError("--headroom needs days that run to their last job: leave out --window cut")


def check_agent(objective: str | None, agent: Any, days: Any, machine: Any) -> None:
    """Refuse, before anything is judged, an agent, days or a platform that have no bound."""
    from escala.bounds import headroom as day_headroom

    if objective is None:
        return
    if objective != WASTE and agent.env_id != "escala/Scheduling-v0":
        raise EscalaError(
            f"--headroom {objective} is for agents of escala/Scheduling-v0: one of {agent.env_id} makes jobs wait for "
            "nodes, which the bound of waits leaves out; give --headroom waste"
        )
    if objective == WASTE and not agent.env_options.get("start_off", True):
        raise EscalaError(
            "--headroom waste counts every switch, so nodes must be off at a day's start: this agent was trained "
            "otherwise"
        )
    day_headroom.check(days, machine, objective)


def columns(measured: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Columns of the table: name -> policy -> text."""
    policies = measured["policies"]
    out = {PROVED: {name: _share(row) for name, row in policies.items()}}
    if measured["objective"] == WASTE:
        out[FOUND] = {name: _percent(row.get("found")) for name, row in policies.items()}
    if measured["stretch"] is not None:
        out[LATE] = {name: "-" if "late" not in row else f"{row['late']:,.1f}" for name, row in policies.items()}
    return out


def _share(row: Mapping[str, Any]) -> str:
    if row["proved"] is None:
        return "-"
    return f"{_percent(row['proved'])} [{100 * row['proved_low']:.1f}, {100 * row['proved_high']:.1f}]"


def _percent(share: float | None) -> str:
    return "-" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def figures(measured: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """What JSON tells of one policy."""
    row = measured["policies"][policy]
    named = {
        "found": "headroom",
        "late": "late_jobs",
        **{name: f"headroom_{name}" for name in ("proved", "proved_low", "proved_high")},
    }
    return {told: row[name] for name, told in named.items() if name in row}


def remark(measured: Mapping[str, Any]) -> str:
    """What the shares are of."""
    first, n, of = measured["reference"], len(measured["bounded"]), measured["days"]
    ended = (
        " (ended by Ctrl-C)"
        if measured["interrupted"]
        else " (the limit was over)"
        if measured["cut"] and n < of
        else ""
    )
    days = f"{n} of {of} days have a bound{ended}" if n < of else f"{n} days"
    why = f" A day without one: {measured['refused']}." if measured["refused"] else ""
    if measured["objective"] != WASTE:
        return (
            f"Head-room in {measured['objective']}, {days}: 0 is {first}, 1 the proved bound of any scheduler, with "
            "its 95 % interval over days. The bound has all cores in one pool that is always on; where nodes must "
            "boot nothing may come near it, so of what is possible a policy gains at least this share (below 0: it "
            f"loses at least this).{why}"
        )
    more = (
        ""
        if measured["stretch"] is None
        else f", or {measured['stretch']:g} x its requested time after it came (late: jobs past that)"
    )
    return (
        f"Head-room in waste, {days}: 0 is {first}, 1 the least possible where no job starts later than under the "
        f"policy or under {first}{more}. Proved: against a proved bound, with its 95 % interval over days. Of best "
        "found: against the best of these policies within those limits, day by day. The truth lies between the "
        f"two.{why}"
    )


def section(folder: Path) -> list[Any]:
    """The part of the page, where `escala evaluate --headroom` measured any."""
    from escala.report import Section
    from escala.report.tables import Cell, Table, metric_column

    if (measured := saved(folder, "evaluate")) is None:
        return []
    policies, metric = measured["policies"], measured["metric"]
    headers, cells = [("Policy", "", "")], [[Cell(name, _first(name, measured), plain=True) for name in policies]]
    for what in ("mean", "bound"):
        values = [math.nan if row[what] is None else row[what] for row in policies.values()]
        _, (name, unit, meaning), texts, _ = metric_column(metric, values, exact=False)
        headers.append(
            (name if what == "mean" else f"Proved: no less {name[:1].lower()}{name[1:]} than", unit, meaning)
        )
        cells.append([Cell(text) for text in texts])
    for heading, texts_of in columns(measured).items():
        headers.append((f"{heading[:1].upper()}{heading[1:]}", "", ""))
        cells.append([Cell(texts_of[name]) for name in policies])
    caption = "Means a day. What the bound leaves out: " + "; ".join(measured["relaxations"]) + "."
    return [Section("Head-room", remark(measured), tables=[Table(headers, list(zip(*cells, strict=True)), caption)])]


def _first(name: str, measured: Mapping[str, Any]) -> str:
    return "reference" if name == measured["reference"] else ""
