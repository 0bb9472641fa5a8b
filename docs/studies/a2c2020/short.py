"""The run kept in this folder: `python docs/studies/a2c2020/short.py OUT`. The scale `short` without convolutions."""

import sys
from dataclasses import replace
from pathlib import Path

from escala.studies import a2c2020

a2c2020.SCALES["short"] = replace(a2c2020.SCALES["short"], networks=("fc",), printed_seeds=0)
if __name__ == "__main__":
    a2c2020.run("short", Path(sys.argv[1]), jobs=1)
