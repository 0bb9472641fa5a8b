"""Head-room of compared policies: the share of what is possible that each gains, beside the interval that the proved bound leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.cli.tables import amount
from escala.errors import EscalaError

LIMIT_S = 60.0
FILE = "headroom.json"


def check(objective: str | None, until_s: Any) -> None:
    """Refuse, before anything is read, what has no head-room."""
    from escala.policies.bounds import METRIC

    if objective is not None and objective not in METRIC:
        raise EscalaError(f"--headroom {objective} is unknown: use {', '.join(METRIC)} (for energy waste see escala bound)")
    if objective is not None and until_s is not None:
        raise EscalaError("--headroom needs whole runs: leave out --until")


def measure(summaries: Mapping[str, Mapping[str, Any]], log: Any, machine: Any, objective: str, oversized: str) -> dict[str, Any]:
    """Head-room of each policy against the first, as plain data.

    The truth lies between shares[policy] = (first - policy) / (first - best found), which is the share if nothing better than the best
    found exists, and proved[policy], the same with the proved bound. None: nothing better than the first policy was found (is possible).
    """
    import escala
    from escala.policies.bounds import METRIC

    best = escala.bound(log, machine, objective, limit_s=LIMIT_S, policies=(), oversized=oversized)
    values = {name: float(summary[METRIC[objective]]) for name, summary in summaries.items()}
    first = next(iter(values.values()))

    def shares(least: float | None) -> dict[str, float | None]:
        room = 0.0 if least is None else first - least
        return {name: (first - value) / room if room > 1e-12 else None for name, value in values.items()}

    return {
        "objective": objective, "metric": METRIC[objective], "status": best.status, "found": best.found, "lower": best.lower,
        "shares": shares(best.found), "proved": shares(best.lower), "relaxations": list(best.relaxations),
    }  # fmt: skip


def remark(measured: Mapping[str, Any]) -> str:
    """What the figures are shares of."""
    told, least = ("-" if v is None else amount(measured["metric"], v) for v in (measured["found"], measured["lower"]))
    return (
        f"Head-room in {measured['objective']}: 0 is the first policy, 1 the best schedule found ({told}; proved: none below {least}, of "
        "which the share is headroom proved). The truth lies between the two."
    )


def save(measured: Mapping[str, Any], folder: Path) -> None:
    """Beside the runs, for `escala report`."""
    (folder / FILE).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def section(folder: Path) -> list[Any]:
    """The part of the page, where `escala compare --headroom` measured any."""
    import polars as pl

    from escala.report.page import Section

    try:
        measured = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise EscalaError(f"{folder / FILE}: cannot be read ({error}); run escala compare again") from None
    rows = [{"policy": name, "headroom": share, "headroom_proved": measured["proved"][name]} for name, share in measured["shares"].items()]
    schema = {"policy": pl.String, "headroom": pl.Float64, "headroom_proved": pl.Float64}
    caption = "What the bound leaves out: " + "; ".join(measured["relaxations"]) + "."
    return [Section("Head-room", remark(measured), tables=[(pl.DataFrame(rows, schema=schema), caption)])]
