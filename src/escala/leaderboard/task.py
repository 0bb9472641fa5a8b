"""A task of an array on Slurm that judges policies: see `escala.campaigns.task`."""

import sys

from escala.campaigns.task import do
from escala.leaderboard.judged import Judging

if __name__ == "__main__":
    do(Judging.read, *sys.argv[1:])
