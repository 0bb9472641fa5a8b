"""A task of an array on Slurm that trains: see `escala.engines.task`."""

import sys

from escala.agents.trials import Training
from escala.engines.task import do

if __name__ == "__main__":
    do(Training.read, *sys.argv[1:])
