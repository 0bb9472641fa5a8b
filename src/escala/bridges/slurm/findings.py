"""What a journal amounts to: hours off, energy, whose waits would have changed, how far the policy agrees with Slurm,
and how far that may be trusted. From the journal alone."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.replay import about, looks
from escala.bridges.slurm.shape import BEGIN, LOOK, MISS
from escala.errors import EscalaError
from escala.platform import Platform

DAY_S, HOUR_S, KWH_J = 86400.0, 3600.0, 3.6e6
LEAST_DAYS, LEAST_STARTS, MOST_HALF_WIDTH, MOST_MISSED = 7.0, 200, 0.05, 0.02
"""From when on an operator may trust the figures: a week with its nights, enough starts, a share that is known to 5
points, few gaps."""
SWITCHING = ("power", "full")
"""Modes in which nodes are switched in truth: nothing is pretended, so that no saving is known."""
SUMS = ("watched_s", "off_s", "switching_s", "idle_s", "truly_off_s", "saved_j", "gap_s")


@dataclass
class Findings:
    """sums: of `SUMS`. starts: rows as `Watch.judge` gives them, one a job. delays: job -> user, s. partitions: of jobs
    that have started.
    loose: jobs that asked for more nodes than their CPUs need. counts: of a shield's decisions. acting: of the looks in
    which nodes were switched in truth, where a journal has others too: they are in none of the other figures. away_s:
    what they watched in between.
    kept: job -> user, and how long it waited for nodes while leases kept some off, s. guards: the limits that stood
    before switches that were none in truth, each set once, the last one last; None: of a part before there were any."""

    about: dict[str, Any]
    first_s: float = math.nan
    last_s: float = math.nan
    n_looks: int = 0
    n_missed: int = 0
    begun: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))
    starts: dict[str, list[Any]] = field(default_factory=dict)
    delays: dict[str, tuple[str, float]] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)
    jobs: int = 0
    loose: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    acting: Findings | None = None
    away_s: float = 0.0
    kept: dict[str, tuple[str, float]] = field(default_factory=dict)
    guards: list[dict[str, float | None] | None] = field(default_factory=list)

    @property
    def how(self) -> Counter[str]:
        """How the policy took the starts -> number of jobs."""
        return Counter(row[4] for row in self.starts.values())

    @property
    def asked(self) -> int:
        """Starts of which the policy was asked in time."""
        return len(self.starts) - self.how["unasked"]

    @property
    def agreement(self) -> tuple[float, float, float]:
        """Share of the starts asked about that the policy would have done too; its 95 % interval (Wilson)."""
        return wilson(self.how["same"], self.asked)

    @property
    def days(self) -> float:
        """Days watched, without gaps."""
        return self.sums["watched_s"] / DAY_S

    @property
    def missed(self) -> float:
        """Share of the time from the first look to the last that nobody watched."""
        whole = self.last_s - self.first_s - self.away_s
        return max(1.0 - self.sums["watched_s"] / whole, 0.0) if whole > 0 else 0.0

    def earlier(self) -> list[float]:
        """By how much the policy would have started jobs before Slurm did, s."""
        return [row[3] - row[5] for row in self.starts.values() if row[4] == "earlier" and row[5] is not None]

    def moved(self, row: Sequence[Any]) -> tuple[str, float | None] | None:
        """How a start would have moved (earlier, same, later), and by how much, s (None: nobody knows); None where
        nobody was asked. Nodes that the policy had off make a job later, whether or not it would have started it at
        once."""
        woken = self.delays[row[0]][1] if row[0] in self.delays else 0.0
        if row[4] == "earlier":
            return "earlier", None if row[5] is None else row[5] - row[3]
        if row[4] == "later":
            planned = row[8] if len(row) > 8 else None
            known = [woken] if planned is None else [woken, planned - row[3]]
            return "later", max(known) if max(known) > 0.0 else None
        if woken > 0.0:
            return "later", woken
        return None if row[4] == "unasked" else ("same", 0.0)

    def errors(self, place: int) -> list[float]:
        """Expected less actual waits, s; place: 6 for the policy's plan, 7 for Slurm's own."""
        return [row[place] - row[3] for row in self.starts.values() if row[place] is not None]

    def wanting(self) -> list[tuple[str, float | None]]:
        """What is missing before the figures may be trusted, with the days until it is there at the rate so far (None:
        unknown)."""
        out: list[tuple[str, float | None]] = []
        if self.days < LEAST_DAYS:
            out.append((f"{LEAST_DAYS:g} days watched (so far {self.days:.2g})", LEAST_DAYS - self.days))
        share, low, high = self.agreement
        needed = (
            max(LEAST_STARTS, math.ceil(share * (1 - share) * (1.96 / MOST_HALF_WIDTH) ** 2))
            if self.asked
            else LEAST_STARTS
        )
        if self.asked < needed or (high - low) / 2 > MOST_HALF_WIDTH:
            more = max(needed - self.asked, 1)
            out.append(
                (
                    f"{needed} starts asked about (so far {self.asked})",
                    more * self.days / self.asked if self.asked else None,
                )
            )
        if self.missed > MOST_MISSED:
            out.append((f"at most {MOST_MISSED:.0%} of the time unwatched (so far {self.missed:.0%})", None))
        return out


def wilson(hits: int, of: int) -> tuple[float, float, float]:
    """A share and its 95 % interval; nan for none."""
    if of == 0:
        return math.nan, math.nan, math.nan
    z, p = 1.96, hits / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return p, max(middle - half, 0.0), min(middle + half, 1.0)


def find(path: Path) -> Findings:
    """Read a journal. A look that was written twice counts once, as it was written last. Looks in which nodes were
    switched in truth are counted apart from the others."""
    parts = {acts: Findings(about(path)) for acts in (False, True)}
    acts = False
    last: dict[int, tuple[bool, dict[str, Any]]] = {}
    begun_by: dict[str, set[str]] = {}
    leased: set[float] = set()  # when
    for record in records(path):
        if record["kind"] == MISS:
            parts[acts].n_missed += 1
        elif record["kind"] == BEGIN:
            acts = record["mode"] in SWITCHING
            parts[acts].begun += 1
            parts[acts].about, limits = record, record.get("guards")
            parts[acts].guards = [*(one for one in parts[acts].guards if one != limits), limits]
            who = {key: record[key] for key in ("policies", "names")} | {
                "platform": Platform.from_spec(record["platform"]).spec()
            }
            # an option that an older one does not tell may be any
            for key, value in (who | record.get("options", {})).items():
                begun_by.setdefault(key, set()).add(json.dumps(value, sort_keys=True))
        elif record["kind"] == LOOK:
            leased |= {record["t"]} if record.get("leases") else set()
            last[int(record["seq"])] = acts, {key: record.get(key) for key in ("t", "lived", "started", "counts")}
    if any(len(values) > 1 for values in begun_by.values()):
        raise EscalaError(
            f"{path}: several policies, options, machines or watts wrote it: take a folder for each, and report each "
            "alone"
        )
    counted: dict[str, int] = {}
    for acts, record in last.values():
        _add(parts[acts], record)
        before, counted = counted, record["counts"] or counted
        anew = any(counted[name] < before.get(name, 0) for name in counted)  # the state was taken away
        parts[acts].counts.update({name: n - (0 if anew else before.get(name, 0)) for name, n in counted.items()})
    found = parts[True] if parts[True].n_looks and not parts[False].n_looks else parts[False]
    if found is parts[False] and parts[True].n_looks:
        found.acting = parts[True]
        between = (one for acts, one in last.values() if acts and found.first_s <= one["t"] <= found.last_s)
        found.away_s = sum((one["lived"] or {}).get("watched_s", 0.0) for one in between)
    _jobs(found, path, leased)
    return found


def _add(found: Findings, record: dict[str, Any]) -> None:
    found.n_looks += 1
    found.first_s = record["t"] if math.isnan(found.first_s) else min(found.first_s, record["t"])
    found.last_s = record["t"] if math.isnan(found.last_s) else max(found.last_s, record["t"])
    lived = record["lived"] or {}
    for name in SUMS:
        found.sums[name] += lived.get(name, 0.0)
    for job, user, later in lived.get("delays", ()):
        found.delays[job] = (user, later)
    for row in record["started"] or ():
        found.starts[row[0]] = row


def _jobs(found: Findings, path: Path, leased: Set[float]) -> None:
    """Count the jobs, those whose nodes the policy does not see, and how long each waited while leases kept nodes off
    (at looks of `leased`)."""
    held, before = found.acting or found, math.nan
    longest = 3.0 * float(held.about.get("period_s", 0.0)) + 5.0  # of a time between two looks that counts
    cpus = statistics.median(Platform.from_spec(found.about["platform"]).cores.tolist())
    every: dict[str, bool] = {}
    for seen in looks(path):
        spent, before = seen.now_s - before, seen.now_s
        for job in seen.jobs.values():
            if (
                seen.now_s in leased
                and spent <= longest
                and job.free
                and held.about["partition"] in job.partition.split(",")
            ):
                held.kept[job.job_id] = job.user, held.kept.get(job.job_id, ("", 0.0))[1] + spent
            if job.job_id in found.starts:
                found.partitions[job.job_id] = job.partition
            if job.job_id not in every:
                every[job.job_id] = not job.whole and job.nodes > math.ceil(job.cpus / cpus)
    found.jobs, found.loose = len(every), sum(every.values())


@dataclass
class Waits:
    """How the starts of somebody's jobs would have moved. changes: s, of those of which it is known; below 0:
    earlier."""

    name: str
    how: Counter[str] = field(default_factory=Counter)
    changes: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        """The longest further wait, s."""
        return max([0.0, *self.changes])

    def row(self) -> tuple[Any, ...]:
        """Name, jobs, those earlier, the same, later and later by nobody knows what; median change, longest further and
        spared wait, s."""
        known = statistics.median(self.changes) if self.changes else None
        counts = (self.how[word] for word in ("earlier", "same", "later"))
        return (
            self.name,
            self.how.total(),
            *counts,
            self.how.total() - len(self.changes),
            known,
            self.longest,
            -min([0.0, *self.changes]),
        )


def waits_by(found: Findings, whose: str) -> list[Waits]:
    """By "user" or "partition" (where the journal tells it): whoever would have waited longest first."""
    out: dict[str, Waits] = {}
    for job, row in found.starts.items():
        name = row[1] if whose == "user" else found.partitions.get(job)
        moved = found.moved(row)
        if moved is not None and name is not None:
            one = out.setdefault(name, Waits(name))
            one.how[moved[0]] += 1
            one.changes += [] if moved[1] is None else [moved[1]]
    return sorted(out.values(), key=lambda one: (-one.longest, -one.how["later"], one.name))
