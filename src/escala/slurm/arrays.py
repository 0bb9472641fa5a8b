"""The arrays of one run: from what jobs ask and the settings to the tables of the compiled passes."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.admit import arrivals_us
from escala.errors import EscalaError, quoted
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.preempt import BY_TIER
from escala.kernel.slurm.shares import CLASSIC, TREE, UNKNOWN, weigh_first
from escala.kernel.slurm.start import DELAY_S
from escala.options import microseconds
from escala.platform.site import Site
from escala.scores import FIXED
from escala.slurm.asked import LATE_S, Asked
from escala.slurm.associations import shares_of
from escala.slurm.closed import closed_of
from escala.slurm.closed import names_of as reservations_of
from escala.slurm.columns import Columns, as_words
from escala.slurm.dependencies import dependencies, names_of, went_well
from escala.slurm.named import FCFS
from escala.slurm.preempting import preempting_of
from escala.slurm.settings import WEEK_S, Settings
from escala.slurm.tres import priority_of_resources
from escala.workload import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
BASIC = 4294901759  # of the first job under priority/basic, as Slurm counts
MOST_ROWS = 400_000_000
# jobs in reservations stand before all others (https://slurm.schedmd.com/priority_multifactor.html)
ABOVE_TIERS = 1 << 20


def arrays_of(workload: Workload, site: Site, settings: Settings, asked: Asked) -> t.World:
    """The arrays, with every refused job left out of the queue."""
    machine = _machine(site, settings, asked)
    free = t.Free(machine.cpus.copy(), machine.memory.copy(), machine.gpus.copy(), np.zeros(site.n_nodes, np.int64))
    future = t.Free(*(one.copy() for one in free))
    first, rows = _rows(site, asked)
    jobs = _jobs(workload, asked, first, site.node_speed is not None)
    records = _records(workload, site, settings, asked)
    qos = Columns(workload.jobs).texts("qos")
    rules = _rules(workload, settings, asked)
    users = int(asked.shape[:, t.USER].max(initial=0)) + 1
    shares = shares_of(workload, site, settings, machine.gpus.shape[1])
    lists = _lists(workload, asked, settings, int((jobs.follower[:, DELAY_S] > 0).sum()))
    world = t.World(
        machine,
        free,
        future,
        jobs,
        records,
        shares,
        _arrays(workload, jobs.array, len(site.partitions) * (len(reservations_of(site)) + 1)),
        names_of(workload, asked.refused),
        asked.bounded.limits(np.array([one[3] for one in asked.records], np.int64), site.n_nodes),
        closed_of(site, workload.origin_s),
        preempting_of(site, settings, records.part, [qos[j] for j in records.job], len(workload)),
        _allocated(rows, machine.gpus.shape[1]),
        lists,
        _counters(settings, rules),
        rules,
        _scratch(machine, lists, rules, users),
    )
    if rules.fair > 0:
        weigh_first(t.table_of(world))
        if rules.fair == CLASSIC:
            shares.factor[shares.user == 1] = UNKNOWN  # as slurmctld starts
    return world


def _machine(site: Site, settings: Settings, asked: Asked) -> t.Machine:
    assert site.weights is not None and site.threads is not None
    nodes = site.n_nodes
    parts = np.zeros((len(site.partitions), nodes), bool)
    for k, one in enumerate(site.partitions):
        parts[k, list(one.nodes)] = True
    kinds = [site.resources[f"gpu:{kind}"] for kind in site.gpu_kinds]
    every = site.resources.get("gpu", np.zeros(nodes, np.int64))
    rest = every - sum(kinds) if kinds else every
    columns = [*kinds, rest] if (rest > 0).any() or not kinds else kinds
    return t.Machine(
        cpus=np.array(site.cores, np.int64),
        memory=np.array(site.resources.get("memory", np.full(nodes, t.FAR)), np.int64),
        gpus=np.stack(columns, axis=1).astype(np.int64),
        weight=np.array(site.weights, np.int64),
        unit=np.array(site.threads if settings.by_core else np.ones(nodes, np.int64), np.int64),
        part=as_words(parts),
        everywhere=as_words(np.ones((1, nodes), bool))[0],
        mask=as_words(asked.masks),
        loaded=np.array([int(one.least_loaded) for one in site.partitions], np.int64),
        speed=np.zeros(0) if site.node_speed is None else site.node_speed.copy(),
    )


def _jobs(workload: Workload, asked: Asked, first: Ints, paced: bool) -> t.Jobs:
    """paced: nodes differ in speed, so that where a job lies decides how long it runs."""
    n = len(workload)
    well = went_well(workload, asked.killed, asked.cut)
    left, after, follower = dependencies(workload, well)
    if paced:
        well = went_well(workload, *np.zeros((2, n), bool))
    state = np.full(n, t.COMING, np.int64)
    state[list(asked.refused)] = t.NEVER
    submit = np.round(workload.jobs["submit_s"].to_numpy() * t.SECOND).astype(np.int64)
    return t.Jobs(
        submit=submit,
        run=asked.run_us,
        cut=asked.cut.astype(np.int64),
        whole=_whole(workload, asked) if paced else np.zeros((0, 4), np.int64),
        shape=np.ascontiguousarray(asked.shape),
        state=state,
        start=np.full(n, t.NONE, np.int64),
        finish=np.full(n, t.NONE, np.int64),
        end_s=np.zeros(n, np.int64),
        first=first,
        last=first.copy(),
        record=asked.record,
        by=np.zeros(n, np.int64),
        ran=np.full(n, t.NONE, np.int64),
        left=left + _late(workload.jobs),
        after=after,
        follower=follower,
        well=np.array(well, np.int64),
        eligible=submit.copy(),
        again=np.zeros(n, np.int64),
        lost=np.zeros(n, np.int64),
        array=Columns(workload.jobs).ranks("array_id"),
        inside=asked.inside.copy(),
        found=np.zeros((n, 2), np.int64),
    )


def _whole(workload: Workload, asked: Asked) -> Ints:
    """int64 [jobs, 4], see `escala.kernel.slurm.pace`."""
    jobs, most = workload.jobs, asked.most_us
    late = np.where(most < t.FAR, most + round(LATE_S * t.SECOND), t.FAR)
    done = (jobs["status"] == "COMPLETED").fill_null(False).to_numpy()
    fixed = (jobs["load"] == 0).to_numpy().astype(np.int64)
    return np.stack([asked.run_us, late, np.where(done, late + 1, most), fixed], axis=1)


def _arrays(workload: Workload, array: Ints, parts: int) -> t.Arrays:
    """The tables; EscalaError where tasks of one array have different limits."""
    many = int(array.max(initial=-1)) + 1
    told = Columns(workload.jobs).ints("array_limit", t.FAR)
    most = np.full(many, t.FAR, np.int64)
    inside = np.flatnonzero(array >= 0)
    most[array[inside[::-1]]] = told[inside[::-1]]  # of each the first
    odd = inside[most[array[inside]] != told[inside]]
    if len(odd):
        job, name = workload.jobs["job_id"][int(odd[0])], workload.jobs["array_id"][int(odd[0])]
        raise EscalaError(
            f"job {quoted(job)}: tasks of array {quoted(name)} have different array_limit: give all the same"
        )
    none = np.full(many, t.NONE, np.int64)
    return t.Arrays(
        most, np.zeros(many, np.int64), np.full((many, parts), t.NONE, np.int64), none, np.zeros(many, np.int64)
    )


def _records(workload: Workload, site: Site, settings: Settings, asked: Asked) -> t.Records:
    table = np.array(asked.records, np.int64).reshape(-1, 6)
    job, part = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
    rest, weight = priorities(workload, site, settings, asked, job, part)
    told = _ordered(workload, asked, settings.queue)[job]
    given = told >= 0
    rest = np.where(given[:, None], np.where(np.arange(5) == t.OF_SIZE, told[:, None], 0.0), rest)
    weight, fair = np.where(given, 0.0, weight), np.where(given, 0.0, settings.weight_fair)
    base = rest[:, : t.NICE].sum(axis=1) - rest[:, t.NICE]
    first = np.clip(base, 1, 4294967295).astype(np.int64)
    mask, _, inside, drawn = (np.ascontiguousarray(column) for column in table[:, 2:].T)
    several = np.where(given, 2, np.bincount(job[drawn == 0], minlength=len(workload))[job] > 1).astype(np.int64)
    tier, reserved = np.array([one.tier for one in site.partitions], np.int64)[part], inside != t.NONE
    rank = tier * 2 + reserved if settings.preempts == BY_TIER else reserved * ABOVE_TIERS + tier
    return t.Records(job, part, mask, inside, drawn, rank, np.ascontiguousarray(rest), several, weight, fair, first)


def _ordered(workload: Workload, asked: Asked, queue: str) -> Ints:
    """The priority that each job is given, below 0: none. queue: the order in which all stand, the first submitted
    first where it ties, or ""."""
    if not queue:
        return Columns(workload.jobs).ints("priority")
    n = len(workload)
    submit, shape = microseconds(workload.jobs["submit_s"].to_numpy()), asked.shape
    score = submit if queue == FCFS else FIXED[queue](submit, shape[:, t.LIMIT_S] * t.SECOND, shape[:, t.MIN_CORES])
    place = np.empty(n, np.int64)
    place[np.argsort(score, kind="stable")] = np.arange(n)
    return n - place


def priorities(
    workload: Workload, site: Site, settings: Settings, asked: Asked, job: Ints, part: Ints
) -> tuple[Floats, Floats]:
    """(what is added to the priority of each record without age, by its columns; weight of age): basic, falling with
    each job, or Slurm's multifactor."""
    told = Columns(workload.jobs)
    rest = np.zeros((len(job), 5))
    rest[:, t.NICE] = told.ints("nice", 0)[job]
    if not settings.multifactor:
        rest[:, t.OF_SIZE] = BASIC - job
        return rest, np.zeros(len(job))
    shape = asked.shape[job]
    rest[:, t.OF_SIZE] = settings.weight_size * _size(site, settings, shape)
    rest[:, t.OF_TRES] = priority_of_resources(site, settings, shape, part)
    factors = np.array([one.factor for one in site.partitions], float)
    most = factors.max() if settings.normal_partition else 1.0
    rest[:, t.OF_PARTITION] = factors[part] / max(most, 1.0) * settings.weight_partition
    if settings.weight_qos and site.qos:
        most = max(site.qos.values()) if settings.normal_qos else 1
        qos = np.array([site.qos.get(name or "normal", 0) for name in told.texts("qos")], float)
        rest[:, t.OF_QOS] = qos[job] / max(most, 1) * settings.weight_qos
    age = settings.weight_age if settings.accounting else 0
    return rest, np.full(len(job), float(age))


def _size(site: Site, settings: Settings, shape: Ints) -> Floats:
    """Slurm's factor of job size, 0..1: the mean of its shares of nodes and CPUs."""
    nodes, cpus, all_nodes, all_cpus = shape[:, t.MIN_NODES], shape[:, t.MIN_CORES], site.n_nodes, site.total_cores
    if settings.small_relative_to_time:
        found = np.maximum(nodes * all_cpus / all_nodes, cpus) / np.maximum(shape[:, t.LIMIT_S] // 60, 1) / all_cpus
        return np.clip(1 - found if settings.favor_small else found, 0, 1)
    if settings.favor_small:
        return np.clip((np.maximum(all_nodes - nodes, 0) / all_nodes + (all_cpus - cpus) / all_cpus) / 2, 0, 1)
    return np.clip((nodes / all_nodes + cpus / all_cpus) / 2, 0, 1)


def _rows(site: Site, asked: Asked) -> tuple[Ints, int]:
    """(the first row of each job in the table of what is given, rows)."""
    most = np.minimum(np.minimum(asked.shape[:, t.MAX_NODES], asked.shape[:, t.TASKS]), site.n_nodes)
    most = np.maximum(most, asked.shape[:, t.MIN_NODES])
    ends = np.cumsum(most)
    rows = int(ends[-1]) if len(ends) else 0
    if rows > MOST_ROWS:
        raise EscalaError(
            f"these jobs may take up to {rows:,} nodes together, at most {MOST_ROWS:,} are possible: take a part of "
            "the log"
        )
    return (ends - most).astype(np.int64), rows


def _allocated(rows: int, kinds: int) -> t.Allocated:
    node, cpus, memory = (np.zeros(rows, np.int64) for _ in range(3))
    return t.Allocated(node, cpus, memory, np.zeros((rows, kinds), np.int64))


def _lists(workload: Workload, asked: Asked, settings: Settings, delayed: int) -> t.Lists:
    """delayed: dependencies with minutes; of each its end may stand in the ring, and that it is forgotten before."""
    records, jobs = len(asked.records) + 1, len(asked.shape) + 1
    passes = np.round(np.array(settings.passes_s, float) * t.SECOND).astype(np.int64)
    running, heap_us, heap_job, freed = (np.zeros(jobs, np.int64) for _ in range(4))
    later_us, later_job = (np.zeros(jobs + 2 * delayed, np.int64) for _ in range(2))
    begin = arrivals_us(workload.jobs)
    late = np.flatnonzero(_late(workload.jobs))
    late = late[np.argsort(begin[late], kind="stable")]
    return t.Lists(
        np.zeros(records, np.int64), running, heap_us, heap_job, later_us, later_job, begin[late], late, freed, passes
    )


def _late(jobs: pl.DataFrame) -> NDArray[np.bool_]:
    """Which jobs may not begin when they are submitted?"""
    return arrivals_us(jobs) > microseconds(jobs["submit_s"].to_numpy())


def _rules(workload: Workload, settings: Settings, asked: Asked) -> t.Rules:
    calc = max(60, settings.calc_period)
    started, _, every = settings.phases(workload.origin_s)
    return t.Rules(
        epoch_us=round(workload.origin_s * t.SECOND),
        bf_interval=settings.bf_interval,
        bf_window=settings.bf_window,
        bf_resolution=settings.bf_resolution,
        bf_max_job_test=settings.bf_max_job_test,
        bf_node_space_size=max(settings.bf_node_space_size or settings.bf_max_job_test, 2),
        bf_max_job_user=settings.bf_max_job_user,
        bf_max_job_part=settings.bf_max_job_part,
        bf_max_job_user_part=settings.bf_max_job_user_part,
        bf_max_job_start=settings.bf_max_job_start,
        bf_array_reserve=settings.bf_max_job_array_resv,
        bf_part_reserve=settings.bf_job_part_count_reserve,
        bf_min_prio_reserve=settings.bf_min_prio_reserve,
        bf_min_age_reserve=settings.bf_min_age_reserve,
        bf_window_linear=settings.bf_window_linear,
        bf_busy_nodes=int(settings.bf_busy_nodes),
        **_time_of_passes(settings),
        backfill=int(settings.backfill),
        sched_interval=settings.sched_interval,
        batch_sched_delay=settings.batch_sched_delay,
        queue_depth=settings.default_queue_depth,
        partition_depth=settings.partition_job_depth,
        sched_max_job_start=settings.sched_max_job_start,
        serial_at_end=int(settings.pack_serial_at_end),
        least_loaded=int(settings.least_loaded),
        by_memory=int(settings.memory),
        linear=int(settings.whole_nodes),
        by_priority=int(settings.multifactor),
        weight_size=float(settings.weight_size),
        favor_small=int(settings.favor_small),
        by_time=int(settings.small_relative_to_time),
        calc_us=calc * t.SECOND,
        max_age=settings.max_age,
        tick_us=round(every * t.SECOND),
        drift_us=round(settings.drift_s * t.SECOND),
        kill_wait=settings.kill_wait,
        over_time=settings.over_time,
        min_job_age=settings.min_job_age,
        over_reservation=settings.over_reservation,
        started_us=round(started * t.SECOND),
        fair=0 if not settings.fair_share else TREE if settings.fair_tree else CLASSIC,
        decay=1 - 0.693 / settings.half_life if settings.half_life else 1.0,
        dampening=float(settings.dampening),
        reset_s=settings.reset_every,
        at_ends=int(settings.limits),
        limited=int(asked.bounded.any),
        limit_stop=int(settings.assoc_limit_stop),
        again_us=(settings.requeue_delay + 1) * t.SECOND,
        always_ages=int(settings.accrue_always),
        preempt=settings.preempts,
        youngest=int(settings.youngest_first),
        reorder=settings.reorder_count,
        strict=int(settings.strict_order),
        min_exempt_priority=settings.min_exempt_priority,
        retry_s=settings.kill_wait + settings.message_timeout,
    )


def _time_of_passes(settings: Settings) -> dict[str, int]:
    return {
        "bf_test_us": round(settings.bf_test_s * t.SECOND),
        "bf_max_time": settings.bf_max_time or settings.bf_interval,
        "bf_yield_us": settings.bf_yield_interval,
        "bf_sleep_us": settings.bf_yield_sleep,
        "bf_continue": int(settings.bf_continue),
    }


def _counters(settings: Settings, rules: t.Rules) -> Ints:
    """The counters as slurmctld starts."""
    s = np.zeros(t.COUNTERS, np.int64)
    started = rules.started_us
    s[t.NOW] = started
    every = rules.tick_us
    _, tick, _ = settings.phases(rules.epoch_us / t.SECOND)
    s[t.TICK] = started + (round(tick * t.SECOND) - started) % every
    first = started + rules.bf_interval * t.SECOND if settings.phase_s is None else round(settings.phase_s * t.SECOND)
    s[t.PASS] = round(settings.passes_s[0] * t.SECOND) if settings.passes_s else first
    s[[t.BEAT, t.PURGE]] = s[t.TICK] - every
    s[[t.BEAT_S, t.PURGE_S]] = (started + rules.epoch_us) // t.SECOND
    s[t.CALC] = started + rules.calc_us
    s[[t.LAST_EVENT, t.LAST_FULL]] = (started + rules.epoch_us) // t.SECOND
    s[t.LAST_PASS] = (min(started, first - rules.bf_interval * t.SECOND) + rules.epoch_us) // t.SECOND
    s[t.LAST_UPDATE] = s[t.LAST_PASS]
    s[t.CHARGED] = (started + rules.epoch_us) // t.SECOND
    if rules.reset_s > 0:  # from midnight, weeks from Sunday; the first second of unix time was on a Thursday
        first_s = 3 * 86400 if rules.reset_s == WEEK_S else 0
        s[t.RESET] = s[t.CHARGED] + (first_s - s[t.CHARGED] - 1) % rules.reset_s + 1
    return s


def _scratch(machine: t.Machine, lists: t.Lists, rules: t.Rules, users: int) -> t.Scratch:
    nodes, words = machine.cpus.size, machine.part.shape[1]
    plan, parts = rules.bf_node_space_size + 4, machine.part.shape[0]
    both = (users, parts) if rules.bf_max_job_user_part > 0 else (1, 1)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return t.Scratch(
        base=ints(nodes),
        extra=ints(nodes),
        spare=ints(nodes),
        busy=ints(nodes),
        cpus=ints(nodes),
        key=ints(nodes),
        more=ints(nodes),
        taken=ints(nodes),
        runs=ints(nodes + 2, 6),
        node=ints(nodes),
        given=ints(nodes),
        tasks=ints(max(nodes, int(machine.cpus.max())) + 2),
        used=ints(words),
        inner=ints(words),
        wanted=ints(words),
        there=ints(words),
        begin=ints(plan),
        end=ints(plan),
        after=ints(plan),
        space=ints(plan, words),
        running=np.zeros_like(lists.running),
        waiting=np.zeros_like(lists.queue),
        users=ints(users),
        parts=ints(parts, 3),
        both=ints(*both),
    )
