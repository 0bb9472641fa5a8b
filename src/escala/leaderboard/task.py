"""A task of an array on Slurm that judges policies: see `escala.engines.task`."""

import sys

from escala.engines.task import do
from escala.leaderboard.judged import Judging

if __name__ == "__main__":
    do(Judging.read, *sys.argv[1:])
