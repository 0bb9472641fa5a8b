"""The run kept in this folder: `python docs/studies/grid2019/short.py OUT`. The scale `short` with fewer seeds and shorter trainings."""

import sys
from dataclasses import replace
from pathlib import Path

from escala.studies import grid2019

grid2019.SCALES["short"] = replace(
    grid2019.SCALES["short"], seeds=2, all_seeds=1, alone_seeds=1, fresh_one=400_000, curve=(25_000, 50_000, 100_000, 250_000, 1_000_000),
    curve_seeds=1, variant=100_000,
)  # fmt: skip
if __name__ == "__main__":
    grid2019.run("short", Path(sys.argv[1]), jobs=1)
