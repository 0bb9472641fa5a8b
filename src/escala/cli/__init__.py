"""The command line: thin verbs over the public names. `escala.cli:main` is the program."""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["main"]

OBJECTS = 50_000
"""New objects after which Python looks for circles that nobody reaches: imports make none, and looking there takes a
tenth of a short run."""


def main() -> None:
    """Run on `sys.argv` and end the process. Ctrl-C is one line from the first import on."""
    gc.set_threshold(OBJECTS)
    try:
        if sys.argv[1:] == ["--version"] and sys.stdout is not None:  # answered before the program is built
            from escala import __version__

            sys.stdout.write(f"escala {__version__}\n")
            return
        from escala.cli.app import main as program

        program()
    except (KeyboardInterrupt, RuntimeError) as error:
        # what happens within __set_name__ comes as a RuntimeError until Python 3.12
        if not isinstance(error.__cause__ if isinstance(error, RuntimeError) else error, KeyboardInterrupt):
            raise
        # not there yet: nothing can have been written
        left = getattr(sys.modules.get("escala.writing.left"), "left", None)
        if sys.stderr is not None:
            sys.stderr.write(f"error: interrupted; {left() if left else 'nothing was written'}\n")
            sys.stderr.flush()
        os._exit(130)  # half-made imports are not to be finished
