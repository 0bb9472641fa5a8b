"""Comparisons on disk: every run as a saved Result, the table, and a manifest."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

import escala
from escala.metrics.compare import KNOWS
from escala.policies.pairs import folder_of
from escala.result import Result
from escala.source import source_digest
from escala.writing import write_whole

JUDGED = "judged.csv"
"""What `metrics.compare.episodes` found, beside the manifest of an evaluation."""
DAYS = "days.csv"
"""Of an evaluation, the rows of `escala.agents.evaluate` behind it."""


def save_runs(results: Mapping[str, Result], table: pl.DataFrame, folder: Path) -> None:
    """Write `table.csv`, `manifest.json`, and each Result into a subfolder of its name, unless it was kept there
    already."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in results.items():
        if not (folder / folder_of(name)).exists():
            result.save(folder / folder_of(name))
    table.write_csv(folder / "table.csv")
    write_manifest(folder, "comparison", {"runs": list(results)})


def write_manifest(folder: Path, kind: str, content: Mapping[str, Any]) -> None:
    """`manifest.json`, which marks the folder as Escala's own output."""
    manifest = {
        "escala": escala.__version__,
        "source": source_digest(),
        "python": platform.python_version(),
        "kind": kind,
        **content,
    }
    write_whole(folder / "manifest.json", json.dumps(manifest, indent=2, default=str) + "\n")


def read_judged(folder: Path) -> pl.DataFrame:
    """The table of `metrics.compare.episodes` that was saved in a folder. Raises as polars does where it is missing or
    broken."""
    return pl.read_csv(folder / JUDGED, infer_schema=False).with_columns(
        pl.exclude("metric", "policy", KNOWS, "episodes", "seeds").cast(pl.Float64),
        pl.col("episodes", "seeds").cast(pl.Int64),
    )
