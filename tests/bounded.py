"""Compiled functions that no run with checked bounds has made: `python -m tests.bounded` ends `make test-bounds`.

Each function that is called, and each that it calls, leaves code in the cache folder, under a name that says of which
sources. Of a function without any, no test of the lists in the Makefile has an access checked: one should play it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from escala.compile import CACHE_FOLDER, CHECKED
from escala.compile.sources import ROOT, source_hash

COMPILED = re.compile(r"^ *@(?:compiled|lean|inlined|summed)\n *def (\w+)\(", re.MULTILINE)


def unmade(kept: Path) -> Iterator[str]:
    """Functions without code in a cache folder, as "file: name"."""
    for path in sorted(ROOT.rglob("*.py")):
        names = COMPILED.findall(path.read_text(encoding="utf-8"))
        files = (kept / f"{path.stem}-{source_hash(path)}").rglob("*.nb?") if names else ()
        made = {file.name.split(".")[1].partition("-")[0] for file in files}
        yield from (f"{path.relative_to(ROOT).as_posix()}: {name}" for name in names if name not in made)


def main() -> int:
    """Say which there are."""
    if CACHE_FOLDER is None or not CHECKED:
        print("error: set NUMBA_BOUNDSCHECK=1, and ESCALA_CACHE_DIR as for the tests", file=sys.stderr)
        return 2
    if found := list(unmade(CACHE_FOLDER)):
        print(f"error: no test checks the bounds of {'; '.join(found)}", file=sys.stderr)
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
