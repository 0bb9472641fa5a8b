"""`python -m tests.lowest [EXTRA...]`: the lowest versions that pyproject.toml allows of what the core, or extras,
need, as arguments for pip."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest(requirement: str) -> str:
    """`numpy>=1.26` -> `numpy==1.26`; ValueError for one without a lower bound."""
    found = re.match(r"([\w.-]+)(?:\[[^\]]*\])?>=([\w.]+)", requirement)
    if found is None:
        raise ValueError(f"{requirement!r} has no lower bound")
    return f"{found[1]}=={found[2]}"


def main(extras: list[str]) -> int:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    of_extras = (
        one for extra in extras for one in project["optional-dependencies"][extra] if not one.startswith("escala[")
    )
    needed = list(of_extras) if extras else project["dependencies"]
    sys.stdout.write(" ".join(lowest(one) for one in needed) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
