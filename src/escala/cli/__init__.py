"""The command line: thin verbs over the public names. `escala.cli:program` is the program."""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["main", "program"]

OBJECTS = 50_000
"""New objects after which Python looks for circles that nobody reaches: imports make none, and looking there takes a
tenth of a short run."""


KNOWN = frozenset(
    {"__main__", "_distutils_hack", "_polars_runtime_32", "annotated_doc", "escala", "llvmlite", "numpy", "polars"}
    | {"rich", "shellingham", "typer", "typing_extensions"}
)
"""Packages of which nothing has to be done as Python ends."""


def program() -> None:
    """`main`, as the last thing that a process does.

    Python ends as always. But it does not look for circles in what has been imported, an eighth of a short run, unless
    code from elsewhere is there: files that it left open are closed.
    """
    try:
        main()
    finally:
        others = {name.partition(".")[0] for name in sys.modules} - KNOWN - sys.stdlib_module_names
        if all(name.startswith("_sysconfigdata") for name in others):
            gc.freeze()


def main() -> None:
    """Run on `sys.argv` and end the process. Ctrl-C is one line from the first import on."""
    gc.set_threshold(OBJECTS)
    try:
        if sys.argv[1:] == ["--version"] and sys.stdout is not None:  # answered before the program is built
            from escala import __version__

            try:
                sys.stdout.write(f"escala {__version__}\n")
                sys.stdout.flush()
            except OSError as error:
                sys.stderr.write(f"error: {(error.strerror or str(error)).lower()}\n")
                os._exit(2)  # Python would try to write it once more
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
