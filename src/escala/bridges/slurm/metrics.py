"""Figures for a monitoring system in the text form of Prometheus, as a file for node_exporter's collector of text
files."""

from __future__ import annotations

from collections import Counter
from typing import Any

from escala.bridges.slurm.journal import MODE
from escala.bridges.slurm.loop import METRICS, Beside
from escala.bridges.slurm.seen import ON_NODES
from escala.bridges.slurm.snapshots import OFF, ON, SINKING, WAKING, foreign, gone, power_of, waits
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
    "shield_total": "choices of learnt policies behind a shield, those unlike the base's, those overruled, since the "
    "folder began",
    "info": "always 1: the mode, the policies, the partition, and the version of Slurm",
    "nodes": "nodes of the partition at the last look, by power state; gone: down, drained, or reserved by others",
    "jobs": "jobs of the partition at the last look that wait for nodes, and that have some",
    "leases": "reservations that keep nodes off",
    "unsure_nodes": "nodes of which nothing certain was known at the last look, and which were left alone",
    "left_out_records": "of the last look: jobs and nodes of which Slurm said what is not understood",
    "aside_nodes": "nodes that are set aside since they did not boot",
}
STATES = (ON, WAKING, OFF, SINKING, "gone")


class Metrics:
    """Sums since the process began."""

    def __init__(self, beside: Beside) -> None:
        self._beside, self._path = beside, beside.folder / METRICS
        self._off_s, self._saved_j = 0.0, 0.0
        self._starts: Counter[str] = Counter()
        self._acted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._last_s = -1.0
        self.text = "".join(self._lines(beside, {}))  # what was written last

    def add(self) -> None:
        """The last look counts, if it did not before; write the file."""
        told: dict[str, Any] = self._beside.last
        if told and told["t"] != self._last_s:
            self._last_s = told["t"]
            self._off_s += told["lived"].get("off_s", 0.0)
            self._saved_j += told["lived"].get("saved_j", 0.0)
            self._starts.update(row[4] for row in told.get("started", ()))
            self._acted.update("done" if done else "failed" for _, done in told.get("acted", ()))
            self._refused.update(why[2] for why in told.get("refused", ()))
        self.text = "".join(self._lines(self._beside, told))
        write_whole(self._path, self.text, MODE)

    def _lines(self, beside: Beside, told: dict[str, Any]) -> list[str]:
        plain = {"looks_total": beside.seq, "misses_total": beside.misses, "last_look_seconds": told.get("t", 0)}
        plain |= {"read_seconds": told.get("read_ms", 0.0) / 1000, "decide_seconds": told.get("decide_ms", 0.0) / 1000}
        plain |= {"off_node_seconds_total": round(self._off_s, 3), "saved_joules_total": round(self._saved_j, 3)}
        plain |= {"unsure_nodes": len(told.get("unsure", ())), "left_out_records": beside.left_out}
        plain |= {"leases": len(told["leases"])} if "leases" in told else {}
        plain |= {"aside_nodes": beside.aside} if beside.aside is not None else {}
        out = [line for name, value in plain.items() for line in (*_head(name), f"escala_beside_{name} {value}\n")]
        counted = (
            ("starts_total", "taken", self._starts),
            ("acted_total", "outcome", self._acted),
            ("refused_total", "guard", self._refused),
            *((("shield_total", "what", Counter(counts)),) if (counts := beside.counts) else ()),
        )
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in beside.about.items())
        out += [*_head("info"), f"escala_beside_info{{{labels}}} 1\n"]
        for name, label, counts in (*counted, *_standing(beside)):
            out += [
                *_head(name),
                *(f'escala_beside_{name}{{{label}="{key}"}} {count}\n' for key, count in sorted(counts.items())),
            ]
        return out


def _standing(beside: Beside) -> list[tuple[str, str, Counter[str]]]:
    """What the last look saw, by state."""
    if beside.seen is None:
        return []
    at, others = beside.at, foreign(beside.seen)
    nodes = [beside.seen.nodes[name] for name in at.names]
    jobs = beside.seen.jobs.values()
    states = Counter(dict.fromkeys(STATES, 0))
    states.update("gone" if gone(node, others) else power_of(node) for node in nodes)
    waiting = sum(waits(job, at) for job in jobs)
    held = sum(any(host in at.index for host in job.hosts) for job in jobs if job.state in ON_NODES)
    return [("nodes", "state", states), ("jobs", "state", Counter(waiting=waiting, running=held))]


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _head(name: str) -> tuple[str, str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    return f"# HELP escala_beside_{name} {HELP[name]}\n", f"# TYPE escala_beside_{name} {kind}\n"
