"""A study as parts of a page: what became of each claim, and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from escala.report.page import Section
from escala.report.quantities import count, number
from escala.report.tables import Cell, Table, between

HOLDS, FAILS, MEASURED, ABSENT = "holds", "does not hold", "measured", "not measured"


def sections_of(folder: Path, claims: Sequence[Mapping[str, Any]], missing: Sequence[str]) -> list[Section]:
    """The claims (as `claims.json` keeps them) and the figures that a study left in its folder, SVG before PNG."""
    counts = Counter(_verdict(claim) for claim in claims)
    told = f"Of {len(claims)} claims {counts[HOLDS]} hold, {counts[FAILS]} do not; {counts[MEASURED]} are figures without a mark to meet."
    told += f" {counts[ABSENT]} could not be measured." if counts[ABSENT] else ""
    undone = f" Left out of this run: {'; '.join(missing)}." if missing else ""
    parts = [Section("What became of the claims", told + undone, tables=[claims_table(claims)])]
    stems = sorted({path.with_suffix("") for path in (folder / "figures").glob("*.*") if path.suffix in (".svg", ".png")})
    drawn = [vector if (vector := stem.with_suffix(".svg")).exists() else stem.with_suffix(".png") for stem in stems]
    return [*parts, Section("Figures", figures=[(path, path.stem) for path in drawn])] if drawn else parts


def claims_table(claims: Sequence[Mapping[str, Any]]) -> Table:
    """One row a claim: the paper's figure, ours with its interval, and whether it holds."""
    headers = [("Claim", "", ""), ("Paper", "", ""), ("Ours", "95 % interval", ""), ("Unit", "", ""), ("Verdict", "", "")]
    headers += [("Training seeds", "", ""), ("Episodes", "", ""), ("Note", "", "")]
    return Table(headers, [_row(claim) for claim in claims])


def _row(claim: Mapping[str, Any]) -> list[Cell]:
    relative = claim["unit"] == "relative change"
    factor = 100.0 if relative else 1.0
    paper, ours, low, high = (_clean(claim[name], factor) for name in ("paper", "ours", "low", "high"))
    return [
        Cell(claim["claim"], claim["id"], plain=True),
        Cell(_text(paper)),
        Cell(_text(ours), between(low, high, 1.0)),
        Cell("%, relative change" if relative else claim["unit"], plain=True),
        Cell(_verdict(claim), plain=True),
        Cell(count(claim["seeds"])),
        Cell(count(claim["episodes"])),
        Cell(claim["note"], plain=True),
    ]


def _verdict(claim: Mapping[str, Any]) -> str:
    """What became of a claim; many are told for their figure alone."""
    if claim["holds"] is None:
        return ABSENT if claim["ours"] is None else MEASURED
    return HOLDS if claim["holds"] else FAILS


def _clean(value: float | None, factor: float) -> float | None:
    """A figure in the unit shown, without the last bits of a difference that is none."""
    return None if value is None else round(factor * value, 9) + 0.0


def _text(value: float | None) -> str:
    return "–" if value is None else number(value, 3)
