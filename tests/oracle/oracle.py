"""The oracle: a slow, obvious simulator of the rules in docs/design.md, section 4. `simulate` runs it and returns plain
tables.

Input: jobs as a list of dicts (columns of the workload table: job_id, submit_s, runtime_s, walltime_s, cores; optional
load, single_node, demand_<kind>, user, limited) and a platform {"cores": [per node], "profiles": [dict or Profile],
"profile_of": [per node], "resources": {kind: [per node]}, "names": [per node], "features": [per node], "node_speed":
[per node], "partitions": [dict of each]}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.oracle import gpus
from tests.oracle.energy import ledgers, merged
from tests.oracle.lanes import lane_of, lanes_of
from tests.oracle.nodes import ALL, ALONE, could_hold, is_alone, lasts, parts_of
from tests.oracle.outages import go_and_come_back, turns
from tests.oracle.schedulers import scheduler as find_scheduler
from tests.oracle.schedulers import split
from tests.oracle.shutdown import shutdown as find_shutdown
from tests.oracle.world import OFF, Job, Node, Profile, World, microseconds

CORRECTIONS_S = [60 * minutes for minutes in (1, 5, 15, 30)] + [3600 * hours for hours in (1, 2, 5, 10, 20, 50, 100)]


@dataclass
class Tables:
    """The outcome. Times in seconds (clock / 1e6), joules as exact fractions."""

    jobs: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    power: list[dict[str, Any]]
    decisions: list[int] = field(default_factory=list)

    @property
    def allocations(self) -> list[dict[str, Any]]:
        return [
            {"job_id": row["job_id"], "node": node, "cores": cores} for row in self.jobs for node, cores in row["place"]
        ]

    @property
    def joules(self) -> Fraction:
        return sum((row["joules"] for row in self.power), Fraction(0))


def simulate(
    jobs: list[dict[str, Any]],
    platform: dict[str, Any],
    scheduler: str = "easy",
    shutdown: str = "never",
    rules: str = "escala",
    head: str = "lowest-id",
    depth: int | None = None,
    rebuild: bool = False,
    plan_margin_s: float | None = None,
    estimate: str = "walltime",
    order_estimate: str | None = None,
    corrections_s: Sequence[float] = CORRECTIONS_S,
    until_s: float | None = None,
    start_off: bool = False,
    oversized: str = "error",
    keys: list[float] | None = None,  # of the jobs, for the scheduler "random"
    calls_s: Sequence[float] = (),  # times at which a decision was asked for
) -> Tables:
    nodes = make_nodes(platform, start_off)
    partitions = platform.get("partitions", ())
    rows = make_jobs(jobs, nodes, oversized, partitions)
    margin = plan_margin_s if plan_margin_s is not None else (5.0 if rules == "batsched" else 0.0)
    parts = ({"estimate": "last2"} if scheduler.startswith("easy+") else {}) | split(scheduler)[1]
    estimate, order_estimate = parts.get("estimate", estimate), parts.get("order_estimate", order_estimate)
    world = World(rows, nodes, rules, margin, (estimate, order_estimate or estimate), corrections_s)
    world.lanes = lanes_of(jobs, len(nodes), partitions)
    decide, strict = find_scheduler(scheduler, head, depth, rebuild, keys)
    world.planned = scheduler.startswith(("easy", "conservative")) or scheduler.partition(":")[0] == "saf"
    guard = parts.get("guard")
    world.guard = None if guard is None else microseconds(float(guard))
    power = find_shutdown(shutdown)
    world.hold_fraction, world.hold_if_busy = power.hold, power.if_busy
    world.hold_cap = None if power.cap_s is None else microseconds(power.cap_s)
    world.can_change = (shutdown != "never" or start_off) and any(node.profile.can_switch for node in nodes)
    world.calls = {microseconds(time) for time in calls_s}
    limit = None if until_s is None else microseconds(until_s)
    closed = turns(platform)
    decisions: list[int] = []
    first = True
    while True:
        took = intake(world, closed)
        if world.now == limit or (
            limit is None and all(job.finish is not None or job.state == "REJECTED" for job in rows)
        ):
            break
        if took or first:
            first = False
            decisions.append(world.now)
            power.before(world)
            decide(world)
            power.after(world, strict)
            world.job_ended = False
        following = next_event(world, [moment for moment, _ in closed])
        if following is None and limit is None:
            raise RuntimeError(f"stuck at {world.now / 1e6} s with {[job.job_id for job in world.queue]} in the queue")
        moments = [moment for moment in (following, limit) if moment is not None]
        world.now = min(moments)
    begin = 0 if limit is not None else min((job.submit for job in rows if job.state != "REJECTED"), default=0)
    return Tables([job_row(job, world) for job in rows], *ledgers(world, begin, world.now), decisions)


def make_nodes(platform: dict[str, Any], start_off: bool) -> list[Node]:
    profiles = [p if isinstance(p, Profile) else Profile(**p) for p in platform.get("profiles", [Profile()])]
    nodes: list[Node] = []
    for number, count in enumerate(platform["cores"]):
        profile = profiles[platform["profile_of"][number] if "profile_of" in platform else 0]
        capacity = {kind: amounts[number] for kind, amounts in platform.get("resources", {}).items()}
        name, features = (platform[what][number] if what in platform else None for what in ("names", "features"))
        node = Node(number, count, profile, capacity, name, tuple(features or ()))
        node.speed = platform.get("node_speed", {number: 1.0})[number]
        node.label, node.watts = "idle", gpus.idle_of(node)
        if start_off and profile.can_switch:
            node.power, node.idle_since = OFF, None
            node.label, node.watts = "off", Fraction(profile.off_w)
        nodes.append(node)
    return nodes


def make_jobs(
    jobs: list[dict[str, Any]], nodes: list[Node], oversized: str, partitions: Sequence[dict[str, Any]] = ()
) -> list[Job]:
    rows: list[Job] = []
    total = sum(node.cores for node in nodes)
    lanes = lanes_of(jobs, len(nodes), partitions)
    beside = any(is_alone(row, nodes, partitions) for row in jobs)
    for node in nodes if beside else ():
        node.capacity[ALONE] = ALL
    for number, row in enumerate(jobs):
        parts = parts_of(row, nodes, partitions, beside)
        job = Job(
            number,
            str(row["job_id"]),
            float(row["submit_s"]),
            float(row["runtime_s"]),
            float(row["walltime_s"]),
            int(row["cores"]),
            Fraction(row.get("load", 1.0)),
            user=row.get("user"),
            column_s=row.get("estimate_s"),
            lane=lane_of(row, lanes, partitions),
        )
        job.limited, job.speeds = row.get("limited", True), [node.speed for node in nodes]
        if not job.limited:  # nobody knows where it will lie
            job.walltime_s = max(job.walltime_s, lasts(job, job.speeds) / 10**6)
        possible = job.cores <= total
        if parts is not None:
            job.parts, job.most, job.demands, job.allowed = parts.cores, parts.most, parts.demands, parts.allowed
            possible = not parts.impossible and sum(could_hold(node, job) for node in nodes) >= len(parts.cores)
        if not possible:
            if oversized == "error":
                raise ValueError(f"job {job.job_id} can never fit")
            job.state = "REJECTED"
        rows.append(job)
    return rows


def intake(world: World, closed: list[tuple[int, dict[str, Any]]]) -> bool:
    """Take in every event of this instant, in the written order; was there any?"""
    took = False
    ending = [job for job in world.running if job.start is not None and job.start + job.length == world.now]
    for job in sorted(ending, key=world.queue_key):
        world.end(job)
        world.job_ended = took = True
    took = go_and_come_back(world, closed) or took
    for node in world.nodes:
        if node.switch_end == world.now:
            world.end_switch(node)
            took = True
    for job in sorted(world.given, key=lambda job: job.row):
        world.start_if_ready(job)
    while world.arrivals and world.arrivals[0].submit <= world.now:
        job = world.arrivals.pop(0)
        job.state = "waiting"
        world.arrive(job)
        world.queue.append(job)
        took = True
    if world.move_plans():
        took = True
    if any(job.plan is not None and world.clock_of(job.plan[0]) == world.now for job in world.queue):
        took = True
    if any(node.timer == world.now for node in world.nodes):
        took = True
    if world.hold_fraction is not None and any(
        world.patience_ends(job) == world.now > job.submit for job in world.queue
    ):
        took = True
    if world.guard is not None and any(job.submit + world.guard == world.now for job in world.queue):
        took = True
    return took or world.now in world.calls


def next_event(world: World, turns: list[int]) -> int | None:
    """The next instant at which anything is due. Planned starts, timers and holds lie strictly ahead; the rest may be
    due now."""
    due = [job.start + job.length for job in world.running if job.start is not None]
    due += [node.switch_end for node in world.nodes if node.switch_end is not None]
    due += [job.submit for job in world.arrivals[:1]]
    if world.planned and world.estimates[0] not in ("walltime", "runtime"):
        due += [world.clock_of(job.planned_end) for job in world.running]
    ahead = [world.clock_of(job.plan[0]) for job in world.queue if job.plan is not None]
    ahead += [node.timer for node in world.nodes if node.timer is not None]
    ahead += [*world.calls, *turns]
    if world.hold_fraction is not None:
        ahead += [world.patience_ends(job) for job in world.queue]
    if world.guard is not None:
        ahead += [job.submit + world.guard for job in world.queue]
    return min(due + [time for time in ahead if time > world.now], default=None)


def job_row(job: Job, world: World) -> dict[str, Any]:
    state = {"future": "QUEUED", "waiting": "QUEUED", "given": "QUEUED", "running": "RUNNING"}.get(job.state, job.state)
    started = job.start is not None
    return {
        "job_id": job.job_id,
        "submit_s": job.submit / 1e6,
        "start_s": job.start / 1e6 if job.start is not None else None,
        "finish_s": job.finish / 1e6 if job.finish is not None else None,
        "wait_s": (job.start - job.submit) / 1e6 if job.start is not None else None,
        "cores": job.cores,
        "walltime_s": job.walltime_s,
        "estimate_s": None if job.state in ("future", "REJECTED") else job.seen_s,
        "runtime_s": job.length / 1e6,
        "user": job.user,
        "lost_s": None if job.state == "REJECTED" else job.lost / 1e6,
        "state": state,
        "nodes": merged([number for number, _ in job.held]) if started else "",
        "place": list(job.held) if started else [],
    }
