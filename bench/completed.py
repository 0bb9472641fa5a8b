"""One step of the study deepscheduler2020, alone: its agents that are searched and judged on days run to completion,
into the kept folder.

python -m bench.completed --work DIR          searches, and prints what validation days choose; held-out days stay
unseen
python -m bench.completed --work DIR --judge  then writes agents, table and claims of the held-out days, and counts that
look

`escala study run` does the same among everything else. The paper's page is `escala study verdicts deepscheduler2020`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from bench.open_end import KEPT, SCALE, replace
from escala.studies.deepscheduler2020 import completed, recipe
from escala.studies.lab.cells import run_cells
from escala.studies.lab.claims import write_table
from escala.studies.lab.looks import look

STUDY = "deepscheduler2020"


def done(work: Path, judge: bool) -> dict[str, Any]:
    """What the cells gave; of held-out days only if asked."""
    scale = recipe.SCALES[SCALE]
    traces = recipe.inputs.folder_of_traces()
    every = [cell for cell in recipe.cells_of(scale, traces, work) if cell.name.startswith(("joint/", "done/"))]
    cells = [cell for cell in every if judge or not cell.name.endswith("/test")]
    return run_cells(work, cells, {"step": "completed", **asdict(scale)}, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for cells and agents; the same call goes on in it"
    )
    parser.add_argument("--judge", action="store_true", help="use the held-out days: a look, which is counted")
    given = parser.parse_args()
    sys.argv = ["python", "-m", "bench.completed"]  # for the manifests: no folder of this machine
    kept = KEPT / STUDY
    if given.judge:
        look(kept, "agents searched and judged on days run to completion", again=False)
    cells = done(given.work, given.judge)
    for name in completed.inputs_of(cells):
        chosen = completed.chosen(cells, name)
        print(f"{name}: chosen on validation days: {', '.join(chosen.values())}")
        if not given.judge:
            continue
        for agent in (f"{name}-done-{one.replace('/', '-')}-0" for one in chosen.values()):
            shutil.copytree(given.work / "agents" / agent, kept / "agents" / agent, dirs_exist_ok=True)
    if given.judge:
        write_table(kept, "completed", completed.frame(cells))
        replace(kept, completed.claims(cells))
        print(f"written into {kept}: now escala study verdicts {STUDY} --out docs/studies/{STUDY}.md --force")
    else:
        with pl.Config(tbl_rows=-1):
            print(completed.frame(cells, ("validation",)))


if __name__ == "__main__":
    main()
