"""The nodes that a policy would have off, kept beside nodes that stay on: what that would save, and which jobs it would
delay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from escala.bridges.slurm.seen import ENDED, TICK_S, Job, Node, Seen
from escala.bridges.slurm.snapshots import OFF, ON, SINKING, WAKING, Layout, power_of
from escala.errors import EscalaError


@dataclass
class Lived:
    """What happened since the last look. off_s, switching_s: of nodes that are on in truth. idle_s: of nodes that are
    on and idle in truth.
    truly_off_s: of nodes that Slurm has off. saved_j: against nodes that stay idle. delays: job, user, by how much its
    start would have been later since its nodes had to be woken, s. gap_s: time that was not watched, and is not
    counted."""

    watched_s: float = 0.0
    off_s: float = 0.0
    switching_s: float = 0.0
    idle_s: float = 0.0
    truly_off_s: float = 0.0
    saved_j: float = 0.0
    gap_s: float = 0.0
    delays: list[tuple[str, str, float]] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """As plain data; what is 0 is left out."""
        return {
            name: round(value, 3) if isinstance(value, float) else value for name, value in vars(self).items() if value
        }


class Pretend:
    """longest_s: the longest time between two looks that is counted."""

    def __init__(self, at: Layout, longest_s: float) -> None:
        self._at, self._longest_s = at, longest_s
        self.now_s: float | None = None
        self.nodes: dict[str, tuple[str, float, float]] = {}  # name -> state, since when, when it ends

    def told(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {"now_s": self.now_s, "nodes": {name: list(one) for name, one in self.nodes.items()}}

    def restore(self, told: Any) -> None:
        """Go on from what `told` gave; EscalaError for anything else."""
        try:
            self.now_s = None if told["now_s"] is None else float(told["now_s"])
            found = {str(name): (str(one[0]), float(one[1]), float(one[2])) for name, one in told["nodes"].items()}
        except (TypeError, KeyError, ValueError, IndexError):
            raise EscalaError("the nodes that the policy has off are not told: begin without the state") from None
        self.nodes = {name: one for name, one in found.items() if name in self._at.index}

    def power(self, node: Node) -> tuple[str, float | None, float | None]:
        """For `snapshots.snapshot`: a node as the policy left it."""
        mine = self.nodes.get(node.name)
        if mine is None:
            return power_of(node), node.busy_s, None
        state, since, end = mine
        return (
            state,
            max(since, node.busy_s or 0.0) if state == ON else None,
            end if state in (SINKING, WAKING) else None,
        )

    def advance(self, seen: Seen, lived: Lived) -> None:
        """Time goes on to what was seen, which is added to what was lived."""
        before, self.now_s = self.now_s, seen.now_s
        if before is None or seen.now_s <= before:
            return
        if seen.now_s - before > self._longest_s:
            self.nodes.clear()
            lived.gap_s += seen.now_s - before
            return
        lived.watched_s += seen.now_s - before
        first = _first_starts(seen, before)
        for name in self._at.names:
            node = seen.nodes.get(name)
            if node is not None:
                self._live(node, before, min(first.get(name, seen.now_s), seen.now_s), lived)

    def _live(self, node: Node, before: float, until: float, lived: Lived) -> None:
        """One node, from the last look until now, or until a job starts on it."""
        span = (self.now_s or before) - before
        if power_of(node) != ON:
            self.nodes.pop(node.name, None)
            lived.truly_off_s += span
            return
        if not node.allocated:
            lived.idle_s += span
        state, since, end = self.nodes.get(node.name, (ON, 0.0, 0.0))
        while state != ON:
            stop = min(until, end) if state in (SINKING, WAKING) else until
            span = max(stop - before, 0.0)
            lived.saved_j += span * self._saved_w(node.name, state)
            lived.off_s += span if state == OFF else 0.0
            lived.switching_s += span if state != OFF else 0.0
            before = max(before, stop)
            if state == OFF or end > until:
                break
            state, since, end = (OFF, end, 0.0) if state == SINKING else (ON, end, 0.0)
        if node.name in self.nodes:
            self.nodes[node.name] = (state, since, end)

    def _profile(self, name: str) -> Any:
        platform = self._at.platform
        return platform.profiles[int(platform.profile_of[self._at.index[name]])]

    def _saved_w(self, name: str, state: str) -> float:
        """Watts below idle in a state."""
        profile = self._profile(name)
        return float(profile.idle_w) - float(
            {OFF: profile.off_w, SINKING: profile.switching_off_w, WAKING: profile.switching_on_w}[state]
        )

    def settle(self, seen: Seen, started: Iterable[Job], lived: Lived) -> None:
        """Jobs have started on nodes that the policy has off: these are on from now, and the jobs would have waited."""
        for job in started:
            if job.start_s is None:
                continue
            later = max(
                (self._woken(name, job.start_s, lived) for name in job.hosts if name in self.nodes), default=0.0
            )
            if later > 0.0:
                lived.delays.append((job.job_id, job.user, round(later, 3)))
        for job in seen.jobs.values():
            if job.state != ENDED:
                for name in job.hosts:
                    self.nodes.pop(name, None)

    def _woken(self, name: str, now: float, lived: Lived) -> float:
        """How long the node would still take to be on; what its switch on costs is taken from what was saved."""
        state, _, end = self.nodes.pop(name)
        if state == ON:
            return 0.0
        boot = float(self._profile(name).switch_on_s)
        left = max(end - now, 0.0) if state in (SINKING, WAKING) else 0.0
        on = left if state == WAKING else boot
        lived.saved_j += on * self._saved_w(name, WAKING) + (
            left * self._saved_w(name, SINKING) if state == SINKING else 0.0
        )
        return on + (left if state == SINKING else 0.0)

    def order(self, wakes: Iterable[str], offs: Iterable[str], now: float) -> None:
        """The policy switches nodes."""
        for name in wakes:
            if name in self.nodes and self.nodes[name][0] == OFF:
                self.nodes[name] = (WAKING, now, now + float(self._profile(name).switch_on_s))
        for name in offs:
            self.nodes[name] = (SINKING, now, now + float(self._profile(name).switch_off_s))


def _first_starts(seen: Seen, after: float) -> dict[str, float]:
    """Host -> when the first job started on it after an instant."""
    out: dict[str, float] = {}
    for job in seen.jobs.values():
        if job.hosts and job.start_s is not None and job.start_s > after - TICK_S:
            for name in job.hosts:
                out[name] = min(out.get(name, job.start_s), job.start_s)
    return out
