"""A task of an array on Slurm that makes runs of a campaign: see `escala.engines.task`."""

import sys

from escala.campaigns.work import Replays
from escala.engines.task import do

if __name__ == "__main__":
    do(Replays.read, *sys.argv[1:])
