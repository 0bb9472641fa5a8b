"""A study as parts of a page: what became of each claim, and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.metrics.compare import KNOWS
from escala.report import marks
from escala.report.parts import Section
from escala.report.quantities import count, number
from escala.report.tables import Cell, Table, between

YES, NO, OPEN = "yes", "no", "–"
ABSENT = "not measured"


def sections_of(folder: Path, claims: Sequence[Mapping[str, Any]], missing: Sequence[str]) -> list[Section]:
    """The claims (as `claims.json` keeps them) and the figures that a study left in its folder, SVG before PNG."""
    paper, aim = (Counter(claim[what] for claim in claims) for what in ("reproduces", "meets_aim"))
    printed, absent = (
        sum(claim["paper"] is not None for claim in claims),
        sum(claim["ours"] is None for claim in claims),
    )
    told = (
        f"Of {printed} figures that the paper prints {paper[True]} are reproduced or bettered, {paper[False]} are not. "
    )
    told += (
        f"Of {len(claims)} claims {aim[True]} meet our own aim, {aim[False]} do not; the others have none, or it "
        "cannot be told."
    )
    told += f" {absent} could not be measured." if absent else ""
    undone = f" Left out of this run: {'; '.join(missing)}." if missing else ""
    known = [f"{name} knows {what}" for name, what in _clairvoyant(folder).items()]
    told += f" Clairvoyant: {'; '.join(known)}." if known else ""
    parts = [Section("What became of the claims", told + undone, tables=[claims_table(claims)])]
    stems = sorted(
        {path.with_suffix("") for path in (folder / "figures").glob("*.*") if path.suffix in (".svg", ".png")}
    )
    drawn = [vector if (vector := stem.with_suffix(".svg")).exists() else stem.with_suffix(".png") for stem in stems]
    return [*parts, Section("Figures", figures=[(path, path.stem) for path in drawn])] if drawn else parts


def _clairvoyant(folder: Path) -> dict[str, str]:
    """The policies of a study's tables that know the future, and what."""
    frames = (pl.read_csv(path, infer_schema=False) for path in sorted((folder / "tables").glob("*.csv")))
    known = [marks.known(frame) for frame in frames if KNOWS in frame.columns]
    return {name: what for found in known for name, what in found.items() if what}


def claims_table(claims: Sequence[Mapping[str, Any]]) -> Table:
    """One row a claim: the paper's figure, ours with its interval, whether it reproduces the paper's and meets our aim.
    First what does not reproduce, then what misses our aim."""
    headers = [
        ("Claim", "", ""),
        ("Paper", "", ""),
        ("Ours", "95 % interval", ""),
        ("Unit", "", ""),
        ("Reproduces", "", ""),
    ]
    headers += [("Meets our aim", "", ""), ("Training seeds", "", ""), ("Episodes", "", ""), ("Note", "", "")]
    return Table(
        headers,
        [
            _row(claim)
            for claim in sorted(claims, key=lambda c: (c["reproduces"] is not False, c["meets_aim"] is not False))
        ],
    )


def _row(claim: Mapping[str, Any]) -> list[Cell]:
    relative = claim["unit"] == "relative change"
    factor = 100.0 if relative else 1.0
    paper, ours, low, high = (_clean(claim[name], factor) for name in ("paper", "ours", "low", "high"))
    return [
        Cell(claim["claim"], claim["id"], plain=True),
        Cell(_text(paper)),
        Cell(_text(ours), between(low, high, 1.0)),
        Cell("%, relative change" if relative else claim["unit"], plain=True),
        Cell(_verdict(claim, "reproduces"), plain=True),
        Cell(_verdict(claim, "meets_aim"), plain=True),
        Cell(count(claim["seeds"])),
        Cell(count(claim["episodes"])),
        Cell(claim["note"], plain=True),
    ]


def _verdict(claim: Mapping[str, Any], what: str) -> str:
    """What became of a claim; many are told for their figure alone."""
    if claim[what] is None:
        return ABSENT if claim["ours"] is None else OPEN
    return YES if claim[what] else NO


def _clean(value: float | None, factor: float) -> float | None:
    """A figure in the unit shown, without the last bits of a difference that is none."""
    return None if value is None else round(factor * value, 9) + 0.0


def _text(value: float | None) -> str:
    return "–" if value is None else number(value, 3)
