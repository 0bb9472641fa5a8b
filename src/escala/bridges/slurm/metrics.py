"""Figures for a monitoring system, as a text file in the form that node_exporter's collector of text files reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from escala.bridges.slurm.loop import METRICS, Beside
from escala.writing import write_whole

HELP = {
    "looks_total": "looks at Slurm that were decided on",
    "misses_total": "looks that failed",
    "last_look_seconds": "when the last look was, unix time",
    "read_seconds": "how long the last look took",
    "decide_seconds": "how long the last decision took",
    "off_node_seconds_total": "node time that the policy would have had off, on nodes that stay on",
    "saved_joules_total": "joules that this would have saved",
    "starts_total": "jobs that Slurm started, by how the policy took it",
    "acted_total": "commands given to Slurm, by outcome",
    "refused_total": "orders that a guard refused, by guard",
}


class Metrics:
    """Sums since the process began."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS
        self._off_s, self._saved_j = 0.0, 0.0
        self._starts: Counter[str] = Counter()
        self._acted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._last_s = -1.0

    def add(self, beside: Beside) -> None:
        """The last look counts, if it did not before; write the file."""
        told: dict[str, Any] = beside.last
        if told and told["t"] != self._last_s:
            self._last_s = told["t"]
            self._off_s += told["lived"].get("off_s", 0.0)
            self._saved_j += told["lived"].get("saved_j", 0.0)
            self._starts.update(row[4] for row in told.get("started", ()))
            self._acted.update("done" if done else "failed" for _, done in told.get("acted", ()))
            self._refused.update(why[2] for why in told.get("refused", ()))
        write_whole(self._path, "".join(self._lines(beside, told)))

    def _lines(self, beside: Beside, told: dict[str, Any]) -> list[str]:
        plain = {"looks_total": beside.seq, "misses_total": beside.misses, "last_look_seconds": told.get("t", 0)}
        plain |= {"read_seconds": told.get("read_ms", 0.0) / 1000, "decide_seconds": told.get("decide_ms", 0.0) / 1000}
        plain |= {"off_node_seconds_total": round(self._off_s, 3), "saved_joules_total": round(self._saved_j, 3)}
        out = [line for name, value in plain.items() for line in (*_head(name), f"escala_beside_{name} {value}\n")]
        counted = (
            ("starts_total", "taken", self._starts),
            ("acted_total", "outcome", self._acted),
            ("refused_total", "guard", self._refused),
        )
        for name, label, counts in counted:
            out += [*_head(name), *(f'escala_beside_{name}{{{label}="{key}"}} {count}\n' for key, count in sorted(counts.items()))]
        return out


def _head(name: str) -> tuple[str, str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    return f"# HELP escala_beside_{name} {HELP[name]}\n", f"# TYPE escala_beside_{name} {kind}\n"
