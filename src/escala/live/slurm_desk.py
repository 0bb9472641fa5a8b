"""`SlurmDesk`: Slurm's own rules asked from outside, on a site whose partitions overlap, with limits, and jobs of all
shapes.

Each decision brings the tables of `escala.kernel.slurm` to where the snapshot says that the machine stands. The clocks
of slurmctld go on from the last decision to this one, and what begins meanwhile or now is ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.drive import DONE, drive
from escala.kernel.slurm.priority import MOST
from escala.kernel.slurm.standing import go_on, idled, queue_up
from escala.live.fitting import understood
from escala.live.orders import Orders, Planned, Refused, Start
from escala.live.shapes import MEMORY
from escala.live.slurm_tables import Standing, gone
from escala.live.snapshot import DEMAND, IN_ORDER, Snapshot
from escala.live.state_file import check_state, reading_state, whose, write_state
from escala.options import Options, with_options
from escala.platform import Platform, read_platform
from escala.platform.closures import RESERVED
from escala.platform.site import site_of
from escala.policies.slurm_names import QUEUE, split_slurm
from escala.slurm.in_name import changed
from escala.slurm.named import NAME
from escala.slurm.run import refuse_options
from escala.slurm.settings import Settings, settings_of

CLOCKS = {
    "tick": t.TICK,
    "pass": t.PASS,
    "calc": t.CALC,
    "asked": t.ASKED,
    "last_event": t.LAST_EVENT,
    "last_full": t.LAST_FULL,
    "last_pass": t.LAST_PASS,
    "last_update": t.LAST_UPDATE,
    "moved": t.MOVED,
    "next_turn": t.NEXT_TURN,
}
"""What of slurmctld's clocks goes on from one decision to the next."""
KEPT: dict[str, Any] = {
    "now_us": -1,
    "clocks": {},
    "rows": {},
    "next_row": 0,
    "priorities": {},
    "found": {},
    "since": [],
    "gone": [],
    "idle": False,
}
"""What is carried. rows: number of each job that is known, in the order in which they came. priorities: of those that
wait, by record.
found: CPUs and GPUs of their last plans. since: jobs that ran then. idle: the last tick was at now_us, and left nothing
to do."""
FIRST_STEP_US = 60 * t.SECOND


class _Seen(NamedTuple):
    """Rows of the jobs that waited before, of those that have come; the number of each job, and of the next."""

    known: t.Ints
    came: t.Ints
    numbers: dict[str, int]
    more: int


class SlurmDesk:
    """As `Desk`, by Slurm's rules. site: a `Site`, a `Platform` (one partition), or a spec. scheduler: "slurm",
    "slurm:KEY=VALUE...", or `escala.slurm.Settings`. shutdown: never. origin_s: the unix second of the snapshots' zero,
    which plans of Slurm are aligned to.

    Snapshots tell what jobs ask (`escala.workload.shapes`, account, qos) and hold. Reservations are those of the site;
    nodes that are gone, or not on, get no jobs. EscalaError for another shutdown policy.
    """

    def __init__(
        self, site: Any, scheduler: Any = NAME, shutdown: Any = "never", origin_s: float = 0.0, **options: Any
    ) -> None:
        told = site_of(site if isinstance(site, Platform) else read_platform(site))
        refuse_options(with_options(Options(), **options))
        if shutdown != "never":
            raise EscalaError(f"shutdown policy {quoted(shutdown)}: nodes stay on under scheduler slurm: give never")
        self.platform = replace(told.alike(), closed=tuple(one for one in told.closed if one.kind == RESERVED))
        rest, parts = (scheduler, {}) if isinstance(scheduler, Settings) else split_slurm(scheduler)
        settings = rest if isinstance(rest, Settings) else changed(settings_of(told), rest)
        if settings.passes_s:
            raise EscalaError(
                "recorded moments of backfill passes are of one log, and a machine has none: leave passes_s out"
            )
        if settings.preempts:
            raise EscalaError(
                f"site {quoted(self.platform.name)} lets jobs preempt others, which is only simulated: leave "
                "PreemptType out"
            )
        if settings.queue or parts:
            raise EscalaError(
                f"scheduler {NAME}: queue={settings.queue or parts[QUEUE]} is only simulated: a machine orders its "
                "jobs itself, so leave it out"
            )
        self.name = f"{scheduler if isinstance(scheduler, str) else NAME} + never"
        self._fair = settings.fair_share
        self._settings = replace(settings, weight_fair=0)
        self._origin_s = float(origin_s)
        self._kept: dict[str, Any] = _copied(KEPT)

    counts: Mapping[str, int] = {}
    """As `Desk.counts`."""

    def decide(self, snapshot: Snapshot) -> Orders:
        """As `Desk.decide`. Jobs start at Slurm's beats: `next_s` says when the next one is due."""
        self._check(snapshot)
        snapshot, wrong = understood(snapshot, self.platform)
        at = self._standing(snapshot, ahead=False)
        seen = self._seen(at)
        queue_up(at.table, seen.known)
        if self._kept["idle"] and at.now > self._kept["now_us"]:
            go_on(at.table, at.now)
        drive(at.table, at.now - 1)
        self._take_in(at, seen.came)
        if at.world.s[t.N_QUEUE] > 0:
            drive(at.table, at.now)
        started = _started(at)
        self._keep(at, seen, started)
        starts = tuple(_start(at, j) for j in started)
        return Orders(snapshot.now_s, starts, next_s=_next_s(at.world), refused=(*wrong, *_refused(at)))

    def warm(self) -> None:
        """As `Desk.warm`."""
        before = _copied(self._kept)
        usual = self.platform.default_partition or self.platform.partitions[0]
        job: dict[str, Any] = {
            "job_id": ["1"],
            "submit_s": [0.0],
            "walltime_s": [60.0],
            "cores": [1],
            "state": ["queued"],
        }
        job |= {"partition": [usual.name], "priority": [1]}
        idle = Snapshot.of(0.0, job, {"power": ["on"] * self.platform.n_nodes})
        for _ in range(2):
            self.decide(idle)
        self.plan(idle, first=1)
        self._kept = before

    def plan(self, snapshot: Snapshot, first: int = 10) -> list[Planned]:
        """As `Desk.plan`, by Slurm's rules: which waiting jobs Slurm would start first, and when."""
        if first < 1:
            raise EscalaError(f"plan: first={first}: give 1 or more jobs")
        self._check(snapshot)
        at = self._standing(understood(snapshot, self.platform)[0], ahead=True)
        seen = self._seen(at)
        queue_up(at.table, seen.known)
        s = at.world.s
        s[[t.TICK, t.PASS, t.CALC]] = np.maximum(s[[t.TICK, t.PASS, t.CALC]], at.now)  # nothing before now
        self._take_in(at, seen.came)
        s[t.NEXT_SUBMIT] += 1  # and nobody comes
        until, step = at.now, FIRST_STEP_US
        while drive(at.table, until) != DONE and len(_started(at)) < first:
            until, step = until + step, 2 * step
        found = sorted((int(at.world.jobs.start[j]), j) for j in _started(at))
        return [Planned(at.ids[j], us / t.SECOND) for us, j in found[:first]]

    def save(self, path: Any, note: Any = None) -> None:
        """As `Desk.save`."""
        told = {**whose(self.name, self.platform), "slurm": self._kept}
        write_state(path, self.name, told, note)

    def restore(self, path: Any) -> Any:
        """As `Desk.restore`."""
        with reading_state(path) as told:
            check_state(told, self.name, self.platform)
            if not _sound(told.get("slurm")):
                raise EscalaError("what is carried is not that of this version of Escala: begin without the file")
            self._kept = told["slurm"]
        return told.get("note")

    def _check(self, snapshot: Snapshot) -> None:
        n = self.platform.n_nodes
        if len(snapshot.nodes) != n:
            raise EscalaError(
                f"snapshot: {len(snapshot.nodes)} nodes, site {self.platform.name!r} has {n}: tell of each, in its "
                "order"
            )
        last = self._kept["now_us"]
        if snapshot.now_us < last:
            raise EscalaError(f"snapshot: of {snapshot.now_s} s, and the last was of {last / t.SECOND} s: {IN_ORDER}")
        for kind in snapshot.demand:
            raise EscalaError(
                f"snapshot: jobs.{DEMAND}{kind}: scheduler slurm goes by memory_mb_per_node, gpus_per_node and the like"
            )
        if self._fair:
            told = snapshot.shapes.get("priority", [None] * len(snapshot.job_ids))
            for k in np.flatnonzero(snapshot.jobs["state"] == codes.QUEUED).tolist():
                if told[k] is None:
                    raise EscalaError(
                        f"snapshot: job {quoted(snapshot.job_ids[k])} has no priority, and under fair share it goes "
                        "by core time of the past, which no snapshot tells: add jobs.priority, as squeue has it"
                    )

    def _standing(self, snapshot: Snapshot, ahead: bool) -> Standing:
        at = Standing(snapshot, self.platform, self._settings, self._origin_s, ahead)
        for name, column in CLOCKS.items():
            if name in self._kept["clocks"]:
                at.world.s[column] = self._kept["clocks"][name]
        return at

    def _seen(self, at: Standing) -> _Seen:
        """Which jobs waited before and which have come, with their priorities."""
        rows, kept, more = self._kept["rows"], self._kept["priorities"], self._kept["next_row"]
        fresh = [name for name in at.ids if name not in rows]
        numbers = {name: rows[name] for name in at.ids if name in rows} | {
            name: more + k for k, name in enumerate(fresh)
        }
        records, first = at.world.records, at.world.jobs.record
        told = at.snapshot.shapes.get("priority", [None] * len(at.ids))
        waiting = np.flatnonzero(at.waiting).tolist()
        for j in waiting:
            name, mine = at.ids[j], slice(int(first[j]), int(first[j + 1]))
            at.world.jobs.found[j] = self._kept["found"].get(name, (0, 0))
            if told[int(at.order[j])] is not None:
                continue
            if not self._settings.multifactor:  # as if all jobs that ever came were still in the table
                records.rest[mine, t.OF_SIZE] += j - numbers[name]
                records.priority[mine] = np.clip(
                    records.rest[mine, t.OF_SIZE] - records.rest[mine, t.NICE], 1, MOST
                ).astype(np.int64)
            elif len(before := kept.get(name, [])) == mine.stop - mine.start:
                records.priority[mine] = before
        known = np.array([j for j in waiting if at.ids[j] in rows], np.int64)
        came = np.array([j for j in waiting if at.ids[j] not in rows], np.int64)
        return _Seen(known, came, numbers, more + len(fresh))

    def _take_in(self, at: Standing, came: t.Ints) -> None:
        """What has happened since the last decision: jobs that have ended or come, nodes that have gone or are back."""
        s, rows = at.world.s, self._kept["rows"]
        over = len(rows.keys() - set(at.ids))
        turned = int(np.flatnonzero(gone(at.snapshot)).tolist() != self._kept["gone"])
        strange = any(at.ids[j] not in self._kept["since"] for j in at.running.tolist())
        s[t.ASKED] += over + len(came) + turned
        if over or len(came) or turned or strange:
            s[t.LAST_UPDATE] = (at.now + at.world.rules.epoch_us) // t.SECOND
            s[t.MOVED] = at.now
        queue_up(at.table, came)
        at.world.jobs.submit[-1] = at.now + 1

    def _keep(self, at: Standing, seen: _Seen, started: list[int]) -> None:
        idle = bool(idled(at.table, at.now))
        first, records = at.world.jobs.record, at.world.records
        waiting = np.flatnonzero(at.waiting).tolist()
        self._kept = {
            "now_us": at.now,
            "clocks": {name: int(at.world.s[column]) for name, column in CLOCKS.items()},
            "rows": seen.numbers,
            "next_row": seen.more,
            "priorities": {at.ids[j]: records.priority[first[j] : first[j + 1]].tolist() for j in waiting},
            "found": {at.ids[j]: at.world.jobs.found[j].tolist() for j in waiting if at.world.jobs.found[j, 0] > 0},
            "since": [at.ids[j] for j in [*at.running.tolist(), *started]],
            "gone": np.flatnonzero(gone(at.snapshot)).tolist(),
            "idle": idle,
        }


def _sound(kept: Any) -> bool:
    """Is it what `KEPT` says?"""

    def whole(values: Any) -> bool:
        return all(type(value) is int and abs(value) <= t.FAR for value in values)

    if not isinstance(kept, dict) or {name: type(value) for name, value in kept.items()} != {
        n: type(v) for n, v in KEPT.items()
    }:
        return False
    clocks, priorities = kept["clocks"], [*kept["priorities"].values(), *kept["found"].values()]
    numbers = [kept["now_us"], kept["next_row"], *clocks.values(), *kept["rows"].values(), *kept["gone"]]
    numbers += [number for some in priorities if isinstance(some, list) for number in some]
    lists = all(isinstance(some, list) for some in priorities) and all(isinstance(name, str) for name in kept["since"])
    lists = lists and all(len(some) == 2 for some in kept["found"].values())
    return lists and whole(numbers) and (not clocks or set(clocks) == set(CLOCKS)) and clocks.get("next_turn", 0) >= 0


def _copied(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, dict | list) else value for name, value in kept.items()}


def _started(at: Standing) -> list[int]:
    """Rows of the jobs that began, in that order."""
    jobs = at.world.jobs
    rows = np.flatnonzero(at.waiting & (jobs.start[: len(at.ids)] != t.NONE))
    return rows[np.argsort(jobs.first[rows], kind="stable")].tolist()


def _refused(at: Standing) -> tuple[Refused, ...]:
    """Waiting jobs that no partition which they name could ever run."""
    never = at.asked.refused
    return (
        tuple(Refused(at.ids[j], never[j]) for j in sorted(never) if at.jobs["state"][j] == codes.QUEUED)
        if never
        else ()
    )


def _start(at: Standing, j: int) -> Start:
    """What a job is given, neighbours with equal shares together."""
    world = at.world
    rows = range(int(world.jobs.first[j]), int(world.jobs.last[j]))
    parts: list[tuple[int, int, tuple[int, ...]]] = []
    for at_row in rows:
        node = int(world.allocated.node[at_row])
        each = (
            int(world.allocated.cpus[at_row]),
            int(world.allocated.memory[at_row]),
            *world.allocated.gpus[at_row].tolist(),
        )
        if parts and parts[-1][1] == node - 1 and parts[-1][2] == each:
            parts[-1] = (parts[-1][0], node, each)
        else:
            parts.append((node, node, each))
    names = [MEMORY if world.rules.by_memory else "", *at.gpus]
    held = [(name, tuple(part[2][1 + k] for part in parts)) for k, name in enumerate(names)]
    told = tuple(one for one in held if one[0] == MEMORY or (one[0] and any(one[1])))
    partition = at.site.partitions[int(world.records.part[world.jobs.ran[j]])].name
    return Start(at.ids[j], tuple((low, high, each[0]) for low, high, each in parts), False, partition, told)


def _next_s(w: t.World) -> float | None:
    """When something may start if nothing happens before: the next event pass, backfill pass, or turn of a reservation
    that is due."""
    s, rules = w.s, w.rules
    if s[t.N_QUEUE] == 0:
        return None

    def moment(unix: int) -> int:
        return unix * t.SECOND - rules.epoch_us

    due = [t.FAR]
    if rules.sched_interval >= 0:
        asked = [int(s[t.LAST_FULL]) + rules.sched_interval]
        asked += [int(s[t.LAST_EVENT]) + rules.batch_sched_delay] if s[t.ASKED] > 0 else []
        due.append(_beat(int(s[t.TICK]), rules.tick_us, moment(min(asked))))
    changed = s[t.LAST_UPDATE] >= s[t.LAST_PASS]
    if rules.backfill and (changed or rules.by_priority):
        least = moment(int(s[t.LAST_PASS]) + rules.bf_interval)
        due.append(_beat(int(s[t.PASS]), t.SECOND + rules.drift_us, least if changed else max(least, int(s[t.CALC]))))
    if s[t.NEXT_TURN] < len(w.closed.moment):
        due.append(int(w.closed.moment[s[t.NEXT_TURN], 0]))
    found = min(due)
    return found / t.SECOND if found < t.FAR else None


def _beat(next_us: int, every_us: int, least_us: int) -> int:
    """The first beat that is not before a moment."""
    return next_us + max(0, -(-(least_us - next_us) // every_us)) * every_us
