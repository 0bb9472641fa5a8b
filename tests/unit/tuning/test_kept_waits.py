"""Kept waits of an interrupted run: those that were damaged since are one line, and never the end of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DAMAGED = """
import sys
from pathlib import Path
import numpy as np
import polars as pl
from escala.errors import EscalaError
from escala.tuning.replays import kept_waits
from escala.writing import Pieces, output_folder

told = 0
with output_folder(Path(sys.argv[1]) / "out", "tune", keeps=True) as work:
    kept = kept_waits(Pieces(work, "request"), "whole ")
    kept.keep("easy", np.arange(100.0))
    assert kept.load("easy").tolist() == list(range(100))
    (piece,) = [path for path in (work.parent / "kept").rglob("*") if path.is_file()]
    pl.read_parquet(piece).write_parquet(piece, compression="uncompressed")
    content = piece.read_bytes()
    for at in range(10, 16):
        piece.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            kept.load("easy")
        except EscalaError as error:
            told += "Parquet file is damaged" in str(error) and str(piece) in str(error)
print("told", told)
"""


def test_damaged_waits_do_not_end_the_process(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DAMAGED, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("told") and done.stdout != "told 0\n", (
        done.stdout + done.stderr[-600:]
    )
