"""A study of one long cell, for `test_study_cells.py` to kill: `python study_killed.py FOLDER`."""

import os
import sys
import time
from pathlib import Path

from escala.studies.lab.cells import Cell, run_cells


def long(folder: str) -> int:
    """Tell which process this is, and take long."""
    (Path(folder) / "working").write_text(str(os.getpid()))
    time.sleep(60)
    return 0


if __name__ == "__main__":
    run_cells(Path(sys.argv[1]), [Cell("a", long, {"folder": sys.argv[1]}), Cell("b", int, {})], {}, 2)
