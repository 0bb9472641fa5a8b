"""The sweep of horizons of a study, alone: its kept agents, played where episodes are shorter and longer than in their
training.

python -m bench.sweep STUDY --work DIR   plays, counts that look, and writes the table and what claims it gives into the
kept folder

STUDY: marl2024, deepscheduler2020 or deepshutdown2020. `escala study run` does the same among everything else; for R1
and R2 see bench.open_end. The paper's page is `escala study verdicts STUDY`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from bench.open_end import KEPT, SCALE, replace
from escala.studies.deepscheduler2020 import longer as scheduler
from escala.studies.deepscheduler2020 import recipe as deepscheduler2020
from escala.studies.deepshutdown2020 import longer as shutdown
from escala.studies.deepshutdown2020 import recipe as deepshutdown2020
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import Claim, write_table
from escala.studies.lab.looks import look
from escala.studies.lab.r3_inputs import folder_of_traces
from escala.studies.marl2024 import horizons
from escala.studies.marl2024 import recipe as marl2024

RECIPES: dict[str, Any] = {
    "marl2024": marl2024,
    "deepscheduler2020": deepscheduler2020,
    "deepshutdown2020": deepshutdown2020,
}
FRAMES: dict[str, Callable[[Any], pl.DataFrame]] = {
    "marl2024": horizons.frame,
    "deepscheduler2020": scheduler.frame,
    "deepshutdown2020": shutdown.frame,
}


def cells_of(study: str, kept: Path) -> list[Cell]:
    """What is to be played."""
    scale = RECIPES[study].SCALES[SCALE]
    if study == "marl2024":
        return horizons.cells_of(kept / "agents", scale.horizons, scale.loads)
    found: list[Cell] = RECIPES[study].length_cells(scale, folder_of_traces(), kept)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=list(RECIPES))
    parser.add_argument("--work", type=Path, required=True, help="folder for cells; the same call goes on in it")
    given = parser.parse_args()
    kept = KEPT / given.study
    look(kept, "sweep of horizons by the kept agents", again=False)
    settings = {"study": given.study, "step": "sweep", **asdict(RECIPES[given.study].SCALES[SCALE])}
    table = FRAMES[given.study](run_cells(given.work, cells_of(given.study, kept), settings, 1))
    write_table(kept, "horizons" if given.study == "marl2024" else "lengths", table)
    claims: list[Claim] = horizons.claims(table) if given.study == "marl2024" else []
    if claims:
        replace(kept, claims)
    print(f"written into {kept}: now escala study verdicts {given.study} --out docs/studies/{given.study}.md --force")


if __name__ == "__main__":
    main()
