"""The run kept in this folder: `python docs/studies/a2c2020/short.py OUT`. The scale `short` with fewer seeds and shorter trainings."""

import sys
from dataclasses import replace
from pathlib import Path

from escala.studies import a2c2020

a2c2020.SCALES["short"] = replace(
    a2c2020.SCALES["short"], seeds=3, a2c_seeds=1, printed_seeds=0, networks=("fc", "conv3-16"), network=8_192,
    curve_seeds=1, log_seeds=1
)  # fmt: skip
if __name__ == "__main__":
    a2c2020.run("short", Path(sys.argv[1]), jobs=1)
