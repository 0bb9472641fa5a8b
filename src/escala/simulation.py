"""`Simulation`: where a workload, a platform and options meet and become the arrays of the kernel."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.admit import admit_jobs, met, refuse_work, whole_of
from escala.closing import closing_of
from escala.errors import EscalaError
from escala.estimates import RUNTIME, WALLTIME, lengths_us
from escala.filling import endless_us, fill_lanes, fill_orders, fill_widths, power_rules
from escala.job_table import job_table
from escala.kernel import calls, codes
from escala.kernel.allocate import Sizes, allocate
from escala.kernel.clock import SECOND
from escala.kernel.drive import DRIVERS, SINGLE
from escala.kernel.state import World
from escala.kernel.world import table_of
from escala.naming import Named, named_in
from escala.options import Options, Plan, microseconds
from escala.partitions import pooled
from escala.parts import most_single
from escala.platform import Platform
from escala.platform.sharers import SHARERS, amounts_of
from escala.predictors import Predictors, by_model
from escala.result import FORMAT, Result
from escala.shown import Shown
from escala.tables import NodeHistory, chunks_of, node_texts, switches_of, totals_of
from escala.unchanged import check_unchanged
from escala.unseen import one_pool, unseen_in, warn
from escala.workload import Workload

CHUNKS_PER_JOB = 8  # room for recorded allocations to begin with, where there are so many nodes; it grows
MOST_UNITS = 2**31 - 1  # of a further resource kind on a node
INSTANTS_PER_JOB = 64  # guard: a run needs a few instants a job, its switches and its timers


class Simulation:
    """A batch of simulations on one platform: workloads + plan + options -> arrays; advance, command, result.

    workloads: one, or one for each simulation. The kernel's tables are `world`, see `escala.kernel.state`. partitions:
    False: a site is one pool. closes: of one workload, nodes go and come back as the site says (`closing`). numbers:
    by row, that by which a View and Commands know a job; None: the row itself.
    names, views: by simulation, what `named` and `shown` give, made when it is asked for."""

    def __init__(
        self,
        workloads: Workload | Sequence[Workload],
        platform: Platform,
        plan: Plan | Sequence[Plan],
        options: Options | None = None,
        partitions: bool = True,
        closes: bool = False,
    ) -> None:
        self.workloads = [workloads] if isinstance(workloads, Workload) else list(workloads)
        self.platform, self.options = platform, options or Options()
        self.numbers: NDArray[np.int64] | None = None
        self.names: dict[int, Sequence[Named] | Mapping[int, Named] | None] = {}
        self.views: dict[int, Shown] = {}
        plans = [plan] * len(self.workloads) if isinstance(plan, Plan) else list(plan)
        self.workloads = [met(w, platform) for w in self.workloads]
        for w in self.workloads:
            refuse_work(w, platform)
        self.told = [self.options.under(one) for one in plans]
        at, pool = (platform, {}) if partitions else (pooled(platform), one_pool(platform))
        self.admitted = [admit_jobs(w, at, told) for w, told in zip(self.workloads, self.told, strict=True)]
        self.unseen = [unseen_in(w.jobs, at, c.parts, closes) | pool for w, c in zip(self.workloads, self.admitted)]
        """By simulation, the columns by which its jobs ask for more than it looks at, and why."""
        warn(self.unseen)
        self.closing = closing_of(self) if closes else None
        self.world = self._allocate(plans)
        self.table = table_of(self.world)
        for i in range(len(self.workloads)):
            self._fill(i, plans[i])
            calls.prepare(self.table, i, self.options.start_off)
        self.drivers = [(DRIVERS if self.plain else DRIVERS | SINGLE)[plan.queueing] for plan in plans]
        self.alone = [not _asks(plan) and codes.ASKED not in told.ways for plan, told in zip(plans, self.told)]
        """By simulation, does the kernel work alone? Then nobody can have changed its jobs."""
        self.predictors = Predictors(self)
        if self.closing is not None:
            self.closing.begin()

    def __len__(self) -> int:
        return len(self.workloads)

    @cached_property
    def kinds(self) -> list[str]:
        """Kinds beyond cores that some workload demands: resources of the platform, and at last SHARERS."""
        wanted = {k for one in self.admitted if one.parts is not None for k in one.parts.demands}
        return [k for k in amounts_of(self.platform) if k in wanted]

    def _allocate(self, plans: Sequence[Plan]) -> World:
        p, kinds, differ = self.platform, self.kinds, self.platform.node_speed is not None
        jobs = max((len(c.rows) for c in self.admitted), default=0)
        for kind in kinds:
            if amounts_of(p)[kind].max() > MOST_UNITS:
                raise EscalaError(
                    f"platform {p.name!r} has {amounts_of(p)[kind].max()} of {kind!r} on a node; at most {MOST_UNITS} "
                    "are possible: count it in larger units, and what jobs demand of it too"
                )
        # else nobody knows which node's GPUs a job had
        self.recorded = self.options.record or self.closing is not None or bool(p.drawn.more_w.keys() & set(kinds))
        single = most_single(one.parts for one in self.admitted)
        self.plain = single == 0 and not kinds
        queueings = {plan.queueing for plan in plans}
        searched = bool(queueings & (codes.PASSING | {codes.GREEDY, codes.STRICT}))
        self._groups = [
            one.parts.groups(one.rows, kinds) if one.parts is not None and searched and not self.plain else None
            for one in self.admitted
        ]
        conservative = codes.CONSERVATIVE in queueings
        ordered = any(plan.queueing == codes.CONSERVATIVE and plan.ordering != codes.BY_QUEUE for plan in plans)
        if ordered and self.options.depth is not None and not self.options.rebuild:
            raise EscalaError(
                f"option depth={self.options.depth} (--depth): conservative backfilling in another order than that of "
                "submission gives reservations to the first jobs only where all are planned anew: give rebuild=True "
                "(--rebuild) too"
            )
        sizes = Sizes(
            *(jobs, p.n_nodes, p.total_cores, len(kinds), len(p.drawn.profiles)),
            ranks=max((jobs * (1 + plan.has_front) for plan in plans if plan.keys is not None), default=0),
            searched=searched,
            passed=bool(queueings & codes.PASSING),
            planned=bool(queueings & (codes.PASSING | {codes.CONSERVATIVE, codes.EXTERNAL})),
            agenda=conservative,
            multi=not self.plain,
            groups=max((len(one[1]) for one in self._groups if one is not None), default=0),
            shaped=single > 1,
            lanes=max((one.parted.lanes.n for one in self.admitted if one.parted is not None), default=0),
            allowed=max((len(one.parts.sets) for one in self.admitted if one.parts is not None), default=0),
            chunks=min(CHUNKS_PER_JOB, p.n_nodes) * jobs if self.recorded else 0,
            orders=max((plan.orders for plan in plans), default=0),
            numbered=any(plan.numbered for plan in plans),
            linear=any(terms is not None for plan in plans for terms in plan.terms),
            counted=self._counted(plans),
            walked=ordered,
            forecast=any(told.forecasts or (differ and told.estimate == RUNTIME) for told in self.told),
            users=self._users(),
            steps=len(self.options.corrections_s),
            past=any(codes.ASKED in told.ways for told in self.told),
            paced=differ,
        )
        return allocate(len(self.workloads), sizes)

    def _counted(self, plans: Sequence[Plan]) -> int:
        """Users whose waiting jobs and cores are counted."""
        asking = [w for w, plan, told in zip(self.workloads, plans, self.told) if plan.by_user or by_model(told)]
        return max((int(w.user_ranks.max(initial=-1)) + 1 for w in asking), default=0)

    def _users(self) -> int:
        """Users whose last runs are remembered."""
        by_users = any(codes.LAST2 in told.ways for told in self.told)
        return 1 + max((int(w.user_ranks.max(initial=0)) for w in self.workloads), default=0) if by_users else 0

    def _fill(self, i: int, plan: Plan) -> None:
        self._fill_options(i, plan)
        self._fill_jobs(i, plan)
        w, p = self.world, self.platform
        w.node["cores"][i], w.node["profile"][i] = p.cores, p.drawn.profile_of
        for k, kind in enumerate(self.kinds):
            w.room[i, :, k] = amounts_of(p)[kind]
        if p.node_speed is not None:
            w.speed[i] = p.node_speed
            w.whole[i, : len(self.admitted[i].rows)] = whole_of(self.workloads[i].jobs, self.admitted[i].rows)
        for k, profile in enumerate(p.drawn.profiles):
            switches = microseconds(profile.switch_on_s), microseconds(profile.switch_off_s)
            w.profile[i, k] = (*switches, profile.can_switch, endless_us(profile.break_even_s))

    def _fill_options(self, i: int, plan: Plan) -> None:
        opts, told, o, n_jobs = self.options, self.told[i], self.world.o[i, 0], len(self.admitted[i].rows)
        strict = plan.queueing == codes.STRICT
        can_switch = any(self.platform.profiles[k].can_switch for k in set(self.platform.profile_of.tolist()))
        asked = _asks(plan)  # `run` counts decisions
        switching = can_switch and (plan.shutdown != codes.NEVER or opts.start_off or plan.queueing == codes.EXTERNAL)
        # a pool has no ids
        by_count = opts.head == "latest-released" or plan.queueing == codes.EASY_FAST or self.platform.n_nodes == 1
        values = {
            "n_jobs": n_jobs,
            "n_ranks": n_jobs * (1 + plan.has_front),
            "n_nodes": self.platform.n_nodes,
            "n_cores": self.platform.total_cores,
            "n_kinds": len(self.kinds) - (SHARERS in self.kinds),
            "unit": int(self.platform.cores.max()) == 1,
            "queueing": plan.queueing,
            "ordering": plan.ordering,
            "passing": plan.passing,
            **{name.removesuffix("_s") + "_us": endless_us(seconds) for name, seconds in plan.spans.items()},
            "head": codes.LATEST_RELEASED if by_count else codes.LOWEST_ID,
            "depth": opts.depth if opts.depth is not None else 1 << 60,
            "rebuild": opts.rebuild,
            **power_rules(plan),
            "exact": opts.rules == "batsched",
            "margin_us": int(microseconds(opts.margin_s)),
            "start_us": int(microseconds(opts.start_s)),
            "until_us": int(microseconds(opts.until_s)) if opts.until_s is not None else codes.NEVER_US,
            "limited": opts.until_s is not None,
            "record": self.recorded,
            "max_instants": 1_000_000
            + (INSTANTS_PER_JOB + len(opts.corrections_s)) * (n_jobs + 1) * (1_000_000 if asked else 4),
            "pause_before": plan.pause_before,
            "plain": self.plain,
            "given": switching and not strict,
            "period_us": int(microseconds(plan.period_s)),
            "estimate": told.ways[0],
            "order_estimate": told.ways[1],
            "key": plan.key[0],
            "passing_key": plan.key[1],
            "moves": told.moves,
        }
        for name, value in values.items():
            o[name] = value

    def _fill_jobs(self, i: int, plan: Plan) -> None:
        admitted, w = self.admitted[i], self.world
        jobs, n = self.workloads[i].jobs, len(admitted.rows)
        job = w.job[i, :n]
        job["submit"], job["runtime"] = admitted.submit_us, admitted.runtime_us
        job["walltime"], job["killed"] = admitted.walltime_us, admitted.killed
        # From here on the kernel's copy is the only one: 24 MB less for a million jobs.
        self.admitted[i] = replace(
            admitted, submit_us=job["submit"], runtime_us=job["runtime"], walltime_us=job["walltime"]
        )
        job["cores"] = jobs["cores"].to_numpy()[admitted.rows]
        job["load"] = jobs["load"].to_numpy()[admitted.rows]
        job["user"] = self.workloads[i].user_ranks[admitted.rows]
        w.steps[i] = microseconds(self.options.corrections_s)
        if w.forecast.shape[1] > 0:
            told = self.told[i]
            w.forecast[i, :n]["limit"] = (
                admitted.walltime_us if told.estimate == RUNTIME else lengths_us(WALLTIME, jobs)[admitted.rows]
            )
            w.forecast[i, :n]["order"] = lengths_us(told.ordered_by, jobs)[admitted.rows]
        fill_lanes(w, i, admitted.parted, admitted.rows)
        if admitted.parts is not None:
            admitted.parts.fill(w, i, admitted.rows, self.kinds)
        sizes, groups = job["cores"], self._groups[i]
        if admitted.parts is not None and groups is not None:
            w.member[i, :n], w.group[i, : len(groups[1])] = groups
            sizes = admitted.parts.sizes[admitted.rows]
        fill_widths(w.o[i, 0], plan, sizes)
        fill_orders(w, i, plan, admitted.rows, n, self.platform.total_cores)

    def advance(self, i: int = 0, until_s: float | None = None) -> int:
        """Run simulation i until it stops, or (NONE) all up to `until_s` has happened; a code of `kernel.codes`."""
        until = codes.NEVER_US if until_s is None else int(microseconds(until_s))
        while True:
            at = until if self.closing is None else min(until, self.closing.before_us)
            stop = int(self.drivers[i](self.table, i, at))
            if stop == codes.ESTIMATE:
                self.predictors.ask(i)
            elif stop == codes.GROW:
                self.grow(i)
            elif stop == codes.NONE and at < until and self.closing is not None:
                self.closing.turn()
            else:
                break
        if stop == codes.GUARD:
            raise EscalaError(
                f"workload {self.workloads[i].name!r}: the simulation makes no progress "
                "(policies keep asking for decisions): check the policy"
            )
        return stop

    def grow(self, i: int) -> None:
        """Double the table that is full in simulation i."""
        full = {
            codes.GROW_CHUNKS: (("chunk", 1),),
            codes.GROW_LOG: (("log", 1),),
            codes.GROW_TIMERS: (("heaps", 2),),
            codes.GROW_AGENDA: (("slices", 2), ("spare", 1), ("agenda", 1), ("runs", 2), ("lows", 1)),
        }[int(self.world.s[i, 0]["grow"])]
        changes = {}
        for name, axis in full:
            array = getattr(self.world, name)
            shape = list(array.shape)
            shape[axis] *= 2
            larger = np.zeros(shape, array.dtype)  # zeroed pages cost nothing until they are used
            larger[tuple(slice(0, n) for n in array.shape)] = array
            changes[name] = larger
        self.world = self.world._replace(**changes)
        self.table = table_of(self.world)

    def forget(self) -> None:
        """Nothing more will be simulated. Whoever knows the simulation is let go: in a circle its tables would stay in
        memory until Python looks for circles, which large arrays do not make it do."""
        self.predictors.forget()
        del self.predictors, self.closing

    def command(self, i: int, kind: int, a: int = 0, b: int = 0) -> int:
        """One command (kinds of `escala.kernel.calls`) to simulation i; a refusal code, 0 if it was carried out."""
        if kind == calls.TIMER:
            self.make_room(i, 1)
        return int(calls.command(self.table, i, kind, a, b))

    def named(self, i: int) -> Sequence[Named] | Mapping[int, Named] | None:
        """By row, what the log of simulation i says of jobs by name; None: nothing."""
        if i not in self.names:
            self.names[i] = named_in(self.workloads[i].jobs, self.admitted[i].rows)
        return self.names[i]

    def shown(self, i: int) -> Shown:
        """By which numbers Views of simulation i name kinds, users and sets of nodes."""
        if i not in self.views:
            self.views[i] = Shown(self.platform, self.kinds).in_order(self.world, i)
        return self.views[i]

    def make_room(self, i: int, timers: int) -> None:
        """Room for so many more timers in simulation i."""
        while int(self.world.s[i, 0]["n_timers"]) + timers > self.world.heaps.shape[2]:
            self.world.s[i, 0]["grow"] = codes.GROW_TIMERS
            self.grow(i)

    def result(self, i: int = 0, manifest: dict[str, Any] | None = None) -> Result:
        """The tables of simulation i, as it stands. EscalaError where somebody has changed its jobs."""
        if not self.alone[i]:
            check_unchanged(self, i)
        log, rows, window = self.workloads[i], self.admitted[i].rows, self._window(i)
        past = self._history(i, window)
        about = {
            "format": FORMAT,
            "escala": _version(),
            "workload": {"name": log.name, "source": log.source, "jobs": len(log), "cleaning": log.cleaning}
            | {"ignored": log.ignored, "read_as": log.read_as, "origin_s": log.origin_s}
            | {"sha256": log.digest()},
            "platform": self.platform.spec(),
            "n_nodes": self.platform.n_nodes,
            "n_cores": self.platform.total_cores,
            "options": self.options.told(),
            "window": {"start_s": window[0] / SECOND, "end_s": window[1] / SECOND},
            **({"unseen": self.unseen[i]} if self.unseen[i] else {}),
            **(manifest or {}),
        }
        totals = totals_of(self.world, i, self.platform, window, past.gpus_j())
        mine = past.chunks[:, past.chunks[0] < len(rows)]  # behind these, of runs that count for nothing
        return Result(job_table(self, i, node_texts(mine, len(rows))), totals, about, past.tables())

    def _history(self, i: int, window: tuple[int, int]) -> NodeHistory:
        """What the nodes of simulation i did."""
        if self.closing is not None:
            return self.closing.history(window)
        w, rows = self.world, self.admitted[i].rows
        run, job = w.run[i, : len(rows)], w.job[i, : len(rows)]
        did = run["start"].copy(), job["runtime"].copy(), job["load"].copy(), switches_of(w, i).copy()
        of = self.platform, self.workloads[i].jobs["job_id"], rows, window, chunks_of(self.table, i)
        parts, more = self.admitted[i].parts, self.platform.drawn.more_w
        gpus = {} if parts is None else parts.held_on_nodes(more, rows[of[-1][0]], of[-1][3])
        return NodeHistory(*of, *did, self.options.start_off, gpus)

    def _window(self, i: int) -> tuple[int, int]:
        """Where node-time is measured, us: first arrival to last finish, or start to limit."""
        if self.options.until_s is not None:
            return int(microseconds(self.options.start_s)), int(self.world.s[i, 0]["now"])
        submits = self.admitted[i].submit_us
        return (
            (int(submits[0]), max(int(self.world.s[i, 0]["last_finish"]), int(submits[0]))) if len(submits) else (0, 0)
        )


def _asks(plan: Plan) -> bool:
    """Does a plan ask for decisions outside of the kernel?"""
    return plan.period_s > 0 or plan.queueing == codes.EXTERNAL or plan.shutdown == codes.POWER_EXTERNAL


@functools.cache
def _version() -> str:
    return version("escala")
