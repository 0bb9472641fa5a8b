"""Where the digests are kept: `digests.json` and `digests-long.json`, a line for each name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILES = {"short": "digests.json", "long": "digests-long.json"}


def read(form: str) -> dict[str, Any]:
    """Name -> digest."""
    path = Path(__file__).with_name(FILES[form])
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write(form: str, digests: dict[str, Any]) -> None:
    """Keep them, a line each."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(digests.items())]
    Path(__file__).with_name(FILES[form]).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
