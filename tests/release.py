"""`python -m tests.release FOLDER`: is what is to be published small, and whole? Says what is not, with status 1: make
dist."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

MOST_BYTES = {".tar.gz": 3_000_000, ".whl": 2_000_000}
"""Ending -> the largest size. A wheel of `make wheel` has 1.5 MB of machine code more, and is not for the index."""
LEFT_OUT = ("docs/studies/", "notebooks/", ".ci/", ".github/", ".venv", "demo-out/", "requirements-extras.lock")
NEEDED = {
    ".tar.gz": ("pyproject.toml", "README.md", "LICENSE", "src/escala/py.typed"),
    ".whl": ("escala/py.typed", "escala/cli/__init__.py"),
}


def _names(path: Path) -> list[str]:
    """Of the files inside, from the project's folder."""
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).namelist()
    with tarfile.open(path) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def faults(folder: Path) -> list[str]:
    """What is wrong with the source archive and the wheel in a folder, a line each."""
    found = []
    for ending, most in MOST_BYTES.items():
        paths = sorted(folder.glob(f"escala-*{ending}"))
        if len(paths) != 1:
            found.append(f"{folder}: {len(paths)} files *{ending}, not one")
        for path in paths:
            size, names = path.stat().st_size, _names(path)
            found += [f"{path.name}: {size:,} bytes, more than {most:,}"] if size > most else []
            found += [f"{path.name}: lacks {name}" for name in NEEDED[ending] if name not in names]
            found += [
                f"{path.name}: holds {name}"
                for name in names
                if name.startswith(LEFT_OUT) or name.endswith((".machine", ".pyc"))
            ]
            if ending == ".whl":
                found += [f"{path.name}: holds {name}" for name in names if not name.startswith(("escala/", "escala-"))]
    return found


if __name__ == "__main__":
    told = faults(Path(sys.argv[1]))
    sys.stdout.write("".join(f"release: {one}\n" for one in told))
    sys.exit(1 if told else 0)
