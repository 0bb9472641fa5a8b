"""How often a shield overruled the agent behind it, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def counted(counts: Mapping[str, int], begin: str = "") -> str:
    """What a scheduler counted of its decisions, as words behind `begin`; "" where it counted none."""
    if "overruled" not in counts:
        return ""
    choices, unlike, over = (f"{counts[name]:,}" for name in ("choices", "unlike", "overruled"))
    return f"{begin}shield: {choices} choices, {unlike} unlike the base's, {over} overruled"


def counts_of(result: Any) -> dict[str, Any]:
    """What a run behind a shield counted, for JSON; nothing of another."""
    return {"counts": dict(counts)} if (counts := result.manifest.get("counts")) else {}


def overruled(results: Mapping[str, Any]) -> list[str]:
    """A sentence on each run behind a shield. results: policy -> `Result`; "" for the only one."""
    found = (
        counted(result.manifest.get("counts", {}), f"{name}: " if name else "") for name, result in results.items()
    )
    return [f"{line}." for line in found if line]


def listed(value: Any) -> Any:
    """A list, or what was counted, as words in a row; anything else as it is."""
    if isinstance(value, Mapping):
        value = [f"{number:,} {what}" for what, number in value.items()]
    return ", ".join(value) if isinstance(value, list) else value
