"""Looks at held-out data, counted: whoever has looked often at a test set has chosen by it, however little was
meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.source import source_digest
from escala.writing import write_whole

FILE = "looks.json"


def looks(folder: Path) -> list[dict[str, Any]]:
    """The looks that a study's folder counts, oldest first: on (a day, UTC), what, agents, source (of the program; both
    may be missing). EscalaError where the file is broken."""
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list) or not all({"on", "what"} <= set(one) for one in found):
            raise ValueError("no list of looks")
    except (OSError, ValueError, TypeError) as error:
        raise EscalaError(
            f"{path}: cannot be read as looks at held-out data ({error}): mend it, or take it from the repository"
        ) from error
    return found


def look(folder: Path, what: str, agents: Sequence[str] = (), *, again: bool = True) -> int:
    """Count a look, and say how many there are. again: count it too where the last look was the same, by the same
    program."""
    known = looks(folder)
    one = {"on": f"{datetime.now(UTC):%Y-%m-%d}", "what": what, "agents": list(agents), "source": source_digest()}
    last = known[-1] if known else {}
    if again or any(last.get(key) != one[key] for key in ("what", "agents", "source")):
        known.append(one)
        write_whole(folder / FILE, json.dumps(known, indent=1) + "\n")
    return len(known)
