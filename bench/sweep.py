"""The sweep of horizons of marl2024, alone: its kept teams, played where arrivals go on for shorter and longer than in their training.

python -m bench.sweep --work DIR   plays, counts that look, and writes the table and the claim into the kept folder

`escala study run` does the same among everything else; for R1 and R2 see bench.open_end. The paper's page is
`escala study verdicts marl2024`.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from bench.open_end import KEPT, SCALE, replace
from escala.studies.lab.cells import run_cells
from escala.studies.lab.claims import write_table
from escala.studies.lab.looks import look
from escala.studies.marl2024 import horizons
from escala.studies.marl2024.recipe import NAME, SCALES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for cells; the same call goes on in it")
    given = parser.parse_args()
    kept, scale = KEPT / NAME, SCALES[SCALE]
    look(kept, "sweep of horizons by the kept teams", again=False)
    cells = horizons.cells_of(kept / "agents", scale.horizons, scale.loads)
    table = horizons.frame(run_cells(given.work, cells, {"study": NAME, "step": "sweep", **asdict(scale)}, 1))
    write_table(kept, "horizons", table)
    replace(kept, horizons.claims(table))
    print(f"written into {kept}: now escala study verdicts {NAME} --out docs/studies/{NAME}.md --force")


if __name__ == "__main__":
    main()
