"""The modes in which something is done: advise (say the commands), order (nices), power (nodes, by leases), full (both)."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import Any

from escala.bridges.slurm import leases
from escala.bridges.slurm.actor import Actor
from escala.bridges.slurm.guard import NICE, Guard, Wanted
from escala.bridges.slurm.ranks import nices, wished
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import ON, Layout, power_of, waits
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot

ADVISE, ORDER, POWER, FULL = "advise", "order", "power", "full"
MODES = (ADVISE, ORDER, POWER, FULL)
SOON_S = 2.0
MOST_ERRORS = 2


class Steering:
    """Does what the guard lets through. pretends: nodes are switched in the policy's eyes only."""

    def __init__(self, mode: str, at: Layout, guard: Guard, actor: Actor) -> None:
        self.mode, self._at, self._guard, self._actor = mode, at, guard, actor
        self.pretends = mode in (ADVISE, ORDER)
        self._soon: float | None = None

    def aside(self, now_s: float) -> Set[str]:
        """Nodes that did not boot, which the policy shall not count on."""
        return set() if self.pretends else self._guard.aside(now_s)

    def act(self, seen: Seen, orders: Orders, desk: Desk, asked: Snapshot, decided_s: float, unsure: Set[str]) -> dict[str, Any]:
        """What was done, refused, and is held now; for the journal."""
        begun = time.monotonic()
        guard = self._guard
        guard.look(seen)
        kept = leases.held(seen, guard.owns)
        found: dict[str, Any] = {"leases": sorted(kept)} if not self.pretends else {}
        why = guard.blocked(seen, decided_s, time.monotonic() - begun)
        if why:
            guard.good()
            self._soon = None
            return found | {"refused": [["all", "", why]]}
        if self.mode != ADVISE:
            self._actor.changes.begin()
        allowed, refused = guard.sort(seen, self._wanted(seen, orders, desk, asked), unsure, self.mode != ADVISE)
        if self.mode == ADVISE:
            guard.good()
            return found | {"advice": [line for one in allowed for line in self._actor.shown(one)], "refused": refused}
        acted: list[list[Any]] = []
        changed: list[list[Any]] = []
        errors = 0
        for one in allowed:
            if errors >= MOST_ERRORS:
                refused.append([one.wanted.kind, one.wanted.name, "errors"])
                continue
            done = self._actor.act(one, seen, seen.now_s + decided_s + time.monotonic() - begun)
            errors += sum(not good for _, good in done)
            acted += done
            if one.wanted.kind == NICE and done[-1][1]:
                changed.append([one.wanted.name, seen.jobs[one.wanted.name].nice, one.wanted.value])
        if not errors:
            guard.good()
        moving = not self.pretends and any(power_of(seen.nodes[name]) != ON for name in kept if name in seen.nodes)
        self._soon = SOON_S if guard.memory.woken_at or (moving and acted) else None
        return found | {"acted": acted, "changed": changed, "refused": refused}

    def _wanted(self, seen: Seen, orders: Orders, desk: Desk, asked: Snapshot) -> list[Wanted]:
        """Order before power: a node is anybody's once it is awake, so that the job that it is woken for has to be first by then."""
        out: list[Wanted] = []
        names = self._at.names
        if self.mode in (ADVISE, ORDER, FULL):
            waiting = sum(waits(job, self._at) for job in seen.jobs.values())
            out += nices(seen, self._at, wished(desk, asked, orders, waiting), self._guard.limits.longest_wait_s)
        if self.mode in (ADVISE, POWER, FULL):
            wakes, offs = [names[k] for k in orders.wakes], [names[k] for k in orders.offs]
            out += leases.wanted(seen, self._at, self._guard, wakes, offs)
        return out

    def failed(self, why: str) -> None:
        """A look failed."""
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
