"""What every study of a paper writes: claims with intervals, tables, a manifest."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from escala.engines import checked
from escala.errors import EscalaError
from escala.metrics.compare import KNOWS
from escala.report import marks
from escala.studies.lab.cells import spent
from escala.studies.lab.saving import write_manifest
from escala.writing import write_whole


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what was found. paper, ours, low, high: figures in `unit` (relative changes as
    fractions, -0.46: 46 % less); None: not given, or not measured. paper: printed by the paper for this very setting,
    or nothing. meets_aim: whether our mark is met. reproduces: whether the paper's figure is reached, less being better
    in all they print: yes where the whole interval is at or below it, no where the whole is above. Both None where
    nothing can be said."""

    id: str
    claim: str
    paper: float | None
    ours: float | None
    low: float | None
    high: float | None
    unit: str
    seeds: int
    episodes: int
    reproduces: bool | None = field(init=False)
    meets_aim: bool | None
    note: str = ""

    def __post_init__(self) -> None:
        told = self.paper is not None and self.ours is not None
        judged = at_most(self.paper)(self.ours, self.low, self.high) if told else None  # type: ignore[arg-type]
        object.__setattr__(self, "reproduces", judged)


VERDICTS = (
    "*reproduces*: yes where our whole interval is at the paper's figure or better, no where all of it is worse. "
    "*meets aim*: the same against a mark of our own, which the note names. –: undecided, or there is nothing to reach."
)
"""What the two verdicts of a claim mean, above their table."""
FINDINGS = "findings.csv"
"""Of a study's tables, what was found beyond the paper's claims."""
ROW = {
    "id": pl.String, "claim": pl.String, "paper": pl.Float64, "ours": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "unit": pl.String,
    "seeds": pl.Int64, "episodes": pl.Int64, "reproduces": pl.Boolean, "meets_aim": pl.Boolean, "note": pl.String,
}  # fmt: skip
"""The columns of both."""
STAY = re.compile(
    r"r1\.(published\.(heuristics|(slowdown|vs_author|printed)\.\d+|makespan_vs_packer\.190)|steps_to_pass_sjf\.100"
    r"|fresh\.((slowdown|vs_strict|vs_holdback)\.\d+|worst_load)|horizon\.worst)"
    r"|r2\.((slowdown|printed|a2c|alone|completion|wait)\.[\d.]+|log\.\w+|horizon\.worst)"
    r"|r3\.(waste_vs_(t0|t300|oracle|hold_same_stretch|easy|saf)|hold25_vs_t0|transitions_vs_t0|stretch"
    r"|wait_vs_(easy|first_fit)|pp_slowdown_vs_first_fit)\.(g5k|orion|graphite|econome)(\.drain)?"
    r"|r3\.done\.(mean|usual)_wait_vs_(easy|first_fit)\.5min\.g5k"
    r"|r3\.printed\.(waste_vs_t0\.g5k|return_r3_minus_t0\.g5k\.cut)"
    r"|r4\.(worst_against_best_heuristic|vs_(tetris|best_heuristic)\.\dx\d\.\d+"
    r"|nothing\.(printed|local_vs_global)\.\d+)"
)
"""Ids of the paper's claims, with a figure of its own for that setting or without."""


Verdict = Callable[[float, float | None, float | None], bool | None]
"""Of a value and its interval: does the claim hold? None: it cannot be told."""


def at_most(mark: float, slack: float = 1e-3) -> Verdict:
    """The verdict "at most `mark`": yes where the whole 95 % interval is (with `slack` for rounding), no where the
    whole is above, else it cannot be told. Without an interval the value decides."""

    def verdict(value: float, low: float | None, high: float | None) -> bool | None:
        if (value if high is None else high) <= mark + slack:
            return True
        return False if (value if low is None else low) > mark + slack else None

    return verdict


def at_least(mark: float) -> Verdict:
    """The verdict "above `mark`", told in the same way."""
    most = at_most(-mark, 0.0)
    return lambda value, low, high: most(-value, None if high is None else -high, None if low is None else -low)


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def of_paper(claim: Claim) -> bool:
    """Whether a claim is the paper's: it has a figure of the paper, or an id that stays. The rest are findings beyond
    it."""
    return (
        claim.paper is not None
        or STAY.fullmatch(claim.id) is not None
        or not claim.id.startswith(("r1.", "r2.", "r3.", "r4."))
    )


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """All claims and findings that a study's folder keeps, as rows."""
    rows = list(json.loads((folder / "claims.json").read_text(encoding="utf-8")))
    path = folder / "tables" / FINDINGS
    return rows + (pl.read_csv(path, schema=ROW).to_dicts() if path.is_file() else [])


def write_claims(folder: Path, title: str, every: Sequence[Claim], about: str) -> None:
    """`claims.json` and `claims.md` of the paper's claims, and the table `findings` of what goes beyond it."""
    claims = [claim for claim in every if of_paper(claim)]
    beyond = [{name: _strict(value) for name, value in asdict(claim).items()} for claim in every if not of_paper(claim)]
    if beyond:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        write_whole(folder / "tables" / FINDINGS, pl.DataFrame(beyond, schema=ROW).write_csv())
    rows = [{name: _strict(value) for name, value in asdict(claim).items()} for claim in claims]
    write_whole(folder / "claims.json", json.dumps(rows, indent=2) + "\n")
    lines = [
        f"# {title}",
        "",
        about,
        "",
        VERDICTS,
        "",
        "| id | claim | paper | ours (95 % interval) | unit | seeds | episodes | reproduces | meets aim | note |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for c in claims:
        found = "not measured" if c.ours is None else _figure(c.ours)
        if c.low is not None and c.high is not None:
            found += f" ({_figure(c.low)} … {_figure(c.high)})"
        said = {True: "yes", False: "no", None: "–"}
        verdicts = f"{said[c.reproduces]} | {said[c.meets_aim]}"
        paper = "–" if c.paper is None else _figure(c.paper)
        lines.append(
            f"| {c.id} | {c.claim} | {paper} | {found} | {c.unit} | {c.seeds} | {c.episodes} | {verdicts} | {c.note} |"
        )
    write_whole(folder / "claims.md", "\n".join(lines) + "\n")


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def write_table(folder: Path, name: str, table: pl.DataFrame) -> None:
    """`tables/NAME.csv`; where a policy is clairvoyant, with a last column `knows`."""
    if "policy" in table.columns and any((knows := marks.known(table)).values()):
        table = table.with_columns(pl.col("policy").replace_strict(knows).alias(KNOWS))
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "tables" / f"{name}.csv", table.write_csv(float_precision=6))


def by_policy(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Tables of several policies as one, with a column policy."""
    return pl.concat([table.select(pl.lit(policy).alias("policy"), pl.all()) for policy, table in tables.items()])


def write_study_manifest(folder: Path, study: str, settings: Mapping[str, Any], missing: Sequence[str]) -> None:
    """`manifest.json`: the command, the settings, the processor seconds of all cells, and what was not done."""
    done = {"processor_s": round(spent(folder), 1), "missing": list(missing)}
    write_manifest(folder, "study", {"study": study, "command": sys.argv, "settings": dict(settings), **done})


def scale_of(scales: Mapping[str, Any], scale: str, jobs: int | str) -> Any:
    """The settings of a scale; EscalaError for an unknown one, or no engine to work on."""
    if scale not in scales:
        raise EscalaError(f"scale {scale!r} is not known: use one of {', '.join(scales)}")
    if isinstance(jobs, str):
        checked(jobs)
    elif jobs < 1:
        raise EscalaError(f"jobs={jobs}: give at least 1")
    return scales[scale]


def finished(
    folder: Path, study: str, scale: str, settings: Mapping[str, Any], claims: Sequence[Claim], missing: Sequence[str]
) -> dict[str, Any]:
    """Write the manifest, which marks the study as done; what `run` of a study gives back."""
    write_study_manifest(folder, study, settings, missing)
    return {
        "study": study,
        "scale": scale,
        "out": str(folder),
        "claims": [asdict(claim) for claim in claims],
        "missing": missing,
    }
