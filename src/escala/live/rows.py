"""Rows of the kernel's tables: which job stands where, the order of the queue, and what is carried into the tables and
out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.filling import fill_orders, packing_keys
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.live.asked import Asked
from escala.live.carried import Carried
from escala.live.snapshot import Snapshot
from escala.live.tables import Tables
from escala.parts import Parts
from escala.platform.sharers import SHARERS

CLOCKS = ("clock_us", "due_us")  # of a linear score
SLACK = 512  # rows of jobs that are gone, beside as many as there are jobs, before the tables are tidied up
LAST = ("new_from", "head", "shadow_us", "shadow_fine")  # scalars that tell of the last decision


class Columns:
    """The columns of a snapshot's jobs as a table has them, each made when it is asked for."""

    def __init__(self, jobs: NDArray[Any], users: list[str]) -> None:
        self._made: dict[str, Callable[[], Any]] = {
            "job_id": lambda: [""] * len(jobs),
            "submit_s": lambda: jobs["submit"] / SECOND,
            "walltime_s": lambda: jobs["walltime"] / SECOND,
            "cores": lambda: jobs["cores"].copy(),
            "user": lambda: [None if user == codes.NONE else users[user] for user in jobs["user"].tolist()],
        }
        self.columns = list(self._made)

    def __getitem__(self, name: str) -> Any:
        import polars as pl

        return pl.Series(name, self._made[name]())

    @property
    def schema(self) -> dict[str, Any]:
        return {name: self[name].dtype for name in self.columns}


class Log:
    """The jobs of a snapshot as the linear scores look at a workload, by row."""

    name = "snapshot"

    def __init__(self, jobs: NDArray[Any], users: list[str]) -> None:
        self.jobs, self.user_ranks = Columns(jobs, users), jobs["user"].copy()

    def __len__(self) -> int:
        return len(self.user_ranks)


class Rows:
    """jobs: those of the snapshot at hand, JOBS, with rows, users and lengths. number: of rows. ended: rows of those
    that ran and have ended since the last, where somebody looks at the tables."""

    def __init__(self, asked: Asked, tables: Tables, carried: Carried) -> None:
        self._asked, self._tables, self._carried = asked, tables, carried
        self._told = asked.options.under(asked.plan)
        self.number, self._come = 0, False
        self.jobs: NDArray[Any] = np.zeros(0)
        self.ended: NDArray[np.int64] = np.zeros(0, np.int64)
        self._over: list[tuple[int, int, int, int]] = []  # row, walltime, user, runtime
        self.begin_anew()

    def begin_anew(self) -> None:
        """What is carried has been read."""
        self._user_of: dict[str | None, int] = {
            None: codes.NONE,
            **{name: k for k, name in enumerate(self._carried.users)},
        }

    def seat(self, snapshot: Snapshot, parts: Parts | None) -> None:
        """Give every job its row, and fill in all that is not read from the records. parts: what jobs are made of."""
        asked, jobs = self._asked, snapshot.jobs
        order = self._order(snapshot)
        if order is not None or asked.remembers or asked.knows_users:
            jobs = jobs.copy()
        if asked.remembers:
            self._stay(snapshot, jobs, order)
        else:
            self.number = len(jobs)
            if order is not None:
                jobs["row"][order] = np.arange(len(jobs))
        if asked.insiders:
            self._note_ended(snapshot)
        if asked.knows_users and snapshot.users.count(None) < len(jobs):
            jobs["user"] = self._users(snapshot)
        if asked.guesses:
            self._expect(snapshot, jobs)
        self.jobs, self._demand = jobs, snapshot.demand
        single = int(jobs["single"].max(initial=0)) if snapshot.survey.single else 0
        sets = 1 if parts is None else len(parts.sets)
        sharers = parts is not None and SHARERS in parts.demands
        self._tables.make_room(max(self.number, len(self._carried.users)), single, sets, sharers)
        self._tables.lay_out(parts, jobs["row"])
        self._bring_in(order is None and not asked.remembers)

    def _order(self, snapshot: Snapshot) -> NDArray[np.int64] | None:
        """The queue's order of the jobs; None where they stand in it."""
        submit = snapshot.jobs["submit"]
        if self._asked.options.rules == "batsched":
            return np.lexsort((np.array(snapshot.job_ids, dtype=str), submit)) if len(submit) else None
        return np.argsort(submit, kind="stable") if snapshot.survey.late else None

    def _stay(self, snapshot: Snapshot, jobs: NDArray[Any], order: NDArray[np.int64] | None) -> None:
        """Jobs keep their rows while they live; those who have come get the next ones."""
        carried = self._carried
        before, rows = carried.rows, dict[str, int]()
        known = [before.get(name, -1) for name in snapshot.job_ids]
        for k in range(len(known)) if order is None else order.tolist():
            if known[k] < 0:
                known[k] = carried.next_row
                carried.next_row += 1
            rows[snapshot.job_ids[k]] = known[k]
        carried.rows = rows
        jobs["row"] = known
        self.number = carried.next_row

    def _note_ended(self, snapshot: Snapshot) -> None:
        """The jobs that ran and are gone, which get rows behind the others unless they keep theirs; and whether any has
        come. One of whose end nobody tells ran from its start until now."""
        runs, now = self._carried.runs, snapshot.now_us
        told = {name: end - start for name, start, end in snapshot.ended}
        names = set(snapshot.job_ids)
        self._come = not names <= runs.keys()
        over = []
        for name in runs.keys() - names:
            row, walltime, start, user = runs[name]
            if name in told or start != codes.NONE:
                over.append((row, walltime, user, told.get(name, min(now - start, walltime))))
        self._over = sorted(over)
        if not self._asked.remembers:
            self._over = [(self.number + k, *rest) for k, (_, *rest) in enumerate(self._over)]  # type: ignore[misc]
            self.number += len(over)

    def _users(self, snapshot: Snapshot) -> list[int]:
        """Users by number, the same for good."""
        numbers, names = self._user_of, self._carried.users
        for name in dict.fromkeys(snapshot.users):
            if name is not None and name not in numbers:
                numbers[name] = len(names)
                names.append(name)
        return list(map(numbers.__getitem__, snapshot.users))

    def _expect(self, snapshot: Snapshot, jobs: NDArray[Any]) -> None:
        """Lengths that were found at submission; and the last runs of users, those that have ended since."""
        carried = self._carried
        for name, start, end in sorted(snapshot.ended, key=lambda one: one[2]):
            if name in carried.lengths and (user := carried.lengths[name][2]) != codes.NONE:
                last = carried.recent.setdefault(carried.users[user], [codes.NONE, codes.NONE])
                last[:] = [end - start, last[0]]
        none = [codes.NONE, codes.NONE]
        known = [carried.lengths.get(name, none) for name in snapshot.job_ids]
        jobs["estimate"] = [one[0] for one in known]
        jobs["order"] = [one[1] for one in known]

    def _bring_in(self, in_order: bool) -> None:
        """What is carried, and the orders of the queue. in_order: rows are the places of the jobs in the snapshot."""
        carried, world = self._carried, self._tables.simulation.world
        held = world.node[0]["held"]
        held[:] = 0
        if carried.held:
            held[carried.held] = 1
        if self._asked.sets_fraction:
            world.o[0, 0]["fraction"] = carried.fraction[0] if carried.fraction else self._asked.plan.fraction
        if self._asked.guesses:
            world.recent[0] = codes.NONE
            for name, last in carried.recent.items():
                world.recent[0, self._user_of[name]] = last
        if self._asked.own is not None and self._asked.own.score is not None:
            self._arrange(world, in_order)

    def _arrange(self, world: Any, in_order: bool) -> None:
        """The orders of the queue of a scheduler with a score."""
        asked, n = self._asked, self.number
        assert asked.own is not None
        jobs = self.jobs
        if not in_order or len(jobs) != n:
            by_row = np.zeros(n, jobs.dtype)
            by_row["walltime"], by_row["cores"], by_row["user"] = SECOND, 1, codes.NONE
            by_row[jobs["row"]] = jobs
            jobs = by_row
        log: Any = Log(jobs, self._carried.users) if asked.own.orders != (None, None) else None
        found = asked.own.arrange((jobs["submit"], jobs["walltime"], jobs["cores"]), log, self._told)
        if asked.plan.ordering in codes.PACKING and "keys" in found and (jobs["single"] > 0).any():
            kinds, resources = self._tables.simulation.kinds, int(world.o[0, 0]["n_kinds"])
            demand = np.zeros((n, len(kinds)), np.int64)
            for k, kind in enumerate(kinds):
                demand[self.jobs["row"], k] = self._demand.get(kind, 0)
            shape = world.shape[0, :n]
            found["keys"] = packing_keys(asked.plan.ordering, jobs["walltime"], jobs, shape, demand, resources)
        if asked.plan.by_user:
            world.job[0, :n]["user"] = jobs["user"]
        fill_orders(world, 0, asked.plan, slice(n), n, self._tables.simulation.platform.total_cores, **found)
        for k, kept in enumerate(self._carried.clocks):
            for name, value in zip(CLOCKS, kept, strict=False):
                world.terms[0, k][name] = value
            for user, bias in enumerate(kept[2]):
                world.user[0, user]["bias"][k] = bias

    def loaded(self, snapshot: Snapshot) -> None:
        """The tables are loaded: the head of easy-fast, and jobs that have ended, for those who look at the tables."""
        world, head = self._tables.simulation.world, self._carried.head
        self._head: tuple[int, int, int] | None = None
        if head and head[0] in snapshot.job_ids:
            k = snapshot.job_ids.index(head[0])
            if self.jobs["state"][k] == codes.QUEUED:
                self._head = int(self.jobs["row"][k]), head[1], head[2]
        if self._head is not None and self._asked.plan.queueing == codes.EASY_FAST:
            self._show_head(self._head)
        self.ended = np.array([one[0] for one in self._over], np.int64)
        if self._over:
            for name, column in zip(
                ("walltime", "user", "runtime"), list(zip(*self._over, strict=True))[1:], strict=True
            ):
                world.job[name][0, self.ended] = column

    def _show_head(self, head: tuple[int, int, int]) -> None:
        s = self._tables.simulation.world.s[0, 0]
        s["head"], s["shadow_us"], s["shadow_fine"] = head

    @contextmanager
    def looking_back(self, stop: int) -> Iterator[None]:
        """For the turn of a policy that looks at the tables before the scheduler does: the last decision's head, and
        which jobs have come since. The scheduler itself takes all anew."""
        if stop != codes.BEFORE or not self._asked.insiders:
            yield
            return
        simulation = self._tables.simulation
        s = simulation.world.s[0, 0]
        before = [int(s[name]) for name in LAST]
        s["new_from"] = 0 if self._come else self.number
        if self._head is not None:
            self._show_head(self._head)
        yield
        s = simulation.world.s[0, 0]  # tables may have grown
        for name, value in zip(LAST, before, strict=True):
            s[name] = value

    @property
    def numbers(self) -> NDArray[np.int64] | None:
        """By row, the numbers by which a View knows the jobs; None: the rows."""
        carried = self._carried
        if not self._asked.remembers or carried.dropped == 0:
            return None
        since = np.arange(len(carried.numbers), max(self.number, carried.next_row)) + carried.dropped
        return np.concatenate([np.array(carried.numbers, np.int64), since])

    def tidy(self) -> None:
        """After a decision: rows of jobs that are gone are given up, where there are many, and the others move
        together. That of the first job stays: policies count time from it."""
        asked, carried = self._asked, self._carried
        if not asked.remembers or carried.next_row <= 2 * len(carried.rows) + SLACK or not asked.tidied:
            return
        kept = np.array(sorted({0, *carried.rows.values()}), np.int64)
        numbers = self.numbers
        carried.numbers = (kept if numbers is None else numbers[kept]).tolist()
        carried.dropped += carried.next_row - len(kept)
        carried.next_row = len(kept)
        now = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        carried.rows = {name: now[row] for name, row in carried.rows.items()}
        carried.runs = {name: [now[row], *rest] for name, (row, *rest) in carried.runs.items()}
        for policy in asked.insiders:
            if getattr(policy, "remembers_rows", True):
                policy.renumber(kept)

    def keep(self, snapshot: Snapshot) -> None:
        """After a decision: what no snapshot will tell."""
        asked, carried, world = self._asked, self._carried, self._tables.simulation.world
        held = world.node[0]["held"]
        carried.held = np.flatnonzero(held).tolist() if world.s["n_held"].item(0) else []
        if asked.sets_fraction:
            carried.fraction = [float(world.o[0, 0]["fraction"])]
        if asked.insiders:
            kept = zip(*(self.jobs[name].tolist() for name in ("row", "walltime", "start", "user")), strict=True)
            carried.runs = dict(zip(snapshot.job_ids, map(list, kept), strict=True))
        if asked.plan.queueing == codes.EASY_FAST or asked.insiders:
            s = world.s[0, 0]
            head = int(s["head"])
            waits = head != codes.NONE and int(world.run[0, head]["state"]) == codes.QUEUED
            k = int(np.flatnonzero(self.jobs["row"] == head)[0]) if waits else 0
            carried.head = [snapshot.job_ids[k], int(s["shadow_us"]), int(s["shadow_fine"])] if waits else []
        if asked.guesses:
            rows = self.jobs["row"]
            kept = zip(
                world.job["walltime"][0, rows].tolist(),
                world.forecast["order"][0, rows].tolist(),
                self.jobs["user"].tolist(),
            )
            new = dict(zip(snapshot.job_ids, map(list, kept), strict=True))
            old = {name: carried.lengths[name] for name in snapshot.job_ids if name in carried.lengths}
            carried.lengths = new | old
        if any(terms is not None for terms in asked.plan.terms):
            users = len(carried.users)
            carried.clocks = [
                [
                    *(int(world.terms[0, k][name]) for name in CLOCKS),
                    world.user["bias"][0, :users, k].tolist() if world.user.size else [],
                ]
                for k in range(world.terms.shape[1])
            ]
