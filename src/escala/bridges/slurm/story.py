"""What a journal tells of one job, and of how things stand."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from escala.bridges.slurm import replay
from escala.bridges.slurm.guard import NICE, OFF_NODE, WAKE
from escala.bridges.slurm.seen import PENDING, Job, Seen
from escala.bridges.slurm.shape import BEGIN, LOOK, MISS
from escala.errors import EscalaError

WORDS = {
    "same": "the same",
    "earlier": "late: it would have started it before",
    "later": "early: it would not have started it yet",
    "unasked": "unknown: nobody was asked in time",
}
"""How the policy took a start."""


def moment(when: float) -> str:
    """A unix time as a date and a time of day."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(when))
    except (OverflowError, OSError, ValueError):
        return f"{when:.0f} s (unix time)"


def status(path: Path) -> dict[str, Any]:
    """How things stood at the last look. added_nodes: of the partition, which the policies do not know. unsure_nodes:
    of which nothing certain was known. left_out: what Slurm said that was not understood.

    counts: of a shield's decisions, since the folder began. would_...: what the policies want that was not done, and
    that no guard refused. changed_jobs: those that wait with a nice that was given here.
    """
    begun: dict[str, Any] = {}
    last: dict[str, Any] = {}
    missed: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    nices: dict[str, int] = {}
    seen = None
    for record, now in replay.told(path):
        seen = now or seen
        counts[record["kind"]] += 1
        if record["kind"] == BEGIN:
            begun = record
        elif record["kind"] == LOOK:
            last = record
            nices |= {job: new for job, _, new in record.get("changed", ())}
        else:
            missed = record
    refused = last.get("refused", [])
    return {
        "mode": begun.get("mode"),
        "policies": begun.get("policies"),
        "slurm": begun.get("slurm"),
        "partition": begun.get("partition"),
        "nodes": len(begun.get("names", ())),
        "added_nodes": last.get("added", []),
        "unsure_nodes": _named(last.get("unsure", ()), begun.get("names", ())),
        "left_out": last.get("left_out", []),
        "begun": counts[BEGIN],
        "looks": int(last.get("seq", 0)),
        "last_look_s": last.get("t"),
        "missed": counts[MISS],
        "last_miss_s": missed.get("t"),
        "last_miss": missed.get("why"),
        "waiting_jobs": 0 if seen is None else sum(job.state == PENDING for job in seen.jobs.values()),
        "would_switch_off": _open(last, "offs", OFF_NODE, "power_down"),
        "would_wake": _open(last, "wakes", WAKE, "power_up"),
        "would_start": last.get("starts", []),
        "done": [command for command, good in last.get("acted", ()) if good],
        "failed": [command for command, good in last.get("acted", ()) if not good],
        "refused": [f"{' '.join(filter(None, (kind, name)))}: {why}" for kind, name, why in refused],
        "counts": last.get("counts", {}),
        "leases": last.get("leases", []),
        "set_aside": last.get("aside", []),
        "changed_jobs": [job for job, nice in nices.items() if _waits_with(seen, job, nice)],
    }


def _named(places: Sequence[int], names: Sequence[str]) -> list[str]:
    return [names[k] for k in places if k < len(names)]


def _open(last: dict[str, Any], what: str, kind: str, state: str) -> list[str]:
    """Nodes that the policies want to switch, without those of which that was done or refused."""
    refused = {name for refused, name, _ in last.get("refused", ()) if refused == kind}
    if any(kind == "all" for kind, _, _ in last.get("refused", ())):
        return []
    done = {command for command, good in last.get("acted", ()) if good}
    return [
        name
        for name in last.get(what, ())
        if name not in refused and f"scontrol update nodename={name} state={state}" not in done
    ]


def _waits_with(seen: Seen | None, name: str, nice: int) -> bool:
    job = None if seen is None else seen.jobs.get(name)
    return job is not None and job.state == PENDING and job.nice == nice


@dataclass
class _Told:
    """What the looks say of one job, up to its start. refused: what and why -> how often, and when last. held: node ->
    when a lease was last seen on it."""

    job: str
    advised: float | None = None
    never: str = ""  # no policy can start it, as of the last look
    row: list[Any] | None = None
    delay: float = 0.0
    expected: tuple[float, list[float | None]] | None = None
    nices: list[tuple[float, int, int]] = field(default_factory=list)
    refused: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)

    def take(self, record: dict[str, Any], until: float) -> None:
        """A look counts. until: when its wait ended, as far as is known by then."""
        when = record["t"]
        if self.job in record.get("starts", ()) and self.advised is None:
            self.advised = when
        self.never = next((line for line in record.get("left_out", ()) if line.startswith(f"job {self.job}: ")), "")
        self.row = next((row for row in record.get("started", ()) if row[0] == self.job), self.row)
        self.delay += sum(later for name, _, later in record.get("lived", {}).get("delays", ()) if name == self.job)
        if self.job in record.get("expected", ()):
            self.expected = when, record["expected"][self.job]
        self.nices += [(when, old, new) for name, old, new in record.get("changed", ()) if name == self.job]
        if when > until:
            return
        self.held |= dict.fromkeys(record.get("leases", ()), when)
        for kind, name, why in record.get("refused", ()):
            what = {
                "all": "everything",
                WAKE: f"switching {name} on",
                NICE: "a change of its nice" if name == self.job else "",
            }.get(kind)
            if what:
                count, _ = self.refused.get((what, why), (0, when))
                self.refused[what, why] = count + 1, when


def explain(path: Path, job_id: str) -> list[str]:
    """What happened to a job, in sentences; EscalaError for one that the journal does not know."""
    last: Job | None = None
    began = at = 0.0
    told = _Told(job_id)
    for record, seen in replay.told(path):
        if seen is not None and (found := seen.jobs.get(job_id)) is not None:
            began = seen.now_s if last is None else began
            last, at = found, seen.now_s
        if last is not None and record["kind"] == LOOK and record["t"] >= began:
            told.take(record, math.inf if last.state == PENDING or last.start_s is None else last.start_s)
    if last is None:
        raise EscalaError(
            f"{path}: job {job_id} was never seen: give its number as squeue shows it (12, or 12_3 of an array)"
        )
    out = [
        f"job {job_id} of {last.user}: {_many(last.cpus, 'CPU')} on {_many(last.nodes, 'node')}, submitted at "
        f"{moment(last.submit_s)}"
    ]
    return [*out, *_waited(told, last, at), *_went(told, last)]


def _waited(told: _Told, last: Job, at: float) -> list[str]:
    """What was expected of its wait, and what was done about it."""
    out = []
    if last.state == PENDING:
        held = "" if last.free else f", for {last.reason}, whatever the nodes do"
        out.append(f"it has waited for {at - last.submit_s:.0f} s{held}")
    if told.expected is not None and told.row is None:
        when, both = told.expected
        words = [
            f"{who} {moment(start)} ({_from(at, start)})"
            for who, start in zip(("the policy", "Slurm"), both, strict=True)
            if start
        ]
        out += [f"its start was expected, as of {moment(when)}: by {', by '.join(words)}"] if words else []
    out += [f"its nice was set from {old} to {new} at {moment(when)}" for when, old, new in told.nices]
    for (what, why), (count, when) in told.refused.items():
        out.append(f"a guard refused {what} ({why}) in {count} of the looks of its wait, the last at {moment(when)}")
    if told.held:
        now = [name for name, when in told.held.items() if when == max(told.held.values())]
        out.append(
            f"while it waited, leases kept {_many(len(told.held), 'node')} off; the last ones seen: "
            f"{', '.join(now[:20])}"
        )
    mine = [name for name in last.hosts if name in told.held]
    out += [f"of its nodes, {', '.join(mine[:20])} had leases before it started"] if mine else []
    return out


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _from(now: float, when: float) -> str:
    return f"in {when - now:.0f} s" if when >= now else f"{now - when:.0f} s ago"


def _went(told: _Told, last: Job) -> list[str]:
    """How it came to its start."""
    out = []
    if told.advised is not None:
        out.append(
            f"the policy would have started it at {moment(told.advised)}, {told.advised - last.submit_s:.0f} s after "
            "its submission"
        )
    elif told.never:
        out.append(told.never)
    elif last.state == PENDING and last.free:
        out.append("the policy would not start it yet")
    if (row := told.row) is not None:
        out.append(
            f"Slurm started it at {moment(row[3])}, {row[3] - row[2]:.0f} s after its submission: for the policy "
            f"{WORDS[row[4]]}"
        )
        told_by = [
            f"{who} expected {when - row[2]:.0f} s"
            for who, when in (("the policy", row[6]), ("Slurm", row[7]))
            if when is not None
        ]
        out += [f"of its wait, {' and '.join(told_by)}"] if told_by else []
    elif last.state != PENDING and last.start_s is not None:
        where = (
            f" on {', '.join(last.hosts[:20])}{f' and {len(last.hosts) - 20} more' if len(last.hosts) > 20 else ''}"
            if last.hosts
            else ""
        )
        waited = f"{last.start_s - last.submit_s:.0f} s after its submission"
        out.append(
            f"Slurm started it at {moment(last.start_s)}{where}, {waited}: before the first look, so that nobody was "
            "asked"
        )
    if told.delay:
        out.append(f"its nodes would have been off: it would have waited {told.delay:.0f} s more")
    return out
