"""Journals of looks beside Slurm, written by hand: of every figure it is known what it must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from escala.platform import Platform, PowerProfile

WATTS = PowerProfile(400, 150, 8, 120, 200, 60, 240, name="blade")


def pending(number: int, nodes: int = 1, cpus: int = 4, whole: bool = True) -> list[Any]:
    return [str(number), "pending", 0.0, None, None, 600.0, nodes, cpus, 9, 0, whole, "ann", "batch", [], "Priority"]


def journal(path: Path, days: float = 8.0, power: Any = WATTS, more: tuple[dict[str, Any], ...] = ()) -> Path:
    """300 starts over so many days: 270 the same, 20 earlier by 60 s, 10 later; three jobs delayed."""
    platform = Platform.uniform(2, 4, power)
    begin = {
        "kind": "begin",
        "t": 0.0,
        "seq": 0,
        "policies": "easy + timeout:9",
        "names": ["a", "b"],
        "platform": platform.spec(),
    }
    begin |= {"mode": "shadow", "slurm": "22.05", "partition": "batch", "period_s": 10.0}
    whole = {"whole": True, "jobs": [pending(1), pending(2, 2, 2, False)], "nodes": [], "reservations": []}
    looks: list[dict[str, Any]] = [{"kind": "look", "t": 0.0, "seq": 1, "lived": {}, "seen": whole}]
    for k in range(300):
        how = "same" if k < 270 else "earlier" if k < 290 else "later"
        row = [
            str(k),
            "bob" if k == 5 else "ann",
            0.0,
            1000.0,
            how,
            940.0 if how == "earlier" else None,
            1300.0 if k < 9 else None,
            990.0 if k < 2 else None,
        ]
        span = days * 86400.0 / 300
        lived: dict[str, Any] = {"watched_s": span, "off_s": span, "idle_s": 2 * span, "saved_j": 142.0 * span}
        if k in (5, 6, 280):
            lived |= {"delays": [[str(k), "bob" if k == 5 else "ann", 240.0 if k == 5 else 100.0]]}
        looks.append({"kind": "look", "t": span * (k + 1), "seq": k + 2, "lived": lived, "started": [row], "seen": {}})
    looks.append(looks[-1] | {})  # killed after it was written: written again
    path.write_text("".join(json.dumps({"v": 1, **one}) + "\n" for one in (begin, *looks, *more)))
    return path
