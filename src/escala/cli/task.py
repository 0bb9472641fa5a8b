"""A task of an array on Slurm that begins a command again, see `escala.engines.again`: python -m escala.cli.task ARRAY
FOLDER PROGRAM."""

from __future__ import annotations

import json
import sys
from functools import partial

from escala.cli.app import act
from escala.engines import there
from escala.engines.again import Share
from escala.engines.task import asked_in, processors
from escala.errors import EscalaError


def main(array: str, folder: str, program: str) -> None:
    """Do this task's share of the command. What keeps it from beginning is told of every piece."""
    with asked_in(array, json.loads) as ((words, turn, keys), done, tell):
        left = [key for key in keys if key not in done]
        elsewhere = partial(there.there, folder=folder, program=program)
        told = elsewhere(None, job=lambda _: {})  # in the folder of the command from here on
        try:
            if "error" in told:
                raise EscalaError(told["error"])
            if left:
                act(words, Share(turn, left, processors(), elsewhere, tell))
        except EscalaError as error:
            for key in left:
                tell(key, {"error": str(error)})


if __name__ == "__main__":
    main(*sys.argv[1:])
