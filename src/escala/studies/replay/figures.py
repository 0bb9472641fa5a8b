"""What a replay compares: a study's folder, a figure of a kept agent, and how far two of them may lie apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.errors import EscalaError

PRINTED = 0.51e-6
"""Half a unit of the last digit of tables: what a figure of the same test set may differ by."""
ERRORS = 4.0
"""Standard errors of the difference of two test sets of one size: what a figure of another test set may differ by."""
OTHER = 1000
"""Added to the seed of new test sets, so that they are none of the study's own."""


class NotAtHand(EscalaError):
    """An agent that cannot be replayed here: what it was tested on is missing, or cannot be drawn anew, or the tables
    have no row of its own."""


@dataclass(frozen=True)
class Figure:
    """One figure of an agent. agent: its folder's name; figure: which one, in words; table: the table of the study that
    has it; page: as it stands there; now: as it comes out; tolerance: how far both may lie apart."""

    agent: str
    figure: str
    table: str
    page: float
    now: float
    tolerance: float

    @property
    def same(self) -> bool:
        """Whether both agree; a figure that is no number agrees with nothing."""
        return bool(abs(self.now - self.page) <= self.tolerance)


@dataclass(frozen=True)
class Study:
    """The folder of a study that was run: `agents/`, `tables/` and `manifest.json`."""

    folder: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings it was run with; EscalaError where its manifest cannot be read."""
        path = self.folder / "manifest.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))["settings"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EscalaError(
                f"{path}: not the manifest of a study ({type(error).__name__}): give a folder that study run wrote"
            ) from error

    def agents(self) -> list[str]:
        """Names of the agents that it keeps."""
        return sorted(path.parent.name for path in self.folder.glob("agents/*/manifest.json"))

    def rows(self, table: str, agent: str, /, **where: Any) -> list[dict[str, Any]]:
        """The rows of a table of an agent; NotAtHand where there are none."""
        path = self.folder / "tables" / f"{table}.csv"
        if not path.is_file():
            raise NotAtHand(f"{agent}: {path.name} is not among the tables of {self.folder}")
        found = pl.read_csv(path, infer_schema_length=None).filter(
            [pl.col(name).cast(pl.String) == str(what) for name, what in where.items()]
        )
        if not len(found):
            raise NotAtHand(f"{agent}: no row of its own in tables/{path.name}")
        return found.to_dicts()


def homes(study: str, given: Path | None = None) -> list[Path]:
    """Where a study's folder may be: the one given, else docs/studies/STUDY of the repository that this is installed
    from, then of the current folder."""
    if given is not None:
        return [given]
    return [root / "docs" / "studies" / study for root in (Path(__file__).resolve().parents[4], Path.cwd())]


def folder_of(study: str, given: Path | None = None) -> Study:
    """The first of `homes` that keeps agents. EscalaError where there is none: the installed package carries no
    agents."""
    for place in homes(study, given):
        if (place / "agents").is_dir():
            return Study(place)
    if given is not None:
        raise EscalaError(
            f"{given}: keeps no agents (agents/): give the folder of a study, such as docs/studies/{study} of the "
            "repository"
        )
    raise EscalaError(
        f"the agents of {study} are kept in the repository, not in the installed package: give --from "
        f"REPOSITORY/docs/studies/{study}"
    )


def home_of(study: str, given: Path | None = None) -> Path:
    """The first of `homes` that holds claims. EscalaError where there is none: the installed package carries no
    results."""
    for place in homes(study, given):
        if (place / "claims.json").is_file():
            return place
    if given is not None:
        raise EscalaError(
            f"{given}: holds no claims.json: give the folder of a study that was run, such as docs/studies/{study}"
        )
    raise EscalaError(
        f"the results of {study} are kept in the repository, not in the installed package: give --from "
        f"REPOSITORY/docs/studies/{study}"
    )


def wide(values: np.ndarray) -> float:
    """The tolerance of a mean over another test set of as many values [episodes]."""
    known = values[np.isfinite(values)]
    return max(PRINTED, ERRORS * float(np.sqrt(2.0) * known.std() / max(1.0, np.sqrt(len(known)))))
