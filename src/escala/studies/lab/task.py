"""A task of an array on Slurm that does cells of a study: see `escala.engines.task`."""

import sys

from escala.engines.task import do
from escala.studies.lab.cells import Timed

if __name__ == "__main__":
    do(Timed.read, *sys.argv[1:])
