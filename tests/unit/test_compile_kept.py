"""The folder of compiled code on a full disk, and with damaged files: what is needed is translated anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_compile import PARTS

FULL = """
import errno, pathlib
from numba.core import caching
import numpy as np
import parts

def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")

caching.IndexDataCacheFile._open_for_write = full
pathlib.Path.write_bytes = full
print(parts.one(np.arange(3), 2))
"""


def test_a_cache_whose_disk_is_full_works_without(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", FULL], capture_output=True, text=True, timeout=300, env=os.environ | more
    )
    assert done.stdout == "4\n", done.stderr
    left = [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert set(left) <= {".lock"}


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_damaged_files_of_the_cache_are_made_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", "import numpy as np, parts\nprint(parts.one(np.arange(3), 2))"],
            capture_output=True, text=True, timeout=300, env=os.environ | more,
        )  # fmt: skip
        assert done.stdout == "4\n", done.stderr
        for path in (tmp_path / "cache").rglob("*.*"):
            if path.is_file():
                path.write_bytes(content)
