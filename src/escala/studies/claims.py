"""What every study of a paper writes: claims with intervals, tables, figures, and cells that make it resumable."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.studies.saving import write_manifest

Share = Callable[[float], None]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what was found. paper, ours, low, high: figures in `unit` (relative changes as fractions, -0.46: 46 %
    less); None: not given, or not measured. holds: None where nothing can be said."""

    id: str
    claim: str
    paper: float | None
    ours: float | None
    low: float | None
    high: float | None
    unit: str
    seeds: int
    episodes: int
    holds: bool | None
    note: str = ""


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_claims(folder: Path, title: str, claims: Sequence[Claim], about: str) -> None:
    """`claims.json` and `claims.md`."""
    rows = [{name: _strict(value) for name, value in asdict(claim).items()} for claim in claims]
    _write(folder / "claims.json", json.dumps(rows, indent=2) + "\n")
    lines = [f"# {title}", "", about, "", "| id | claim | paper | ours (95 % interval) | unit | seeds | episodes | holds | note |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for c in claims:
        found = "not measured" if c.ours is None else _figure(c.ours)
        if c.low is not None and c.high is not None:
            found += f" ({_figure(c.low)} … {_figure(c.high)})"
        verdict = {True: "yes", False: "no", None: "–"}[c.holds]
        paper = "–" if c.paper is None else _figure(c.paper)
        lines.append(f"| {c.id} | {c.claim} | {paper} | {found} | {c.unit} | {c.seeds} | {c.episodes} | {verdict} | {c.note} |")
    _write(folder / "claims.md", "\n".join(lines) + "\n")


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def write_table(folder: Path, name: str, table: pl.DataFrame) -> None:
    """`tables/NAME.csv`."""
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    _write(folder / "tables" / f"{name}.csv", table.write_csv(float_precision=6))


def write_study_manifest(folder: Path, study: str, settings: Mapping[str, Any], missing: Sequence[str]) -> None:
    """`manifest.json`: the command, the settings, and what was not done."""
    write_manifest(folder, "study", {"study": study, "command": sys.argv, "settings": dict(settings), "missing": list(missing)})


def scale_of(scales: Mapping[str, Any], scale: str, jobs: int) -> Any:
    """The settings of a scale; EscalaError for an unknown one, or no process to work with."""
    if scale not in scales:
        raise EscalaError(f"scale {scale!r} is not known: use one of {', '.join(scales)}")
    if jobs < 1:
        raise EscalaError(f"jobs={jobs}: give at least 1")
    return scales[scale]


def finished(
    folder: Path, study: str, scale: str, settings: Mapping[str, Any], claims: Sequence[Claim], missing: Sequence[str]
) -> dict[str, Any]:
    """Write the manifest, which marks the study as done; what `run` of a study gives back."""
    write_study_manifest(folder, study, settings, missing)
    return {"study": study, "scale": scale, "out": str(folder), "claims": [asdict(claim) for claim in claims], "missing": missing}


@dataclass(frozen=True)
class Cell:
    """A piece of a study that stands alone. name: its file under `cells/`; work: a function of a module, which gives what JSON keeps;
    given: its arguments. cost: roughly how long it takes, in any unit."""

    name: str
    work: Callable[..., Any]
    given: Mapping[str, Any]
    cost: float = 1.0


def run_cells(folder: Path, cells: Sequence[Cell], settings: Mapping[str, Any], jobs: int, progress: Share | None = None) -> dict[str, Any]:
    """Do the cells that are not done yet, `jobs` at a time in processes of their own; name -> what it gave. A cell that is done is never
    done again: an interrupted study goes on where it stopped.

    Raises EscalaError where the folder holds cells of other settings.
    """
    kept = folder / "cells"
    kept.mkdir(parents=True, exist_ok=True)
    _same_settings(kept / "settings.json", settings)
    left = [cell for cell in cells if not _path(kept, cell).exists()]
    total = sum(cell.cost for cell in cells) or 1.0
    done = total - sum(cell.cost for cell in left)
    if jobs == 1:
        for cell in left:
            _store(kept, cell, cell.work(**cell.given))
            done += cell.cost
            if progress is not None:
                progress(done / total)
    elif left:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
            running = {pool.submit(cell.work, **cell.given): cell for cell in sorted(left, key=lambda cell: -cell.cost)}
            try:
                while running:
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        cell = running.pop(future)
                        _store(kept, cell, future.result())
                        done += cell.cost
                        if progress is not None:
                            progress(done / total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return {cell.name: json.loads(_path(kept, cell).read_text(encoding="utf-8")) for cell in cells}


def _end_with_parent() -> None:
    """Let this process end when the study's own is ended, be it by a signal that cannot be caught."""

    def wait_and_end() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def _path(kept: Path, cell: Cell) -> Path:
    return kept / f"{cell.name.replace('/', '_')}.json"


def _store(kept: Path, cell: Cell, content: Any) -> None:
    _write(_path(kept, cell), json.dumps(content) + "\n")


def _same_settings(path: Path, settings: Mapping[str, Any]) -> None:
    wanted = json.loads(json.dumps(settings))
    if path.exists():
        if json.loads(path.read_text(encoding="utf-8")) != wanted:
            raise EscalaError(
                f"{path.parent.parent}: holds a study of other settings (cells/settings.json): give another folder, or remove it"
            )
        return
    _write(path, json.dumps(wanted, indent=2) + "\n")
