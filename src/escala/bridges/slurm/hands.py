"""The modes in which something is done: advise (say the commands), order (nices), power (nodes, by leases), full
(both)."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from escala.bridges.slurm import leases
from escala.bridges.slurm.actor import Actor
from escala.bridges.slurm.alone import Presence, others
from escala.bridges.slurm.guard import NICE, RENEW, Allowed, Guard, Wanted
from escala.bridges.slurm.ranks import nices, wished
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import ON, Layout, power_of, waits
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot

ADVISE, ORDER, POWER, FULL = "advise", "order", "power", "full"
MODES = (ADVISE, ORDER, POWER, FULL)
UNMARKED = "unmarked"
SOON_S = 2.0
MOST_ERRORS = 2


class Steering:
    """Does what the guard lets through. presence: says that it acts. pretends: nodes are switched in the policy's eyes
    only."""

    def __init__(self, mode: str, at: Layout, guard: Guard, actor: Actor, presence: Presence | None = None) -> None:
        self.mode, self._at, self._guard, self._actor, self._presence = mode, at, guard, actor, presence
        self.pretends = mode in (ADVISE, ORDER)
        self._soon: float | None = None

    def begin(self, look: Callable[[], Seen]) -> None:
        """Before anything is done; EscalaError where somebody else acts."""
        if self._presence is not None:
            self._presence.take(look())

    def end(self) -> None:
        """Nothing more is done."""
        if self._presence is not None:
            self._presence.leave()

    def aside(self, now_s: float) -> Set[str]:
        """Nodes that did not boot, which the policy shall not count on."""
        return set() if self.pretends else self._guard.aside(now_s)

    def act(
        self, seen: Seen, orders: Orders, desk: Desk, asked: Snapshot, decided_s: float, unsure: Set[str]
    ) -> dict[str, Any]:
        """What was done, refused, and is held now; for the journal."""
        guard, names = self._guard, self._at.names
        begun = guard.monotonic()

        def age_s() -> float:
            return decided_s + guard.monotonic() - begun

        self._keep()
        if self.mode != ADVISE:
            self._actor.changes.keep(seen)
        guard.look(seen)
        if not self.pretends:
            guard.wish(
                seen,
                {
                    one.job_id: [names[k] for low, high, _ in one.nodes for k in range(low, high + 1)]
                    for one in orders.starts
                },
            )
        kept = leases.held(seen, guard.owns)
        found: dict[str, Any] = (
            {"leases": sorted(kept), "aside": sorted(self.aside(seen.now_s))} if not self.pretends else {}
        )
        why = guard.blocked(seen, decided_s, age_s())
        if not why and self.mode != ADVISE:
            why = self._kept_out(seen)
        if why:
            if why != UNMARKED:
                guard.good()
            self._soon = None
            return found | {"refused": [["all", "", why]]}
        wanted, later = self._wanted(seen, orders, desk, asked)
        allowed, refused = guard.sort(seen, wanted, unsure, self.mode != ADVISE)
        refused += later
        if self.mode == ADVISE:
            guard.good()
            return found | {"advice": [line for one in allowed for line in self._actor.shown(one)], "refused": refused}
        done = self._carry_out(allowed, seen, age_s)
        moving = not self.pretends and any(power_of(seen.nodes[name]) != ON for name in kept if name in seen.nodes)
        self._soon = SOON_S if guard.memory.woken_at or (moving and done["acted"]) else None
        return found | done | {"refused": [*refused, *done["refused"]]}

    def _kept_out(self, seen: Seen) -> str:
        """Why nothing may be done: somebody else acts here, or it cannot be said that we do."""
        if others(seen, self._at, self._guard.owns):
            return "others"
        try:
            return "" if self._presence is None or self._presence.keep(seen) else "others"
        except EscalaError:
            self._guard.failed()
            return UNMARKED

    def _keep(self) -> None:
        """From the first look on there is a record of what was done, be it empty."""
        if self.mode != ADVISE:
            self._actor.changes.begin()

    def _carry_out(self, allowed: list[Allowed], seen: Seen, age_s: Callable[[], float]) -> dict[str, list[list[Any]]]:
        """One after the other: what was done, whose nices were changed, and what was left since what was seen became
        too old meanwhile, or commands failed."""
        guard, errors = self._guard, 0
        acted: list[list[Any]] = []
        changed: list[list[Any]] = []
        left: list[list[Any]] = []
        for one in allowed:
            wanted, why = one.wanted, "errors"
            done, whole = list[list[Any]](), False
            if errors < MOST_ERRORS:
                why = "stale"
                done, whole = self._actor.act(one, seen, age_s, lambda age: guard.stale(seen, age))
            errors += sum(not good for _, good in done)
            acted += done
            if not whole:
                guard.forget(wanted, seen.now_s)
                left.append([wanted.kind, wanted.name, why])
            elif wanted.kind == NICE and done[-1][1]:
                changed.append([wanted.name, seen.jobs[wanted.name].nice, wanted.value])
        if not errors:
            guard.good()
        return {"acted": acted, "changed": changed, "refused": left}

    def _wanted(self, seen: Seen, orders: Orders, desk: Desk, asked: Snapshot) -> tuple[list[Wanted], list[list[str]]]:
        """Leases that run out first. Order before power: a node is anybody's once it is awake, so that the job that it
        is woken for has to be first by then. Also what is not asked for yet: the first jobs come first whole, so that
        no two get the same priority."""
        out: list[Wanted] = []
        later: list[str] = []
        names, guard = self._at.names, self._guard
        if self.mode in (ADVISE, ORDER, FULL):
            waiting = sum(waits(job, self._at) for job in seen.jobs.values())
            fixed = self._actor.changes.set_since(seen)
            wish = wished(desk, asked, orders, waiting)
            out, later = nices(seen, self._at, wish, guard.late(), fixed, guard.changes_left())
        if self.mode in (ADVISE, POWER, FULL) and self._at.switches:
            wakes, offs = [names[k] for k in orders.wakes], [names[k] for k in orders.offs]
            out += leases.wanted(seen, self._at, guard, wakes, offs)
        return sorted(out, key=lambda one: one.kind != RENEW), [[NICE, name, "rate"] for name in later]

    def failed(self, why: str) -> None:
        """A look failed."""
        self._keep()
        self._guard.failed()

    def told(self) -> Any:
        """As plain data for JSON."""
        return {"mode": self.mode, "guard": self._guard.told()}

    def restore(self, told: Any) -> None:
        """Go on from what `told` gave."""
        if not isinstance(told, dict) or "guard" not in told:
            raise EscalaError("what the guards remember is not told: begin without the state")
        self._guard.restore(told["guard"])

    def soon_s(self) -> float | None:
        """When to look again, where a node is on its way."""
        return self._soon
