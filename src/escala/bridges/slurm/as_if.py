"""What a guarded power mode would switch, while all nodes stay on: the policy's orders go through the guards, as if
those before had been carried out under leases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from escala.bridges.slurm import leases
from escala.bridges.slurm.guard import FREE, LEASE, OFF_NODE, WAKE, Guard, Limits
from escala.bridges.slurm.pretend import Pretend
from escala.bridges.slurm.seen import Reservation, Seen
from escala.bridges.slurm.snapshots import OFF, ON, PREFIX, SINKING, WAKING, Layout, is_lease
from escala.errors import EscalaError

FLAGS = {OFF: "POWERED_DOWN", SINKING: "POWERING_DOWN", WAKING: "POWERING_UP"}


class AsIf:
    """pretend: the nodes that it would have off. limits: of the guards. period_s: between two looks.

    Guards that judge nodes and jobs count; those that judge the process itself (errors, stale, slow, clock, version,
    others, unmarked) do not, so that the same looks always give the same figures.
    """

    def __init__(self, at: Layout, longest_s: float, limits: Limits, period_s: float) -> None:
        self._at, self.limits = at, limits
        self.pretend = Pretend(at, longest_s)
        self._leased: set[str] = set()  # nodes that are off in its eyes under leases
        self._now_s = 0.0
        self._guard = Guard(at, limits, True, period_s, self._owns, lambda: self._now_s)

    def _owns(self, one: Reservation) -> bool:
        return is_lease(one) and one.hosts[0] in self._leased

    def told(self) -> dict[str, Any]:
        """As plain data for JSON, without `pretend`."""
        return {"guard": self._guard.told(), "leased": sorted(self._leased)}

    def restore(self, told: Any) -> None:
        """Go on from what `told` gave; EscalaError for anything else."""
        try:
            self._leased = {str(name) for name in told["leased"]}
            self._guard.restore(told["guard"])
        except (TypeError, KeyError):
            raise EscalaError("what the guards remember is not told: begin without the state") from None

    def shown(self, seen: Seen) -> Seen:
        """What Slurm would say if that had been done: the flags of nodes, and leases."""
        nodes = dict(seen.nodes)
        off = {name: state for name, (state, _, _) in self.pretend.nodes.items() if state != ON and name in nodes}
        for name, state in off.items():
            nodes[name] = nodes[name]._replace(state=nodes[name].state | {FLAGS[state]})
        self._leased &= off.keys()
        end = seen.now_s + self.limits.lease_s
        kept = {PREFIX + name: Reservation(PREFIX + name, (name,), seen.now_s, end) for name in sorted(self._leased)}
        return replace(seen, nodes=nodes, reservations=seen.reservations | kept)

    def order(
        self,
        seen: Seen,
        starts: Mapping[str, Collection[str]],
        wakes: Sequence[str],
        offs: Sequence[str],
        unsure: Set[str] = frozenset(),
    ) -> tuple[list[str], list[str], list[list[str]]]:
        """Switch in its eyes what the guards let through: the nodes switched on, those switched off, and what was
        refused (kind, name, guard). starts: of the policy at this look, job -> nodes."""
        if not self._at.switches:
            return [], [], []
        self._now_s = seen.now_s
        shown, guard = self.shown(seen), self._guard
        guard.look(shown)
        guard.wish(shown, starts)
        allowed, refused = guard.sort(shown, leases.wanted(shown, self._at, guard, wakes, offs), unsure)
        done = {kind: [one.wanted.name for one in allowed if one.wanted.kind == kind] for kind in (WAKE, OFF_NODE)}
        self._leased |= {one.wanted.name for one in allowed if one.wanted.kind in (OFF_NODE, LEASE)}
        self._leased -= {one.wanted.name for one in allowed if one.wanted.kind == FREE}
        self.pretend.order(done[WAKE], done[OFF_NODE], seen.now_s)
        refused = [one for one in refused if one[0] in done]
        if held := guard.held_up(shown):  # no node is woken either: Slurm does that itself where there is no lease
            refused += [[WAKE, name, held] for name in wakes]
        return done[WAKE], done[OFF_NODE], refused
