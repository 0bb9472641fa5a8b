"""The command line: thin verbs over the public names. `escala.cli:program` is the program."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

__all__ = ["main", "program"]

OBJECTS = 50_000
"""New objects after which Python looks for circles that nobody reaches: imports make none, and looking there takes a
tenth of a short run."""


OTHERS = {"lightgbm", "matplotlib", "mlflow", "ray", "torch", "wandb"}
"""What these do as Python ends is theirs."""


def program() -> None:
    """`main`, as the last thing that a process does.

    What has been imported is not taken apart piece by piece, which takes a seventh of a short run. What others asked to
    be called at the end is called.
    """
    try:
        main()
        status: object = 0
    except SystemExit as end:
        status = end.code
    if isinstance(status, int) and threading.active_count() == 1 and not OTHERS & sys.modules.keys():
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (AttributeError, OSError):  # closed: Python says so as it ends
            sys.exit(status)
        os._exit(status)
    sys.exit(status)  # type: ignore[arg-type]  # as it came


def main() -> None:
    """Run on `sys.argv` and end the process. Ctrl-C is one line from the first import on."""
    gc.set_threshold(OBJECTS)
    try:
        if sys.argv[1:] == ["--version"] and sys.stdout is not None:  # answered before the program is built
            from escala import __version__

            sys.stdout.write(f"escala {__version__}\n")
            return
        if sys.argv[1:2] == ["simulate"]:  # no matrix here is worth a second thread: each takes 20 ms to begin
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
